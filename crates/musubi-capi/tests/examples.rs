//! The examples in C, as a newcomer builds and runs them, in both orders of start.

mod programs;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use programs::{Process, compile, directory, instance, libraries, root};

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

/// With an installed library, as `cargo xtask install` lays it out, but where cargo has built it.
#[test]
fn the_makefile_builds_them_with_pkg_config() {
    if ["make", "pkg-config"].iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        eprintln!("skipped: make and pkg-config are needed");
        return;
    }
    let examples = directory().join("examples");
    let here = examples.join("c");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::copy(talk(), examples.join("talk.toml")).unwrap();
    for entry in std::fs::read_dir(root().join("examples/c")).unwrap() {
        let from = entry.unwrap().path();
        // Those of libvipl lie in a folder of their own, and are built there.
        if from.is_dir() {
            continue;
        }
        std::fs::copy(&from, here.join(from.file_name().unwrap())).unwrap();
    }
    // Instead of the command, which this crate does not build.
    let header = std::fs::read(directory().join("musubi_talk.h")).unwrap();
    std::fs::write(here.join("musubi_talk.h"), header).unwrap();
    let (library, include) = (libraries(), root().join("include"));
    let package = format!(
        "libdir={0}\nName: Musubi\nDescription: test\nVersion: 0\nCflags: -I{1}\nLibs: -L{0} -lmusubi\n",
        library.display(),
        include.display()
    );
    std::fs::write(here.join("musubi.pc"), package).unwrap();
    let status = Command::new("make").arg("-C").arg(&here).env("PKG_CONFIG_PATH", &here).status().unwrap();
    assert!(status.success());
    let instance = instance();
    let mut remote = Process::start(&here.join("figure4"), "remote", &instance, &talk());
    let mut master = Process::start(&here.join("figure4"), "master", &instance, &talk());
    master.succeed();
    remote.succeed();
}

#[test]
fn a_program_can_be_linked_with_the_static_library() {
    let program = directory().join("figure4-static");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-I"]).arg(root().join("include")).arg("-I").arg(directory());
    cc.arg(root().join("examples/c/figure4.c")).arg("-o").arg(&program).arg(libraries().join("libmusubi.a"));
    cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
    assert!(cc.status().unwrap().success());
    let instance = instance();
    let mut remote = Process::start(&program, "remote", &instance, &talk());
    let mut master = Process::start(&program, "master", &instance, &talk());
    master.succeed();
    remote.succeed();
}
