//! docs/vipl-conformance.md is what the conformance programs check: each code that a call can give, and in which state of the
//! VI, is checked by a program, or the page says why not; each decision names who checks it, and those exist.
//!
//! How it works: the checks of tests/c/conformance name their code, and where it matters the state. The table of the page is
//! made from them; `MUSUBI_WRITE_PAGE=1 cargo test -p musubi-vipl-c --test page` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The calls in the header's order, and the codes that each may give; behind a colon the states in which a program must see
/// that.
const CALLS: [(&str, &str); 41] = [
    ("OpenNic", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("CloseNic", "SUCCESS INVALID_PARAMETER"),
    ("QueryNic", "SUCCESS INVALID_PARAMETER"),
    (
        "CreateVi",
        "SUCCESS INVALID_PARAMETER ERROR_RESOURCE INVALID_RELIABILITY_LEVEL INVALID_MTU INVALID_QOS INVALID_PTAG \
         INVALID_RDMAREAD",
    ),
    ("DestroyVi", "SUCCESS:IDLE INVALID_PARAMETER INVALID_STATE:IDLE,CONNECT_PENDING,CONNECTED,ERROR"),
    (
        "SetViAttributes",
        "SUCCESS:IDLE INVALID_PARAMETER INVALID_RELIABILITY_LEVEL INVALID_MTU INVALID_QOS INVALID_PTAG \
         INVALID_RDMAREAD INVALID_STATE:CONNECT_PENDING,CONNECTED,ERROR",
    ),
    ("QueryVi", "SUCCESS INVALID_PARAMETER"),
    ("ConnectWait", "SUCCESS INVALID_PARAMETER TIMEOUT INVALID_STATE ERROR_RESOURCE"),
    (
        "ConnectAccept",
        "SUCCESS INVALID_PARAMETER TIMEOUT INVALID_RELIABILITY_LEVEL:IDLE INVALID_MTU:IDLE INVALID_QOS:IDLE \
         INVALID_STATE:CONNECT_PENDING,CONNECTED,ERROR",
    ),
    ("ConnectReject", "SUCCESS INVALID_PARAMETER INVALID_STATE"),
    (
        "ConnectRequest",
        "SUCCESS INVALID_PARAMETER:IDLE TIMEOUT REJECT ERROR_RESOURCE INVALID_STATE:CONNECT_PENDING,CONNECTED,ERROR \
         NO_MATCH:IDLE NOT_REACHABLE",
    ),
    ("Disconnect", "SUCCESS:IDLE,CONNECT_PENDING,CONNECTED,ERROR INVALID_PARAMETER"),
    (
        "ConnectPeerRequest",
        "SUCCESS:IDLE INVALID_PARAMETER INVALID_STATE:CONNECT_PENDING,CONNECTED,ERROR NOT_REACHABLE",
    ),
    (
        "ConnectPeerDone",
        "SUCCESS NOT_DONE:CONNECT_PENDING INVALID_PARAMETER TIMEOUT INVALID_RELIABILITY_LEVEL INVALID_MTU INVALID_QOS \
         INVALID_STATE:IDLE,CONNECTED,ERROR",
    ),
    (
        "ConnectPeerWait",
        "SUCCESS INVALID_PARAMETER TIMEOUT INVALID_RELIABILITY_LEVEL INVALID_MTU INVALID_QOS \
         INVALID_STATE:IDLE,CONNECTED,ERROR",
    ),
    ("CreatePtag", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("DestroyPtag", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE INVALID_PTAG"),
    ("RegisterMem", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE INVALID_PTAG"),
    ("DeregisterMem", "SUCCESS INVALID_PARAMETER"),
    ("QueryMem", "SUCCESS INVALID_PARAMETER"),
    ("SetMemAttributes", "SUCCESS INVALID_PARAMETER INVALID_PTAG"),
    ("PostSend", "SUCCESS:IDLE,CONNECT_PENDING,CONNECTED,ERROR INVALID_PARAMETER ERROR_RESOURCE"),
    ("PostRecv", "SUCCESS:IDLE,CONNECT_PENDING,CONNECTED,ERROR INVALID_PARAMETER ERROR_RESOURCE"),
    ("SendDone", "SUCCESS NOT_DONE:CONNECTED INVALID_PARAMETER DESCRIPTOR_ERROR"),
    ("RecvDone", "SUCCESS NOT_DONE:IDLE,CONNECT_PENDING,CONNECTED INVALID_PARAMETER DESCRIPTOR_ERROR"),
    ("SendWait", "SUCCESS TIMEOUT:CONNECTED INVALID_PARAMETER ERROR_RESOURCE DESCRIPTOR_ERROR INVALID_STATE"),
    ("RecvWait", "SUCCESS TIMEOUT:IDLE,CONNECTED INVALID_PARAMETER ERROR_RESOURCE DESCRIPTOR_ERROR INVALID_STATE"),
    ("SendNotify", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("RecvNotify", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("CreateCQ", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("ResizeCQ", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("DestroyCQ", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("CQDone", "SUCCESS NOT_DONE INVALID_PARAMETER"),
    ("CQWait", "SUCCESS TIMEOUT INVALID_PARAMETER INVALID_STATE"),
    ("CQNotify", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE"),
    ("ErrorCallback", "SUCCESS INVALID_PARAMETER"),
    ("QuerySystemManagementInfo", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE ERROR_NOT_SUPPORTED"),
    ("NSInit", "SUCCESS INVALID_PARAMETER"),
    ("NSShutdown", "SUCCESS INVALID_PARAMETER"),
    ("NSGetHostByName", "SUCCESS INVALID_PARAMETER ERROR_NAMESERVICE"),
    ("NSGetHostByAddr", "SUCCESS INVALID_PARAMETER ERROR_RESOURCE ERROR_NAMESERVICE"),
];

const BEGIN: &str = "<!-- made from the programs -->\n";
const END: &str = "<!-- end -->\n";
/// Heading of what is explained instead of checked.
const EXPLAINED: &str = "## Codes that no program checks\n";
/// Heading of the decisions.
const DECIDED: &str = "## Where the standard is silent\n";

/// A call, by its place in [`CALLS`], a code, and a state of the VI or nothing.
type Check = (usize, String, String);

fn page() -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vipl-conformance.md");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// The conformance programs by name.
fn programs() -> BTreeMap<String, String> {
    let mut programs = BTreeMap::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/conformance");
    for folder in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            programs.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
    programs
}

/// Arguments of each use of a macro, up to the parenthesis that ends it.
fn uses<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(name) {
        let is_word = text[..at].ends_with(|c: char| !c.is_alphanumeric() && c != '_');
        let rest = &text[at + name.len()..];
        if let Some(rest) = rest.strip_prefix('(').filter(|_| is_word) {
            let mut depth = 1;
            let end = rest.find(|c: char| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            found.push(&rest[..end.unwrap()]);
        }
    }
    found
}

/// Places of the calls that an expression makes.
fn called(expression: &str) -> Vec<usize> {
    // How a client's thread ended.
    let is_client = expression.contains("end_request(");
    let is_called = |name: &str| expression.contains(&format!("Vip{name}(")) || is_client && name == "ConnectRequest";
    (0..CALLS.len()).filter(|place| is_called(CALLS[*place].0)).collect()
}

fn checks_of(text: &str) -> BTreeSet<Check> {
    let mut checks = BTreeSet::new();
    let mut add = |code: &str, state: &str, expression: &str| {
        for place in called(expression) {
            checks.insert((place, code.trim().to_owned(), state.trim().to_owned()));
        }
    };
    for (macro_name, code) in [("OK", Some("SUCCESS")), ("GIVES", None)] {
        for arguments in uses(text, macro_name) {
            let (code, expression) = code.map_or_else(|| arguments.split_once(',').unwrap(), |code| (code, arguments));
            add(code, "", expression);
        }
    }
    for arguments in uses(text, "IN") {
        let mut parts = arguments.splitn(4, ',').skip(1);
        let (state, code) = (parts.next().unwrap(), parts.next().unwrap());
        add(code, state, parts.next().unwrap());
    }
    // The macros of sides.h, and of tables of the programs: which calls they stand for.
    for (macro_name, code, expression) in [
        ("SENT", "SUCCESS", "VipSendWait("),
        ("RECEIVED", "SUCCESS", "VipRecvWait("),
        ("post_send", "SUCCESS", "VipPostSend("),
        ("post_recv", "SUCCESS", "VipPostRecv("),
    ] {
        if !uses(text, macro_name).is_empty() {
            add(code, "", expression);
        }
    }
    let not_idle = "VipConnectRequest( VipConnectPeerRequest( VipSetViAttributes( VipDestroyVi( VipConnectAccept(";
    for state in uses(text, "NOT_IDLE_REFUSES").iter().filter_map(|arguments| arguments.split(',').next()) {
        add("INVALID_STATE", state, not_idle);
    }
    for arguments in uses(text, "CHECKS") {
        let (code, expression) = arguments.split_once(',').unwrap();
        add(code, "", &expression.split_whitespace().map(|call| format!("{call}( ")).collect::<String>());
    }
    checks.retain(|(_, _, state)| state != "state");
    checks
}

/// Each check, with the programs that have it.
fn checked() -> BTreeMap<Check, BTreeSet<String>> {
    let mut checked: BTreeMap<Check, BTreeSet<String>> = BTreeMap::new();
    for (program, text) in programs() {
        for check in checks_of(&text) {
            checked.entry(check).or_default().insert(program.clone());
        }
    }
    checked
}

fn listed(programs: &BTreeSet<String>) -> String {
    const SHOWN: usize = 4;
    let names: Vec<&str> = programs.iter().map(String::as_str).collect();
    match names.len().checked_sub(SHOWN + 1) {
        Some(more) => format!("{} and {} more", names[..SHOWN].join(", "), more + 1),
        None => names.join(", "),
    }
}

fn table() -> String {
    let checked = checked();
    let mut text = String::from("| call | result, in which state of the VI: programs that check it |\n| --- | --- |\n");
    for (place, (name, results)) in CALLS.iter().enumerate() {
        let mut cells = Vec::new();
        for code in results.split_whitespace().filter_map(|result| result.split(':').next()) {
            let of_code: Vec<_> = checked.iter().filter(|((of, its, _), _)| *of == place && its == code).collect();
            if of_code.is_empty() {
                cells.push(format!("{code}: see below"));
            }
            for ((_, _, state), programs) in of_code {
                let state = if state.is_empty() { String::new() } else { format!(" in {state}") };
                cells.push(format!("{code}{state}: {}", listed(programs)));
            }
        }
        writeln!(text, "| `Vip{name}` | {} |", cells.join("; ")).unwrap();
    }
    text
}

/// The rows of a table under a heading, as cells.
fn rows<'t>(page: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
    let section = page.split_once(heading).unwrap().1;
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let lines = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")).skip(2);
    lines.map(|line| line.split(" | ").collect()).collect()
}

#[test]
fn the_table_is_what_the_programs_check() {
    let (path, page) = page();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (inside, after) = rest.split_once(END).unwrap();
    let table = table();
    if inside != table && std::env::var_os("MUSUBI_WRITE_PAGE").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(inside == table, "docs/vipl-conformance.md is old: MUSUBI_WRITE_PAGE=1 writes its table anew");
}

#[test]
fn each_result_is_checked_or_explained_and_no_other_is_seen() {
    let (_, page) = page();
    let explained: BTreeSet<(String, String)> = rows(&page, EXPLAINED)
        .iter()
        .flat_map(|row| {
            let calls = row[1].split(", ").map(|call| call.trim_matches('`').trim_start_matches("Vip").to_owned());
            calls.map(|call| (call, row[0].to_owned())).collect::<Vec<_>>()
        })
        .collect();
    let checked = checked();
    let mut wrong = Vec::new();
    for (place, (name, results)) in CALLS.iter().enumerate() {
        let mut codes = BTreeSet::new();
        for result in results.split_whitespace() {
            let (code, states) = result.split_once(':').unwrap_or((result, ""));
            codes.insert(code);
            let seen = |state: &str| checked.keys().any(|(of, its, at)| *of == place && its == code && at == state);
            let is_checked = match states {
                "" => checked.keys().any(|(of, its, _)| *of == place && its == code),
                states => states.split(',').all(seen),
            };
            if is_checked == explained.contains(&((*name).to_owned(), code.to_owned())) {
                wrong.push(format!("Vip{name} {result}: checked and explained: {is_checked}"));
            }
        }
        for (_, code, _) in checked.keys().filter(|(of, code, _)| *of == place && !codes.contains(code.as_str())) {
            wrong.push(format!("Vip{name}: a program sees {code}, which is not among its codes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the tests in Rust that a decision may name.
fn tests_in_rust() -> BTreeSet<String> {
    fn collect(directory: &Path, into: &mut BTreeSet<String>) {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let after_test = text.split("#[test]\nfn ").chain(text.split("#[test]\n    fn ")).skip(1);
                into.extend(after_test.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
            }
        }
    }
    let mut names = BTreeSet::new();
    for directory in ["src", "tests", "../musubi-vipl/src", "../musubi-vipl/tests"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), &mut names);
    }
    names
}

#[test]
fn each_decision_names_who_checks_it() {
    let (_, page) = page();
    let (programs, tests) = (programs(), tests_in_rust());
    let decisions = rows(&page, DECIDED);
    assert!(decisions.len() > 20, "the table of decisions is not found");
    for row in decisions {
        assert_eq!(row.len(), 3, "{row:?}");
        for name in row[2].split(", ") {
            let name = name.trim_matches('`');
            assert!(programs.contains_key(name) || tests.contains(name), "{}: there is no {name}", row[0]);
        }
    }
}
