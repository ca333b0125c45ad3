//! Every mistake is reported with its place, and all of them at once.

/// Lines, columns and messages of a description that must be wrong.
fn mistakes(text: &str) -> Vec<(usize, usize, String)> {
    let report = musubi_config::parse("test.toml", text).expect_err("the description has mistakes");
    println!("{report}");
    report.errors().into_iter().map(|finding| (finding.line, finding.column, finding.message)).collect()
}

#[test]
fn five_different_mistakes_are_all_reported() {
    let text = r#"[system]
name = "press"
[[domain]]
name = "control"
role = "master"
colour = "red"
[[domain]]
name = "gateway"
role = "master"
[[fifo]]
name = "telemetry"
from = "control"
to = "gatewy"
block_size = 64
[[fifo]]
name = "telemetry"
from = "control"
to = "control"
block_size = "0 B"
"#;
    let places: Vec<(usize, usize)> = mistakes(text).iter().map(|(line, column, _)| (*line, *column)).collect();
    assert_eq!(places, [(6, 1), (9, 8), (13, 6), (14, 14), (16, 8), (18, 6), (19, 14)]);
}

#[test]
fn several_syntax_errors_are_reported() {
    let text = "[system]\nname = \n[[domain]]\nname = \"a\" \"b\"\nrole = \"mastr\"\n";
    let found = mistakes(text);
    assert!(found.iter().any(|(line, ..)| *line == 2), "{found:?}");
    assert!(found.iter().any(|(line, ..)| *line == 4), "{found:?}");
    assert!(found.iter().any(|(line, _, message)| *line == 5 && message.contains("mastr")), "{found:?}");
}

#[test]
fn the_example_is_a_description() {
    let text = include_str!("../../../examples/system.toml");
    let description = musubi_config::parse("system.toml", text).unwrap_or_else(|report| panic!("{report}"));
    description.with_plan(|plan| plan.check().expect("a checked plan"));
}
