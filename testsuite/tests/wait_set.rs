//! Waiting for many channels: priority between classes, turns within one, sleep and wake. Regulation of a sender.

use std::thread;
use std::time::{Duration, Instant};

use musubi_core::plan::*;
use musubi_linux::{Options, Participant};
use musubi_mdcom::{Error, Mdcom, Wait, WaitSet};

const fn domain(name: &'static str, role: Role) -> Domain<'static> {
    Domain {
        name,
        role,
        port: PortKind::LinuxProcess,
        trust: Trust::MayCrash,
        participants: 1,
        uids: &[],
        gids: &[],
        spin_ns: 0,
    }
}

const fn fifo(name: &'static str, priority: u8, messages_per_s: u32) -> Fifo<'static> {
    Fifo {
        name,
        from: 0,
        to: 1,
        blocks: 8,
        block_bytes: 16,
        priority,
        filter: FilterRule::EACH,
        regulation: Regulation { messages_per_s, messages_burst: 2, ..Regulation::NONE },
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 1,
    }
}

static PLAN: Plan<'static> = Plan {
    name: "wait-set-test",
    hash: 0x77,
    domains: &[domain("control", Role::Master), domain("panel", Role::Remote)],
    fifos: &[fifo("low-a", 5, 0), fifo("low-b", 5, 0), fifo("urgent", 0, 0), fifo("slow", 3, 1000)],
    smems: &[],
    liveness: Liveness { heartbeat_ns: 50_000_000, stalled_ns: 500_000_000 },
};

const LIMIT: Wait = Wait::For(Duration::from_secs(5));

fn pair(test: &str) -> (Participant, Participant) {
    let instance = format!("w{}-{test}", std::process::id());
    let attach = |domain| {
        Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(&PLAN, domain) }).unwrap()
    };
    (attach("control"), attach("panel"))
}

#[test]
fn the_most_urgent_comes_first_and_equals_take_turns() {
    let (control, panel) = pair("order");
    let (from, to) = (Mdcom::init(&control), Mdcom::init(&panel));
    let senders = ["low-a", "low-b", "urgent"].map(|name| from.sender(name).unwrap());
    let receivers = ["low-a", "low-b", "urgent"].map(|name| to.receiver(name).unwrap());
    for (sender, receiver) in senders.iter().zip(&receivers) {
        for _ in 0..3 {
            sender.send(b"x", LIMIT).unwrap();
        }
        receiver.wait(LIMIT).unwrap();
    }
    let mut set = WaitSet::new(receivers.each_ref().map(|receiver| receiver.member()));
    let mut order = Vec::new();
    for _ in 0..9 {
        let index = set.wait(LIMIT).unwrap();
        drop(receivers[index].dequeue().unwrap());
        order.push(index);
    }
    assert_eq!(order[..3], [2, 2, 2]);
    assert!(order[3..].windows(2).all(|two| two[0] != two[1]), "{order:?}");
    assert_eq!(set.wait(Wait::Poll), Err(Error::Timeout));
}

#[test]
fn a_sleeper_is_woken_by_any_of_them_and_keeps_its_deadline() {
    let (control, panel) = pair("sleep");
    let remote = thread::spawn(move || {
        let mdcom = Mdcom::init(&panel);
        let receivers = ["low-a", "low-b", "urgent"].map(|name| mdcom.receiver(name).unwrap());
        let mut set = WaitSet::new(receivers.each_ref().map(|receiver| receiver.member()));
        let mut counts = [0; 3];
        while counts.iter().sum::<u32>() < 600 {
            let index = set.wait(LIMIT).unwrap();
            drop(receivers[index].dequeue().unwrap());
            counts[index] += 1;
        }
        let begin = Instant::now();
        assert_eq!(set.wait(Wait::For(Duration::from_millis(30))), Err(Error::Timeout));
        assert!(begin.elapsed() >= Duration::from_millis(30));
        counts
    });
    let mdcom = Mdcom::init(&control);
    let senders = ["low-a", "low-b", "urgent"].map(|name| mdcom.sender(name).unwrap());
    for turn in 0..600 {
        senders[turn % 3].send(b"x", LIMIT).unwrap();
        if turn % 50 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    assert_eq!(remote.join().unwrap(), [200, 200, 200]);
}

#[test]
fn a_loss_is_named_like_a_message() {
    let (control, panel) = pair("loss");
    let mdcom = Mdcom::init(&panel);
    let receiver = mdcom.receiver("urgent").unwrap();
    let sender = Mdcom::init(&control).sender("urgent").unwrap();
    sender.send(b"x", LIMIT).unwrap();
    drop(receiver.next(LIMIT).unwrap());
    drop(sender);
    let mut set = WaitSet::new([receiver.member()]);
    drop(control);
    assert_eq!(set.wait(LIMIT), Ok(0));
    assert_eq!(receiver.wait(LIMIT), Err(Error::PeerGone));
    assert_eq!(set.wait(Wait::Poll), Err(Error::Timeout));
}

#[test]
fn sending_waits_for_the_regulator_if_it_may() {
    let (control, panel) = pair("slow");
    let receiver = Mdcom::init(&panel).receiver("slow").unwrap();
    let sender = Mdcom::init(&control).sender("slow").unwrap();
    let begin = Instant::now();
    for _ in 0..22 {
        sender.send(b"x", LIMIT).unwrap();
        drop(receiver.next(LIMIT).unwrap());
    }
    // 2 at once, then 1000 a second.
    assert!(begin.elapsed() >= Duration::from_millis(20), "{:?}", begin.elapsed());
    while sender.send(b"x", Wait::Poll).is_ok() {
        drop(receiver.next(LIMIT).unwrap());
    }
    assert!(matches!(sender.send(b"x", Wait::Poll), Err(Error::Throttled { .. })));
}
