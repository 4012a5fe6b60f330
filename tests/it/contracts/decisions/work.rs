//! Work of clients: the time of a job and what it learns.

use super::{FOUR, SYNCHRONOUS, decision, play_in, played, told, world_of};
use crate::support::changed;
use serde_json::json;

/// One and three epochs in the place of two: 2 and 6 s to compute. By data size, (1·1 + 2·6)/3.
#[test]
fn epochs_share_the_time_that_laws_draw() {
    let course = played(SYNCHRONOUS, &[decision(&[0, 1], &[], &[1, 3], None)], 1);
    course.assert(&[8.0], &[13.0 / 3.0]);
    assert_eq!(course.column("work"), [json!([1, 3])]);
}

/// Client 1 computes two examples three times, one a second, where the usual job has them twice; 4 bytes take 1 s each
/// way. Client 3 computes four examples once.
#[test]
fn epochs_share_the_time_of_devices() {
    let device = "device = { samples_per_second = 1, downlink = \"32 bit/s\", uplink = \"32 bit/s\" }\n[training]";
    let (from, to) = (FOUR.find("[population.latency]").unwrap(), FOUR.find("[training]").unwrap());
    let text = format!("{}{device}{}{SYNCHRONOUS}", &FOUR[..from], &FOUR[to + "[training]".len()..]);
    let decisions =
        vec![decision(&[1], &[], &[3], None), decision(&[3], &[], &[1], None), decision(&[1], &[], &[], None)];
    let course = play_in(&world_of(&text), &told(decisions), 3).unwrap();
    course.assert(&[8.0, 14.0, 20.0], &[6.0, 10.0, 14.0]);
}

/// A third of 4 s is 1.333333333 s, and two thirds 2.666666667 s: to the nearest nanosecond.
#[test]
fn shares_of_time_are_rounded_to_the_nearest_nanosecond() {
    let text = changed(FOUR, "epochs = 2\nmost_epochs = 6", "epochs = 3");
    let decisions = vec![decision(&[0], &[], &[1], None), decision(&[0], &[], &[2], None)];
    let course = play_in(&world_of(&format!("{text}{SYNCHRONOUS}")), &told(decisions), 2).unwrap();
    assert_eq!(course.closed(), [3.333_333_333, 3.333_333_333 + 4.666_666_667]);
}

/// A loss with a probability strikes after the same share of a short job and of a long one.
#[test]
fn the_time_to_a_loss_is_that_of_the_job() {
    let text = changed(
        FOUR,
        "[population.latency]",
        "dropout = { compute = { probability = 0.999999 } }\n[population.latency]",
    );
    let protocol = "[protocol.synchronous]\ncohort = 2\ntimeout = \"30 s\"\n";
    let lost = |work: &[u32]| {
        let world = world_of(&format!("{text}{protocol}"));
        let course = play_in(&world, &told(vec![decision(&[0], &[], work, None)]), 1).unwrap();
        course.rounds[0]["dropped"][0]["spent_s"][1].as_f64().unwrap()
    };
    let (usual, half, triple) = (lost(&[]), lost(&[1]), lost(&[6]));
    assert!((half - usual / 2.0).abs() < 1e-8 && (triple - 3.0 * usual).abs() < 1e-8, "{usual} {half} {triple}");
}

/// Under `hierarchical`, the second round of an edge server begins when the slowest of the first has ended.
#[test]
fn edge_servers_wait_for_the_longest_job() {
    let protocol = "[protocol.hierarchical]\nedges = 2\ncohort = 2\nedge_rounds = 2\n";
    let decisions = [decision(&[0, 1, 2, 3], &[], &[1, 3, 2, 2], None), decision(&[0, 2], &[], &[1, 6], None)];
    // Server 0 at 8 and 12 s: (1·1 + 2·6)/3 + 1; server 1 at 6 and 20 s: (3·6 + 4·8)/7 + 18.
    let course = played(protocol, &decisions, 1);
    let (first, second) = (13.0 / 3.0 + 1.0, 50.0 / 7.0 + 18.0);
    course.assert(&[20.0], &[(0.3 * first + 0.7 * second) as f32]);
    assert_eq!(course.column("work"), [json!([1, 3, 2, 2, 6, 1])]);
}
