//! C programs of the tests: compiled as others compile theirs, run against descriptions of systems of their own.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use musubi_transport::keys::{Authority, Identity, NodeFiles, Validity};

#[path = "../../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Of this test binary's own.
pub fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        // What an earlier run has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    })
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

/// Compiles a program of tests/c, by its path there without an end, as `name`; gives where it is.
pub fn compile(source: &str, name: &str, by: (&str, &str), options: &[&str]) -> PathBuf {
    compile_file(&sources().join(format!("{source}.c")), name, by, options)
}

/// Compiles any program with a compiler and a standard.
pub fn compile_file(source: &Path, name: &str, (compiler, standard): (&str, &str), options: &[&str]) -> PathBuf {
    let program = directory().join(name);
    // Where cargo puts the library.
    let library = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let mut cc = Command::new(compiler);
    if compiler == "c++" {
        cc.args(["-x", "c++"]);
    }
    cc.arg(format!("-std={standard}")).args([
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wsign-compare",
        "-Wshadow",
        "-Werror",
    ]);
    cc.args(["-Wno-unused-function", "-O1", "-g", "-pthread"]).args(options);
    cc.arg("-I").arg(root().join("include")).arg("-I").arg(sources().join("conformance"));
    cc.arg(source).args(["-x", "none", "-o"]).arg(&program);
    cc.arg("-L").arg(&library).arg("-lvipl").arg(format!("-Wl,-rpath,{},--disable-new-dtags", library.display()));
    assert!(cc.status().unwrap().success(), "{} does not compile with {standard}", source.display());
    program
}

/// Compiles a program in C11 once; gives where it is.
pub fn program(source: &str) -> PathBuf {
    static COMPILED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let name = source.rsplit('/').next().unwrap();
    let mut compiled = COMPILED.lock().unwrap();
    if !compiled.iter().any(|one| one == name) {
        compile(source, name, ("cc", "c11"), &["-D_GNU_SOURCE"]);
        compiled.push(name.to_owned());
    }
    directory().join(name)
}

/// Processes that may have a NIC of the tests open.
const PROCESSES: u16 = 4;

/// How the NICs of a description reach each other.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// The program gets the same name for both.
    Local,
    SharedMemory,
    Tcp,
    Tls,
}

impl Way {
    /// What a program is told of it: the names of two NICs.
    pub fn names(self) -> &'static str {
        if self == Way::Local { "left left" } else { "left right" }
    }
}

/// A description of a system of its own, with two NICs.
pub fn description(way: Way) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut text = format!("[system]\nname = \"{}-{}-{number}\"\n", env!("CARGO_CRATE_NAME"), std::process::id());
    if matches!(way, Way::Tcp | Way::Tls) {
        for name in ["left", "right"] {
            // Its processes listen at the ports from this one on.
            let address = loopback::own_address();
            (0..PROCESSES - 1).for_each(|_| _ = loopback::own_address());
            let at = format!("machine = \"{name}\"\nat = \"tcp://{address}\"\nprocesses = {PROCESSES}\n");
            text += &format!("[[nic]]\nname = \"{name}\"\n{at}");
        }
    } else {
        text += "[[nic]]\nname = \"left\"\n[[nic]]\nname = \"right\"\n";
    }
    let file = directory().join(format!("system-{number}.toml"));
    if way == Way::Tls {
        text += &format!("[network]\ntls_on_loopback = true\nkeys = \"keys-{number}\"\n");
    }
    std::fs::write(&file, text).unwrap();
    if way == Way::Tls {
        issue_keys(&file);
    }
    file
}

/// Certificates for every process of the NICs, as `musubi keys` makes them.
fn issue_keys(system: &Path) {
    let description = musubi_config::load(system).unwrap_or_else(|report| panic!("{report}"));
    let topology = &description.nics().topology;
    let keys = PathBuf::from(topology.network.keys.as_ref().unwrap());
    std::fs::create_dir_all(&keys).unwrap();
    let authority = Authority::create(&keys, description.name(), Validity::days(1), false).unwrap();
    for node in topology.nodes.keys() {
        let whose = Identity { system: topology.system.clone(), node: *node };
        let files = NodeFiles::of(topology, *node).unwrap();
        authority.issue_to(&whose, &files, Validity::days(1), false).unwrap();
    }
}

/// A program with arguments, and the description that its environment names.
pub fn command(program: &Path, arguments: &str, system: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("MUSUBI_SYSTEM").env("MUSUBI_DEBUG", "0");
    if let Some(system) = system {
        command.env("MUSUBI_SYSTEM", system);
    }
    command
}

/// Waits for a program that ends by itself (it has an alarm), and sees it end well.
pub fn succeed(mut child: Child) {
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let mut complained = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success() && said.ends_with("ok\n"), "{status}: {said}{complained}");
}

/// Runs a program of two sides.
pub fn run(source: &str, way: Way) {
    succeed(command(&program(source), way.names(), Some(&description(way))).spawn().unwrap());
}
