//! Local training and evaluation: linear models against plain loops, networks against the peak of the processor.
//!
//! `cargo bench --bench training -- [--cases lenet,simple-cnn,resnet18,plain,kernels] [--json] [--portable] [--avx2]`. Rates are medians of
//! several repetitions, and bests, which a busy machine disturbs least. With `--json`, networks are trained on one thread and on
//! as many as there are, one object a line; `peak_share` is the share of the fused multiply-adds that the cores could do.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

mod kernels;
mod measure;
mod networks;
mod peak;
mod plain;

use fedgenie::lanes::Path;
use networks::CASES;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let cases = arguments.iter().position(|argument| argument == "--cases").map(|place| &arguments[place + 1]);
    let wants = |name: &str| cases.is_none_or(|cases| cases.split(',').any(|case| case == name));
    let path = match () {
        () if has("--portable") => Path::Portable,
        () if has("--avx2") => Path::Avx2,
        () => Path::detect(),
    };
    let threads = rayon::current_num_threads();
    let peak = peak::peak(path);
    if !has("--json") {
        println!("{path:?}, peak of a core {:.1} GFLOP/s, threads: {threads}", peak / 1e9);
    }
    if wants("plain") && !has("--json") {
        plain::linear(1_000, 50, 100);
        plain::linear(1_000, 50, 10);
        plain::softmax();
    }
    if wants("kernels") && !has("--json") {
        kernels::table(path, peak);
    }
    for case in CASES.iter().filter(|case| wants(case.name)) {
        let mut counts = vec![1, threads];
        counts.dedup();
        for threads in counts {
            let rate = case.train(path, threads, peak);
            if has("--json") {
                println!(
                    "{{\"case\":\"{}\",\"threads\":{threads},\"unit\":\"{}\",\"median\":{:.4},\"best\":{:.4},\"peak_share\":{:.4}}}",
                    case.name, rate.unit, rate.median, rate.best, rate.peak_share
                );
            } else {
                println!(
                    "{:<12} {threads} threads {:>9.2} {} (best {:>9.2}), {:>5.1} % of the peak",
                    case.name,
                    rate.median,
                    rate.unit,
                    rate.best,
                    100.0 * rate.peak_share
                );
            }
        }
        if !has("--json") {
            let (images, seconds) = case.evaluate();
            println!("{:<12} evaluation {:>9.0} images/s", case.name, images as f64 / seconds.median);
        }
    }
}
