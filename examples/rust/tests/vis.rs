//! The examples over the VI Architecture, unchanged: as processes in both orders of start, over shared memory and over TCP.
#![forbid(unsafe_code)]

#[path = "../../../crates/musubi-transport/tests/loopback/mod.rs"]
mod loopback;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Program, and the last line of each side.
const ALL: [(&str, &str, &str); 4] = [
    (
        env!("CARGO_BIN_EXE_vi_ping_pong"),
        "10000 turns of 64 bytes, all as they were sent\n",
        "10000 turns of 64 bytes, all as they were sent\n",
    ),
    (
        env!("CARGO_BIN_EXE_vi_stream"),
        "10000 messages of 4096 bytes, checksum 9b65d901\n",
        "10000 messages of 4096 bytes, checksum 9b65d901\n",
    ),
    (
        env!("CARGO_BIN_EXE_vi_table"),
        "20000 updates of 128 bytes, all 256 lines as they should be\n",
        "20000 updates of 128 bytes written\n",
    ),
    (
        env!("CARGO_BIN_EXE_vi_server"),
        "8000 questions of 16 VIs answered\n",
        "8000 questions of 16 VIs, all answered right\n",
    ),
];

/// A description of a system of its own with two NICs.
fn description(directory: &Path, is_tcp: bool, number: usize) -> PathBuf {
    let mut text = format!("[system]\nname = \"vis-{}-{number}\"\n", std::process::id());
    for name in ["left", "right"] {
        text += &format!("[[nic]]\nname = \"{name}\"\nprocesses = 1\n");
        if is_tcp {
            text += &format!("machine = \"{name}\"\nat = \"tcp://{}\"\n", loopback::own_address());
        }
    }
    let file = directory.join(format!("system-{number}.toml"));
    std::fs::write(&file, text).unwrap();
    file
}

/// A process that does not outlive the test.
struct Role(Option<Child>);

impl Role {
    fn start(program: &str, role: &str, system: &Path) -> Role {
        let mut command = Command::new(program);
        command.args(["--role", role]).env("MUSUBI_SYSTEM", system).env_remove("MUSUBI_INSTANCE");
        Role(Some(command.stdout(Stdio::piped()).spawn().unwrap()))
    }

    /// What it wrote, once it has ended well.
    fn output(mut self) -> String {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // Already gone is just as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn they_run_in_any_order_wherever_the_other_is() {
    let directory = tempfile::tempdir().unwrap();
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    for (number, (example, (is_tcp, client_first))) in
        ALL.iter().flat_map(|example| ways.map(|way| (example, way))).enumerate()
    {
        let (program, of_server, of_client) = *example;
        let system = description(directory.path(), is_tcp, number);
        let mut roles = ["server", "client"];
        if client_first {
            roles.reverse();
        }
        let [first, second] = roles.map(|role| Role::start(program, role, &system));
        let mut said = [first.output(), second.output()];
        if client_first {
            said.reverse();
        }
        assert_eq!(said, [of_server, of_client], "{program} over {}", if is_tcp { "TCP" } else { "shared memory" });
    }
}

#[test]
fn they_say_what_is_wrong_with_a_command() {
    for (program, ..) in ALL {
        let said = |arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().unwrap();
            (
                output.status.success(),
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
            )
        };
        let (is_right, help) = said(&["--help"]);
        assert!(is_right && help.contains("--role server|client"), "{help}");
        let (is_right, error) = said(&["--role", "both"]);
        assert!(!is_right && error.contains("--role must be server or client"), "{error}");
    }
}
