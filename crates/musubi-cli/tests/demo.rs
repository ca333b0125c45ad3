//! `musubi demo` as a person or a build server runs it: figures, report, early ends, and nothing left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// User and group without rights.
const NOBODY: u32 = 65534;

/// One run at a time: they measure time, and their control loops have real-time priority.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn demo(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_musubi"));
    command.arg("demo").args(arguments).current_dir(directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(child: Child) -> Output {
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(leftovers(id), Vec::<String>::new());
    output
}

/// What a run left: processes, sockets, shared memory files.
fn leftovers(launcher: u32) -> Vec<String> {
    let mut left = roles(launcher);
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    left.extend(sockets.lines().filter(|line| line.contains(&format!("/demo-{launcher}-"))).map(str::to_owned));
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    left.extend(names.filter(|name| name.contains("musubi")));
    left
}

/// Command lines of the processes of a run.
fn roles(launcher: u32) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&format!("demo-role --launcher {launcher} "))).collect()
}

fn succeeded(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    text
}

fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What every good run shows.
fn assert_good(run: &Value) {
    for (pointer, expected) in
        [("/messages/lost", 0), ("/messages/duplicated", 0), ("/messages/out_of_order", 0), ("/messages/not_sent", 0)]
    {
        assert_eq!(run.pointer(pointer), Some(&Value::from(expected)), "{pointer}: {run:#}");
    }
    assert_eq!(run["passed"], true, "{run:#}");
    assert_eq!(run["stream"]["digest_equal"], true);
    assert!(run["messages"]["sent"].as_u64().unwrap() > 100, "{run:#}");
    let messages = |which: &str| run["messages"][which].as_u64().unwrap();
    assert_eq!(messages("sent"), messages("received") + messages("in_hand"));
    assert!(messages("in_hand") <= 1, "{run:#}");
}

fn wait_for_roles(launcher: u32) {
    let begin = Instant::now();
    while roles(launcher).len() < 3 {
        assert!(begin.elapsed() < Duration::from_secs(10), "the processes did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    // All have attached, and the loop has run for a while.
    std::thread::sleep(Duration::from_millis(1500));
}

#[test]
fn a_run_accounts_for_every_message_and_reports() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let bytes: Vec<u8> = (0..200_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(directory.path().join("file"), &bytes).unwrap();
    let arguments = ["--seconds", "3", "--file", "file", "--json", "run.json", "--report", "run.html"];
    let text = succeeded(&finished(demo(&directory, &arguments).spawn().unwrap()));

    let run = json(&directory.path().join("run.json"));
    assert_good(&run);
    assert_eq!(run["stream"]["digest"], blake3::hash(&bytes).to_hex().as_str());
    assert!(run["stream"]["whole_passes"].as_u64().unwrap() > 1, "{run:#}");
    assert!(run["stream"]["mb_per_s"].as_f64().unwrap() > 0.1, "{run:#}");
    assert!(run["kill"]["recovery_ms"].as_f64().unwrap() < 2000.0, "{run:#}");
    assert_eq!(run["kill"]["in_hand_known"], true, "{run:#}");
    assert!(run["kill"]["waited"].as_u64().unwrap() > 0, "{run:#}");
    assert!(run["loop"]["settings"].as_u64().unwrap() > 2, "{run:#}");
    assert!(text.contains("slow messages"), "{text}");
    assert!(run["latency_us"]["slow"]["messages"].as_u64().is_some(), "{run:#}");
    for phase in ["before", "during", "after"] {
        let lateness = &run["lateness_us"][phase];
        assert!(lateness["n"].as_u64().unwrap() > 10 && lateness["p50"].as_f64().unwrap() > 0.0, "{run:#}");
        assert!(lateness["max"].as_f64() >= lateness["p99"].as_f64(), "{run:#}");
    }
    for name in ["messages sent", "lost            0", "duplicated      0", "recovery", "verdict         passed"] {
        assert!(text.contains(name), "{name}: {text}");
    }

    let report = fs::read_to_string(directory.path().join("run.html")).unwrap();
    assert_eq!(report.matches("<svg").count(), 4);
    assert!(report.contains("gateway killed") && report.contains("passed") && !report.contains("{{"));
    let namespace = "http://www.w3.org/2000/svg";
    assert!(!report.replace(namespace, "").contains("http"), "the report must not ask the network for anything");
    assert!(!report.contains("NaN") && !report.contains("inf "));
}

#[test]
fn one_core_is_enough() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let core = musubi_linux::realtime::cores()[0];
    musubi_linux::realtime::pin_to_core(core).unwrap();
    let output = finished(demo(&directory, &["--seconds", "2", "--json", "run.json"]).spawn().unwrap());
    let text = succeeded(&output);
    let run = json(&directory.path().join("run.json"));
    assert_good(&run);
    assert_eq!(run["machine"]["cores_allowed"], Value::from(vec![core]));
    assert!(text.contains("musubi-demo.html") && directory.path().join("musubi-demo.html").exists());
}

#[test]
fn no_rights_are_needed() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let program = directory.path().join("musubi");
    fs::copy(env!("CARGO_BIN_EXE_musubi"), &program).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(["demo", "--seconds", "2", "--json", "-"]).current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = finished(command.spawn().unwrap());
    // The directory is not writable, so there is no report; that is no failure, and only the JSON is printed.
    let run: Value = serde_json::from_str(&succeeded(&output)).unwrap();
    assert_good(&run);
    let refused = run["loop"]["realtime_refused"].as_str();
    assert_ne!(run["loop"]["realtime_priority"].is_null(), refused.is_none(), "{run:#}");
}

