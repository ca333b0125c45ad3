//! The Master of a pair of cores without operating systems: a Cortex-A53 that asks a Cortex-R5F, and the test of both.
//!
//! How it works: each message is answered with its number and digest, so a lost, doubled or changed one shows. Half way the
//! Cortex-R5F is told to break out of its memory; its protection unit refuses, it begins anew, and the exchange goes on
//! with its successor. The Master is told of the loss once.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_core::mapped::Participant;
use musubi_metal::arch::psci;
use musubi_metal::bare_host::BareHost;
use musubi_metal::board::Board;
use musubi_metal::board::zcu102_a53::{GIC, Zcu102A53};
use musubi_metal::doorbell::DoorbellDevice;
use musubi_metal::doorbell::gic_spi::GicSpi;
use musubi_metal::{dispatch, image, println};
use zcu102_pair::{
    A53_BELL, ANSWER, ANSWER_BYTES, BREAK_OUT, DOWN, MASTER, NUMBER_AT, R5_BELL, R5_CONTROLLER, R5_ENTRY, SLICE_NS, UP,
    attach, digest,
};

image! { Cpu: Zcu102A53, 1, main }

/// What QEMU's firmware calls the first Cortex-R5F.
const R5: usize = 4;
/// Round trips before the restart, and after it.
const ROUNDS: u32 = 2_000;
/// Longest wait for one thing.
const PATIENCE_NS: u64 = 20_000_000_000;

static BARE: BareHost<Cpu> = BareHost::new(ring, false);
/// Rings of the Remote's that interrupted us. Writer: the handler.
static RINGS: AtomicU32 = AtomicU32::new(0);

/// Rings the Remote; where it has no interrupt controller, nobody.
fn ring(_: u16) {
    let _ = GicSpi::that_only_rings(&R5_CONTROLLER).ring(R5_BELL);
}

fn rung(number: u32) {
    if number == A53_BELL {
        RINGS.fetch_add(1, Ordering::Relaxed);
        BARE.heard();
    }
}

type Ends = (
    <Participant<'static, BareHost<Cpu>> as Attachment>::Sending,
    <Participant<'static, BareHost<Cpu>> as Attachment>::Receiving,
);

/// What the test has seen.
#[derive(Default)]
struct Seen {
    passed: u32,
    failed: u32,
    skipped: u32,
    losses: u32,
    wrong: u32,
    answered: u32,
    r5_rings: u32,
    r5_is_interrupted: bool,
}

impl Seen {
    fn check(&mut self, passed: bool, what: &str) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!(Cpu, "FAILED {what}");
        }
    }
}

fn main() -> ! {
    dispatch::DEVICE.set(Some(rung));
    let mut seen = Seen::default();
    let bell = GicSpi::new(&R5_CONTROLLER, &GIC, A53_BELL);
    let has_bell = bell.is_some() && GIC.target(A53_BELL, GIC.own_bit());
    bell.inspect(GicSpi::arm);
    seen.check(has_bell, "the Master has a doorbell");
    match attach(&BARE, MASTER) {
        Ok(master) => run(&master, &mut seen),
        Err(_) => seen.check(false, "the Master attaches"),
    }
    println!(Cpu, "{} passed, {} failed, {} skipped", seen.passed, seen.failed, seen.skipped);
    Zcu102A53::power_off()
}

fn run(master: &Participant<'static, BareHost<Cpu>>, seen: &mut Seen) {
    let (Ok(down), Ok(up)) = (master.open_sending(DOWN), master.open_receiving(UP)) else {
        return seen.check(false, "the Master's ends open");
    };
    let ends: Ends = (down, up);
    seen.check(psci::start(R5, R5_ENTRY, 0).is_ok(), "the Cortex-R5F starts");
    exchange(master, &ends, seen, 0);
    seen.check(seen.answered == ROUNDS && seen.wrong == 0, "each message is answered, as it was sent");
    seen.check(seen.losses == 0, "and no peer is lost");
    let before = seen.r5_rings;
    say(master, &ends, seen, BREAK_OUT, 0);
    exchange(master, &ends, seen, ROUNDS);
    seen.check(seen.answered == 2 * ROUNDS && seen.wrong == 0, "the successor answers each message, as it was sent");
    seen.check(seen.losses == 1, "the Master is told once that its peer was lost");
    seen.check(RINGS.load(Ordering::Relaxed) > 0, "the Cortex-R5F's rings interrupt the Cortex-A53");
    if seen.r5_is_interrupted {
        seen.check(before > 0 && seen.r5_rings > 0, "the Cortex-A53's rings interrupt the Cortex-R5F");
    } else {
        seen.skipped += 1;
        println!(Cpu, "skipped rings to the Cortex-R5F: no interrupt controller for it (QEMU 10.1 and later have one)");
    }
    println!(Cpu, "{} answers, {} wrong, {} losses", seen.answered, seen.wrong, seen.losses);
}

/// [`ROUNDS`] messages, each answered before the next; the first of them has the number `first`.
fn exchange(master: &Participant<'static, BareHost<Cpu>>, ends: &Ends, seen: &mut Seen, first: u32) {
    for number in first..first + ROUNDS {
        let Some(wanted) = say(master, ends, seen, ANSWER, number) else { return };
        if !hear(master, ends, seen, number, wanted) {
            return;
        }
    }
}

/// Sends a message; gives its digest.
fn say(
    master: &Participant<'static, BareHost<Cpu>>,
    (down, _): &Ends,
    seen: &mut Seen,
    what: u8,
    number: u32,
) -> Option<u32> {
    let mut loan = patiently(master, seen, |deadline| down.allocate(deadline))?;
    let length = NUMBER_AT + 4 + number as usize % (loan.len() - NUMBER_AT - 4);
    loan[..length].iter_mut().zip(number..).for_each(|(byte, value)| *byte = value.wrapping_mul(31) as u8);
    loan[0] = what;
    loan[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&number.to_le_bytes());
    let wanted = digest(&loan[..length]);
    down.enqueue(loan, length as u32).ok()?;
    let _ = down.notify();
    Some(wanted)
}

/// Takes the answer to a message; gives whether one came.
fn hear(
    master: &Participant<'static, BareHost<Cpu>>,
    (_, up): &Ends,
    seen: &mut Seen,
    number: u32,
    wanted: u32,
) -> bool {
    let answer = patiently(master, seen, |deadline| {
        up.wait(deadline)?;
        up.dequeue()
    });
    let Some(answer) = answer else { return false };
    let mut bytes = [0; ANSWER_BYTES];
    let length = answer.copy_to(0, &mut bytes);
    let _ = up.free(answer);
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let is_right = length == ANSWER_BYTES && word(0) == number && word(4) == wanted;
    seen.wrong += u32::from(!is_right);
    seen.answered += 1;
    seen.r5_rings = word(8);
    seen.r5_is_interrupted = bytes[12] != 0;
    true
}

/// Does something that may have to wait, with heartbeats in between; notes a lost peer.
fn patiently<T>(
    master: &Participant<'static, BareHost<Cpu>>,
    seen: &mut Seen,
    mut attempt: impl FnMut(Deadline) -> Result<T, Error>,
) -> Option<T> {
    let until_ns = master.now_ns() + PATIENCE_NS;
    while master.now_ns() < until_ns {
        master.beat();
        match attempt(Deadline::At(master.now_ns() + SLICE_NS)) {
            Ok(result) => return Some(result),
            Err(Error::PeerGone) => seen.losses += 1,
            Err(Error::Timeout | Error::Empty) => {}
            Err(_) => return None,
        }
    }
    None
}
