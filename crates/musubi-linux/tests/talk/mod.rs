//! A small system for tests of channels: control with one slot, gateway with two.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd, SendingEnd};
use musubi_core::plan::*;
use musubi_linux::{DeadlineExt, Options, Participant};

pub const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    Domain {
        name,
        role,
        port: PortKind::LinuxProcess,
        trust: Trust::MayCrash,
        participants,
        uids: &[],
        gids: &[],
        spin_ns: 20_000,
    }
}

pub const fn fifo(name: &'static str, from: u16, to: u16, blocks: u32, block_bytes: u32) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks,
        block_bytes,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 1,
    }
}

pub static PLAN: Plan<'static> = Plan {
    name: "channels-test",
    hash: 0x1234,
    domains: &[domain("control", Role::Master, 1), domain("gateway", Role::Remote, 2)],
    fifos: &[fifo("down", 0, 1, 8, 64), Fifo { priority: 3, ..fifo("up", 1, 0, 4, 4096) }],
    smems: &[Smem { name: "shared", domains: &[0, 1], bytes: 64, lock: LockKind::Bakery }],
    liveness: Liveness { heartbeat_ns: 50_000_000, stalled_ns: 500_000_000 },
};

/// An instance of its own for each test, so that they can run at the same time.
pub fn instance() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn attach(domain: &str, instance: &str) -> Participant {
    Participant::attach(Options { instance: Some(instance.to_owned()), ..Options::new(&PLAN, domain) }).unwrap()
}

pub fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(5))
}

pub fn send(end: &impl SendingEnd, value: u32) -> Result<(), Error> {
    let mut loan = end.allocate(soon())?;
    loan[..4].copy_from_slice(&value.to_le_bytes());
    end.enqueue(loan, 4).map_err(|(error, _)| error)?;
    end.notify();
    Ok(())
}

pub fn receive(end: &impl ReceivingEnd) -> Result<u32, Error> {
    end.wait(soon())?;
    let received = end.dequeue()?;
    let mut bytes = [0; 4];
    received.copy_to(0, &mut bytes);
    assert!(end.free(received).is_ok());
    Ok(u32::from_le_bytes(bytes))
}
