//! Programs may have functions of their own called `send` and `recv`: the library neither calls nor needs the system's.

mod mcapi_runs;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

use mcapi_runs::{Way, description, start};
use programs::{directory, libraries, root};

/// Names that the library must find elsewhere.
fn wanted(library: &str, dynamic: bool) -> Vec<String> {
    let mut nm = Command::new("nm");
    nm.args(dynamic.then_some("-D")).arg("--undefined-only").arg(libraries().join(library));
    let output = nm.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("U ").map(str::trim));
    names.map(|name| name.split('@').next().unwrap().to_owned()).collect()
}

#[test]
fn the_shared_library_does_not_need_send_and_recv() {
    let wanted = wanted("libmusubi.so", true);
    assert!(wanted.iter().any(|name| name == "memcpy"), "nm tells names");
    let names = ["send", "recv", "sendto", "recvfrom", "sendmsg", "recvmsg"];
    assert!(!wanted.iter().any(|name| names[..2].contains(&name.as_str())), "{wanted:?}");
}

fn linked(arguments: &[&str], name: &str) -> PathBuf {
    let program = directory().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcapi/own_send_recv.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-pthread", "-I"]).arg(root().join("include")).arg(source).arg("-o").arg(&program);
    cc.args(arguments);
    assert!(cc.status().unwrap().success(), "{name} does not link");
    program
}

#[test]
fn a_program_with_its_own_send_and_recv_runs_over_tcp_with_either_library() {
    let library = libraries().join("libmusubi.a");
    let fixed = [library.to_str().unwrap(), "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];
    let (at, rpath) =
        (format!("-L{}", libraries().display()), format!("-Wl,-rpath,{},--disable-new-dtags", libraries().display()));
    // Exported, so that the library would find them before the system's.
    let shared = [&at, "-lmusubi", &rpath, "-rdynamic"];
    for (name, arguments) in [("own-static", &fixed[..]), ("own-shared", &shared[..])] {
        let program = linked(arguments, name);
        for way in [Way::Tcp, Way::SharedMemory] {
            start(&program, "", &description(way)).succeed();
        }
    }
}
