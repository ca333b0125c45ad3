//! The provider under the name by which libfabric loads it, and programs that have to end.

use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

/// Far more than it takes beside a full load.
pub const TIME_MAX: Duration = Duration::from_secs(60);

/// A directory with the provider under the name by which libfabric loads it.
pub fn installed(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test is a file");
    let deps = own.parent().expect("a file is in a directory");
    let built = [deps.join("libvi_fi.so"), deps.join("../libvi_fi.so")];
    let built = built.iter().find(|file| file.exists()).expect("cargo builds the library before its tests");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vi-fi-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("cargo's directory for tests can be written");
    std::fs::copy(built, directory.join("libvi-fi.so")).expect("the library can be copied");
    directory
}

/// What it said when it ended, or was ended for taking too long.
pub fn end(mut child: Child) -> Output {
    let deadline = Instant::now() + TIME_MAX;
    while Instant::now() < deadline && child.try_wait().expect("it is ours").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // It has ended, or is to.
    let _ = child.kill();
    child.wait_with_output().expect("it is ours")
}
