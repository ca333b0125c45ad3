//! Channels through memory that all cores map: the target-independent suite on one core, and messages between two cores,
//! woken by interrupts and by polling.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd};
use musubi_core::layout;
use musubi_core::mapped::{Host, Memory, Participant, Polling, Pulse, Setup, StorageLine, storage_lines};
use musubi_core::plan::{Domain, Plan, PortKind};
use musubi_core::smp::{Causes, Cores, Locked, Processor, Ticket};
use musubi_metal::bare_host::BareHost;
use musubi_metal::{Machine, cause_handlers, dispatch, println};
use musubi_testsuite::{Failure as TestFailure, Pair, Wrapper, plan};

use crate::report::{Case, Failure, Outcome, ensure, ensure_eq};
use crate::{Suite, Target};

static DOMAINS: [Domain<'static>; 2] = plan::domains(PortKind::Metal);
static PLAN: Plan<'static> = plan::plan(&DOMAINS);
const DOMAINS_OF_CONST: [Domain<'static>; 2] = plan::domains(PortKind::Metal);

/// Private memory of a participant, in lines; what a board is does not change its size.
const LINES: usize = {
    let master = storage_lines::<Polling>(&plan::plan(&DOMAINS_OF_CONST), plan::MASTER);
    let remote = storage_lines::<Polling>(&plan::plan(&DOMAINS_OF_CONST), plan::REMOTE);
    if master > remote { master } else { remote }
};
/// Memory that the participants share; more than the plan needs, which [`memory`] checks.
const SHARED_BYTES: usize = 256 * 1024;
/// Messages from core to core.
const MESSAGES: u32 = 3_000;
/// At each of so many messages the other core answers.
const ANSWER_EVERY: u32 = 16;
/// How long the cores exchange messages, where their number takes longer.
const EXCHANGE_NS: u64 = 6_000_000_000;
/// The cause by which participants are rung.
const BELL: u32 = 7;

/// Counts of what core 1 received: messages, and the digest's two halves.
const RECEIVED: usize = 0;
const DIGEST: usize = 1;
/// Count of what went wrong there.
const FAULTS: usize = 3;
/// Number of messages that the sender will send in all, once it knows.
const LAST: usize = 4;

/// Memory as the participants share it.
#[repr(C, align(4096))]
struct Shared(UnsafeCell<[u8; SHARED_BYTES]>);

// SAFETY: only participants touch it, each as `Memory` says.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared(UnsafeCell::new([0; SHARED_BYTES]));
static STORAGE: [[StorageLine; LINES]; 2] = [const { [const { StorageLine::new() }; LINES] }; 2];

/// Of the Master and of the Remote, while they are on the boot core.
type Pulses<P> = [Option<Pulse<'static, BareHost<P>>>; 2];

/// What the channels' cases share: a board for each core, and what the alarm needs of the participants.
pub struct Channels<P: Target> {
    bares: [BareHost<P>; 2],
    pulses: Locked<Ticket<Machine<P>>, Pulses<P>>,
}

impl<P: Target> Channels<P> {
    pub const fn new() -> Self {
        let bares = [BareHost::new(ring_boot_core::<P>, true), BareHost::new(ring_both::<P>, true)];
        Self { bares, pulses: Locked::new(Ticket::new(), [None, None]) }
    }
}

/// Both participants are on the boot core.
fn ring_boot_core<P: Target>(participant: u16) {
    ring_both::<P>(participant);
}

/// Participant n is on core n, if there is such a core; otherwise on the boot core.
fn ring_both<P: Target>(_: u16) {
    let s = P::suite();
    for core in s.calls.online().within(Cores::first(2)) {
        s.calls.raise(core, Causes::program(BELL));
    }
}

/// The bell, on the core that was rung.
fn heard<P: Target>(_: u32) {
    let core = Machine::<P>::core();
    if let Some(bare) = P::suite().channels.bares.get(core) {
        bare.heard();
    }
}

/// The alarm: what participants of the boot core do now and then.
fn beat<P: Target>() {
    P::suite().channels.pulses.lock().iter().flatten().for_each(Pulse::beat);
}

fn memory(participant: u16) -> Memory<'static> {
    assert!(layout::mapped_bytes(&PLAN).is_some_and(|bytes| bytes <= SHARED_BYTES as u64));
    // SAFETY: the static is large enough and aligned, and each participant is attached once at a time.
    let memory = unsafe { Memory::whole(SHARED.0.get().cast(), &PLAN, participant) };
    memory.expect("the plan has these participants")
}

fn attach<B: Host>(board: &'static B, participant: u16) -> Result<Participant<'static, B>, Error> {
    Participant::attach(Setup::new(&PLAN, participant, board, memory(participant), &STORAGE[usize::from(participant)]))
}

/// Both participants of the target-independent suite on the boot core.
struct OneCore<'o, P: Target> {
    suite: &'static Suite<P>,
    outcome: &'o mut Outcome,
}

impl<P: Target> Wrapper for OneCore<'_, P> {
    type Attachment = Participant<'static, BareHost<P>>;

    fn fresh(&mut self) -> Pair<Self::Attachment> {
        let channels = &self.suite.channels;
        drop(core::mem::take(&mut *channels.pulses.lock()));
        let attach = |number| attach(&channels.bares[0], number).expect("a participant of this core attaches");
        let pair = Pair { master: attach(plan::MASTER), remote: attach(plan::REMOTE) };
        *channels.pulses.lock() = [Some(pair.master.pulse()), Some(pair.remote.pulse())];
        pair
    }

    fn pause(&mut self) {
        beat::<P>();
    }

    fn report(&mut self, name: &str, result: Result<(), TestFailure>) {
        self.outcome.add::<P>(name, result);
    }
}

/// Runs the target-independent suite with both participants on the boot core.
pub fn run_on_one_core<P: Target>(s: &'static Suite<P>, outcome: &mut Outcome) {
    cause_handlers::PROGRAM.set(Some(heard::<P>));
    dispatch::ALARM.set(Some(beat::<P>));
    let before = outcome.passed;
    musubi_testsuite::run(&mut OneCore { suite: s, outcome });
    dispatch::ALARM.set(None);
    drop(core::mem::take(&mut *s.channels.pulses.lock()));
    println!(P, "ok target-independent suite, {} cases", outcome.passed - before);
}

pub fn cases<P: Target>() -> [Case<P>; 2] {
    crate::cases![
        messages_between_two_cores_by_interrupt on 2,
        messages_between_two_cores_by_polling on 2,
    ]
}

/// FNV-1a over 64 bits: of what was sent, and of what arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Digest(u64);

impl Digest {
    const NEW: Digest = Digest(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Bytes of a message, 1 to the block's size.
fn length_of(number: u32, block_bytes: usize) -> usize {
    number as usize * 7919 % block_bytes + 1
}

/// Core 0: sends, takes answers; gives how many messages, and their digest.
fn send<A: Attachment>(master: &A) -> Result<(u32, Digest), Failure> {
    let (Ok(down), Ok(up)) = (master.open_sending(plan::DOWN), master.open_receiving(plan::UP)) else {
        return Err(Failure { file: file!(), line: line!(), expected: "the Master's ends open", found: None });
    };
    let patience = || Deadline::At(master.now_ns() + crate::PATIENCE_NS);
    let end_ns = master.now_ns() + EXCHANGE_NS;
    let (mut digest, mut number) = (Digest::NEW, 0);
    while number < MESSAGES && (number % ANSWER_EVERY != 0 || master.now_ns() < end_ns) {
        let Ok(mut loan) = down.allocate(patience()) else {
            return Err(Failure { file: file!(), line: line!(), expected: "a block", found: Some(number.into()) });
        };
        let length = length_of(number, loan.len());
        loan[..length].iter_mut().zip(number..).for_each(|(byte, value)| *byte = value.wrapping_mul(31) as u8);
        digest.add(&loan[..length]);
        ensure!(down.enqueue(loan, length as u32).is_ok(), "a message goes out");
        let _ = down.notify();
        number += 1;
        if number % ANSWER_EVERY == 0 {
            ensure!(up.wait(patience()).is_ok(), "the other core answers");
            let Ok(answer) = up.dequeue() else {
                return Err(Failure { file: file!(), line: line!(), expected: "an answer", found: None });
            };
            let mut bytes = [0; 4];
            ensure_eq!(answer.copy_to(0, &mut bytes), 4, "the answer is a number");
            let _ = up.free(answer);
            ensure_eq!(u32::from_le_bytes(bytes), number, "the answer is for this message");
        }
    }
    Ok((number, digest))
}

/// Core 1: receives until it has all, and answers.
fn receive<P: Target, A: Attachment>(s: &'static Suite<P>, remote: &A) -> Result<(), Error> {
    let down = remote.open_receiving(plan::DOWN).map_err(|_| Error::NotOurs)?;
    let up = remote.open_sending(plan::UP).map_err(|_| Error::NotOurs)?;
    let patience = || Deadline::At(remote.now_ns() + crate::PATIENCE_NS);
    let (mut digest, mut number) = (Digest::NEW, 0u32);
    while s.counted(LAST) != number as usize {
        // The sender says how many there are when it has sent them; until then it may pause.
        match down.wait(Deadline::At(remote.now_ns() + 20_000_000)) {
            Err(Error::Timeout) => continue,
            result => result?,
        }
        while let Ok(received) = down.dequeue() {
            let mut bytes = [0; 64];
            let length = received.copy_to(0, &mut bytes);
            digest.add(&bytes[..length]);
            let _ = down.free(received);
            number += 1;
            if number % ANSWER_EVERY == 0 {
                let mut loan = up.allocate(patience())?;
                loan[..4].copy_from_slice(&number.to_le_bytes());
                up.enqueue(loan, 4).map_err(|(error, _)| error)?;
                let _ = up.notify();
            }
        }
    }
    s.counts[RECEIVED].store(number as usize, Ordering::Relaxed);
    s.counts[DIGEST].store(digest.0 as u32 as usize, Ordering::Relaxed);
    s.counts[DIGEST + 1].store((digest.0 >> 32) as u32 as usize, Ordering::Release);
    Ok(())
}

/// The Remote's part, on core 1, with this board.
fn remote_part<P: Target, B: Host>(s: &'static Suite<P>, board: &'static B) {
    let result = attach(board, plan::REMOTE).and_then(|remote| receive(s, &remote));
    if result.is_err() {
        s.count(FAULTS);
    }
}

/// Both parts: the Master's here, the Remote's on core 1 as `body`.
fn exchange<P: Target, B: Host>(
    s: &'static Suite<P>,
    board: &'static B,
    body: fn(&'static Suite<P>, usize),
) -> Result<(), Failure> {
    s.counts[LAST].store(usize::MAX, Ordering::Relaxed);
    let Ok(master) = attach(board, plan::MASTER) else {
        return Err(Failure { file: file!(), line: line!(), expected: "the Master attaches", found: None });
    };
    s.begin_on(Cores::one(1), body);
    let sent = send(&master);
    let last = sent.as_ref().map_or(0, |(number, _)| *number);
    s.counts[LAST].store(last as usize, Ordering::Release);
    s.finish(Cores::one(1))?;
    let (number, digest) = sent?;
    ensure_eq!(s.counted(FAULTS), 0, "the Remote finds nothing wrong");
    ensure_eq!(s.counted(RECEIVED), number as usize, "each message arrives");
    let arrived = (s.counted(DIGEST) as u64) | (s.counted(DIGEST + 1) as u64) << 32;
    ensure!(Digest(arrived) == digest, "what arrives is what was sent");
    println!(P, "  {number} messages, 0 lost, digest {:#018x}", digest.0);
    Ok(())
}

fn messages_between_two_cores_by_interrupt<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(heard::<P>));
    exchange(s, &s.channels.bares[0], |s, _| remote_part(s, &s.channels.bares[1]))
}

/// A board that only has a clock, the same for both cores.
struct Clock<P>(core::marker::PhantomData<P>);

impl<P: Target> Clock<P> {
    const BOARD: &'static Polling = &Polling { now_ns: Machine::<P>::now_ns, is_common: true };
}

fn messages_between_two_cores_by_polling<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exchange(s, Clock::<P>::BOARD, |s, _| remote_part(s, Clock::<P>::BOARD))
}
