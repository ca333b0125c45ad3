//! The generated files mean what the plan says, in each of their languages.
//!
//! tests/generated holds the files of tests/board.toml; tests/committed.rs compares and renews them.

use std::path::{Path, PathBuf};
use std::process::Command;

use musubi_config::{Content, Description, MemoryMap};
use musubi_core::layout;

const BOARD: &str = include_str!("board.toml");
const EXAMPLE: &str = include_str!("../../../examples/system.toml");
const STEM: &str = "musubi_board_2";

mod board {
    include!("generated/musubi_board_2.rs");
}

fn describe(text: &str) -> Description {
    musubi_config::parse("description", text).unwrap_or_else(|report| panic!("{report}"))
}

fn generate(text: &str) -> (Description, tempfile::TempDir) {
    let description = describe(text);
    let directory = tempfile::tempdir().expect("a directory for the test");
    let paths = musubi_config::generate(&description, &directory.path().join("new")).expect("files can be written");
    assert_eq!(paths.len(), 5);
    (description, directory)
}

fn file(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    directory.path().join("new").join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a program and gives what it printed; `None`, loudly, if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(arguments).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed");
            return None;
        }
        other => other.expect("the program starts"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn the_rust_module_is_the_plan() {
    let description = describe(BOARD);
    description.with_plan(|plan| {
        assert_eq!(*plan, board::PLAN);
        assert_eq!(plan.domain("cortex-r5"), Some(board::domain::CORTEX_R5));
        assert_eq!(plan.domain("linux"), Some(board::domain::LINUX));
        assert_eq!(plan.fifo("telemetry"), Some(board::fifo::TELEMETRY));
        assert_eq!(plan.fifo("set-points"), Some(board::fifo::SET_POINTS));
        assert_eq!(plan.smem("parameters"), Some(board::smem::PARAMETERS));
        assert_eq!(plan.smem("image"), Some(board::smem::IMAGE));
    });
    let bell = board::doorbell::LINUX;
    assert_eq!((bell.interrupt, bell.register, bell.value), (121, 0xF901_020C, 0x0200_0000));
    let bell = board::doorbell::CORTEX_R5;
    assert_eq!((bell.interrupt, bell.register, bell.value), (123, 0xF900_020C, 0x0800_0000));
    assert_eq!(*description.leak(), board::PLAN);
    assert!(board::PLAN.check().is_ok());
}

/// What the header says of the doorbells of tests/board.toml.
const BOARD_DOORBELLS: [(&str, u64); 6] = [
    ("MUSUBI_DOORBELL_INTERRUPT_CORTEX_R5", 123),
    ("MUSUBI_DOORBELL_REGISTER_CORTEX_R5", 0xF900_020C),
    ("MUSUBI_DOORBELL_VALUE_CORTEX_R5", 0x0800_0000),
    ("MUSUBI_DOORBELL_INTERRUPT_LINUX", 121),
    ("MUSUBI_DOORBELL_REGISTER_LINUX", 0xF901_020C),
    ("MUSUBI_DOORBELL_VALUE_LINUX", 0x0200_0000),
];

/// Each macro that the header must define, with its value by the plan.
fn expected_macros(description: &Description) -> Vec<(String, u64)> {
    let map = MemoryMap::of(description);
    let upper = |name: &str| name.replace(['-', '.'], "_").to_uppercase();
    let mut expected = vec![
        ("MUSUBI_PLAN_HASH".to_owned(), description.hash()),
        ("MUSUBI_LAYOUT_VERSION".to_owned(), u64::from(layout::VERSION)),
        ("MUSUBI_MAP_BYTES".to_owned(), map.bytes()),
    ];
    if description.name() == "board-2" {
        expected.extend(BOARD_DOORBELLS.map(|(name, value)| (name.to_owned(), value)));
    }
    description.with_plan(|plan| {
        let counts = [plan.domains.len(), usize::from(plan.participants()), plan.fifos.len(), plan.smems.len()];
        for (name, count) in ["DOMAINS", "PARTICIPANTS", "FIFOS", "SMEMS"].iter().zip(counts) {
            expected.push((format!("MUSUBI_{name}"), count as u64));
        }
        for (number, domain) in plan.domains.iter().enumerate() {
            expected.push((format!("MUSUBI_DOMAIN_{}", upper(domain.name)), number as u64));
        }
        for (number, fifo) in plan.fifos.iter().enumerate() {
            expected.push((format!("MUSUBI_FIFO_{}", upper(fifo.name)), number as u64));
            expected.push((format!("MUSUBI_BLOCKS_{}", upper(fifo.name)), u64::from(fifo.blocks)));
            expected.push((format!("MUSUBI_BLOCK_BYTES_{}", upper(fifo.name)), u64::from(fifo.block_bytes)));
        }
        for (number, smem) in plan.smems.iter().enumerate() {
            expected.push((format!("MUSUBI_SMEM_{}", upper(smem.name)), number as u64));
            expected.push((format!("MUSUBI_PAYLOAD_BYTES_{}", upper(smem.name)), u64::from(smem.bytes)));
        }
    });
    for region in map.regions() {
        let (kind, name) = (kind(region.content), upper(&region.name));
        expected.push((format!("MUSUBI_{kind}_OFFSET_{name}"), region.offset));
        expected.push((format!("MUSUBI_{kind}_BYTES_{name}"), region.bytes));
        if let Content::Section { participant, .. } | Content::Slot { participant, .. } = region.content {
            expected.push((format!("MUSUBI_PARTICIPANT_{name}"), u64::from(participant)));
        }
    }
    expected
}

fn kind(content: Content) -> &'static str {
    match content {
        Content::Section { .. } => "SECTION",
        Content::Slot { .. } => "SLOT",
        Content::Segment { .. } => "SEGMENT",
    }
}

