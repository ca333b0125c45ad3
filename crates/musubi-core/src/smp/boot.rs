//! Start of the other cores: one mailbox a core, all at the same time, every wait bounded.
//!
//! What you may rely on: the boot processor and a starting core agree on what became of it, whatever the timing: it is
//! online, or it has failed for a [`Reason`] and the system goes on without it. A core that arrives after it was given up
//! learns so at once, is counted in [`Boot::late`], and keeps away. Any core can be the boot processor.
//!
//! How it works: a mailbox goes *absent* → *asked* (boot processor) → *started* → *ready* (the core) → *online* (boot
//! processor), or from any of these to *failed*. Every change of a mailbox in which both are interested is a
//! compare-and-swap from the state in which the other was seen, so that of two that contend exactly one wins. (Linux/M32R
//! had one stack pointer for all cores, so it started them one after the other, and one word of arrival bits, of which a
//! core that stored its own lost the others'.)
//!
//! What it does not do: start hardware. The port's `ask` does (firmware call, release register), and the port's entry code
//! runs on the stack that the mailbox names before it calls [`Boot::arrive`]. A stack that was given to a core is never
//! given to another, because a late core may still come to use it.

use core::marker::PhantomData;

use super::Processor;
use super::call::wait::is_past;
use super::cores::Cores;
use super::waiting::{self, Awaited, Unwatched, Witness};
use crate::sync::{self, AtomicU32, AtomicUsize, Ordering, Site, array, constructor};

const ABSENT: u32 = 0;
const ASKED: u32 = 1;
const STARTED: u32 = 2;
const READY: u32 = 3;
const ONLINE: u32 = 4;
const REFUSED: u32 = 5;
const NOT_ARRIVED: u32 = 6;
const NOT_READY: u32 = 7;
const CHECK: u32 = 8;
const NOT_RELEASED: u32 = 9;
const SHUTDOWN: u32 = 10;

/// What a core needs to start. The numbers are the port's: addresses of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// First address behind its stack.
    pub stack_top: usize,
    /// What it runs.
    pub entry: usize,
    /// With this argument.
    pub argument: usize,
}

/// How far a core has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has asked it to start.
    Absent,
    /// It was asked to.
    Asked,
    /// It runs, and sets itself up.
    Started,
    /// It has set itself up, and waits to be let go.
    Ready,
    /// It runs its program.
    Online,
    /// The system goes on without it.
    Failed(Reason),
}

/// Why a core did not come online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The hardware or firmware refused to start it, with this code.
    Refused(i32),
    /// It did not arrive in time.
    NotArrived,
    /// It arrived, but did not set itself up in time.
    NotReady,
    /// It arrived, and its own check failed with this code.
    Check(i32),
    /// It was ready, but the boot processor did not let it go in time.
    NotReleased,
    /// The system was shut down meanwhile.
    Shutdown,
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Reason::Refused(code) => write!(f, "start refused with code {code}"),
            Reason::NotArrived => f.write_str("did not arrive in time"),
            Reason::NotReady => f.write_str("arrived but was not ready in time"),
            Reason::Check(code) => write!(f, "arrived, and its own check failed with code {code}"),
            Reason::NotReleased => f.write_str("was ready but not let go in time"),
            Reason::Shutdown => f.write_str("shut down during the start"),
        }
    }
}

/// How long the boot processor waits for each core, from the instant it asks, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For its arrival.
    pub arrive_ns: u64,
    /// For its being ready.
    pub ready_ns: u64,
}

/// One core's mailbox.
#[derive(Debug)]
struct Mailbox {
    /// Writers: see the module.
    state: AtomicU32,
    /// The code with which the start was refused, bits of an `i32`. Writer: the boot processor, before it says so.
    refused: AtomicU32,
    /// The code of the core's own check, bits of an `i32`. Writer: the core, before it says so.
    check: AtomicU32,
    /// Writer of these: the boot processor, before it asks.
    stack_top: AtomicUsize,
    entry: AtomicUsize,
    argument: AtomicUsize,
    /// Nanoseconds from asking to online, at most 2^32 - 1. Writer: the boot processor.
    took_ns: AtomicU32,
}

impl Mailbox {
    constructor! {
        fn new() -> Self {
            Self {
                state: AtomicU32::new(ABSENT),
                refused: AtomicU32::new(0),
                check: AtomicU32::new(0),
                stack_top: AtomicUsize::new(0),
                entry: AtomicUsize::new(0),
                argument: AtomicUsize::new(0),
                took_ns: AtomicU32::new(0),
            }
        }
    }

