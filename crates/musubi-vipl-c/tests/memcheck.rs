//! Conformance programs under valgrind's memcheck: no error, and nothing definitely lost.
//!
//! How it works: those that do not fork run under it, over shared memory and over TCP. There are no suppressions.

mod programs;

use std::process::{Command, Stdio};

use programs::{Way, command, description, directory, program};

/// Whether there is no valgrind here, which is then said.
fn skipped() -> bool {
    let missing = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err();
    if missing {
        eprintln!("skipped: there is no valgrind (Debian package valgrind)");
    }
    missing
}

fn is_clean(source: &str, way: Way) {
    if skipped() {
        return;
    }
    let (program, system) = (program(source), description(way));
    let log = directory().join(format!("{}.log", system.file_stem().unwrap().display()));
    let arguments = format!(
        "--error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
         --fair-sched=try --log-file={} {} {}",
        log.display(),
        program.display(),
        way.names()
    );
    let output = command("valgrind".as_ref(), &arguments, Some(&system)).output().unwrap();
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let said: String = said.lines().filter(|line| line.starts_with("==")).collect::<Vec<_>>().join("\n");
    assert!(output.status.success() && output.stdout.ends_with(b"ok\n"), "{source} {}\n{said}", output.status);
    assert!(said.contains("ERROR SUMMARY: 0 errors"), "memcheck itself says nothing of errors: {said}");
}

macro_rules! checked {
    ($($name:ident: $source:literal;)*) => {$(
        mod $name {
            #[test]
            fn over_shared_memory() {
                super::is_clean($source, super::Way::SharedMemory);
            }

            #[test]
            fn over_tcp() {
                super::is_clean($source, super::Way::Tcp);
            }
        }
    )*};
}

checked! {
    messages: "conformance/data/messages";
    format: "conformance/data/format";
    protection: "conformance/data/protection";
    rdma: "conformance/data/rdma";
    completions: "conformance/data/completions";
    notify: "conformance/data/notify";
    closing: "conformance/calls/closing";
    accept: "conformance/connections/accept";
}
