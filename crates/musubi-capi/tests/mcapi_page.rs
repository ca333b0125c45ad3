//! docs/mcapi-conformance.md is what the conformance programs check: each status that a function can give is checked by a
//! program, or the page says why not; each sentence is proved by a program.
//!
//! How it works: the checks of tests/mcapi name their row and status. The table of the page is made from them;
//! `MUSUBI_WRITE_PAGE=1 cargo test -p musubi-capi --test mcapi_page` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The functions in the order of the facts' section 3, and the statuses that each may give besides NODE_NOTINIT and GENERAL.
const ROWS: [(&str, &str); 49] = [
    ("initialize", "SUCCESS NODE_INITFAILED NODE_INITIALIZED NODE_INVALID DOMAIN_INVALID PARAMETER"),
    ("finalize", "SUCCESS NODE_FINALFAILED"),
    ("domain_id_get", "SUCCESS"),
    ("node_id_get", "SUCCESS"),
    ("node_init_attributes", "SUCCESS PARAMETER"),
    ("node_set_attribute", "SUCCESS ATTR_NUM ATTR_VALUE ATTR_SIZE ATTR_NOTSUPPORTED ATTR_READONLY PARAMETER"),
    ("node_get_attribute", "SUCCESS DOMAIN_INVALID NODE_INVALID ATTR_NUM ATTR_SIZE ATTR_NOTSUPPORTED PARAMETER"),
    ("endpoint_create", "SUCCESS PORT_INVALID ENDP_EXISTS"),
    (
        "endpoint_get_i",
        "SUCCESS PENDING PORT_INVALID NODE_INVALID DOMAIN_INVALID REQUEST_LIMIT ENDP_GET_LIMIT PARAMETER",
    ),
    ("endpoint_get", "SUCCESS PORT_INVALID NODE_INVALID DOMAIN_INVALID ENDP_GET_LIMIT TIMEOUT"),
    ("endpoint_release", "SUCCESS ENDP_INVALID"),
    ("endpoint_delete", "SUCCESS ENDP_INVALID CHAN_CONNECTED ENDP_NOTOWNER"),
    ("endpoint_get_attribute", "SUCCESS ENDP_INVALID ATTR_NUM ATTR_SIZE ATTR_NOTSUPPORTED PARAMETER"),
    (
        "endpoint_set_attribute",
        "SUCCESS ENDP_INVALID ATTR_NUM ATTR_SIZE ATTR_VALUE ATTR_READONLY ATTR_NOTSUPPORTED CHAN_CONNECTED ENDP_REMOTE \
         PARAMETER",
    ),
    ("msg_send_i", "SUCCESS PENDING ENDP_INVALID MSG_SIZE REQUEST_LIMIT MEM_LIMIT PRIORITY TRANSMISSION PARAMETER"),
    ("msg_send", "SUCCESS ENDP_INVALID MSG_SIZE PRIORITY TRANSMISSION PARAMETER TIMEOUT"),
    ("msg_recv_i", "SUCCESS PENDING ENDP_INVALID MSG_TRUNCATED TRANSMISSION REQUEST_LIMIT MEM_LIMIT PARAMETER"),
    ("msg_recv", "SUCCESS ENDP_INVALID MSG_TRUNCATED TRANSMISSION PARAMETER TIMEOUT"),
    ("msg_available", "SUCCESS ENDP_INVALID"),
    ("pktchan_connect_i", CONNECT),
    ("pktchan_recv_open_i", OPEN),
    ("pktchan_send_open_i", OPEN),
    ("pktchan_send_i", "SUCCESS PENDING CHAN_INVALID PKT_SIZE REQUEST_LIMIT MEM_LIMIT TRANSMISSION PARAMETER"),
    ("pktchan_send", "SUCCESS CHAN_INVALID PKT_SIZE TRANSMISSION PARAMETER TIMEOUT"),
    ("pktchan_recv_i", "SUCCESS PENDING CHAN_INVALID MEM_LIMIT REQUEST_LIMIT TRANSMISSION PARAMETER"),
    ("pktchan_recv", "SUCCESS CHAN_INVALID TRANSMISSION PARAMETER TIMEOUT"),
    ("pktchan_available", "SUCCESS CHAN_INVALID"),
    ("pktchan_release", "SUCCESS BUF_INVALID"),
    ("pktchan_release_test", "SUCCESS PENDING BUF_INVALID PARAMETER"),
    ("pktchan_recv_close_i", CLOSE),
    ("pktchan_send_close_i", CLOSE),
    ("sclchan_connect_i", CONNECT),
    ("sclchan_recv_open_i", OPEN),
    ("sclchan_send_open_i", OPEN),
    ("sclchan_send_uint64", "SUCCESS CHAN_INVALID"),
    ("sclchan_send_uint32", "SUCCESS CHAN_INVALID"),
    ("sclchan_send_uint16", "SUCCESS CHAN_INVALID"),
    ("sclchan_send_uint8", "SUCCESS CHAN_INVALID"),
    ("sclchan_recv_uint64", "SUCCESS CHAN_INVALID GENERAL"),
    ("sclchan_recv_uint32", "SUCCESS CHAN_INVALID GENERAL"),
    ("sclchan_recv_uint16", "SUCCESS CHAN_INVALID GENERAL"),
    ("sclchan_recv_uint8", "SUCCESS CHAN_INVALID GENERAL"),
    ("sclchan_available", "SUCCESS CHAN_INVALID"),
    ("sclchan_recv_close_i", CLOSE),
    ("sclchan_send_close_i", CLOSE),
    ("test", "SUCCESS PENDING REQUEST_INVALID PARAMETER"),
    ("wait", "SUCCESS REQUEST_INVALID REQUEST_CANCELLED WAIT_PENDING TIMEOUT PARAMETER"),
    ("wait_any", "SUCCESS REQUEST_INVALID REQUEST_CANCELLED WAIT_PENDING TIMEOUT PARAMETER"),
    ("cancel", "SUCCESS REQUEST_INVALID PARAMETER"),
];

