//! Counts allocations: a message over the owned interface in Rust, posted and polled for, costs none over shared memory. It stands
//! here as an allocator that counts needs `unsafe`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::owned::process::{Completion, Nic, OwnRegion, Vi};
use musubi_vipl::owned::{Connected, ViOptions, Work};
use musubi_vipl::process::NicSystem;

thread_local! {
    /// Of this thread: nodes look for each other in threads of their own now and then.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is the system allocator's own, with what it was called with; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; all memory here comes from the system allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn connected(system: &NicSystem) -> (Nic, Vi<Connected>, Vi<Connected>) {
    let (left, right) = (Nic::open(system, "VINIC0").unwrap(), Nic::open(system, "VINIC0").unwrap());
    let mut listener = right.listen(b"port").unwrap();
    let connecting = left.vi(ViOptions::default()).unwrap().connect(&left.address("VINIC0", b"port").unwrap());
    let accepting = listener.caller().wait(soon()).unwrap().accept(right.vi(ViOptions::default()).unwrap());
    let mut here = connecting.wait(soon()).unwrap();
    let mut there = accepting.wait(soon()).unwrap();
    here.receives().post(left.region(65_536).unwrap()).unwrap();
    there.receives().post(right.region(65_536).unwrap()).unwrap();
    (left, here, there)
}

fn polled(mut look: impl FnMut() -> Option<Completion>) -> Completion {
    let begun = std::time::Instant::now();
    loop {
        match look() {
            Some(completion) => return completion.done().unwrap(),
            None => assert!(begun.elapsed() < Duration::from_secs(60)),
        }
    }
}

/// One message, from post to both completions; gives the region of the sender back.
fn message(from: &mut Vi<Connected>, to: &mut Vi<Connected>, region: OwnRegion, bytes: usize) -> OwnRegion {
    from.sends().post(Work::send(region).part(0..bytes)).unwrap();
    let came = polled(|| to.receives().done().unwrap());
    assert_eq!(came.bytes, bytes);
    to.receives().post(came.region).unwrap();
    polled(|| from.sends().done().unwrap()).region
}

#[test]
fn a_message_that_is_posted_and_polled_for_allocates_nothing() {
    const TURNS: u32 = 2000;
    let system = NicSystem::on_one_machine(&format!("allocations-{}", std::process::id()));
    let (nic, mut here, mut there) = connected(&system);
    let mut region = nic.region(65_536).unwrap();
    for bytes in [0, 4, 64, 1000, 4096, 65_536] {
        let mut turns =
            |region: OwnRegion| (0..TURNS).fold(region, |region, _| message(&mut here, &mut there, region, bytes));
        // Until queues are as long as they get.
        region = turns(region);
        let before = ALLOCATIONS.get();
        region = turns(region);
        let counted = ALLOCATIONS.get() - before;
        assert_eq!(counted, 0, "{bytes} bytes");
    }
}
