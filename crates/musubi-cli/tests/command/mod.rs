//! The built command, a description for it, and processes that end with the test.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for a process that must end.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A description with channels in both directions.
pub const DESCRIPTION: &str = r#"
[system]
name = "cli-test"
[[domain]]
name = "control"
role = "master"
[[domain]]
name = "storage"
role = "remote"
[[fifo]]
name = "upwards"
from = "storage"
to = "control"
block_size = "64 KiB"
[[fifo]]
name = "downwards"
from = "control"
to = "storage"
block_size = "1000 B"
blocks = 16
[[fifo]]
name = "narrow"
from = "control"
to = "storage"
block_size = "1 B"
blocks = 3
[[fifo]]
name = "slow"
from = "storage"
to = "control"
block_size = "1 KiB"
filter = { every = 4, latest = "5 ms" }
regulation = { bytes = "256 KiB/s", bytes_burst = "4 KiB" }
[[smem]]
name = "parameters"
domains = ["control", "storage"]
size = "256 B"
"#;

/// One run of the system, apart from all other tests.
pub struct System {
    directory: tempfile::TempDir,
    instance: String,
}

impl System {
    pub fn new() -> System {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("system.toml"), DESCRIPTION).unwrap();
        let instance = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        System { directory, instance }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The name of this run.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The command in this system, with no input.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = musubi(arguments);
        command.env("MUSUBI_SYSTEM", self.path("system.toml")).env("MUSUBI_INSTANCE", &self.instance);
        command
    }

    /// The command in this system, which may write no file longer than so many blocks of 512 bytes.
    pub fn limited(&self, blocks: u32, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_musubi")]).args(arguments).stdin(Stdio::null());
        command.env("MUSUBI_SYSTEM", self.path("system.toml")).env("MUSUBI_INSTANCE", &self.instance);
        command
    }

    /// Starts the command with all its streams in our hands.
    pub fn start(&self, arguments: &[&str]) -> Process {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Process(command.spawn().unwrap())
    }
}

/// The command with no input, no colours and no environment of ours.
pub fn musubi(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_musubi"));
    command.args(arguments).stdin(Stdio::null()).env_remove("MUSUBI_SYSTEM").env_remove("MUSUBI_INSTANCE");
    command
}

/// A process that is killed if the test fails.
pub struct Process(pub Child);

impl Process {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits for its end by itself; gives exit code, time waited, and standard error.
    pub fn end(&mut self) -> (i32, Duration, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < WAIT_MAX, "the process does not end");
            std::thread::sleep(Duration::from_millis(1));
        };
        let waited = began.elapsed();
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code().unwrap_or(-1), waited, said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs to the end and expects this exit code.
#[track_caller]
pub fn expect(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Bytes that do not repeat (xorshift).
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// A file in the examples of this repository.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}
