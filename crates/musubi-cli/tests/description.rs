//! `musubi check` and `musubi generate`.

#[allow(dead_code)]
mod command;

use command::{System, example, expect, musubi, text};

const FIVE_MISTAKES: &str = r#"[system]
name = "press"
colour = "red"
[[domain]]
name = "control"
role = "master"
[[domain]]
name = "gateway"
role = "master"
[[fifo]]
name = "telemetry"
from = "control"
to = "control"
block_size = "0 B"
[[fifo]]
name = "bulk"
from = "gatway"
to = "control"
block_size = "64 KiB"
"#;

#[test]
fn five_mistakes_are_reported_with_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    std::fs::write(&file, FIVE_MISTAKES).unwrap();
    let output = expect(musubi(&["check"]).arg(&file), 1);
    let said = text(&output.stderr);
    for place in ["3:1", "9:8", "13:6", "14:14", "17:8"] {
        assert!(said.contains(&format!("wrong.toml:{place}\n")), "{place} in:\n{said}");
    }
    assert_eq!(said.matches("error:").count(), 6, "five and a summary:\n{said}");
    assert!(said.contains("5 mistakes"), "{said}");
    assert!(!said.contains('\u{1b}'), "no colours without a terminal");
    assert!(output.stdout.is_empty());
}

#[test]
fn check_finds_the_file_in_every_way() {
    let file = example("system.toml");
    let printed: Vec<String> = [
        expect(musubi(&["check"]).arg(&file), 0),
        expect(musubi(&["check", "--system"]).arg(&file), 0),
        expect(musubi(&["check"]).env("MUSUBI_SYSTEM", &file), 0),
    ]
    .iter()
    .map(|output| text(&output.stdout))
    .collect();
    assert!(printed[0].contains("Memory map") && printed[0].contains("Worst-case memory"));
    assert!(printed.iter().all(|other| *other == printed[0]));
}

#[test]
fn no_description_says_how_to_name_one() {
    let said = text(&expect(&mut musubi(&["check"]), 1).stderr);
    assert!(said.contains("--system FILE") && said.contains("MUSUBI_SYSTEM"), "{said}");
    let said = text(&expect(&mut musubi(&["check", "/nonexistent.toml"]), 1).stderr);
    assert!(said.starts_with("error: /nonexistent.toml: cannot open"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("error: ")) && said.lines().count() == 2, "{said}");
}

#[test]
fn generate_writes_five_files() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("a/b");
    let output = expect(musubi(&["generate"]).arg(example("system.toml")).arg("--out").arg(&out), 0);
    let printed = text(&output.stdout);
    for ending in ["h", "rs", "ld", "dtsi", "svg"] {
        let file = out.join(format!("musubi_press.{ending}"));
        assert!(std::fs::metadata(&file).unwrap().len() > 0);
        assert!(printed.lines().any(|line| *line == *file.to_string_lossy()), "{printed}");
    }
    assert_eq!(printed.lines().count(), 5);
}

#[test]
fn generate_into_a_file_fails_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("file");
    std::fs::write(&out, "").unwrap();
    let said = text(&expect(musubi(&["generate"]).arg(example("system.toml")).arg("--out").arg(&out), 1).stderr);
    assert!(said.contains("cannot write") && said.contains("file"), "{said}");
}

/// A limit on the length of files stands for a disk that is full.
#[test]
fn a_file_that_cannot_be_written_whole_is_not_left_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let (header, system) = (directory.path().join("musubi_press.h"), example("system.toml"));
    std::fs::write(&header, "as it was").unwrap();
    let mut command = System::new().limited(0, &["generate", "--system"]);
    let said = text(&expect(command.arg(system).arg("--out").arg(directory.path()), 1).stderr);
    assert!(said.contains("cannot write") && said.contains("musubi_press.h"), "{said}");
    assert_eq!(std::fs::read_to_string(&header).unwrap(), "as it was");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_named_pipe_is_no_description_and_nobody_waits_for_it() {
    let system = System::new();
    let pipe = system.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let said = text(&expect(&mut musubi(&["check", pipe.to_str().unwrap()]), 1).stderr);
    assert!(said.contains("not a file (a pipe"), "{said}");
}
