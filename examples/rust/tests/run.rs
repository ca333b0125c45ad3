//! The examples run against each other, in both orders of start.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that an example may run.
const LIMIT: Duration = Duration::from_secs(30);

struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        // Already gone is just as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &str, side: &str, instance: &str) -> Example {
    let system = Path::new(env!("CARGO_MANIFEST_DIR")).join("../talk.toml");
    let mut command = Command::new(program);
    command.arg(side).env("MUSUBI_SYSTEM", system).env("MUSUBI_INSTANCE", instance).stdout(Stdio::null());
    Example(command.spawn().unwrap())
}

fn succeed(mut example: Example) {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = example.0.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < LIMIT, "an example does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
}

fn both_ways(name: &str, program: &str, sides: [&str; 2]) {
    for (turn, sides) in [sides, [sides[1], sides[0]]].into_iter().enumerate() {
        let instance = format!("{name}-{}-{turn}", std::process::id());
        let first = start(program, sides[0], &instance);
        std::thread::sleep(Duration::from_millis(100));
        succeed(start(program, sides[1], &instance));
        succeed(first);
    }
}

#[test]
fn figure_4() {
    both_ways("figure4", env!("CARGO_BIN_EXE_figure4"), ["master", "remote"]);
}

#[test]
fn parameters() {
    both_ways("parameters", env!("CARGO_BIN_EXE_parameters"), ["control", "panel"]);
}

#[test]
fn typed_messages() {
    both_ways("typed", env!("CARGO_BIN_EXE_typed"), ["control", "panel"]);
}

#[test]
fn futures() {
    both_ways("async", env!("CARGO_BIN_EXE_async"), ["control", "panel"]);
}
