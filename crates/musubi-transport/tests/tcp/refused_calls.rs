//! Kernels and filters that refuse a system call: either links work, or the start fails and names it; and nothing spins.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_linux::descriptor::Descriptor;
use musubi_transport::links::Sent;
use musubi_transport::topology::{Network, Place, Topology};
use rustix::time::{ClockId, clock_gettime};

use crate::node::{PATIENCE, TestNode, id, own_address};
use crate::refusing::refuse_all;

/// The call, the error, and where nodes 1 and 2 listen, for the process whose calls are refused.
const ROLE: &str = "MUSUBI_TEST_REFUSED";
const MARK: &str = "refused:";
const FRAMES: u32 = 20;
/// How long the links rest after that.
const REST: Duration = Duration::from_millis(300);

/// Calls without which there are no links: the start names them.
const NEEDED: [(&str, libc::c_long); 19] = [
    ("accept4", libc::SYS_accept4),
    ("bind", libc::SYS_bind),
    ("connect", libc::SYS_connect),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("epoll_pwait", libc::SYS_epoll_pwait),
    ("eventfd2", libc::SYS_eventfd2),
    ("getpeername", libc::SYS_getpeername),
    ("getsockname", libc::SYS_getsockname),
    ("getsockopt", libc::SYS_getsockopt),
    ("ioctl", libc::SYS_ioctl),
    ("listen", libc::SYS_listen),
    ("ppoll", libc::SYS_ppoll),
    ("readv", libc::SYS_readv),
    ("recvfrom", libc::SYS_recvfrom),
    ("sendmsg", libc::SYS_sendmsg),
    ("sendto", libc::SYS_sendto),
    ("setsockopt", libc::SYS_setsockopt),
    ("socket", libc::SYS_socket),
];
/// Calls that are done without.
const DISPENSABLE: [(&str, libc::c_long); 3] =
    [("epoll_pwait2", libc::SYS_epoll_pwait2), ("prlimit64", libc::SYS_prlimit64), ("shutdown", libc::SYS_shutdown)];

fn system([one, two]: [&str; 2]) -> Arc<Topology> {
    let place = |tcp: &str| Place { tcp: Some(tcp.into()), ..Place::default() };
    let nodes = [(id(1), place(one)), (id(2), place(two))].into();
    Arc::new(Topology { system: "test".into(), hash: 7, nodes, network: Network::default() })
}

/// Not a test: node 1, in a process whose calls are refused.
#[test]
fn node_whose_calls_are_refused() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let topology = system([words[2], words[3]]);
    // What the test itself needs comes first.
    let epoll = Descriptor::epoll().unwrap();
    refuse_all(words[0].parse().unwrap(), words[1].parse().unwrap());
    let mut node = match TestNode::try_open_on(epoll, &topology, id(1), 1) {
        Ok(node) => node,
        Err(error) => return println!("{MARK} {error}"),
    };
    node.want(id(2));
    let (begin, mut sent) = (Instant::now(), 0);
    while (node.seen.frames.len() < FRAMES as usize || node.seen.acknowledged.is_empty() || sent < FRAMES)
        && begin.elapsed() < PATIENCE
    {
        if sent < FRAMES && matches!(node.send(id(2), 1, sent, b"there"), Sent::Numbered(_)) {
            sent += 1;
        }
        node.turn(10);
    }
    std::thread::sleep(REST);
    let used = clock_gettime(ClockId::ProcessCPUTime);
    println!("{MARK} linked {} {}", node.seen.frames.len(), used.tv_sec * 1000 + used.tv_nsec / 1_000_000);
}

/// What becomes of a node that cannot make this call, beside an honest one.
fn becomes(number: libc::c_long, errno: i32) -> String {
    let [one, two] = [own_address(), own_address()];
    let role = format!("{number} {errno} {one} {two}");
    let child = std::thread::spawn(move || {
        let args = ["--exact", "refused_calls::node_whose_calls_are_refused", "--nocapture"];
        let output = Command::new(std::env::current_exe().unwrap()).args(args).env(ROLE, role).output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    });
    let mut node = TestNode::open(&system([&one, &two]), id(2));
    let mut sent = 0;
    while !child.is_finished() {
        if sent < FRAMES && matches!(node.send(id(1), 1, sent, b"back"), Sent::Numbered(_)) {
            sent += 1;
        }
        node.turn(5);
    }
    let (output, errors) = child.join().unwrap();
    let said = output.split_once(MARK).and_then(|(_, said)| said.lines().next());
    said.unwrap_or_else(|| panic!("call {number}, error {errno}: {output} {errors}")).trim().to_owned()
}

#[test]
fn a_refused_call_is_named_at_the_start() {
    for (name, number) in NEEDED {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let said = becomes(number, errno);
            assert!(said.starts_with(&format!("this system refuses {name}: ")), "{name} refused with {errno}: {said}");
        }
    }
}

#[test]
fn a_call_that_is_not_needed_is_done_without() {
    for (name, number) in DISPENSABLE {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let said = becomes(number, errno);
            let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
            assert!(said.starts_with("linked"), "{name} refused with {errno}: {said}");
            assert_eq!(numbers[0], u64::from(FRAMES), "{name} refused with {errno}: {said}");
            assert!(numbers[1] < 1000, "{name} refused with {errno}: {} ms of processor time", numbers[1]);
        }
    }
}
