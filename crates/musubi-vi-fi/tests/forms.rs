//! C programs that use libfabric's own headers and library, over the provider: every form of its calls, contents checked.
//!
//! Skipped, with the line that installs it, where libfabric's headers are not installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::provider::{end, installed};

mod provider;

/// The program, built into this directory; none where what it needs is not installed.
fn built(directory: &Path) -> Option<PathBuf> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libfabric"]).output().ok();
    let Some(flags) = flags.filter(|flags| flags.status.success()) else {
        eprintln!(
            "SKIPPED: no libfabric; run: apt-get install -y --no-install-recommends gcc pkg-config libfabric-dev"
        );
        return None;
    };
    let flags = String::from_utf8(flags.stdout).expect("flags are text");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/forms.c");
    let program = directory.join("forms");
    let mut compiler = Command::new("gcc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program).arg(source);
    let outcome = compiler.args(flags.split_whitespace()).output().expect("gcc can be started");
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    Some(program)
}

fn run(words: &[&str]) {
    let provider = installed(&words.join("-"));
    if let Some(program) = built(&provider) {
        let mut command = Command::new(program);
        command.args(words).env("FI_PROVIDER_PATH", &provider).stdout(Stdio::piped()).stderr(Stdio::piped());
        let outcome = end(command.spawn().expect("it has just been built"));
        assert!(outcome.status.success(), "{words:?}: {outcome:?}");
    }
    std::fs::remove_dir_all(&provider).expect("the directory is ours");
}

#[test]
fn messages_in_pieces_and_with_data_arrive_and_only_who_asks_is_told() {
    run(&["messages"]);
}

#[test]
fn reads_and_writes_of_every_form_touch_what_they_name_and_nothing_else() {
    run(&["memory"]);
}

#[test]
fn a_message_without_a_receive_waits_for_one() {
    run(&["late"]);
}

#[test]
fn waits_end_with_what_is_waited_for() {
    run(&["waits"]);
}

#[test]
fn descriptors_can_be_waited_on() {
    run(&["waits", "descriptor"]);
}

#[test]
fn the_death_of_a_peer_ends_the_connection_and_gives_back_what_was_posted() {
    run(&["loss"]);
}

#[test]
fn the_death_of_a_peer_wakes_who_waits_on_descriptors() {
    run(&["loss", "descriptor"]);
}

#[test]
fn a_closed_endpoint_gives_back_what_was_posted() {
    run(&["closing"]);
}

#[test]
fn a_read_outside_the_region_fails() {
    run(&["outside"]);
}

#[test]
fn a_refusal_brings_its_reason() {
    run(&["refusal"]);
}
