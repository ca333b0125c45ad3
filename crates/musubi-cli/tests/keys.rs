//! `musubi keys`.

#[allow(dead_code)]
mod command;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use command::{System, expect, musubi, text};

const DESCRIPTION: &str = r#"[system]
name = "line"
[network]
keys = "secrets"
[[node]]
domain = 0
node = 1
name = "control"
at = ["shm", "tcp://10.0.0.7:7400"]
[[node]]
domain = 0
node = 2
[[node]]
domain = 1
node = 1
at = "tcp://10.0.0.8:7400"
"#;

#[track_caller]
fn keys(directory: &Path, arguments: &[&str], code: i32) -> String {
    let mut command = musubi(&["keys"]);
    command.args(arguments).env("MUSUBI_SYSTEM", directory.join("line.toml"));
    let output = expect(&mut command, code);
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn an_authority_issues_and_its_certificates_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("line.toml"), DESCRIPTION).unwrap();
    let at = |name: &str| directory.path().join("secrets").join(name);
    assert!(keys(directory.path(), &["issue", "--all"], 1).contains("no usable authority"));
    keys(directory.path(), &["init"], 0);
    assert!(keys(directory.path(), &["init"], 1).contains("exists\nhelp: --force"));
    assert!(keys(directory.path(), &["show"], 0).contains("no certificates"));
    keys(directory.path(), &["issue", "--all", "--days", "30"], 0);
    assert!(["control.crt", "control.key", "1-1.crt", "1-1.key"].iter().all(|name| at(name).exists()));
    assert!(!at("0-2.crt").exists());
    assert_eq!(std::fs::metadata(at("control.key")).unwrap().permissions().mode() & 0o077, 0);
    keys(directory.path(), &["issue", "31:1016"], 0);
    let shown = keys(directory.path(), &["show"], 0);
    assert!(shown.contains("control.crt: node 0:1 of line, valid until "), "{shown}");
    assert!(shown.contains("31-1016.crt: node 31:1016 of line"), "{shown}");
    // What an earlier authority issued is worth nothing.
    keys(directory.path(), &["init", "--force"], 0);
    assert!(keys(directory.path(), &["show"], 0).contains("NOT accepted"));
    assert!(keys(directory.path(), &["issue", "control"], 1).contains("exists"));
    keys(directory.path(), &["issue", "control", "--force"], 0);
    assert!(keys(directory.path(), &["show"], 0).contains("control.crt: node 0:1 of line, valid"));
}

#[test]
fn wrong_nodes_and_places_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("line.toml"), DESCRIPTION.replace("secrets", "s")).unwrap();
    keys(directory.path(), &["init"], 0);
    assert!(keys(directory.path(), &["issue", "contorl"], 1).contains("did you mean \"control\"?"));
    assert!(keys(directory.path(), &["issue", "40:1"], 1).contains("from 0:0 to 31:1023"));
    keys(directory.path(), &["issue"], 2);
    keys(directory.path(), &["issue", "control", "--days", "0"], 2);
    let no_keys = "[system]\nname = \"line\"\n[[node]]\ndomain = 0\nnode = 1\n";
    std::fs::write(directory.path().join("line.toml"), no_keys).unwrap();
    assert!(keys(directory.path(), &["init"], 1).contains("--keys DIR"));
}

#[test]
fn each_process_of_a_nic_has_a_certificate_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let nics = "[[nic]]\nname = \"left\"\nat = \"tcp://10.0.0.7:7700\"\nprocesses = 2\n[[nic]]\nname = \"near\"\n";
    std::fs::write(directory.path().join("line.toml"), DESCRIPTION.to_owned() + nics).unwrap();
    let exists = |name: &str| directory.path().join("secrets").join(name).exists();
    keys(directory.path(), &["init"], 0);
    keys(directory.path(), &["issue", "left"], 0);
    assert!(exists("left-0.crt") && exists("left-1.key") && !exists("control.crt"));
    let shown = keys(directory.path(), &["show"], 0);
    assert!(shown.contains("left-1.crt: node 0:1 of line/vi, valid until "), "{shown}");
    keys(directory.path(), &["issue", "--all", "--force"], 0);
    assert!(exists("control.crt") && !exists("near-0.crt"));
    assert!(keys(directory.path(), &["issue", "lift"], 1).contains("has no node \"lift\""));
}

/// A limit on the length of files stands for a disk that is full.
#[test]
fn what_cannot_be_written_whole_is_not_left_in_part() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("line.toml"), DESCRIPTION).unwrap();
    let files = || -> Vec<String> {
        let all = std::fs::read_dir(directory.path().join("secrets")).unwrap();
        let mut names: Vec<String> = all.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let limited = |arguments: &[&str]| {
        // A key has 241 bytes, a certificate more than 512.
        let mut command = System::new().limited(1, &[&["keys"], arguments].concat());
        text(&expect(command.env("MUSUBI_SYSTEM", directory.path().join("line.toml")), 1).stderr)
    };
    assert!(limited(&["init"]).contains("ca.crt"));
    assert_eq!(files(), [""; 0]);
    keys(directory.path(), &["init"], 0);
    assert!(limited(&["issue", "control"]).contains("control.crt"));
    assert_eq!(files(), ["ca.crt", "ca.key"]);
    keys(directory.path(), &["issue", "control"], 0);
    let pair = || {
        ["control.crt", "control.key"].map(|name| std::fs::read(directory.path().join("secrets").join(name)).unwrap())
    };
    let before = pair();
    limited(&["issue", "control", "--force"]);
    assert_eq!(pair(), before);
    assert_eq!(files(), ["ca.crt", "ca.key", "control.crt", "control.key"]);
}

#[test]
fn where_nothing_is_yet_the_next_step_is_said() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("line.toml"), DESCRIPTION).unwrap();
    for what in [&["show"][..], &["issue", "--all"]] {
        let said = keys(directory.path(), what, 1);
        assert!(said.contains("secrets") && said.contains("help: `musubi keys init`"), "{said}");
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
    }
}
