//! The suite over mapped memory: both participants in one thread, their memory on the heap. It is here because views of
//! memory are made with `unsafe`, which the suite itself forbids.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use musubi_core::layout;
use musubi_core::mapped::{Memory, Participant, Polling, Pulse, Setup, StorageLine, storage_lines};
use musubi_core::plan::{Domain, Plan, PortKind};
use musubi_testsuite::{Failure, Pair, Wrapper, plan, run};

static DOMAINS: [Domain<'static>; 2] = plan::domains(PortKind::Metal);
static PLAN: Plan<'static> = plan::plan(&DOMAINS);
static MASTER: [StorageLine; storage_lines::<Polling>(&PLAN, plan::MASTER)] = [const { StorageLine::new() }; _];
static REMOTE: [StorageLine; storage_lines::<Polling>(&PLAN, plan::REMOTE)] = [const { StorageLine::new() }; _];
static BOARD: Polling = Polling { now_ns, is_common: true };

fn now_ns() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

type Pulses = Arc<Mutex<Vec<Pulse<'static, Polling>>>>;

/// Mapped memory as a target of the suite. Each test attaches both anew to what the one before has left.
struct Mapped {
    base: *mut u8,
    pulses: Pulses,
}

/// The tick of both boards.
fn beat(pulses: &Pulses) {
    pulses.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Pulse::beat);
}

impl Mapped {
    fn new() -> Mapped {
        let bytes = layout::mapped_bytes(&PLAN).unwrap() as usize;
        // Not zeroed: cold memory holds anything.
        let lines = vec![[0xa5a5_a5a5_a5a5_a5a5_u64; 512]; bytes.div_ceil(4096) + 1].leak();
        let base = lines.as_mut_ptr().cast::<u8>();
        let pulses = Pulses::default();
        let ticking = Arc::downgrade(&pulses);
        std::thread::spawn(move || {
            while let Some(pulses) = ticking.upgrade() {
                beat(&pulses);
                drop(pulses);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Mapped { base: base.wrapping_add(base.align_offset(4096)), pulses }
    }

    fn attach(&self, participant: u16, storage: &'static [StorageLine]) -> Participant<'static, Polling> {
        // SAFETY: the memory is leaked, aligned, long enough and reached through the participants only.
        let memory = unsafe { Memory::whole(self.base, &PLAN, participant) }.unwrap();
        Participant::attach(Setup::new(&PLAN, participant, &BOARD, memory, storage)).unwrap()
    }
}

impl Wrapper for Mapped {
    type Attachment = Participant<'static, Polling>;

    fn fresh(&mut self) -> Pair<Self::Attachment> {
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.clear();
        let pair = Pair { master: self.attach(0, &MASTER), remote: self.attach(1, &REMOTE) };
        pulses.extend([pair.master.pulse(), pair.remote.pulse()]);
        pair
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(50));
    }

    fn report(&mut self, name: &str, result: Result<(), Failure>) {
        match result {
            Ok(()) => println!("{name}: ok"),
            Err(failure) => println!("{name}: FAILED: {failure}"),
        }
    }
}

#[test]
fn the_suite_passes_in_mapped_memory() {
    let outcome = run(&mut Mapped::new());
    println!("{outcome}");
    assert!(outcome.failed == 0 && outcome.passed > 0, "{outcome}");
}
