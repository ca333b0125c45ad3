//! The kernel module's interrupt handler, compiled for the host against a stand-in for the kernel and a model of the chip's
//! inter-processor interrupt block.

use std::path::Path;
use std::process::Command;

/// Headers that the module includes; the stand-in has all of it in one file.
const HEADERS: [&str; 7] = ["interrupt.h", "io.h", "mm.h", "module.h", "of.h", "platform_device.h", "uio_driver.h"];

#[test]
fn a_level_is_let_through_acknowledged_and_no_storm() {
    let directory = std::env::temp_dir().join(format!("musubi-module-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("linux")).expect("a directory for the test");
    for header in HEADERS.iter().chain(&["version.h"]) {
        std::fs::write(directory.join("linux").join(header), "").expect("an empty header");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("rung");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Werror", "-UNDEBUG"]).arg("-I").arg(&directory).arg("-include");
    cc.arg(here.join("tests/module/kernel.h")).arg(here.join("module/musubi_uio.c"));
    cc.arg(here.join("tests/module/rung.c")).arg("-o").arg(&program);
    let compiled = match cc.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return eprintln!("SKIPPED: no C compiler"),
        compiled => compiled.expect("the compiler runs"),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().expect("the program runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.stdout, b"rung\n");
    std::fs::remove_dir_all(directory).expect("the directory is ours");
}
