//! The C programs of the tests: compiled against include/mdcom.h and the generated header, linked with the library that
//! cargo has just built, and run as processes.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest time that a process of a test may run.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The description of the tests.
pub fn system() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system.toml")
}

/// A directory for the files of this test binary, with the headers of the tests' and the examples' systems.
pub fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(std::env::current_exe().unwrap().file_stem().unwrap());
        // What an earlier run has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        for description in [system(), root().join("examples/talk.toml")] {
            let description = musubi_config::load(&description).unwrap_or_else(|report| panic!("{report}"));
            musubi_config::generate(&description, &directory).unwrap();
        }
        std::fs::write(directory.join("broken.toml"), "[system]\nname = 7\n").unwrap();
        directory
    })
}

/// Where cargo puts the libraries.
pub fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Compiles and links a C program; gives where it is.
pub fn compile(source: &Path) -> PathBuf {
    let program = directory().join(source.file_stem().unwrap());
    let library = libraries();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread", "-I"]).arg(root().join("include"));
    cc.arg(format!("-DBROKEN=\"{}\"", directory().join("broken.toml").display()));
    cc.arg("-I").arg(directory()).arg(source).arg("-o").arg(&program).arg("-L").arg(&library).arg("-lmusubi");
    // Found before what LD_LIBRARY_PATH has: cargo sets that to where the library of an earlier build may lie.
    cc.arg(format!("-Wl,-rpath,{},--disable-new-dtags", library.display()));
    assert!(cc.status().unwrap().success(), "{} does not compile", source.display());
    program
}

/// [`compile`] for a program in tests/c.
pub fn test_program(stem: &str) -> PathBuf {
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/c/{stem}.c")))
}

/// An instance of its own for each test, so that they can run at the same time.
pub fn instance() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("c{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A process that does not outlive its test.
pub struct Process {
    what: String,
    pub child: Child,
}

impl Process {
    /// Starts a program in an instance of a system.
    pub fn start(program: &Path, arguments: &str, instance: &str, system: &Path) -> Process {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).env("MUSUBI_SYSTEM", system).env("MUSUBI_INSTANCE", instance);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Process::of(format!("{} {arguments}", program.display()), command)
    }

    /// Starts what a command says; `what` is for messages.
    pub fn of(what: String, mut command: Command) -> Process {
        Process { what, child: command.spawn().unwrap() }
    }

    /// Waits for the end.
    pub fn end(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < LIMIT, "{} does not end", self.what);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for a good end.
    pub fn succeed(&mut self) {
        let status = self.end();
        assert!(status.success(), "{}: {status}", self.what);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
