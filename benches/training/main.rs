//! Local training and evaluation: linear models against plain loops, networks against the peak of the processor.
//!
//! `cargo bench --bench training -- [--cases lenet,fed-bac,simple-cnn,resnet18,plain,kernels] [--path NAME] [--json]`.
//! Networks are trained on every path of the processor, or on the given one, on one thread and on as many as there are.
//! Rates are medians of several repetitions, and bests, which a busy machine disturbs least. With `--json` there is one
//! object a line; `peak_share` is the share of the fused multiply-adds that the cores could do on the path. A path
//! without a fused multiply-add is shown for LeNet-5, on one thread.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

mod kernels;
mod measure;
mod networks;
mod peak;
mod plain;

use fedgenie::lanes::Path;
use networks::{CASES, Case};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let cases = arguments.iter().position(|argument| argument == "--cases").map(|index| &arguments[index + 1]);
    let wants = |name: &str| cases.is_none_or(|cases| cases.split(',').any(|case| case == name));
    let named = arguments.iter().position(|argument| argument == "--path").map(|index| arguments[index + 1].as_str());
    let mut paths = Path::all();
    // The fastest first.
    paths.reverse();
    if let Some(name) = named {
        paths.retain(|path| path.name() == name);
        assert!(!paths.is_empty(), "this processor has the paths {:?}, and no {name}", Path::all());
    }
    let threads = rayon::current_num_threads();
    let peaks: Vec<(Path, f64)> = paths.into_iter().map(|path| (path, peak::peak(path))).collect();
    if !has("--json") {
        for (path, peak) in &peaks {
            println!("path {path}: peak of a core {:.1} GFLOP/s", peak / 1e9);
        }
        println!("threads: {threads}; evaluation and linear models are on path {}", Path::detect());
    }
    if wants("plain") && !has("--json") {
        plain::linear(1_000, 50, 100);
        plain::linear(1_000, 50, 10);
        plain::softmax();
    }
    if wants("kernels") && !has("--json") {
        for &(path, peak) in peaks.iter().filter(|(path, _)| path.has_fma()) {
            println!("path {path}");
            kernels::table(path, peak);
        }
    }
    for case in CASES.iter().filter(|case| wants(case.name)) {
        for &(path, peak) in &peaks {
            let mut counts = if path.has_fma() { vec![1, threads] } else { vec![1] };
            counts.dedup();
            if path.has_fma() || case.name == "lenet" {
                counts.into_iter().for_each(|threads| train(case, path, peak, threads, has("--json")));
            }
        }
        if !has("--json") {
            let (images, seconds) = case.evaluate();
            println!("{:<12} evaluation {:>9.0} images/s", case.name, images as f64 / seconds.median);
            if let Some([together, apart]) = case.evaluate_clusters() {
                let ratio = together.median / apart.median;
                println!("{:<12} losses of ten clusters: {ratio:.2} of eleven passes of one network", case.name);
            }
        }
    }
}

fn train(case: &Case, path: Path, peak: f64, threads: usize, json: bool) {
    let networks::Rate { unit, median, best, peak_share } = case.train(path, threads, peak);
    let name = case.name;
    if json {
        println!(
            "{{\"case\":\"{name}\",\"path\":\"{path}\",\"threads\":{threads},\"unit\":\"{unit}\",\"median\":{median:.4},\"best\":{best:.4},\"peak_share\":{peak_share:.4}}}"
        );
    } else {
        let share = 100.0 * peak_share;
        println!(
            "{name:<12} {path:<8} {threads} threads {median:>9.2} {unit} (best {best:>9.2}), {share:>5.1} % of the peak"
        );
    }
}
