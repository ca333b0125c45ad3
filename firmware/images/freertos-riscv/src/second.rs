//! Hart 1: the Remote in a bare loop, which sends back what the Master on hart 0 sends.
//!
//! What you may rely on: both directions are doorbells: hart 1 sleeps in WFI until hart 0 rings it or its timer ends the
//! sleep, and rings hart 0, whose task is blocked in FreeRTOS meanwhile.
//!
//! How it works: `mtimecmp` of hart 1 is its alarm. It takes no interrupts: a pending one ends WFI.

use core::sync::atomic::{AtomicBool, Ordering};

use freertos_tests::{Member, PLAN, Place};
use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_core::mapped::{Host, Memory, Participant, Setup, StorageLine, storage_lines};
use musubi_core::port::Coherence;
use musubi_freertos::{idle_rounds, task};

use crate::virt;

/// The suite's channels and participants (`musubi_testsuite::plan`).
const DOWN: u16 = 0;
const UP: u16 = 1;
const MASTER: u16 = 0;
const REMOTE: u16 = 1;
/// Messages that go to and fro.
const MESSAGES: u32 = 500;
/// How long anything may take, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Whether the Remote is on hart 1. Writer: the test, before it rings that hart for the first time.
static IS_HERE: AtomicBool = AtomicBool::new(false);
static STORAGE: [StorageLine; storage_lines::<Hart1>(&PLAN, REMOTE)] =
    [const { StorageLine::new() }; storage_lines::<Hart1>(&PLAN, REMOTE)];

/// Rings a participant, wherever it is.
pub fn ring(participant: u16) {
    virt::ring(usize::from(participant == REMOTE && IS_HERE.load(Ordering::SeqCst)));
}

/// Hart 1 without an RTOS.
struct Hart1;

impl Coherence for Hart1 {}

impl Host for Hart1 {
    fn now_ns(&self) -> u64 {
        virt::now_ns()
    }

    fn has_common_clock(&self) -> bool {
        true
    }

    fn ring(&self, participant: u16) {
        ring(participant);
    }

    fn can_be_woken(&self) -> bool {
        true
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        // No interrupt is taken on this hart, so a ring from here on is pending and ends the sleep.
        if still_needed() {
            virt::set_alarm(1, until_ns);
            virt::wait_for_interrupt();
            virt::set_alarm(1, u64::MAX);
        }
        // The rest is over whatever ended it; the waiter looks again.
        let _ = virt::answer(1);
    }
}

/// What hart 1 does once it is rung.
pub fn echo_for_ever() -> ! {
    virt::enable_alarm();
    // SAFETY: the machine has this memory, and the test has attached the Remote nowhere else.
    let memory = unsafe { Memory::whole(crate::SHARED, &PLAN, REMOTE) }.expect("the plan has this participant");
    let participant = Participant::attach(Setup::new(&PLAN, REMOTE, &Hart1, memory, &STORAGE)).expect("it attaches");
    let down = participant.open_receiving(DOWN).expect("the end is free");
    let up = participant.open_sending(UP).expect("the end is free");
    loop {
        let Ok(message) = down.dequeue() else {
            // A loss or a timeout: the loop looks again in any case.
            let _ = down.wait(Deadline::At(virt::now_ns() + PATIENCE_NS));
            continue;
        };
        let mut bytes = [0; 4];
        message.copy_to(0, &mut bytes);
        // The message came from this end.
        let _ = down.free(message);
        let _ = send(&up, &bytes, Deadline::At(virt::now_ns() + PATIENCE_NS));
    }
}

fn send(end: &impl SendingEnd, bytes: &[u8], deadline: Deadline) -> Result<(), &'static str> {
    let mut loan = end.allocate(deadline).map_err(|_| "a block is free in time")?;
    loan[..bytes.len()].copy_from_slice(bytes);
    end.enqueue(loan, bytes.len() as u32).map_err(|_| "the block is enqueued")?;
    let _ = end.notify();
    Ok(())
}

/// The test: a task on hart 0 and the loop on hart 1.
pub fn test(place: &'static Place) -> Result<(), &'static str> {
    IS_HERE.store(true, Ordering::SeqCst);
    let master = Member::attach(place, MASTER).map_err(|_| "the Master attaches")?;
    virt::ring(1);
    let down = master.open_sending(DOWN).map_err(|_| "the sending end opens")?;
    let up = master.open_receiving(UP).map_err(|_| "the receiving end opens")?;
    let until_ns = master.now_ns() + PATIENCE_NS;
    while !down.usage().connected || !up.usage().connected {
        if master.now_ns() > until_ns {
            return Err("hart 1 comes up");
        }
        let _ = up.wait(Deadline::Poll);
        task::delay(1);
    }
    let idle_before = idle_rounds();
    for number in 0..MESSAGES {
        send(&down, &number.to_le_bytes(), Deadline::At(until_ns))?;
        let message = loop {
            match up.dequeue() {
                Err(Error::Empty) => up.wait(Deadline::At(until_ns)).map_err(|_| "the echo comes in time")?,
                done => break done.map_err(|_| "the echo is a message")?,
            }
        };
        let mut bytes = [0; 4];
        message.copy_to(0, &mut bytes);
        up.free(message).map_err(|_| "the message goes back")?;
        if bytes != number.to_le_bytes() {
            return Err("the echo is what was sent");
        }
    }
    // How often depends on the emulator's host: the echo may be there before the task can sleep.
    if idle_rounds() == idle_before { Err("the task sleeps meanwhile") } else { Ok(()) }
}
