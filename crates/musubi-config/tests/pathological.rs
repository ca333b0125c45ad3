//! Files of the largest size, built to be expensive, end with a report: no overflow of the stack, no endless work.

use std::time::Duration;

use musubi_config::{DESCRIPTION_BYTES_MAX, parse};
use rustix::time::{ClockId, clock_gettime};

/// What the worst file may take of a processor, with a wide margin for unoptimised builds. Not time on the clock: other
/// programs of a busy machine do not count.
const TIME_MAX: Duration = Duration::from_secs(20);

fn repeated(piece: &str) -> String {
    piece.repeat(DESCRIPTION_BYTES_MAX as usize / piece.len())
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("time runs forwards")
}

#[track_caller]
fn ends_with_a_report(text: &str) {
    let begin = processor_time();
    let report = parse("large.toml", text).expect_err("not a description");
    assert!(!report.errors().is_empty());
    let shown = report.render(false);
    let taken = processor_time() - begin;
    println!("{taken:?}: {}", shown.lines().last().unwrap_or_default());
    assert!(taken < TIME_MAX, "{taken:?}");
}

#[test]
fn deep_nesting() {
    for piece in ["[", "{", "a={", "[[", "a=["] {
        ends_with_a_report(&repeated(piece));
    }
    ends_with_a_report(&format!("x = {}", repeated("[")));
    ends_with_a_report(&format!("x = {}", repeated("{a=")));
    ends_with_a_report(&format!("{}b = 1", repeated("a.")));
    ends_with_a_report(&format!("[{}b]", repeated("a.")));
}

#[test]
fn many_mistakes() {
    ends_with_a_report(&repeated("[[domain]]\n"));
    ends_with_a_report(&repeated("[[fifo]]\nfrom = 1\n"));
    ends_with_a_report(&repeated("= \n"));
    ends_with_a_report(&repeated("\0"));
    let keys: String = (0..300_000).map(|number| format!("k{number}=1\n")).collect();
    ends_with_a_report(&keys);
    let domains: String =
        (0..60_000).map(|number| format!("[[domain]]\nname=\"d{number}\"\nrole=\"master\"\n")).collect();
    ends_with_a_report(&domains);
}

#[test]
fn long_words() {
    ends_with_a_report(&repeated("k"));
    ends_with_a_report(&format!("{} = 1", repeated("k")));
    ends_with_a_report(&format!("[system]\nname = \"{}\"", repeated("ü")));
    ends_with_a_report(&format!("[system]\nname = \"x\"\nbase = {}", repeated("9")));
    ends_with_a_report(&format!("[[fifo]]\nblock_size = \"{}\"", repeated("9")));
}
