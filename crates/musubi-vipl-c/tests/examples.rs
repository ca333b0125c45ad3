//! The examples in C over the VI Architecture, unchanged: as processes in both orders of start, over shared memory and over TCP.

mod programs;

use std::path::Path;
use std::process::Child;

use programs::{Way, command, compile_file, description};

/// Name, and the last line of each side.
const ALL: [(&str, &str, &str); 4] = [
    (
        "ping_pong",
        "10000 turns of 64 bytes, all as they were sent\n",
        "10000 turns of 64 bytes, all as they were sent\n",
    ),
    ("stream", "10000 messages of 4096 bytes, checksum", "10000 messages of 4096 bytes, checksum"),
    ("table", "20000 updates of 128 bytes, all 256 lines as they should be\n", "20000 updates of 128 bytes written\n"),
    ("server", "8000 questions of 16 VIs answered\n", "8000 questions of 16 VIs, all answered right\n"),
];

/// What a side wrote, once it has ended well.
fn output(side: Child) -> String {
    let output = side.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn they_run_in_any_order_wherever_the_other_is() {
    for (name, of_server, of_client) in ALL {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/c/vipl/{name}.c"));
        let program = compile_file(&source, name, ("cc", "c11"), &["-D_GNU_SOURCE"]);
        for way in [Way::SharedMemory, Way::Tcp] {
            for server_first in [true, false] {
                let system = description(way);
                let start = |role: &str| command(&program, &format!("--role {role}"), Some(&system)).spawn().unwrap();
                let (server, client) = if server_first {
                    let server = start("server");
                    (server, start("client"))
                } else {
                    let client = start("client");
                    (start("server"), client)
                };
                let (server, client) = (output(server), output(client));
                assert!(server.starts_with(of_server) && client.starts_with(of_client), "{server}{client}");
                assert!(name != "stream" || server == client, "{server}{client}");
            }
        }
    }
}

#[test]
fn they_say_what_is_wrong_with_a_command() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/vipl/table.c");
    let program = compile_file(&source, "table-options", ("cc", "c11"), &["-D_GNU_SOURCE"]);
    let wrong = |arguments: &str| {
        let mut command = command(&program, arguments, None);
        let output = command.stderr(std::process::Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(wrong("").contains("--role must be server or client"));
    assert!(wrong("--role client --count 0").contains("--count: not a number above 0: 0"));
    assert!(wrong("--role client --nic nosuch\u{7f}").contains("open the NIC: an invalid parameter"));
    assert!(wrong("--what").contains("--what is not an option"));
    let help = command(&program, "--help", None).output().unwrap();
    assert!(help.status.success() && String::from_utf8(help.stdout).unwrap().contains("[default: 20000]"));
}
