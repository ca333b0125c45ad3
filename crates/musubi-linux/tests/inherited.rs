//! What a program that this one starts would inherit: nothing of ours.
//!
//! How it works: in a process with no other test, each descriptor that has come is looked up in `/proc/self/fdinfo`.

mod talk;

use std::collections::BTreeMap;
use std::fs::{read_dir, read_link, read_to_string};
use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_core::channel::Attachment;
use musubi_core::layout::LinkShape;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::node::{Event, Options, Presence, Source};
use musubi_linux::{ChannelTap, epoll};
use talk::{PLAN, attach, instance, receive, send, soon};

const CLOSED_ON_EXEC: u64 = libc::O_CLOEXEC as u64;
const DOES_NOT_WAIT: u64 = libc::O_NONBLOCK as u64;
const PATIENCE: Duration = Duration::from_secs(20);

/// What each open descriptor is, and its flags.
fn open() -> BTreeMap<u32, (String, u64)> {
    let entries = read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name());
    let of = |name: std::ffi::OsString| {
        let name = name.into_string().unwrap();
        let what = read_link(format!("/proc/self/fd/{name}")).ok()?.to_string_lossy().into_owned();
        let info = read_to_string(format!("/proc/self/fdinfo/{name}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim().to_owned();
        Some((name.parse().unwrap(), (what, u64::from_str_radix(&flags, 8).unwrap())))
    };
    entries.filter_map(of).collect()
}

fn presence(system: &str, node: u16) -> (Presence, Arc<Descriptor>) {
    let epoll = Arc::new(Descriptor::epoll().unwrap());
    let options = Options {
        system: system.into(),
        hash: 1,
        node,
        nodes: 4,
        incarnation: 1,
        shape: LinkShape { slots: 16, blocks: 2, block_bytes: 4096 },
        frames: 1,
        epoll: Arc::clone(&epoll),
        token: 0,
    };
    (Presence::open(options).unwrap(), epoll)
}

/// Two nodes, and what one of their links is made of.
fn nodes() -> impl Sized {
    let system = format!("inherited-{}", std::process::id());
    let mut nodes = [presence(&system, 1), presence(&system, 2)];
    nodes[0].0.dial(2, 1);
    let (mut links, begin) = (Vec::new(), Instant::now());
    while links.len() < 2 {
        assert!(begin.elapsed() < PATIENCE);
        for (presence, set) in &mut nodes {
            let mut events = [epoll::NO_EVENT; 8];
            let count = epoll::wait(&*set, &mut events, Some(0));
            for event in &events[..count] {
                let data = event.data;
                presence.ready(Source::of(data.u64()).unwrap(), 1);
            }
            if let Some(Event::Linked(link)) = presence.next_event() {
                links.push(link);
            }
        }
    }
    (nodes, links)
}

#[test]
fn no_descriptor_goes_to_a_program_and_none_makes_a_thread_wait() {
    let before = open();
    let instance = instance();
    let (control, gateway) = (attach("control", &instance), attach("gateway", &instance));
    let (down, receiving) = (control.open_sending(0).unwrap(), gateway.open_receiving(0).unwrap());
    let segments = [&control, &gateway].map(|participant| Attachment::open_segment(participant, 0, soon()).unwrap());
    let watched = [down.event_fd().unwrap(), receiving.event_fd().unwrap()];
    send(&down, 1).unwrap();
    assert_eq!(receive(&receiving), Ok(1));
    let tap = ChannelTap::new(&PLAN, 0, Some(&instance)).unwrap();
    let nodes = nodes();
    let open: Vec<_> = open().into_iter().filter(|(number, _)| !before.contains_key(number)).collect();
    assert!(open.len() > 20, "{open:?}");
    for (number, (what, flags)) in &open {
        // What lists them is open itself while it is read.
        if what.starts_with("/proc/") {
            continue;
        }
        assert!(flags & CLOSED_ON_EXEC != 0, "{number} {what} {flags:o}");
        let may_wait = !(what.starts_with("socket:") || what == "anon_inode:[eventfd]");
        assert!(may_wait || flags & DOES_NOT_WAIT != 0, "{number} {what} {flags:o}");
    }
    drop((segments, watched, tap, nodes));
}