const CONNECT: &str = "SUCCESS PENDING ENDP_INVALID CHAN_CONNECTED CHAN_CLOSEPENDING REQUEST_LIMIT ENDP_GET_LIMIT \
                       ATTR_INCOMPATIBLE PARAMETER";
const OPEN: &str = "SUCCESS PENDING ENDP_INVALID CHAN_TYPE CHAN_DIRECTION REQUEST_LIMIT CHAN_OPENPENDING \
                    CHAN_CLOSEPENDING CHAN_OPEN ENDP_DELETED PARAMETER";
const CLOSE: &str = "SUCCESS PENDING CHAN_INVALID CHAN_TYPE CHAN_DIRECTION CHAN_NOTOPEN REQUEST_LIMIT PARAMETER";

const BEGIN: &str = "<!-- made from the programs -->\n";
const END: &str = "<!-- end -->\n";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcapi")
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcapi-conformance.md")
}

/// The programs with what they include, by name.
fn programs() -> BTreeMap<String, String> {
    let mut programs = BTreeMap::new();
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "c") {
            let mut text = std::fs::read_to_string(&path).unwrap();
            if text.contains("#include \"channels.h\"") {
                text.push_str(&std::fs::read_to_string(directory().join("channels.h")).unwrap());
            }
            programs.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), text);
        }
    }
    programs
}

/// Arguments of each call of a macro in a text, until the second comma or the end.
fn calls<'t>(text: &'t str, name: &str) -> Vec<(&'t str, &'t str)> {
    let begins: Vec<&str> = text.split(name).skip(1).collect();
    let two = |rest: &&'t str| {
        let (first, rest) = rest.split_once(',')?;
        Some((first.trim(), rest.split([',', ')']).next()?.trim()))
    };
    begins.iter().filter_map(two).collect()
}

/// Row and status of each check, with the programs that have it.
fn checked() -> BTreeMap<(usize, String), BTreeSet<String>> {
    let mut checked: BTreeMap<(usize, String), BTreeSet<String>> = BTreeMap::new();
    for (program, text) in programs() {
        let defined = |name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.parse::<usize>().ok())
        };
        for (row, status) in calls(&text, " GIVES(").into_iter().chain(calls(&text, " ROW(")) {
            if let Some(row) = row.parse().ok().or_else(|| defined(row)) {
                let status = status.trim_start_matches("ERR_").to_owned();
                checked.entry((row, status)).or_default().insert(program.clone());
            }
        }
    }
    checked
}

fn table() -> String {
    let checked = checked();
    let mut text = String::from("| row | function | status: programs that check it |\n| ---: | --- | --- |\n");
    for (place, (name, statuses)) in ROWS.iter().enumerate() {
        let row = place + 1;
        let own: BTreeSet<&str> = statuses.split_whitespace().collect();
        let others = checked.keys().filter(|(of, status)| *of == row && !own.contains(status.as_str()));
        let mut cells = Vec::new();
        for status in statuses.split_whitespace().map(str::to_owned).chain(others.map(|(_, status)| status.clone())) {
            let by = checked.get(&(row, status.clone()));
            let by = by.map(|by| by.iter().cloned().collect::<Vec<_>>().join(", "));
            cells.push(format!("{status}: {}", by.unwrap_or_else(|| "see below".to_owned())));
        }
        writeln!(text, "| {row} | `mcapi_{name}` | {} |", cells.join("; ")).unwrap();
    }
    text
}

#[test]
fn the_table_is_what_the_programs_check() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (inside, after) = rest.split_once(END).unwrap();
    let table = table();
    if inside != table && std::env::var_os("MUSUBI_WRITE_PAGE").is_some() {
        std::fs::write(page_path(), format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(inside == table, "docs/mcapi-conformance.md is old: MUSUBI_WRITE_PAGE=1 writes its table anew");
}

#[test]
fn each_status_is_checked_or_explained() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let explained = page.split_once("## Statuses that no program checks\n").unwrap().1.split_once("\n## ").unwrap().0;
    let explained: BTreeSet<(usize, &str)> = explained
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter_map(|(cell, _)| cell.split_once(' '))
        .flat_map(|(status, rows)| {
            rows.split(", ").filter_map(|row| Some((row.trim().parse().ok()?, status))).collect::<Vec<_>>()
        })
        .collect();
    let checked = checked();
    let mut wrong = Vec::new();
    for (place, (name, statuses)) in ROWS.iter().enumerate() {
        let row = place + 1;
        // What no node is needed for.
        let always = [1, 5, 6].contains(&row);
        for status in statuses.split_whitespace().chain((!always).then_some("NODE_NOTINIT")) {
            let is_checked = checked.contains_key(&(row, status.to_owned()));
            if is_checked == explained.contains(&(row, status)) {
                wrong.push(format!("row {row}, mcapi_{name}, {status}: checked and explained: {is_checked}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_sentence_of_the_page_is_proved_and_no_other() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let sentences: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .map(|(id, _)| id)
        .filter(|id| id.len() >= 2 && "NEMCR".contains(&id[..1]) && id[1..].parse::<u32>().is_ok())
        .map(str::to_owned)
        .collect();
    let mut proved = BTreeSet::new();
    for text in programs().into_values() {
        for name in text.split("PROVES(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            if name != "check" && !name.starts_with("row ") && !name.starts_with("section ") {
                proved.insert(name.to_owned());
            }
        }
    }
    assert_eq!(sentences, proved);
}
