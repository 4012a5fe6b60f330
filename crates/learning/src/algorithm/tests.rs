//! Which entries go together, and their traffic.

use super::*;
use crate::trainer::OptimizerConfig;

const SGD: OptimizerConfig =
    OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };

fn scene<'a>(optimizer: &'a OptimizerConfig, server: &'a ServerConfig) -> Scene<'a> {
    Scene {
        optimizer,
        proximal: 0.0,
        has_noise: false,
        weighting: Weighting::Uniform,
        server,
        rows: RowDivisor::Selected,
        protocol: "synchronous",
        has_edges: false,
        has_clusters: false,
        weighs_age: false,
        task: "classification",
        has_model: true,
        has_gradient: true,
        has_losses: true,
        has_hidden: true,
        has_rows: false,
        has_own_combination: false,
    }
}

fn entries(toml: &str) -> AlgorithmsConfig {
    toml::from_str(toml).unwrap()
}

#[test]
fn entries_are_read_by_name_in_their_order() {
    let read = entries("[trimmed-mean]\nfraction = 0.25\n[scaffold]\n");
    let expected = vec![
        AlgorithmConfig::TrimmedMean(trimmed_mean::Config { fraction: 0.25 }),
        AlgorithmConfig::Scaffold(scaffold::Config { option: 2 }),
    ];
    assert_eq!(read, AlgorithmsConfig::from(expected));
    assert_eq!(entries(&toml::to_string(&read).unwrap()), read);
    assert!(toml::from_str::<AlgorithmsConfig>("[fedsgd]\n").unwrap_err().to_string().contains("fedsgd"));
    assert!(toml::from_str::<AlgorithmsConfig>("[scaffold]\noptions = 1\n").is_err());
}

/// An entry with the keys that have no default.
fn entry_of(name: &str) -> String {
    let keys = match name {
        "krum" | "multi-krum" | "bulyan" => "byzantine = 1\n",
        "norm-clipping" => "norm = 1.0\n",
        "fedper" | "fedrep" | "lg-fedavg" => "private = [\"fc\"]\n",
        _ => "",
    };
    format!("[{name}]\n{keys}")
}

/// Every pair of entries: jobs and combinations go together, two combinations do not.
#[test]
fn every_pair_is_defined_or_refused_by_name() {
    let server = ServerConfig::default();
    let names: Vec<&str> = CATALOGUE.entries.iter().map(|entry| entry.name).collect();
    for one in &names {
        for other in names.iter().filter(|other| *other != one) {
            let both = entries(&format!("{}{}", entry_of(one), entry_of(other)));
            let scene = scene(&SGD, &server);
            let has = |part: fn(&dyn AlgorithmSettings, &Scene<'_>) -> bool| {
                both.entries().iter().filter(|entry| part(entry.settings(), &scene)).count()
            };
            let jobs = has(|settings, scene| {
                settings.job(scene).is_some() || settings.own_models().is_some() || settings.personal().is_some()
            });
            let combinations = has(|settings, scene| settings.combine(scene).is_some());
            match Algorithm::new(&both, &scene) {
                Ok(Algorithm { job, combine, own_models, personal, .. }) => {
                    let job = job.is_some() || own_models.is_some() || personal.is_some();
                    assert_eq!((usize::from(job), usize::from(combine.is_some())), (jobs, combinations));
                }
                Err(complaint) => {
                    assert!(jobs == 2 || combinations == 2, "{one} with {other}: {}", complaint.message);
                    assert!(complaint.message.contains(one), "{}", complaint.message);
                    assert_eq!(complaint.path, *other);
                }
            }
        }
    }
}

