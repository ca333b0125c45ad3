//! The examples in C, as a newcomer builds and runs them, in both orders of start.

mod programs;

use std::path::PathBuf;
use std::time::Duration;

use programs::{Process, compile, instance, root};

fn talk() -> PathBuf {
    root().join("examples/talk.toml")
}

/// Runs two examples against each other in both orders.
fn both_ways(one: (&str, &str), other: (&str, &str)) {
    for (first, second) in [(one, other), (other, one)] {
        let instance = instance();
        let start = |(stem, side): (&str, &str)| {
            let program = compile(&root().join(format!("examples/c/{stem}.c")));
            Process::start(&program, side, &instance, &talk())
        };
        let mut first = start(first);
        std::thread::sleep(Duration::from_millis(100));
        let mut second = start(second);
        second.succeed();
        first.succeed();
    }
}

#[test]
fn the_flow_of_figure_4_and_the_event_loop() {
    both_ways(("figure4", "master"), ("figure4", "remote"));
    both_ways(("figure4", "master"), ("epoll", ""));
}

#[test]
fn parameters() {
    both_ways(("parameters", "control"), ("parameters", "panel"));
}
