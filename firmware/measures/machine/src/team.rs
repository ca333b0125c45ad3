//! Workers on the cores of one image: a swap shows the other where our words lie.
//!
//! How it works: each pair has a place for each direction: address, length, and a count of swaps, written last by the
//! giver; the taker reads the words and then writes the count back. The giver waits for that, so the words do not change
//! meanwhile.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use musubi_measures::nas::{Lost, Team};

/// Looks at the other's word between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 4096;

/// From one worker to another.
#[repr(align(64))]
#[derive(Debug)]
struct Place {
    /// Where the words lie and how many. Writer: the giver.
    address: AtomicUsize,
    length: AtomicUsize,
    /// Swaps offered. Writer: the giver.
    given: AtomicU32,
    /// Swaps read. Writer: the taker.
    taken: AtomicU32,
}

impl Place {
    #[expect(clippy::declare_interior_mutable_const, reason = "the first value of each place, never used as it stands")]
    const NEW: Place = Place {
        address: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        given: AtomicU32::new(0),
        taken: AtomicU32::new(0),
    };
}

/// The places of a team of `N`.
#[derive(Debug)]
pub struct Meeting<const N: usize>([[Place; N]; N]);

impl<const N: usize> Meeting<N> {
    /// Nothing was swapped yet.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self([const { [const { Place::NEW }; N] }; N])
    }
}

/// One worker.
#[derive(Debug)]
pub struct Worker<'m, const N: usize> {
    meeting: &'m Meeting<N>,
    rank: usize,
    size: usize,
    now_ns: fn() -> u64,
    wait_ns_max: u64,
}

impl<'m, const N: usize> Worker<'m, N> {
    /// Worker `rank` of `size`, which is at most `N`; waits so long for another.
    pub fn new(meeting: &'m Meeting<N>, rank: usize, size: usize, now_ns: fn() -> u64, wait_ns_max: u64) -> Self {
        Self { meeting, rank, size: size.min(N), now_ns, wait_ns_max }
    }

    fn wait(&self, done: impl Fn() -> bool) -> Result<(), Lost> {
        let mut until_ns = None;
        loop {
            // The clock is looked at seldom: reading it costs an emulator more than the wait.
            for _ in 0..LOOKS_PER_CLOCK {
                if done() {
                    return Ok(());
                }
                core::hint::spin_loop();
            }
            let now_ns = (self.now_ns)();
            if now_ns > *until_ns.get_or_insert(now_ns + self.wait_ns_max) {
                return Err(Lost);
            }
        }
    }
}

impl<const N: usize> Team for Worker<'_, N> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn swap(&mut self, with: usize, give: &[u32], take: &mut dyn FnMut(&[u32])) -> Result<(), Lost> {
        let (ours, theirs) = (&self.meeting.0[self.rank][with], &self.meeting.0[with][self.rank]);
        let turn = ours.given.load(Ordering::Relaxed).wrapping_add(1);
        ours.address.store(give.as_ptr().expose_provenance(), Ordering::Relaxed);
        ours.length.store(give.len(), Ordering::Relaxed);
        ours.given.store(turn, Ordering::Release);
        self.wait(|| theirs.given.load(Ordering::Acquire) == turn)?;
        let address = core::ptr::with_exposed_provenance(theirs.address.load(Ordering::Relaxed));
        // SAFETY: the other worker's words; it gave their address and length with this turn, and neither changes nor frees
        // them until it has seen `taken`.
        take(unsafe { core::slice::from_raw_parts(address, theirs.length.load(Ordering::Relaxed)) });
        theirs.taken.store(turn, Ordering::Release);
        self.wait(|| ours.taken.load(Ordering::Acquire) == turn)
    }
}
