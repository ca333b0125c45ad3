//! include/mdcom.h agrees with the library: sizes, offsets, values, symbols; and compiles as C99 and C++17. The symbols
//! are those of include/mcapi.h too; the rest of that is in mcapi_header.rs.

mod programs;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use musubi::mdcom::abi::{Config, FOREVER, Filter, LOCK_MEMORY, PREFAULT, READY_BLOCK, READY_EVENT, READY_PEER, Usage};
use musubi::mdcom::status::STATUSES;
use programs::{compile, directory, libraries, root};

fn header() -> String {
    std::fs::read_to_string(root().join("include/mdcom.h")).unwrap()
}

/// Expressions of C and the values that the library gives them.
fn expected() -> Vec<(String, i128)> {
    let mut all = vec![
        ("MDCOM_POLL".to_owned(), 0),
        ("MDCOM_FOREVER".to_owned(), i128::from(FOREVER)),
        ("MDCOM_US(3)".to_owned(), 3_000),
        ("MDCOM_MS(5000)".to_owned(), 5_000_000_000),
        ("MDCOM_PREFAULT".to_owned(), i128::from(PREFAULT)),
        ("MDCOM_LOCK_MEMORY".to_owned(), i128::from(LOCK_MEMORY)),
        ("MDCOM_READY_EVENT".to_owned(), i128::from(READY_EVENT)),
        ("MDCOM_READY_BLOCK".to_owned(), i128::from(READY_BLOCK)),
        ("MDCOM_READY_PEER".to_owned(), i128::from(READY_PEER)),
        ("sizeof(mdcom_status_t)".to_owned(), 4),
        ("sizeof(mdcom_ns_t)".to_owned(), 8),
        ("sizeof(mdcom_ch_t)".to_owned(), 4),
        ("sizeof(mdcom_block_t)".to_owned(), 8),
    ];
    macro_rules! layout {
        ($c:literal, $rust:ty, $($field:ident),*) => {
            all.push((format!("sizeof({})", $c), size_of::<$rust>() as i128));
            $(
                all.push((format!("offsetof({}, {})", $c, stringify!($field)), offset_of!($rust, $field) as i128));
            )*
            let fields = [$(stringify!($field)),*];
            assert_eq!(fields_of($c).len(), fields.len(), "{}", $c);
        };
    }
    layout!("mdcom_config_t", Config, struct_size, description, domain, instance, plan_hash, timeout, slot, flags);
    layout!("mdcom_usage_t", Usage, blocks, block_bytes, free, queued, held, connected);
    layout!("mdcom_filter_t", Filter, every, level, interval, latest);
    all.extend(STATUSES.iter().map(|(status, name, _)| ((*name).to_owned(), *status as i128)));
    all
}

/// The lines of a struct in the header that declare a field.
fn fields_of(c_type: &str) -> Vec<String> {
    let (header, name) = (header(), c_type.trim_end_matches("_t"));
    let body = header.split_once(&format!("typedef struct {name} {{")).unwrap().1.split_once("} mdcom_").unwrap().0;
    body.lines().map(str::trim).filter(|line| line.ends_with(';')).map(str::to_owned).collect()
}

#[test]
fn values_and_layout_are_those_of_the_library() {
    let expected = expected();
    let mut program = "#include <mdcom.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
    for (expression, value) in &expected {
        let (format, cast) = if *value < 0 { ("%lld", "long long") } else { ("%llu", "unsigned long long") };
        writeln!(program, "printf(\"{format}\\n\", ({cast})({expression}));").unwrap();
    }
    program.push_str("return 0; }\n");
    let source = directory().join("values.c");
    std::fs::write(&source, program).unwrap();
    let output = Command::new(compile(&source)).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<i128> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(printed.len(), expected.len());
    for ((expression, value), printed) in expected.iter().zip(printed) {
        assert_eq!(printed, *value, "{expression}");
    }
}

#[test]
fn every_code_of_the_header_is_in_the_library() {
    let header = header();
    let body = header.split_once("typedef enum mdcom_status {").unwrap().1.split_once("} mdcom_status_t;").unwrap().0;
    let lines = body.lines().map(str::trim).filter(|line| line.starts_with("MDCOM_"));
    let names: BTreeSet<&str> = lines.filter_map(|line| line.split_once(" =")).map(|(name, _)| name).collect();
    let known: BTreeSet<&str> = STATUSES.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(names, known);
}

/// Names that the header declares as functions.
fn declared() -> BTreeSet<String> {
    let header = header();
    let is_declaration =
        |line: &&str| line.starts_with("mdcom_status_t mdcom_") || line.starts_with("const char *mdcom_");
    let name = |line: &str| {
        let until = line.split_once('(').unwrap().0;
        until.rsplit([' ', '*']).next().unwrap().to_owned()
    };
    let mcapi = std::fs::read_to_string(root().join("include/mcapi.h")).unwrap();
    let of_mcapi = mcapi.lines().filter(|line| line.starts_with("extern ") && line.contains('(')).map(name);
    header.lines().filter(is_declaration).map(name).chain(of_mcapi).collect()
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libmusubi.so")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    let of_the_paper = [
        "init",
        "term",
        "sense_process",
        "sense_fifo",
        "fifo_alloc",
        "fifo_free",
        "fifo_get",
        "fifo_enqueue",
        "fifo_dequeue",
        "fifo_notify",
        "fifo_wait",
        "filter_set",
        "fifo_init",
        "smemch_get",
        "smemch_trylock",
        "smemch_unlock",
    ];
    for name in of_the_paper {
        assert!(exported.contains(&format!("mdcom_{name}")), "{name}");
        let long = format!("mdcom_{}", name.replace("fifo_", "fifoch_"));
        assert!(name.starts_with("sense") || exported.contains(&long), "{long}");
    }
}

fn check(compiler: &str, standard: &str, file: &str) {
    let source = directory().join(file);
    let text = "#include <mdcom.h>\n#include <musubi_talk.h>\n\
                mdcom_config_t config = MDCOM_CONFIG_INIT;\nmdcom_filter_t filter = MDCOM_FILTER_EVERY(2);\n\
                mdcom_filter_t each = MDCOM_FILTER_EACH;\nmdcom_ch_t ch = MUSUBI_FIFO_GREETINGS;\n\
                int main() { return mdcom_init(&config) == MDCOM_OK && mdcom_fifoch_wait(ch, MDCOM_MS(1)) == MDCOM_OK; }\n";
    std::fs::write(&source, text.replace("main()", if standard == "c99" { "main(void)" } else { "main()" })).unwrap();
    compile_only(compiler, standard, &source);
}

fn compile_only(compiler: &str, standard: &str, source: &Path) {
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args([
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wsign-compare",
        "-Wconversion",
        "-Wsign-conversion",
        "-Werror",
        "-c",
        "-o",
        "/dev/null",
    ]);
    command.arg("-I").arg(root().join("include")).arg("-I").arg(directory()).arg(source);
    assert!(command.status().unwrap().success(), "{command:?}");
}

#[test]
fn the_header_is_c99() {
    check("cc", "c99", "c99.c");
}

#[test]
fn the_header_is_cpp17() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C++ compiler");
        return;
    }
    check("c++", "c++17", "cpp17.cpp");
}
