//! `musubi bench mcapi` and `bench via`: some figures of them, as JSON and as a page; the figures themselves depend on the machine.

#[allow(dead_code)]
mod command;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use command::{Process, WAIT_MAX, expect, musubi, text};

#[test]
fn a_figure_is_measured_beside_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (json, page) = (directory.path().join("out.json"), directory.path().join("out.html"));
    let mut command = musubi(&["bench", "mcapi", "--quick", "--only", "msg_oneway_tcp_block_1"]);
    expect(command.arg("--json").arg(&json).arg("--report").arg(&page), 0);
    let outcome: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    for part in [&outcome, &outcome["one_core"]] {
        // Where there is one processor only, nothing is measured on two.
        if part["limits"].as_array().unwrap().is_empty()
            && outcome["skipped"][0]["name"] == "TCP on loopback, two cores"
        {
            continue;
        }
        assert_eq!(part["limits"][0]["name"], "tcp_oneway_block_1");
        assert_eq!(
            (&part["results"][0]["name"], &part["results"][0]["unit"]),
            (&"msg_oneway_tcp_block_1".into(), &"ns".into())
        );
        assert!(part["results"][0]["p50"].as_f64().unwrap() > 0.0);
        assert!(part["ratios"][0]["ratio"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(outcome["whole"], true);
    let required = outcome["required"].as_array().unwrap();
    assert!(required.iter().all(|rule| rule["met"].is_null() == rule["measured"].is_null()));
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("<svg") && page.contains("msg_oneway_tcp_block_1") && page.contains("74 µs on one"));
}

#[test]
fn a_part_on_one_core_says_how_it_goes_on_and_ends_soon() {
    let began = std::time::Instant::now();
    let mut command = musubi(&["bench", "mcapi", "--quick", "--only", "*_oneway_shm_poll_8", "--cores", "1"]);
    let output = expect(&mut command, 0);
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for name in ["msg_oneway_shm_poll_8", "scl_oneway_shm_poll_8", "cacheline_oneway"] {
        assert!(said.contains(name), "{said}");
    }
    assert!(!said.contains("futex_oneway") && !said.contains("tcp"), "{said}");
    assert!(told.contains("shared memory, one core: 3 figures") && told.contains("done in"), "{told}");
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
}

#[test]
fn a_part_that_is_empty_is_refused() {
    for what in ["mdcom", "mcapi", "via"] {
        let output = musubi(&["bench", what, "--only", "no_such_figure"]).output().unwrap();
        let said = text(&output.stderr);
        if said.contains("cannot be measured on one") {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no figure is named like 'no_such_figure'"), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_anything_is_measured() {
    for what in [&["mdcom"][..], &["mcapi"], &["via"], &["smp"], &["nas"]] {
        let mut command = musubi(&[&["bench"], what, &["--json", "/nonexistent/figures.json"]].concat());
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        if said.contains("cannot be measured on one") {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot write /nonexistent/figures.json") && output.stdout.is_empty(), "{said}");
    }
}

/// However the measurement between two namespaces ends, its processes end and no namespace keeps a name.
#[test]
fn nothing_is_left_of_a_line_whose_measurement_is_killed() {
    let mark = format!("MUSUBI_TEST_LINE={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let mut command = musubi(&["bench", "mcapi", "--quick", "--only", "pkt_rate_line_*", "--cores", "2"]);
    command.env(name, value).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut said = String::new();
    // The second process of the line says it, so all of the line is there; else nothing was measured.
    BufReader::new(process.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    process.kill();
    let began = Instant::now();
    while processes_with(&mark) > 0 {
        assert!(began.elapsed() < WAIT_MAX, "{} processes are left; {said}", processes_with(&mark));
        std::thread::sleep(Duration::from_millis(20));
    }
    let names =
        std::fs::read_dir("/run/netns").map_or(Vec::new(), |all| all.map(|one| one.unwrap().file_name()).collect());
    let ours = format!("musubi-{}-", process.0.id());
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(&ours)), "{names:?}");
}

/// Processes that still run and have this in their environment, as children of ours inherit it.
fn processes_with(mark: &str) -> usize {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| std::fs::read(entry.ok()?.path().join("environ")).ok());
    processes.filter(|environment| environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())).count()
}

#[test]
fn vis_are_measured_beside_the_same_limits() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("out.json");
    let mut command = musubi(&[
        "bench",
        "via",
        "--quick",
        "--only",
        "vi_oneway_tcp_block_?,vi_write_shm_4096,vi_oneway_shm_block_64",
    ]);
    let output = command.arg("--json").arg(&json).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("cannot be measured on one") {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let outcome: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let names = |part: &str| -> Vec<String> {
        let figures = outcome[part].as_array().unwrap().iter();
        figures.map(|figure| figure["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("limits"), ["futex_oneway", "copy_alone_1m", "tcp_oneway_block_4"]);
    assert_eq!(names("results"), ["vi_oneway_shm_block_64", "vi_write_shm_4096", "vi_oneway_tcp_block_4"]);
    for figure in outcome["results"].as_array().unwrap() {
        assert!(figure["p50"].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert_eq!(outcome["whole"], true);
}

#[test]
fn calls_and_shares_of_vis_are_measured_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("out.html");
    let only = "vi_call_*,vi_share_mixed_*,vi_oneway_shm_block_4,vi_load_block_1024";
    let output = musubi(&["bench", "via", "--quick", "--only", only]).arg("--report").arg(&page).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("cannot be measured on one") {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(&page).unwrap();
    let figures = [
        "vi_call_post_send_4",
        "vi_call_queue_and_receive_done_4",
        "vi_call_connect",
        "vi_call_register_16777216",
        "vi_share_mixed_off_a",
        "vi_share_mixed_on_b",
        "vi_share_mixed_turns_b",
        "vi_oneway_shm_block_4",
        "vi_load_block_1024",
    ];
    // With the paper's: 4 bytes, and 32 KiB beside 128 bytes.
    for text in figures.iter().chain(&["<svg", "14.36 µs blocking", "21.82"]) {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("vi_call_post_send_4</td><td>0"), "{page}");
}

#[test]
fn an_urgent_exchange_is_measured_beside_a_flood() {
    let output = musubi(&["bench", "via", "--quick", "--only", "vi_exchange_flood_64x4_off"]).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("cannot be measured on one") {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    for name in ["vi_exchange_flood_64x4_off", "vi_wakes_flood_64x4_off", "vi_rate_flood_64x4_off"] {
        assert!(said.contains(name), "{said}");
    }
    assert!(!said.contains("_on") && !said.contains("alone"), "{said}");
}