    fn fill(&self, start: Start) {
        self.stack_top.store(start.stack_top, Ordering::Relaxed);
        self.entry.store(start.entry, Ordering::Relaxed);
        self.argument.store(start.argument, Ordering::Relaxed);
    }

    fn start(&self) -> Start {
        let [stack_top, entry, argument] =
            [&self.stack_top, &self.entry, &self.argument].map(|word| word.load(Ordering::Relaxed));
        Start { stack_top, entry, argument }
    }

    fn change(&self, from: u32, to: u32, order: Ordering) -> bool {
        self.state.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }

    /// Gives up what is in state `from`, unless it has gone on.
    fn fail(&self, from: u32, to: u32) -> bool {
        self.change(from, to, Ordering::Release)
    }
}

/// The mailboxes of `N` cores.
#[derive(Debug)]
pub struct Boot<P, const N: usize, W = Unwatched> {
    mailboxes: [Mailbox; N],
    /// Cores that arrived after they were given up. Writers: each core its own bit.
    late: AtomicU32,
    /// Whether the system is being shut down. Writer: whoever shuts it down.
    closing: AtomicU32,
    kind: PhantomData<fn() -> (P, W)>,
}

impl<P: Processor, const N: usize, W: Witness> Boot<P, N, W> {
    constructor! {
        /// No core has been asked.
        #[allow(clippy::new_without_default, reason = "it is a static")]
        pub fn new() -> Self {
            Self {
                mailboxes: array![Mailbox::new(); N],
                late: AtomicU32::new(0),
                closing: AtomicU32::new(0),
                kind: PhantomData,
            }
        }
    }

    /// Starts all of `cores` (this one, if named, is online already) at the same time, and waits until each is online or
    /// has failed. `start` says what a core gets, `ask` has the hardware start it and never waits; its error is the
    /// firmware's code. Gives the cores that are online. A core that an earlier call gave up is not asked again, unless
    /// the firmware had refused it.
    pub fn start_all(
        &self,
        cores: Cores,
        patience: Patience,
        start: impl Fn(usize) -> Start,
        mut ask: impl FnMut(usize) -> Result<(), i32>,
    ) -> Cores {
        let own = Cores::one(P::core());
        let cores = cores.within(Cores::first(N)).without(own);
        self.mailboxes[P::core()].state.store(ONLINE, Ordering::Release);
        let asked_ns = P::now_ns();
        for core in cores {
            self.ask(core, start(core), &mut ask);
        }
        let _noted = waiting::begin::<W>(P::core(), Awaited::Boot(cores), || asked_ns);
        // Bounded: each look settles a core whose time is over.
        while cores.filter(|core| !self.settle(*core, asked_ns, patience)).count() > 0 {
            P::serve();
            P::relax();
        }
        self.online().within(cores.with(own))
    }

    fn ask(&self, core: usize, start: Start, ask: &mut impl FnMut(usize) -> Result<(), i32>) {
        let mailbox = &self.mailboxes[core];
        if !matches!(self.state(core), State::Absent | State::Failed(Reason::Refused(_))) {
            return;
        }
        mailbox.fill(start);
        mailbox.state.store(ASKED, sync::release(Site::PublishMailbox));
        if let Err(code) = ask(core) {
            // Unless it arrived all the same.
            mailbox.refused.store(code as u32, Ordering::Relaxed);
            mailbox.fail(ASKED, REFUSED);
        }
    }

    /// Looks after one core; gives whether its fate is settled.
    fn settle(&self, core: usize, asked_ns: u64, patience: Patience) -> bool {
        let mailbox = &self.mailboxes[core];
        let state = mailbox.state.load(Ordering::Relaxed);
        let now_ns = P::now_ns();
        let is_over = |limit_ns: u64| is_past(asked_ns.wrapping_add(limit_ns), now_ns);
        let is_closing = self.closing.load(Ordering::Relaxed) != 0;
        match state {
            ASKED | STARTED | READY if is_closing => drop(mailbox.fail(state, SHUTDOWN)),
            READY => self.release(core, now_ns.wrapping_sub(asked_ns)),
            ASKED if is_over(patience.arrive_ns) => drop(mailbox.fail(ASKED, NOT_ARRIVED)),
            STARTED if is_over(patience.ready_ns) => drop(mailbox.fail(STARTED, NOT_READY)),
            ASKED | STARTED => {}
            _ => return true,
        }
        false
    }

    fn release(&self, core: usize, took_ns: u64) {
        let mailbox = &self.mailboxes[core];
        mailbox.took_ns.store(took_ns.try_into().unwrap_or(u32::MAX), Ordering::Relaxed);
        mailbox.change(READY, ONLINE, sync::release(Site::PublishGo));
        P::signal();
    }

