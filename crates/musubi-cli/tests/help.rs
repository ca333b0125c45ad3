//! Help, completions and wrong command lines.

#[allow(dead_code)]
mod command;

use command::{System, expect, musubi, text};

const COMMANDS: [&str; 12] =
    ["demo", "check", "generate", "send", "recv", "status", "tap", "node", "ping", "keys", "bench", "completions"];

#[test]
fn each_command_has_help() {
    for name in COMMANDS {
        let short = text(&expect(&mut musubi(&[name, "--help"]), 0).stdout);
        assert!(short.contains(&format!("Usage: musubi {name}")), "{short}");
        assert_eq!(short, text(&expect(&mut musubi(&["help", name]), 0).stdout));
    }
}

#[test]
fn the_command_alone_prints_help() {
    let alone = text(&expect(&mut musubi(&[]), 0).stdout);
    assert_eq!(alone, text(&expect(&mut musubi(&["--help"]), 0).stdout));
    for name in COMMANDS {
        assert!(alone.lines().any(|line| line.trim_start().starts_with(name)), "{name} in:\n{alone}");
    }
    assert!(!alone.contains('\u{1b}'));
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&expect(&mut musubi(&["completions", shell]), 0).stdout);
        assert!(COMMANDS.iter().all(|name| script.contains(name)), "{shell}");
    }
}

#[test]
fn a_wrong_command_suggests_the_right_one() {
    let said = text(&expect(&mut musubi(&["chekc"]), 2).stderr);
    assert!(said.contains("check"), "{said}");
    expect(&mut musubi(&["send"]), 2);
    expect(&mut musubi(&["recv", "upwards", "--timeout", "soon"]), 2);
    expect(&mut musubi(&["recv", "upwards", "--timeout", "-1"]), 2);
}

#[test]
fn a_wrong_channel_suggests_the_right_one() {
    let system = System::new();
    let said = text(&expect(&mut system.command(&["send", "upward"]), 1).stderr);
    assert!(said.contains("did you mean \"upwards\"?"), "{said}");
    let said = text(&expect(&mut system.command(&["recv", "xyz"]), 1).stderr);
    assert!(!said.contains("did you mean") && said.contains("upwards, downwards, narrow, slow"), "{said}");
    let said = text(&expect(&mut system.command(&["recv", "parameters"]), 1).stderr);
    assert!(said.contains("SMEM"), "{said}");
}

/// What a command says besides its results costs it nothing where nobody can hear it.
#[test]
fn notes_that_cannot_be_written_are_left_out() {
    let system = System::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for (arguments, code) in [(&["tap", "upwards", "--timeout", "0.05"][..], 0), (&["recv", "no-such"], 1)] {
        let full = system.command(arguments).stderr(full()).status().unwrap();
        let closed = system.command(arguments).stderr(closed()).status().unwrap();
        assert_eq!([full.code(), closed.code()], [Some(code); 2], "{arguments:?}");
    }
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for arguments in [&["--help"][..], &["--version"], &["help", "send"], &["check", "--help"], &[]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let status = musubi(arguments).stdout(full).stderr(std::process::Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
    }
}
