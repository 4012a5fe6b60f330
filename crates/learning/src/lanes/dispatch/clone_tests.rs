//! The clone that ran, and its compiled form: the machine code of every clone in this very program.
//!
//! Bits cannot tell a clone from a fallback. The stack can, while a kernel runs; and the machine code shows which
//! features a clone was compiled with, for every path, also where this processor could not run it.

use super::*;
use crate::lanes::{LANES, Lanes, keep_vectors_whole};
use iced_x86::{CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::backtrace::Backtrace;
use std::collections::BTreeMap;

/// Tells in which clone it runs.
struct Caller;

impl Kernel for Caller {
    type Output = String;
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> String {
        Backtrace::force_capture().to_string()
    }
}

const MODULES: [&str; 3] = ["baseline", "avx2", "avx512"];

#[test]
fn what_runs_is_the_clone_of_the_path() {
    let paths = Path::all();
    assert_eq!(paths.last(), Some(&Path::detect()));
    for path in paths {
        let expected = if path == Path::BASELINE { "baseline" } else { path.name() };
        let stack = run(path, Caller);
        for module in MODULES {
            let is_running = stack.contains(&format!("dispatch::{module}::run"));
            assert_eq!(is_running, module == expected, "on {path}, {module}:\n{stack}");
        }
    }
}

/// Sums of products, long enough that vectors are worth while.
struct Products<'a>(&'a [f32], &'a mut [f32]);

impl Kernel for Products<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for (out, factors) in self.1.as_chunks_mut::<LANES>().0.iter_mut().zip(self.0.as_chunks::<LANES>().0) {
            keep_vectors_whole();
            *out = Lanes(*factors).mul_add(Lanes(*factors), Lanes(*out)).0;
        }
    }
}

/// The functions of this program: address, name and code.
fn functions() -> Vec<(u64, String, Vec<Instruction>)> {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = object::File::parse(&*program).unwrap();
    let mut found: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        found.insert(symbol.address(), (symbol.size(), symbol.name().unwrap().to_owned()));
    }
    let text = file.section_by_name(".text").unwrap();
    let (start, bytes) = (text.address(), text.data().unwrap());
    let code = |address: u64, size: u64| {
        let at = (address - start) as usize;
        Decoder::with_ip(64, &bytes[at..at + size as usize], address, DecoderOptions::NONE).into_iter().collect()
    };
    let is_in = |address: &u64| (start..start + bytes.len() as u64).contains(address);
    let found = found.into_iter().filter(|(address, _)| is_in(address));
    found.map(|(address, (size, name))| (address, name, code(address, size))).collect()
}

/// Functions that are kept out of the loops before them, as they are called once for many steps.
const SUMS_OVER_LANES: [&str; 6] =
    ["5Lanes3sum", "9fold_tile", "12fold_waiting", "8fold_all", "10add_folded", "5count5total"];

/// Whether an instruction calculates with floating-point numbers in the way of the oldest processors.
fn is_old_arithmetic(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic());
    let calculates = ["Add", "Sub", "Mul", "Div", "Sqrt", "Max", "Min"].iter().any(|verb| name.starts_with(verb));
    calculates && ["ps", "ss", "pd", "sd"].iter().any(|ending| name.ends_with(ending))
}

/// Features that a clone may use, beside those of every x86-64 processor.
fn allowed(module: &str) -> Vec<CpuidFeature> {
    use CpuidFeature as F;
    let mut features = vec![F::AVX, F::AVX2, F::FMA];
    if module == "avx512" {
        features.extend([F::AVX512F, F::AVX512BW, F::AVX512CD, F::AVX512DQ, F::AVX512VL]);
    }
    features
}

#[test]
fn clones_are_compiled_with_the_features_of_their_path_and_no_others() {
    let mut out = [0.0; 4 * LANES];
    for path in Path::all() {
        run(path, Products(&[0.5; 4 * LANES], &mut out));
    }
    let functions = functions();
    let by_address: BTreeMap<u64, usize> =
        functions.iter().enumerate().map(|(index, (address, ..))| (*address, index)).collect();
    for module in ["avx2", "avx512"] {
        let part = format!("dispatch{}{module}3run", module.len());
        let clones: Vec<_> = functions.iter().filter(|(_, name, _)| name.contains(&part)).collect();
        assert!(clones.len() > 20, "{module}: {} clones", clones.len());
        let (allowed, mut multiply) = (allowed(module), 0);
        for (_, name, code) in clones {
            for instruction in code {
                // Lanes that are gathered one by one: a loop whose body lacks `keep_vectors_whole`.
                let is_apart =
                    ["Vgather", "Vscatter"].map(|verb| format!("{:?}", instruction.mnemonic()).starts_with(verb));
                assert_eq!(is_apart, [false; 2], "{name}: {:?}", instruction.mnemonic());
                assert!(!is_old_arithmetic(instruction), "{name}: {:?}", instruction.mnemonic());
                for feature in instruction.cpuid_features() {
                    let is_basic = format!("{feature:?}").starts_with("SSE")
                        || format!("{feature:?}").starts_with("INTEL")
                        || [CpuidFeature::X64, CpuidFeature::CMOV, CpuidFeature::MULTIBYTENOP].contains(feature);
                    assert!(is_basic || allowed.contains(feature), "{name}: {feature:?}");
                }
                // A function that a clone calls belongs to no clone, so it must not calculate: but for sums over lanes,
                // kept out on purpose.
                if instruction.flow_control() == FlowControl::Call {
                    let Some(&callee) = by_address.get(&instruction.near_branch_target()) else { continue };
                    let (_, callee, code) = &functions[callee];
                    let is_sum = SUMS_OVER_LANES.iter().any(|sum| callee.contains(sum));
                    assert!(is_sum || !code.iter().any(is_old_arithmetic), "{name} calls {callee}");
                }
            }
            let multiplies = |instruction: &&Instruction| {
                let register = instruction.op0_register();
                let is_widest = if module == "avx512" { register.is_zmm() } else { register.is_ymm() };
                is_widest && format!("{:?}", instruction.mnemonic()).starts_with("Vfm")
            };
            let fused = code.iter().filter(multiplies).count();
            multiply += usize::from(fused > 0);
            for kernel in ["Products", "Correlate", "CorrelateGradient", "Product"] {
                if name.contains(&format!("{}{kernel}", kernel.len())) {
                    assert!(fused > 0, "{name} has no fused multiply-add of whole vectors");
                }
            }
        }
        assert!(multiply > 5, "{module}: {multiply} clones multiply and add");
    }
}
