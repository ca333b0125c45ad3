//! Runs programs written for MCAPI, in a system of their own.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::programs::{Process, compile, directory};

#[path = "../../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;
use loopback::own_address;

/// How the nodes of a description reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    SharedMemory,
    Tcp,
}

/// The nodes of the tests and the examples: domain and number.
const NODES: [(u32, u32); 7] = [(1, 1), (1, 2), (1, 3), (0, 1), (0, 2), (0, 3), (0, 4)];

/// A description that no other run has.
pub fn description(way: Way) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("m{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut text = format!("[system]\nname = \"{name}\"\n");
    for (domain, node) in NODES {
        let at = match way {
            Way::SharedMemory => "shm".to_owned(),
            Way::Tcp => format!("tcp://{}", own_address()),
        };
        text.push_str(&format!("\n[[node]]\ndomain = {domain}\nnode = {node}\nat = \"{at}\"\n"));
    }
    let path = directory().join(format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

/// A program of tests/mcapi.
pub fn program(stem: &str) -> PathBuf {
    compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mcapi/{stem}.c")))
}

/// A program, compiled once.
pub fn compiled(source: &Path) -> PathBuf {
    static PROGRAMS: OnceLock<Mutex<BTreeMap<PathBuf, PathBuf>>> = OnceLock::new();
    let mut programs = PROGRAMS.get_or_init(Mutex::default).lock().unwrap();
    programs.entry(source.to_owned()).or_insert_with(|| compile(source)).clone()
}

/// Starts a program in a system.
pub fn start(program: &Path, arguments: &str, system: &Path) -> Process {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).env("MUSUBI_SYSTEM", system);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    Process::of(format!("{} {arguments}", program.display()), command)
}

/// Runs a program of tests/mcapi, which must end well.
pub fn run(stem: &str, arguments: &str, way: Way) {
    start(&program(stem), arguments, &description(way)).succeed();
}