#[test]
fn what_is_not_defined_is_refused_by_name() {
    let server = ServerConfig::default();
    let momentum = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.5, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let dampened = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.5, nesterov: false, weight_decay: 0.0, dampening: 0.5 };
    let nesterov = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.5, nesterov: true, weight_decay: 0.0, dampening: 0.0 };
    let adam = OptimizerConfig::Adam { lr: 0.1, beta1: 0.9, beta2: 0.9, epsilon: 1.0, weight_decay: 0.0 };
    let plain = scene(&SGD, &server);
    for (entry, scene, part) in [
        ("scaffold", Scene { optimizer: &momentum, ..plain }, "without momentum"),
        ("scaffold", Scene { optimizer: &adam, ..plain }, "sgd"),
        ("scaffold", Scene { has_noise: true, ..plain }, "[privacy]"),
        ("scaffold", Scene { has_edges: true, ..plain }, "protocol"),
        ("scaffold", Scene { has_gradient: false, ..plain }, "classification"),
        ("scaffold", Scene { has_model: false, ..plain }, "classification"),
        ("fedavg", Scene { has_own_combination: true, ..plain }, "of its own"),
        ("fedavg", Scene { has_model: false, ..plain }, "classification"),
        ("fednova", Scene { optimizer: &adam, ..plain }, "sgd"),
        ("fednova", Scene { optimizer: &nesterov, ..plain }, "Nesterov"),
        ("fednova", Scene { optimizer: &dampened, ..plain }, "dampening"),
        ("fednova", Scene { optimizer: &momentum, proximal: 0.1, ..plain }, "proximal"),
        ("fednova", Scene { has_own_combination: true, ..plain }, "of its own"),
        ("fedprox", Scene { proximal: 0.1, ..plain }, "[training] proximal"),
        ("fedprox", Scene { has_model: false, ..plain }, "classification"),
        ("trimmed-mean", Scene { weighting: Weighting::DataSize, ..plain }, "data-size"),
        ("trimmed-mean", Scene { weighs_age: true, ..plain }, "staleness"),
        ("median", Scene { weighting: Weighting::DataSize, ..plain }, "data-size"),
        ("median", Scene { has_model: false, ..plain }, "classification"),
        ("krum", Scene { weighs_age: true, ..plain }, "staleness"),
        ("krum", Scene { rows: RowDivisor::Touched, ..plain }, "touched"),
        ("multi-krum", Scene { weighting: Weighting::TotalSize, ..plain }, "total-size"),
        ("bulyan", Scene { has_clusters: true, ..plain }, "[clusters]"),
        ("geometric-median", Scene { has_own_combination: true, ..plain }, "of its own"),
        ("norm-clipping", Scene { rows: RowDivisor::Touched, ..plain }, "touched"),
        ("centred-clipping", Scene { has_rows: true, ..plain }, "tables"),
        ("afl-minimax", Scene { has_edges: true, ..plain }, "protocol"),
        ("afl-minimax", Scene { has_losses: false, ..plain }, "losses"),
        ("centred-clipping", Scene { has_edges: true, ..plain }, "protocol"),
        ("feddyn", Scene { server: &ServerConfig::Average { lr: 0.5 }, ..plain }, "average"),
        ("feddyn", Scene { proximal: 0.1, ..plain }, "[training] proximal"),
        ("feddyn", Scene { has_noise: true, ..plain }, "[privacy]"),
        ("feddyn", Scene { has_edges: true, ..plain }, "protocol"),
        ("moon", Scene { has_hidden: false, ..plain }, "hidden layer"),
        ("moon", Scene { has_clusters: true, ..plain }, "[clusters]"),
        ("qfedavg", Scene { has_losses: false, ..plain }, "losses"),
        ("qfedavg", Scene { weighting: Weighting::DataSize, ..plain }, "data-size"),
    ] {
        let complaint = Algorithm::new(&entries(&entry_of(entry)), &scene).unwrap_err();
        assert!(complaint.path == entry && complaint.message.contains(part), "{entry}: {}", complaint.message);
    }
    for (text, path) in [
        ("[trimmed-mean]\nfraction = 0.5\n", "trimmed-mean.fraction"),
        ("[scaffold]\noption = 3\n", "scaffold.option"),
        ("[fedprox]\nmu = 0.0\n", "fedprox.mu"),
        ("[feddyn]\nalpha = 0.0\n", "feddyn.alpha"),
        ("[qfedavg]\nq = -1.0\n", "qfedavg.q"),
        ("[moon]\nmu = 0.0\n", "moon.mu"),
        ("[moon]\ntemperature = 0.0\n", "moon.temperature"),
        ("[multi-krum]\nbyzantine = 1\nkeep = 0\n", "multi-krum.keep"),
        ("[geometric-median]\niterations = 0\n", "geometric-median.iterations"),
        ("[geometric-median]\nnu = 0.0\n", "geometric-median.nu"),
        ("[norm-clipping]\nnorm = 0.0\n", "norm-clipping.norm"),
        ("[centred-clipping]\nradius = -1.0\n", "centred-clipping.radius"),
        ("[centred-clipping]\niterations = 0\n", "centred-clipping.iterations"),
    ] {
        assert_eq!(Algorithm::new(&entries(text), &plain).unwrap_err().path, path);
    }
}

#[test]
fn what_travels_beside_models_and_updates() {
    let server = ServerConfig::default();
    let beside = |text: &str| Algorithm::new(&entries(text), &scene(&SGD, &server)).unwrap().beside([10, 4]);
    assert_eq!(beside(""), [0, 0]);
    assert_eq!(beside("[fedavg]\n[scaffold]\n"), [40, 16]);
    assert_eq!(beside("[fednova]\n"), [0, 4]);
    assert_eq!(beside("[fednova]\n[scaffold]\noption = 1\n"), [40, 20]);
    assert_eq!(beside("[trimmed-mean]\n"), [0, 0]);
    assert_eq!(beside("[qfedavg]\n"), [0, 4]);
    assert_eq!(beside("[feddyn]\n"), [0, 0]);
}
