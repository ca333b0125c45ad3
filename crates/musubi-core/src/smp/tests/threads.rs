//! Cores made of a host's threads: the core's number, mask and pending interrupt are the thread's.
//!
//! How it works: a test names its [`Program`] and calls [`run`], which starts a thread a core. An interrupt rung for a
//! core is taken when that core next restores an open mask, relaxes or serves; so a handler runs on the stack of the
//! code it interrupts, as on a real core, only at fewer places.

use core::cell::Cell;
use core::marker::PhantomData;
use std::borrow::ToOwned;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use std::vec::Vec;

use crate::smp::{CORES_MAX, LEVELS, Processor};

std::thread_local! {
    static CORE: Cell<usize> = const { Cell::new(0) };
    static LEVEL: Cell<usize> = const { Cell::new(0) };
    static MASKED: Cell<bool> = const { Cell::new(false) };
    /// Since when this core relaxes without masking anything, as in a loop that waits.
    static RELAXES_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Interrupts that wait for each core of a program.
#[derive(Debug)]
pub struct Pending([AtomicU32; CORES_MAX]);

impl Pending {
    /// None.
    pub const fn new() -> Self {
        Pending([const { AtomicU32::new(0) }; CORES_MAX])
    }
}

/// What runs on the cores.
pub trait Program: Sized + 'static {
    /// Number of cores.
    const CORES: usize;
    /// Its pending interrupts, a static of its own.
    fn pending() -> &'static Pending;
    /// The handler of the inter-processor interrupt; runs masked, one level up.
    fn interrupt() {}
    /// What a waiting loop serves; runs with the mask as it is.
    fn serve() {}
}

/// The cores of a program.
#[derive(Debug)]
pub struct Threads<G>(PhantomData<G>);

/// Runs `core` on every core of the program; gives what each returned.
pub fn run<G: Program, R: Send>(core: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let _watch = watch();
    std::thread::scope(|scope| {
        let start = |number| {
            let core = &core;
            scope.spawn(move || {
                let _alarm = Alarm;
                CORE.set(number);
                core(number)
            })
        };
        let threads: Vec<_> = (0..G::CORES).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A run that takes so many seconds hangs: some core waits for what never comes. Long enough for Miri and sanitizers, unless the
/// environment says that neither is there.
fn hang_s() -> u64 {
    static HANG_S: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *HANG_S.get_or_init(|| std::env::var("MUSUBI_HANG_S").ok().and_then(|text| text.parse().ok()).unwrap_or(600))
}

/// Ends the tests, with the name of the one that hangs, if dropped too late.
fn watch() -> impl Drop {
    struct Watch(Option<std::sync::mpsc::Sender<()>>);
    impl Drop for Watch {
        fn drop(&mut self) {
            self.0.take();
        }
    }
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    std::thread::spawn(move || {
        use std::io::Write as _;
        let hang_s = hang_s();
        let hangs = end.recv_timeout(std::time::Duration::from_secs(hang_s));
        if hangs == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr(), "test {test} hangs for {hang_s} s");
            std::process::exit(101);
        }
    });
    Watch(Some(ended))
}

/// Ends the tests when a core fails: the others may wait for it for ever.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            use std::io::Write as _;
            // What the test harness has captured goes with the process, so this goes past it.
            let backtrace = std::backtrace::Backtrace::force_capture();
            let thread = std::thread::current();
            let _ = writeln!(std::io::stderr(), "a core failed in test {:?}:\n{backtrace}", thread.name());
            std::process::exit(101);
        }
    }
}

/// Rings for this core itself and takes the interrupt if the mask is open.
pub fn interrupt_self<G: Program>() {
    <Threads<G> as Processor>::ring(CORE.get());
    take_interrupt::<G>();
}

/// Takes the pending interrupt of this core if its mask is open.
fn take_interrupt<G: Program>() {
    if MASKED.get() || G::pending().0[CORE.get()].swap(0, Ordering::Acquire) == 0 {
        return;
    }
    let before = <Threads<G> as Processor>::mask();
    LEVEL.set(LEVEL.get() + 1);
    assert!(LEVEL.get() < LEVELS);
    G::interrupt();
    LEVEL.set(LEVEL.get() - 1);
    MASKED.set(before);
}

// SAFETY: a thread has its number for itself, because `run` gives each another one and a test runs one `run` at a time;
// handlers run only where the mask is open; `alone` and `enter` are the provided ones.
unsafe impl<G: Program> Processor for Threads<G> {
    const CORES: usize = G::CORES;
    type Mask = bool;

    fn core() -> usize {
        CORE.get()
    }
    fn level() -> usize {
        LEVEL.get()
    }
    fn mask() -> bool {
        RELAXES_SINCE.set(None);
        MASKED.replace(true)
    }
    fn restore(before: bool) {
        MASKED.set(before);
        take_interrupt::<G>();
    }
    fn is_masked() -> bool {
        MASKED.get()
    }
    fn relax() {
        let since = RELAXES_SINCE.get().unwrap_or_else(Instant::now);
        RELAXES_SINCE.set(Some(since));
        assert!(since.elapsed().as_secs() < hang_s(), "what this core waits for never comes");
        take_interrupt::<G>();
        std::thread::yield_now();
    }
    fn signal() {}
    fn serve() {
        G::serve();
    }
    fn ring(core: usize) {
        G::pending().0[core].store(1, Ordering::Release);
    }
    fn now_ns() -> u64 {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}
