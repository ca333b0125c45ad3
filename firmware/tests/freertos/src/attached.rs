//! The two participants of the suite's plan, and their periodic work.
//!
//! How it works: while a participant is attached a clone of it is here, for the beat task and for the doorbell. It goes
//! when the test drops its [`Member`], so that the participant leaves then.

use core::cell::UnsafeCell;

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline};
use musubi_core::mapped::{Participant, ReceivingEnd, Segment, SendingEnd, Setup, StorageLine, storage_lines};
use musubi_core::plan::{Domain, Plan, PortKind};
use musubi_freertos::{TaskHost, critical, task};
use musubi_testsuite::plan;

use crate::Place;

static DOMAINS: [Domain<'static>; 2] = plan::domains(PortKind::Metal);
/// The suite's plan for this port.
pub static PLAN: Plan<'static> = plan::plan(&DOMAINS);

/// Private memory of the Master, in lines.
const MASTER_LINES: usize = storage_lines::<TaskHost>(&plan::plan(&DOMAINS_OF_CONST), plan::MASTER);
/// Private memory of the Remote, in lines.
const REMOTE_LINES: usize = storage_lines::<TaskHost>(&plan::plan(&DOMAINS_OF_CONST), plan::REMOTE);
const DOMAINS_OF_CONST: [Domain<'static>; 2] = plan::domains(PortKind::Metal);

static MASTER_STORAGE: [StorageLine; MASTER_LINES] = [const { StorageLine::new() }; MASTER_LINES];
static REMOTE_STORAGE: [StorageLine; REMOTE_LINES] = [const { StorageLine::new() }; REMOTE_LINES];

/// A participant of this core.
pub type Here = Participant<'static, TaskHost>;

/// Ticks between two beats.
const BEAT_TICKS: u32 = 2;
/// Attempts to attach before the former participant has left.
const ATTEMPTS_MAX: u32 = 100;

/// Clones of the participants that are attached. Changed in critical sections, used there and in the doorbell.
struct Clones(UnsafeCell<[Option<Here>; 2]>);

// SAFETY: one core; changed with interrupts masked.
unsafe impl Sync for Clones {}

static CLONES: Clones = Clones(UnsafeCell::new([None, None]));

/// Calls `by` with the clones. In a critical section or in an interrupt only.
fn clones<R>(by: impl FnOnce(&mut [Option<Here>; 2]) -> R) -> R {
    // SAFETY: interrupts are masked, and `by` does not call this function.
    by(unsafe { &mut *CLONES.0.get() })
}

/// A handle of a participant that is attached, for another task.
pub fn another(number: u16) -> Option<Here> {
    critical::section(|| clones(|clones| clones[usize::from(number)].clone()))
}

/// The doorbell rang: for on_ring.
pub fn wake() {
    clones(|clones| clones.iter().flatten().for_each(Participant::wake));
}

/// The beat task.
pub fn beat_for_ever(_: &'static ()) {
    loop {
        for number in [plan::MASTER, plan::REMOTE] {
            // A handle, so that the beat itself is outside the critical section.
            if let Some(participant) = another(number) {
                participant.beat();
            }
        }
        task::delay(BEAT_TICKS);
    }
}

/// A participant that leaves when this and its ends are dropped.
pub struct Member(Option<Here>);

impl Member {
    /// Attaches a participant, as a new incarnation.
    pub fn attach(place: &'static Place, number: u16) -> Result<Member, Error> {
        let storage: &[StorageLine] = if number == plan::MASTER { &MASTER_STORAGE } else { &REMOTE_STORAGE };
        let mut attempts = 0;
        let here = loop {
            let setup = Setup::new(&PLAN, number, &place.board, (place.memory)(number), storage);
            match Participant::attach(setup) {
                // The beat task has the last clone for a moment.
                Err(Error::InUse) if attempts < ATTEMPTS_MAX => attempts += 1,
                done => break done?,
            }
            task::delay(1);
        };
        let clone = here.clone();
        let former = critical::section(|| clones(|clones| clones[usize::from(number)].replace(clone)));
        drop(former);
        Ok(Member(Some(here)))
    }

    fn here(&self) -> &Here {
        match &self.0 {
            Some(here) => here,
            None => unreachable!("taken by drop only"),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(here) = self.0.take() {
            let number = usize::from(here.participant());
            let clone = critical::section(|| clones(|clones| clones[number].take()));
            drop(clone);
        }
    }
}

impl Attachment for Member {
    type Sending = SendingEnd<'static, TaskHost>;
    type Receiving = ReceivingEnd<'static, TaskHost>;
    type Segment = Segment<'static, TaskHost>;
    type Error = Error;

    fn plan(&self) -> &Plan<'_> {
        self.here().plan()
    }

    fn domain(&self) -> u16 {
        self.here().domain()
    }

    fn now_ns(&self) -> u64 {
        self.here().now_ns()
    }

    fn sleep_until(&self, at_ns: u64) {
        self.here().sleep_until(at_ns);
    }

    fn attached(&self, domain: u16) -> u16 {
        self.here().attached(domain)
    }

    fn open_sending(&self, fifo: u16) -> Result<Self::Sending, Error> {
        self.here().open_sending(fifo)
    }

    fn open_receiving(&self, fifo: u16) -> Result<Self::Receiving, Error> {
        self.here().open_receiving(fifo)
    }

    fn wait_any(&self, ends: &[&Self::Receiving], deadline: Deadline) -> Result<(), Error> {
        self.here().wait_any(ends, deadline)
    }

    fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<Self::Segment, Error> {
        self.here().open_segment(smem, deadline)
    }
}
