//! Hold model of the event queue beside a bare `std::collections::BinaryHeap` in the same run.
//!
//! N events are pending; one step pops the earliest and schedules another at +Exp(1), as runs do: every event can be
//! withdrawn. With cancellation, every tenth step also withdraws a pending event and schedules a replacement. `floor`
//! is the least that withdrawal takes: a bare heap, the present entry of each event in a table, and entries that are no
//! longer present skipped. `cargo bench --bench kernel`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::kernel::Kernel;
use fedgenie::math::float::ln;
use fedgenie::rng::{Purpose, Streams};
use fedgenie::time::VirtualTime;
use priority_queue::PriorityQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

/// Increments drawn beforehand, so that only the queue is timed.
fn increments() -> Vec<u64> {
    let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 0);
    (0..1 << 16).map(|_| (-ln(rng.uniform()) * 1e9) as u64).collect()
}

fn bare(pending: usize, steps: usize, increments: &[u64]) -> f64 {
    let mut heap = BinaryHeap::new();
    let mut sequence = 0u64;
    for i in 0..pending {
        sequence += 1;
        heap.push(Reverse((increments[i % increments.len()], sequence)));
    }
    let start = Instant::now();
    for step in 0..steps {
        let Some(Reverse((time, event))) = heap.pop() else { break };
        black_box(event);
        sequence += 1;
        heap.push(Reverse((time + increments[step % increments.len()], sequence)));
    }
    start.elapsed().as_nanos() as f64 / steps as f64
}

/// As [`bare`], with every tenth step withdrawing an event: entries that the table does not name are skipped.
fn floor(pending: usize, steps: usize, increments: &[u64]) -> f64 {
    let mut heap = BinaryHeap::new();
    let mut present = Vec::with_capacity(pending);
    let mut sequence = 0u64;
    for i in 0..pending {
        sequence += 1;
        present.push(sequence);
        heap.push(Reverse((increments[i % increments.len()], sequence, i as u32)));
    }
    let mut victim = 0;
    let start = Instant::now();
    for step in 0..steps {
        let (time, event) = loop {
            let Some(Reverse((time, entry, event))) = heap.pop() else { unreachable!("events are pending") };
            if present[event as usize] == entry {
                break (time, event);
            }
        };
        black_box(event);
        sequence += 1;
        present[event as usize] = sequence;
        heap.push(Reverse((time + increments[step % increments.len()], sequence, event)));
        if step % 10 == 0 {
            victim = (victim + 7919) % pending;
            sequence += 1;
            present[victim] = sequence;
            heap.push(Reverse((time + increments[(step + 1) % increments.len()], sequence, victim as u32)));
        }
    }
    start.elapsed().as_nanos() as f64 / steps as f64
}

fn kernel(pending: usize, steps: usize, increments: &[u64], cancel: bool) -> f64 {
    let mut kernel: Kernel<u64, u8> = Kernel::default();
    let mut handles = Vec::with_capacity(pending);
    for i in 0..pending {
        let time = VirtualTime(increments[i % increments.len()]);
        handles.push(kernel.schedule(time, 0, i as u64));
    }
    let mut victim = 0;
    let start = Instant::now();
    for step in 0..steps {
        let Some(fedgenie::kernel::Occurrence::Event(event)) = kernel.next() else { break };
        black_box(event);
        let time = VirtualTime(kernel.now().0 + increments[step % increments.len()]);
        handles[event as usize] = kernel.schedule(time, 0, event);
        if cancel && step % 10 == 0 {
            victim = (victim + 7919) % pending;
            assert!(kernel.cancel(handles[victim]));
            let again = VirtualTime(kernel.now().0 + increments[(step + 1) % increments.len()]);
            handles[victim] = kernel.schedule(again, 0, victim as u64);
        }
    }
    start.elapsed().as_nanos() as f64 / steps as f64
}

/// The `priority-queue` crate doing the same by id, to show why it holds the timers and not the flood.
fn by_id(pending: usize, steps: usize, increments: &[u64]) -> f64 {
    let mut queue = PriorityQueue::new();
    let mut sequence = 0u64;
    for i in 0..pending {
        sequence += 1;
        queue.push(i as u64, Reverse((increments[i % increments.len()], sequence)));
    }
    let start = Instant::now();
    for step in 0..steps {
        let Some((event, Reverse((time, _)))) = queue.pop() else { break };
        sequence += 1;
        queue.push(event, Reverse((time + increments[step % increments.len()], sequence)));
    }
    start.elapsed().as_nanos() as f64 / steps as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let increments = increments();
    println!("hold model, median ns per pop + push of 7 interleaved repetitions");
    println!(
        "{:>9} {:>10} {:>10} {:>6} {:>12} {:>6} {:>7} {:>6} {:>15}",
        "pending", "bare heap", "kernel", "ratio", "10% cancel", "ratio", "floor", "ratio", "priority-queue"
    );
    for pending in [1_000, 100_000, 1_000_000] {
        let steps = 1_000_000;
        let mut measured: [Vec<f64>; 5] = Default::default();
        for _ in 0..7 {
            measured[0].push(bare(pending, steps, &increments));
            measured[1].push(kernel(pending, steps, &increments, false));
            measured[2].push(kernel(pending, steps, &increments, true));
            measured[3].push(floor(pending, steps, &increments));
            measured[4].push(by_id(pending, steps / 4, &increments));
        }
        let [bare, plain, cancelling, floor, by_id] = measured.map(median);
        println!(
            "{pending:>9} {bare:>10.1} {plain:>10.1} {:>6.2} {cancelling:>12.1} {:>6.2} {floor:>7.1} {:>6.2} {by_id:>15.1}",
            plain / bare,
            cancelling / bare,
            floor / bare
        );
    }
}
