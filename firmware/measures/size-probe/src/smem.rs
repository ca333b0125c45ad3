//! The lock of an SMEM channel with two other members.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU32;

use musubi_core::layout::ticket;
use musubi_core::lock::{Bakery, Contender};
use musubi_core::words::{OwnWords, PeerWords};

/// A member's line.
#[repr(align(64))]
struct Line([AtomicU32; ticket::WORDS as usize]);

#[unsafe(link_section = ".channels")]
static LINES: [Line; 3] = [const { Line([const { AtomicU32::new(0) }; ticket::WORDS as usize]) }; 3];

struct Only(UnsafeCell<Option<Bakery<'static>>>);
// SAFETY: the image is never run, let alone on two cores.
unsafe impl Sync for Only {}
static MEMBER: Only = Only(UnsafeCell::new(None));

fn open() -> Bakery<'static> {
    // SAFETY: the memory is static, aligned, and of this length; the image makes one such view of it.
    let own = unsafe { OwnWords::new(LINES[0].0.as_ptr().cast_mut().cast(), ticket::WORDS) };
    Bakery::new(0, own)
}

fn other(participant: u16) -> Contender<'static> {
    // SAFETY: the memory is static, aligned, and of this length.
    let line = unsafe { PeerWords::new(LINES[usize::from(participant)].0.as_ptr().cast(), ticket::WORDS) };
    Contender { participant, line, alive: true }
}

/// Tries, queues, polls, gives up and leaves.
pub fn lock(command: u32, argument: u32) -> u32 {
    // SAFETY: called from the image's one thread, and not from within itself.
    let member = unsafe { &mut *MEMBER.0.get() };
    let member = member.get_or_insert_with(open);
    let mut others = [other(1), other(2)];
    others[1].alive = argument != 0;
    match command {
        0 => u32::from(member.try_lock(&others).is_ok()),
        1 => u32::from(member.begin(&others).is_ok()),
        2 => u32::from(member.poll(&others)),
        3 => {
            member.abandon();
            0
        }
        _ => u32::from(member.unlock().is_ok()),
    }
}