#[test]
fn an_early_end_is_clean_and_tells_what_was_measured() {
    let _alone = alone();
    for signal in [Signal::INT, Signal::TERM] {
        let directory = TempDir::new().unwrap();
        let child = demo(&directory, &["--seconds", "60", "--json", "run.json"]).spawn().unwrap();
        wait_for_roles(child.id());
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        let begin = Instant::now();
        let text = succeeded(&finished(child));
        assert!(begin.elapsed() < Duration::from_secs(5), "ending took {:?}", begin.elapsed());
        let run = json(&directory.path().join("run.json"));
        assert_good(&run);
        assert_eq!((&run["interrupted"], &run["kill"]), (&Value::from(true), &Value::Null));
        assert!(text.contains("ended early") && text.contains("verdict         passed"), "{text}");
    }
}

#[test]
fn nothing_survives_a_launcher_that_is_killed() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let mut child = demo(&directory, &["--seconds", "60"]).spawn().unwrap();
    wait_for_roles(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    while !leftovers(child.id()).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", leftovers(child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_process_that_dies_of_itself_is_named() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let child = demo(&directory, &["--seconds", "60"]).spawn().unwrap();
    wait_for_roles(child.id());
    let line = format!("demo-role --launcher {} ", child.id());
    let is_control = |path: &Path| {
        let line_of = fs::read(path.join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&line_of).replace('\0', " ");
        text.contains(&line) && text.contains(" control ")
    };
    let paths = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let control = paths.into_iter().find(|path| is_control(path)).unwrap();
    let pid: i32 = control.file_name().unwrap().to_str().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let errors = failed(&finished(child));
    assert!(errors.contains("ended unexpectedly"), "{errors}");
    assert!(!directory.path().join("musubi-demo.html").exists(), "no report of a run that failed half way");
}

#[test]
fn what_cannot_work_is_said_before_the_run() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("empty"), "").unwrap();
    fs::write(directory.path().join("old.html"), "old").unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--file", "absent"], "cannot open absent"),
        (&["--file", "."], ". is not a regular file"),
        (&["--file", "empty"], "empty is empty"),
        (&["--report", "absent/report.html"], "cannot write absent/report.html"),
        (&["--json", "absent/run.json"], "cannot write absent/run.json"),
        (&["--json", "old.html", "--report", "old.html"], "name the same file"),
    ];
    for (arguments, expected) in cases {
        let begin = Instant::now();
        let errors = failed(&finished(demo(&directory, arguments).spawn().unwrap()));
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        // Before the demo, which takes longer, begins.
        assert!(begin.elapsed() < Duration::from_secs(5), "{arguments:?} took {:?}", begin.elapsed());
    }
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().map(|file| file.file_name()).collect();
    left.sort();
    assert_eq!(left, ["empty", "old.html"]);
    assert_eq!(fs::read_to_string(directory.path().join("old.html")).unwrap(), "old");
}

#[test]
fn what_was_measured_is_said_though_a_file_cannot_be_filled() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    for files in [["--report", "/dev/full"], ["--json", "/dev/full"]] {
        let output = finished(demo(&directory, &["--seconds", "1"]).args(files).spawn().unwrap());
        assert!(failed(&output).contains("writing /dev/full"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("messages sent") && text.contains("verdict"), "{text}");
    }
}

/// A busy machine may let the Master come late: the others wait for it as long as the launcher does.
#[test]
fn a_master_that_starts_late_is_waited_for() {
    let _alone = alone();
    let directory = TempDir::new().unwrap();
    let launcher = demo(&directory, &["--seconds", "1", "--json", "run.json"]).spawn().unwrap();
    let begin = Instant::now();
    let control = loop {
        assert!(begin.elapsed() < Duration::from_secs(10), "control did not start");
        let found = role_process(launcher.id(), "control");
        if let Some(found) = found {
            break found;
        }
    };
    kill_process(control, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(7));
    kill_process(control, Signal::CONT).unwrap();
    succeeded(&finished(launcher));
    assert_good(&json(&directory.path().join("run.json")));
}

/// The process of a role of this run.
fn role_process(launcher: u32, role: &str) -> Option<Pid> {
    let words = format!("demo-role --launcher {launcher} ");
    let ids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&words) && line.contains(&format!(" {role} "))
    };
    ids.filter(is_it).find_map(Pid::from_raw)
}

#[test]
fn roles_are_not_for_use_by_hand_and_the_description_is_shown() {
    let directory = TempDir::new().unwrap();
    let mut by_hand = Command::new(env!("CARGO_BIN_EXE_musubi"));
    let output = by_hand.args(["demo-role", "--launcher", "1", "--instance", "x", "gateway", "1"]).output().unwrap();
    assert!(failed(&output).contains("`musubi demo` starts this process"));
    let text = succeeded(&finished(demo(&directory, &["--describe"]).spawn().unwrap()));
    fs::write(directory.path().join("demo.toml"), text).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_musubi"));
    succeeded(&check.arg("check").arg(directory.path().join("demo.toml")).output().unwrap());
}
