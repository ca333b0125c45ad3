//! Any bytes as a peer's whole section: its header fits the plan or not, and attaching every channel end to it and
//! working on it does no harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use musubi_core::fifo::{Entry, Receiver, Sender};
use musubi_core::layout::{Part, header, section_bytes, ticket, walk};
use musubi_core::lock::{Bakery, Contender};
use musubi_core::plan::*;
use musubi_core::port::Coherent;
use musubi_core::words::PeerWords;
use musubi_fuzz::{Memory, Silent, Ticks};
use musubi_linux::message::Party;
use musubi_linux::section::header_fits;

const OURS: u16 = 0;
const THEIRS: u16 = 1;
const ME: (u16, u32) = (0, 0x1001);
const HASH: u64 = 0x0102_0304_0506_0708;
/// Longest section of the plan below is a few pages; more bytes than that are not looked at.
const STEPS: u32 = 64;

const fn domain(name: &'static str, role: Role) -> Domain<'static> {
    let (port, trust) = (PortKind::LinuxProcess, Trust::Hostile);
    Domain { name, role, port, trust, participants: 1, uids: &[], gids: &[], spin_ns: 0 }
}

const fn fifo(name: &'static str, from: u16, to: u16, blocks: u32, block_bytes: u32) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks,
        block_bytes,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 1,
        on_restart: OnRestart::Keep,
        sample_every: 1,
    }
}

static PLAN: Plan<'static> = Plan {
    name: "fuzz",
    hash: HASH,
    domains: &[domain("ours", Role::Master), domain("theirs", Role::Remote)],
    fifos: &[fifo("down", OURS, THEIRS, 4, 50), fifo("up", THEIRS, OURS, 3, 77), fifo("one", THEIRS, OURS, 1, 1)],
    smems: &[Smem { name: "shared", domains: &[OURS, THEIRS], bytes: 64, lock: LockKind::Bakery }],
    liveness: Liveness { heartbeat_ns: 1, stalled_ns: 1 },
};

fuzz_target!(|bytes: &[u8]| {
    let length = section_bytes(&PLAN, THEIRS).expect("small");
    let theirs = Memory::new(length / 4, bytes);
    let words = theirs.words().as_peer();
    let (participant, epoch) = (words.get(header::PARTICIPANT) as u16, words.get(header::EPOCH));
    let party = Party { hash: HASH, participant, domain: THEIRS, epoch, section_bytes: length };
    if header_fits(&words, party) {
        assert_eq!(words.get(header::DOMAIN), u32::from(THEIRS));
    }
    // The work is done whether it fits or not: a hostile peer writes a fitting header first.
    walk(&PLAN, THEIRS, |part, offset, bytes| {
        let words = words.part(offset / 4, bytes / 4);
        match part {
            Part::Header => {}
            Part::Tx(number) => receive(&PLAN.fifos[usize::from(number)], words),
            Part::Rx(number) => send(&PLAN.fifos[usize::from(number)], words),
            Part::Ticket(_) => lock(words),
        }
    });
});

fn receive(fifo: &Fifo<'_>, tx: PeerWords<'_>) {
    let own = Memory::new(tx.len().max(1_024), &[]);
    let held = vec![0; Receiver::<Vec<u32>, Coherent>::held_words(fifo.blocks)];
    let (me, sender) = (ME, (1, tx.get(musubi_core::layout::slot::BLOCK) & 0xffff));
    let receiver = Receiver::new(own.words(), tx, fifo, me, sender, Trust::Hostile, held, Coherent);
    let mut receiver = receiver.expect("the sizes fit");
    let clock = Ticks::default();
    for step in 0..STEPS {
        let _ = receiver.ready();
        if let Ok(received) = receiver.dequeue(&clock, &Silent) {
            let mut payload = vec![0; fifo.block_bytes as usize];
            assert_eq!(received.copy_to(0, &mut payload), received.len() as usize);
            assert!(step % 3 == 0 || receiver.free(received, &Silent).is_ok());
        }
        if step == STEPS / 2 {
            receiver.retire();
        }
    }
}

fn send(fifo: &Fifo<'_>, rx: PeerWords<'_>) {
    let own = Memory::new(4_096, &[]);
    let entries = vec![Entry::NEW; fifo.blocks as usize];
    let mut sender = Sender::new(own.words(), fifo, ME, entries, Coherent).expect("the sizes fit");
    sender.set_receiver(Some(rx), 0);
    let clock = Ticks::default();
    for _ in 0..STEPS {
        if let Ok(mut loan) = sender.allocate() {
            loan.fill(1);
            assert!(sender.enqueue(loan, fifo.block_bytes, &clock).is_ok());
            let _ = sender.notify(&clock, &Silent);
        }
        let (blocks, free) = sender.blocks();
        assert!(free <= blocks && sender.queued() <= blocks);
    }
    sender.set_receiver(None, 0);
}

fn lock(line: PeerWords<'_>) {
    let own = Memory::new(ticket::WORDS, &[]);
    let mut bakery = Bakery::new(ME.0, own.words());
    let others = [Contender { participant: 1, line, alive: true }];
    if bakery.try_lock(&others).is_ok() {
        bakery.unlock().expect("held");
    }
    bakery.begin(&others).expect("outside");
    let entered = (0..STEPS).any(|_| bakery.poll(&others));
    assert_eq!(entered, bakery.holds());
    bakery.abandon();
    let _ = bakery.unlock();
    // A dead one is passed over, whatever it left behind.
    let dead = [Contender { alive: false, ..others[0] }];
    bakery.try_lock(&dead).expect("nobody else lives");
}
