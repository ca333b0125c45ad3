//! docs/wire.md says the same as the code: numbers of kinds, records, steps, errors and reasons, places of fields, limits.

use musubi_mcapi::engine::frame::{KINDS, Kind, class_of};
use musubi_mcapi::{Error, NodeId, limits};
use musubi_transport::frame::{Header, VERSION};
use musubi_transport::session::{CONTROL_BYTES, Hello, Identity, MAGIC, NAME_BYTES_MAX, Reason, Record, Step, Word};

const DOCUMENT: &str = include_str!("../../../docs/wire.md");

/// First and second cell of each row of the tables whose heading row begins like this, without their marks.
fn table(first: &str, second: &str) -> Vec<Vec<(String, String)>> {
    let cells = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix('|')?.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        Some((cells.next()?, cells.next()?))
    };
    // Its kinds have numbers of their own.
    let is_ours = |section: &&str| !section.starts_with("Frames of the VI Architecture");
    let lines: Vec<&str> = DOCUMENT.split("\n## ").filter(is_ours).flat_map(str::lines).collect();
    let begins = |at: &usize| cells(lines[*at]) == Some((first.into(), second.into()));
    let rows = |at: usize| lines[at + 2..].iter().map_while(|line| cells(line)).collect();
    (0..lines.len()).filter(begins).map(rows).collect()
}

fn numbered(what: &str, code: Vec<(String, u8)>) {
    let code: Vec<(String, String)> = code.into_iter().map(|(name, number)| (number.to_string(), name)).collect();
    assert_eq!(table("number", what), [code]);
}

#[test]
fn numbers_are_those_of_the_code() {
    numbered("kind", Kind::ALL.map(|kind| (format!("{kind:?}"), kind as u8)).to_vec());
    numbered("word", Word::ALL.map(|word| (format!("{word:?}"), word as u8)).to_vec());
    numbered("error", Error::ALL.map(|error| (format!("{error:?}"), error.wire())).to_vec());
    numbered("reason", Reason::ALL.map(|reason| (format!("{reason:?}"), reason as u8)).to_vec());
    numbered(
        "step",
        [Step::Hello, Step::Welcome, Step::Refusal].map(|step| (format!("{step:?}"), step as u8)).to_vec(),
    );
}

/// Where each named field of a table of bytes begins.
fn places(table: &[(String, String)]) -> impl Fn(&str) -> usize {
    let table = table.to_vec();
    move |field| {
        let row = table.iter().find(|(_, name)| name == field);
        row.unwrap_or_else(|| panic!("{field} is not documented")).0.parse().unwrap()
    }
}

/// That number, little-endian, lies there.
fn lies(bytes: &[u8], at: usize, number: u64, length: usize) {
    assert_eq!(bytes[at..at + length], number.to_le_bytes()[..length], "at byte {at}");
}

#[test]
fn fields_lie_where_the_tables_say() {
    let tables = table("byte", "field");
    let [hello, record, frame] = tables.as_slice() else { panic!("three tables of bytes, not {}", tables.len()) };

    let identity =
        Identity { system: "name".into(), hash: 0x0102, node: NodeId::new(1, 2).unwrap(), incarnation: 0x0304 };
    let (to, reason) = (NodeId::new(3, 4).unwrap(), Some(Reason::Stale));
    let numbers = (0x0506, 0x0708, 0x090a, 0x0b0c);
    let (session, ended, attempt, received) = numbers;
    let said = Hello { step: Step::Refusal, reason, identity, to, session, touched: true, ended, attempt, received };
    let (bytes, place) = (said.encode(), places(hello));
    assert_eq!(bytes[place("magic")..][..MAGIC.len()], MAGIC);
    lies(&bytes, place("version"), VERSION.into(), 2);
    lies(&bytes, place("step"), 3, 1);
    lies(&bytes, place("reason"), Reason::Stale as u64, 1);
    lies(&bytes, place("touched"), 1, 1);
    lies(&bytes, place("name length"), 4, 1);
    lies(&bytes, place("from"), 1 << 10 | 2, 2);
    lies(&bytes, place("to"), 3 << 10 | 4, 2);
    lies(&bytes, place("incarnation"), 0x0304, 4);
    lies(&bytes, place("hash"), 0x0102, 8);
    lies(&bytes, place("session"), session, 8);
    lies(&bytes, place("ended"), ended, 8);
    lies(&bytes, place("attempt"), attempt.into(), 4);
    lies(&bytes, place("received"), received.into(), 4);
    assert_eq!(&bytes[place("name")..][..4], b"name");
    assert_eq!(Hello::BYTES - place("name"), NAME_BYTES_MAX);

    let record_bytes =
        Record { word: Word::More, class: class_of(3), flags: 1, length: 0x0102, number: 0x0304, received: 0x0506 };
    let (bytes, place) = (record_bytes.encode(), places(record));
    for (field, number, length) in [
        ("word", 2, 1),
        ("class", 4, 1),
        ("flags", 1, 1),
        ("zero", 0, 1),
        ("length", 0x0102, 4),
        ("number", 0x0304, 4),
        ("received", 0x0506, 4),
    ] {
        lies(&bytes, place(field), number, length);
    }

    let header = Header {
        class: class_of(3),
        status: 5,
        flags: 6,
        length: 7,
        from: 8,
        to: 9,
        tag: 10,
        value: 11,
        kind: Kind::Scalar as u8,
    };
    let (bytes, place) = (header.encode(), places(frame));
    for (field, number, length) in [
        ("kind", 15, 1),
        ("class", 4, 1),
        ("status", 5, 1),
        ("flags", 6, 1),
        ("length", 7, 4),
        ("from", 8, 4),
        ("to", 9, 4),
        ("tag", 10, 4),
        ("value", 11, 4),
    ] {
        lies(&bytes, place(field), number, length);
    }
}

#[test]
fn limits_are_those_of_the_code() {
    let limits = [
        ("MESSAGE_BYTES_MAX", limits::MESSAGE_BYTES_MAX),
        ("PACKET_BYTES_MAX", limits::PACKET_BYTES_MAX),
        ("LEAST_URGENT", KINDS.least_urgent.index()),
        ("PRIORITIES", limits::PRIORITIES.into()),
        ("MESSAGE_CREDIT", limits::MESSAGE_CREDIT as usize),
        ("PACKET_CREDIT", limits::PACKET_CREDIT as usize),
        ("CHANNEL_BYTES", limits::CHANNEL_BYTES as usize),
        ("SCALAR_CREDIT", limits::SCALAR_CREDIT as usize),
        ("CONTROL_BYTES", CONTROL_BYTES),
    ];
    let code = limits.map(|(name, value)| (name.to_owned(), value.to_string()));
    assert_eq!(table("constant", "value"), [code.to_vec()]);
}

#[test]
fn priorities_are_of_the_classes_of_the_code() {
    let code = (0..limits::PRIORITIES).map(|of| (of.to_string(), class_of(of).class().to_string()));
    assert_eq!(table("priority", "class"), [code.collect::<Vec<_>>()]);
}