    /// A started core has come to its program, on the stack of its mailbox. `None`: it came too late and must not touch
    /// anything; it parks for good.
    pub fn arrive(&self, core: usize) -> Option<Start> {
        let mailbox = &self.mailboxes[core];
        match mailbox.change(ASKED, STARTED, sync::acquire(Site::SeeMailbox)) {
            true => Some(mailbox.start()),
            false => self.count_late(core),
        }
    }

    /// A started core has set itself up, and waits to be let go, at most until `deadline_ns`. Gives whether it may go;
    /// otherwise it parks for good.
    pub fn await_go(&self, core: usize, deadline_ns: u64) -> bool {
        let mailbox = &self.mailboxes[core];
        if !mailbox.change(STARTED, READY, sync::release(Site::PublishReady)) {
            return self.count_late(core).is_some();
        }
        loop {
            match mailbox.state.load(sync::acquire(Site::SeeGo)) {
                ONLINE => return true,
                READY if is_past(deadline_ns, P::now_ns()) => drop(mailbox.fail(READY, NOT_RELEASED)),
                READY => P::relax(),
                _ => return false,
            }
        }
    }

    /// A started core's own check has failed; it parks for good.
    pub fn refuse(&self, core: usize, code: i32) {
        self.mailboxes[core].check.store(code as u32, Ordering::Relaxed);
        if !self.mailboxes[core].fail(STARTED, CHECK) {
            self.count_late(core);
        }
    }

    fn count_late(&self, core: usize) -> Option<Start> {
        self.late.fetch_or(Cores::one(core).mask(), Ordering::Relaxed);
        None
    }

    /// Ends a start that is under way: cores that are not online yet stay away. Any core may call this.
    pub fn shut_down(&self) {
        self.closing.store(1, Ordering::Relaxed);
    }

    /// A core that was online has stopped, and may be asked to start again.
    pub fn retire(&self, core: usize) {
        self.mailboxes[core].change(ONLINE, ABSENT, Ordering::AcqRel);
    }

    /// How far a core has come.
    pub fn state(&self, core: usize) -> State {
        let mailbox = &self.mailboxes[core];
        let state = mailbox.state.load(sync::acquire(Site::SeeReady));
        let code = |word: &AtomicU32| word.load(Ordering::Relaxed) as i32;
        match state {
            ABSENT => State::Absent,
            ASKED => State::Asked,
            STARTED => State::Started,
            READY => State::Ready,
            ONLINE => State::Online,
            REFUSED => State::Failed(Reason::Refused(code(&mailbox.refused))),
            NOT_ARRIVED => State::Failed(Reason::NotArrived),
            NOT_READY => State::Failed(Reason::NotReady),
            CHECK => State::Failed(Reason::Check(code(&mailbox.check))),
            NOT_RELEASED => State::Failed(Reason::NotReleased),
            _ => State::Failed(Reason::Shutdown),
        }
    }

    /// The cores that are online.
    pub fn online(&self) -> Cores {
        let online = (0..N).filter(|&core| self.state(core) == State::Online);
        online.fold(Cores::NONE, |cores, core| cores.with(Cores::one(core)))
    }

    /// Cores that arrived after they were given up.
    pub fn late(&self) -> Cores {
        Cores::from_mask(self.late.load(Ordering::Relaxed))
    }

    /// Nanoseconds from the asking to a core's being online, at most 2^32 - 1; `None` if it is not.
    pub fn took_ns(&self, core: usize) -> Option<u32> {
        (self.state(core) == State::Online).then(|| self.took(core))
    }

    pub(super) fn took(&self, core: usize) -> u32 {
        self.mailboxes[core].took_ns.load(Ordering::Relaxed)
    }

    /// The cores that failed, with the reason, as lines of text.
    pub fn failures(&self) -> Failures<'_, P, N, W> {
        Failures(self)
    }
}

/// Prints one line for each core that failed, and nothing if none did.
#[derive(Debug)]
pub struct Failures<'a, P, const N: usize, W>(&'a Boot<P, N, W>);

impl<P: Processor, const N: usize, W: Witness> core::fmt::Display for Failures<'_, P, N, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for core in 0..N {
            if let State::Failed(reason) = self.0.state(core) {
                let late = if self.0.late().contains(core) { " (arrived late, parked)" } else { "" };
                writeln!(f, "core {core}: {reason}{late}")?;
            }
        }
        Ok(())
    }
}
