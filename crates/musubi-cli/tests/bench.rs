//! `musubi bench mcapi`: one figure of it, as JSON and as a page; the figures themselves depend on the machine.

#[allow(dead_code)]
mod command;

use command::{expect, musubi};

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
    let output = expect(&mut musubi(&["bench", "mcapi", "--only", "no_such_figure"]), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no figure is named like 'no_such_figure'"));
}
