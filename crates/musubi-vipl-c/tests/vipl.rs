//! C programs that know include/vipl.h only: between VIs of one NIC, over shared memory, and over TCP.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use musubi_transport::keys::{Authority, Identity, NodeFiles, Validity};

#[path = "../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vipl");
        // What an earlier run has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    })
}

/// Compiles a program of tests/c with a compiler and a standard; gives where it is.
fn compile(stem: &str, compiler: &str, standard: &str) -> PathBuf {
    let program = directory().join(format!("{stem}-{standard}"));
    // Where cargo puts the library.
    let library = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/c/{stem}.c"));
    let mut cc = Command::new(compiler);
    if compiler == "c++" {
        cc.args(["-x", "c++"]);
    }
    cc.args([
        &format!("-std={standard}"),
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wsign-compare",
        "-Werror",
    ]);
    cc.args(["-Wno-unused-function", "-O1", "-g", "-pthread", "-I"]).arg(root().join("include")).arg(source);
    cc.args(["-x", "none", "-o"]).arg(&program).arg("-L").arg(&library).arg("-lvipl");
    cc.arg(format!("-Wl,-rpath,{},--disable-new-dtags", library.display()));
    assert!(cc.status().unwrap().success(), "{stem} does not compile with {standard}");
    program
}

/// A program in C11, compiled once.
fn program(stem: &'static str) -> PathBuf {
    static COMPILED: std::sync::Mutex<Vec<&str>> = std::sync::Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().unwrap();
    if !compiled.contains(&stem) {
        compile(stem, "cc", "c11");
        compiled.push(stem);
    }
    directory().join(format!("{stem}-c11"))
}

/// Processes that may have a NIC of the tests open.
const PROCESSES: u16 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Local,
    SharedMemory,
    Tcp,
    Tls,
}

/// A description of a system of its own, with two NICs.
fn description(way: Way) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut text = format!("[system]\nname = \"vipl-{}-{number}\"\n", std::process::id());
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

fn command(program: &Path, arguments: &str, system: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env_remove("MUSUBI_SYSTEM").env("MUSUBI_DEBUG", "0");
    if let Some(system) = system {
        command.env("MUSUBI_SYSTEM", system);
    }
    command
}

/// Waits for a program that ends by itself (it has an alarm), and sees it end well.
fn succeed(mut child: Child) {
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success() && said.ends_with("ok\n"), "{status}: {said}");
}

fn run(stem: &'static str, way: Way) {
    let names = if way == Way::Local { "left left" } else { "left right" };
    succeed(command(&program(stem), names, Some(&description(way))).spawn().unwrap());
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn of_one_nic() {
                super::run(stringify!($name), super::Way::Local);
            }

            #[test]
            fn over_shared_memory() {
                super::run(stringify!($name), super::Way::SharedMemory);
            }

            #[test]
            fn over_tcp() {
                super::run(stringify!($name), super::Way::Tcp);
            }

            #[test]
            fn over_tls() {
                super::run(stringify!($name), super::Way::Tls);
            }
        }
    )*};
}

programs! { operations states completions forks }

/// A server that echoes, and its clients one after the other: some end in order, some in the middle, some are killed.
fn clients(way: Way) {
    let (exchange, system) = (program("exchange"), description(way));
    let mut server = command(&exchange, "serve left 6", Some(&system)).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("up"));
    for turn in 0..6 {
        let what = if turn % 3 == 1 { "die" } else { "ask" };
        let count = if turn % 3 == 2 { 10_000_000 } else { 300 };
        let mut client = command(&exchange, &format!("{what} right left {count}"), Some(&system)).spawn().unwrap();
        match turn % 3 {
            0 => succeed(client),
            1 => assert!(client.wait().unwrap().success()),
            _ => {
                std::thread::sleep(std::time::Duration::from_millis(300));
                client.kill().unwrap();
                client.wait().unwrap();
            }
        }
        assert_eq!(lines.next().as_deref(), Some("gone"), "{turn}");
    }
    assert_eq!(lines.next().as_deref(), Some("ok"));
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_server_outlives_its_clients_over_shared_memory() {
    clients(Way::SharedMemory);
}

#[test]
fn a_server_outlives_its_clients_over_tcp() {
    clients(Way::Tcp);
}

#[test]
fn habits_of_the_period_are_served_in_c_and_cpp() {
    for (compiler, standard) in
        [("cc", "gnu89"), ("cc", "c99"), ("cc", "c11"), ("c++", "c++98"), ("c++", "c++11"), ("c++", "c++20")]
    {
        let program = compile("habits", compiler, standard);
        succeed(command(&program, "", None).spawn().unwrap());
        succeed(command(&program, "lax", None).env("MUSUBI_VIPL_NULL_PTAG", "1").spawn().unwrap());
    }
}