/// A C program that prints the macros, one a line.
fn printing_program(header: &str, macros: &[(String, u64)]) -> String {
    let prints: String = macros
        .iter()
        .map(|(name, _)| format!("    printf(\"%s %llu\\n\", \"{name}\", (unsigned long long)({name}));\n"))
        .collect();
    let head = format!("#include \"{header}\"\n#include \"{header}\"\n#include <stdio.h>\n");
    format!("{head}int main(void) {{\n    puts(MUSUBI_SYSTEM_NAME);\n{prints}    return 0;\n}}\n")
}

#[test]
fn the_c_header_has_the_numbers_of_the_plan() {
    for (text, stem) in [(BOARD, STEM), (EXAMPLE, "musubi_press")] {
        let (description, directory) = generate(text);
        let macros = expected_macros(&description);
        let defined = read(&file(&directory, &format!("{stem}.h"))).matches("#define MUSUBI_").count();
        // Beside the numbers: the include guard, the name, and base and size if there is an address map.
        assert_eq!(defined, macros.len() + 2 + if description.address_map().is_some() { 2 } else { 0 });
        let source = file(&directory, "print.c");
        std::fs::write(&source, printing_program(&format!("{stem}.h"), &macros)).expect("written");
        let expected: String = macros.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        for (compiler, standard) in [("cc", "-std=c99"), ("c++", "-std=c++11")] {
            let binary = file(&directory, "print");
            let language = if compiler == "cc" { "c" } else { "c++" };
            let flags = [standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-x", language];
            let ends = [path_text(&source), "-o", path_text(&binary)];
            if run(compiler, &[&flags[..], &ends[..]].concat()).is_some() {
                let printed = run(path_text(&binary), &[]).expect("just compiled");
                assert_eq!(printed, format!("{}\n{expected}", description.name()));
            }
        }
    }
}

#[test]
fn the_linker_script_places_the_sections() {
    for (text, stem) in [(BOARD, STEM), (EXAMPLE, "musubi_press")] {
        let (description, directory) = generate(text);
        let (source, object, linked) =
            (file(&directory, "empty.c"), file(&directory, "empty.o"), file(&directory, "linked"));
        std::fs::write(&source, "int musubi_nothing = 1;\n").expect("written");
        let script = file(&directory, &format!("{stem}.ld"));
        let compile = ["-c", path_text(&source), "-o", path_text(&object)];
        let link = ["-r", "-o", path_text(&linked), path_text(&object), "-T", path_text(&script)];
        let done = run("cc", &compile).and_then(|_| run("ld", &link)).and_then(|_| run("nm", &[path_text(&linked)]));
        let Some(symbols) = done else { continue };
        let map = MemoryMap::of(&description);
        for region in map.regions() {
            let name = region.name.replace(['-', '.'], "_").to_lowercase();
            let kind = kind(region.content).to_lowercase();
            let address = map.base().unwrap_or(0) + region.offset;
            assert!(symbols.contains(&format!("{address:016x} A __musubi_{kind}_{name}\n")), "{symbols}");
            assert!(symbols.contains(&format!("{:016x} A __musubi_bytes_{kind}_{name}\n", region.bytes)), "{symbols}");
        }
    }
}

/// A board's source that the fragment can be included in.
const ROOT: &str = r#"/dts-v1/;
/ {
    #address-cells = <2>;
    #size-cells = <2>;
    interrupt-parent = <&gic>;
    gic: interrupt-controller@f9010000 {
        #address-cells = <0>;
        #interrupt-cells = <3>;
        interrupt-controller;
        reg = <0x0 0xf9010000 0x0 0x10000>;
    };
};
"#;

#[test]
fn the_devicetree_compiler_accepts_the_fragment() {
    for (text, stem) in [(BOARD, STEM), (EXAMPLE, "musubi_press")] {
        let (description, directory) = generate(text);
        let board = file(&directory, "board.dts");
        std::fs::write(&board, format!("{ROOT}/include/ \"{stem}.dtsi\"\n")).expect("written");
        let Some(tree) = run("dtc", &["-I", "dts", "-O", "dts", path_text(&board)]) else { continue };
        let map = MemoryMap::of(&description);
        let Some(base) = map.base() else {
            assert!(tree.contains(&format!("size = <0x00 {:#x}>", map.bytes())), "{tree}");
            continue;
        };
        for region in map.regions() {
            let (address, bytes) = (base + region.offset, region.bytes);
            assert!(tree.contains(&format!("reg = <0x00 {address:#x} 0x00 {bytes:#x}>")), "{tree}");
        }
        assert_eq!(tree.matches("compatible = \"musubi,uio\"").count(), 1, "one domain is made of such processes");
        let linux = map.regions().iter().filter(|region| region.name.starts_with("linux."));
        let own_bytes: u64 = linux.map(|region| region.bytes).sum();
        assert!(tree.contains(&format!("{own_bytes:#x}>, <0x00 {base:#x} 0x00 {:#x}", map.bytes())), "{tree}");
        assert!(tree.contains("interrupts = <0x00 0x59 0x01>"), "{tree}");
        assert!(tree.contains("musubi,doorbells = <0x00 0x00 0xf900020c 0x8000000>"), "{tree}");
    }
}

/// A board whose addresses and lengths are one cell each.
#[test]
fn the_fragment_has_as_many_cells_as_the_tree_that_it_goes_into() {
    let root = ROOT.replace("<2>", "<1>").replace("<0x0 0xf9010000 0x0 0x10000>", "<0xf9010000 0x10000>");
    for (text, stem) in [(BOARD, STEM), (EXAMPLE, "musubi_press")] {
        let narrow = text.replacen("[system]\n", "[system]\ncells = 1\n", 1);
        let (description, directory) = generate(&narrow);
        assert_eq!(description.hash(), describe(text).hash(), "both sides need not agree on it");
        assert!(musubi_config::print(&description).contains("cells = 1\n"));
        assert_eq!(describe(&musubi_config::print(&description)), description);
        let fragment = read(&file(&directory, &format!("{stem}.dtsi")));
        assert!(fragment.contains("#address-cells = <1>;\n\t\t#size-cells = <1>;"), "{fragment}");
        let board = file(&directory, "board.dts");
        std::fs::write(&board, format!("{root}/include/ \"{stem}.dtsi\"\n")).expect("written");
        // What the compiler finds odd, such as a `reg` of another length than the cells say, is an error here.
        let odd = ["-E", "reg_format", "-E", "ranges_format"];
        let Some(tree) = run("dtc", &[&["-I", "dts", "-O", "dts"][..], &odd, &[path_text(&board)]].concat()) else {
            continue;
        };
        let map = MemoryMap::of(&description);
        let Some(base) = map.base() else {
            assert!(tree.contains(&format!("size = <{:#x}>", map.bytes())), "{tree}");
            continue;
        };
        for region in map.regions() {
            let (address, bytes) = (base + region.offset, region.bytes);
            assert!(tree.contains(&format!("reg = <{address:#x} {bytes:#x}>")), "{tree}");
        }
        assert!(tree.contains("musubi,doorbells = <0x00 0x00 0xf900020c 0x8000000>"), "what is ours stays: {tree}");
    }
}

/// The bell of a mailbox block: a level, which its driver must acknowledge and let through.
const RUNG_BY_A_LEVEL: &str = "doorbell = { interrupt = 61, register = 0xFF31_0000, value = 0x0100_0000, \
    level = { acknowledge = 0xFF34_0010, unmask = 0xFF34_0018, value = 0x100 } }";

#[test]
fn a_doorbell_that_is_a_level_brings_what_silences_it() {
    let edge = "doorbell = { interrupt = 121, register = 0xF901_020C, value = 0x0200_0000 }";
    let (description, directory) = generate(&BOARD.replace(edge, RUNG_BY_A_LEVEL));
    assert_ne!(description.hash(), describe(BOARD).hash(), "both sides must agree on it");
    assert_eq!(describe(&musubi_config::print(&description)).hash(), description.hash());
    let text = |kind: &str| read(&file(&directory, &format!("{STEM}.{kind}")));
    let (tree, module, header) = (text("dtsi"), text("rs"), text("h"));
    for line in [
        "interrupts = <0 29 4>;",
        "musubi,acknowledge = <0x0 0xff340010 0x100>;",
        "musubi,unmask = <0x0 0xff340018 0x100>;",
    ] {
        assert!(tree.contains(line), "{line} is not in\n{tree}");
    }
    assert!(module.contains("acknowledge: 0xff340010") && module.contains("unmask: 0xff340018"), "{module}");
    assert!(header.contains("MUSUBI_DOORBELL_ACKNOWLEDGE_LINUX"), "{header}");
}

/// A Master on Linux that is no member of the SMEM channel.
const LINUX_IS_MASTER: &str = r#"
[system]
name = "board-3"
base = 0x7000_0000
size = "1 MiB"
[[domain]]
name = "linux"
role = "master"
port = "uio"
[[domain]]
name = "one"
role = "remote"
port = "metal"
[[domain]]
name = "two"
role = "remote"
port = "metal"
[[fifo]]
name = "orders"
from = "linux"
to = "one"
block_size = "64 B"
[[smem]]
name = "table"
domains = ["one", "two"]
size = "256 B"
"#;

#[test]
fn a_master_on_linux_may_zero_every_segment() {
    let (description, directory) = generate(LINUX_IS_MASTER);
    let map = MemoryMap::of(&description);
    let base = map.base().expect("an address map");
    let segment = map.regions().iter().find(|region| matches!(region.content, Content::Segment { .. })).expect("one");
    let tree = read(&file(&directory, "musubi_board_3.dtsi"));
    let place = format!("<0x0 {:#x} 0x0 {:#x}>;\n\t\treg-names", base + segment.offset, segment.bytes);
    assert!(tree.contains(&place) && tree.contains("\"all\", \"segments\""), "{tree}");
}

#[test]
fn the_picture_shows_every_region() {
    let (description, directory) = generate(EXAMPLE);
    let path = file(&directory, "musubi_press.svg");
    let picture = read(&path);
    for region in MemoryMap::of(&description).regions() {
        assert!(picture.contains(&region.name), "{}", region.name);
    }
    run("rsvg-convert", &["-o", path_text(&file(&directory, "picture.png")), path_text(&path)]);
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_with_its_path() {
    let description = describe(EXAMPLE);
    let occupied = tempfile::NamedTempFile::new().expect("a file for the test");
    let error = musubi_config::generate(&description, &occupied.path().join("out")).expect_err("a file is in the way");
    assert!(error.to_string().contains("out"), "{error}");
}
