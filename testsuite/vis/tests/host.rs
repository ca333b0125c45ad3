//! The cases on the host: a thread for each NIC, over plain memory.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;
use musubi_testsuite_vis::{CASES, Setup, run};
use musubi_transport::mapped::{Deadline, Options, Table};
use musubi_vipl::ViError;
use musubi_vipl::address::NicNumber;
use musubi_vipl::mapped::{self, MappedNode, Nic};
use musubi_vipl::owned::{self, Permission, RemoteRegion, ViFailure, ViOptions, Work};

/// Names of the NICs, by place.
const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

/// A thread that is a NIC's program: it sleeps until it is rung, or only looks.
#[derive(Debug)]
struct Seat {
    begin: Instant,
    bells: &'static [(Mutex<u32>, Condvar)],
    place: usize,
    sleeps: bool,
    rings: AtomicU32,
}

impl Seat {
    fn wake(&self, place: usize) {
        let (rung, bell) = &self.bells[place];
        *rung.lock().unwrap() += 1;
        bell.notify_all();
    }
}

impl Coherence for Seat {}

impl Host for Seat {
    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn has_common_clock(&self) -> bool {
        true
    }

    fn ring(&self, participant: u16) {
        self.rings.fetch_add(1, Ordering::Relaxed);
        self.wake(usize::from(participant));
    }

    fn can_be_woken(&self) -> bool {
        self.sleeps
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        if !self.sleeps {
            return thread::yield_now();
        }
        let (rung, bell) = &self.bells[self.place];
        let before = *rung.lock().unwrap();
        let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
        if still_needed() {
            drop(bell.wait_timeout_while(rung.lock().unwrap(), left, |rung| *rung == before).unwrap());
        }
    }

    fn rouse(&self) {
        self.wake(self.place);
    }
}

/// Threads of so many NICs.
fn seats(count: usize, sleeps: bool) -> Vec<&'static Seat> {
    let bells: &'static [(Mutex<u32>, Condvar)] = (0..count).map(|_| Default::default()).collect::<Vec<_>>().leak();
    let seat = |place| Seat { begin: Instant::now(), bells, place, sleeps, rings: AtomicU32::new(0) };
    (0..count).map(|place| &*Box::leak(Box::new(seat(place)))).collect()
}

/// The table of so many NICs, and memory for them.
fn memory<const COUNT: usize>() -> (Table<'static>, usize) {
    let table = Table::new(Vec::from(mapped::nodes::<COUNT>()).leak());
    // Lines of their own; leaked, as a board's memory is not given back either.
    let memory = vec![[0u64; 8]; table.bytes() / 64 + 1].leak().as_mut_ptr() as usize;
    (table, memory.next_multiple_of(64))
}

/// The NIC of a thread.
fn open(names: &[&str], table: Table<'static>, base: usize, seat: &'static Seat) -> Result<Nic<Seat>, ViError> {
    let (count, place) = (table.nodes.len() as u16, seat.place as u16);
    // SAFETY: the memory is as long as the table says, zero before, and lives for ever. A former run of the place is not
    // called any more.
    let region = unsafe { Region::whole(base as *mut u8, count, place, table.shape) };
    mapped::open(names, table, region.unwrap(), seat, Options::default())
}

/// All cases with so many NICs; gives how often somebody was rung.
fn all_cases<const COUNT: usize>(sleeps: bool) -> u32 {
    let (table, base) = memory::<COUNT>();
    let seats = seats(COUNT, sleeps);
    let part = |seat: &'static Seat| {
        move || {
            let open = || open(&NAMES[..COUNT], table, base, seat).unwrap();
            let within = |ns| Deadline::At(seat.now_ns() + ns);
            let own = NicNumber(seat.place as u16);
            let setup: Setup<'_, MappedNode<Seat>> = Setup { nics: COUNT as u16, own, open: &open, within: &within };
            let mut passed = 0;
            run(&setup, |_, name, result| {
                assert_eq!(result.map_err(|failure| failure.to_string()), Ok(()), "{name} at place {}", seat.place);
                passed += 1;
            });
            passed
        }
    };
    let parts: Vec<_> = seats.iter().map(|seat| thread::spawn(part(seat))).collect();
    let passed: Vec<_> = parts.into_iter().map(|part| part.join()).collect();
    passed.into_iter().for_each(|passed| assert_eq!(passed.unwrap(), CASES));
    seats.iter().map(|seat| seat.rings.load(Ordering::Relaxed)).sum()
}

#[test]
fn two_nics_that_sleep() {
    assert!(all_cases::<2>(true) > 0);
}

#[test]
fn two_nics_that_poll() {
    all_cases::<2>(false);
}

#[test]
fn four_nics_that_sleep() {
    all_cases::<4>(true);
}

#[test]
fn a_memory_that_is_not_of_the_table_opens_no_nic() {
    let (table, base) = memory::<2>();
    let seat = seats(2, true)[0];
    assert_eq!(open(&NAMES[..3], table, base, seat).err(), Some(ViError::Parameter), "more names than NICs");
    let crossed = Table::new(vec![table.nodes[1], table.nodes[0]].leak());
    assert_eq!(open(&NAMES[..2], crossed, base, seat).err(), Some(ViError::Parameter), "places that are no NICs");
    let alone = Table { shape: Table::new(&table.nodes[..1]).shape, nodes: &table.nodes[..1] };
    // SAFETY: as above; the memory is that of two.
    let region = unsafe { Region::whole(base as *mut u8, 2, 0, table.shape) };
    let opened = mapped::open(&NAMES[..1], alone, region.unwrap(), seat, Options::default());
    assert_eq!(opened.err(), Some(ViError::Resource), "a memory of two");
}

/// One side of a connection by the owned interface: messages to and fro, and a write into the other's memory.
fn owned_part(nic: &owned::Nic<MappedNode<Seat>>, seat: &Seat) -> Result<(), ViFailure> {
    const TURNS: u32 = 200;
    let soon = || Deadline::At(seat.now_ns() + 20_000_000_000);
    let options = ViOptions { remote_write: true, ..ViOptions::default() };
    let shared = nic.share(64, Permission { write: true, read: false })?;
    let mut vi = nic.vi(options)?;
    (0..2).try_for_each(|_| Ok::<_, ViFailure>(vi.receives().post(nic.region(64)?)?))?;
    let is_server = seat.place == 0;
    let mut vi = match is_server {
        true => nic.listen(b"port")?.caller().wait(soon())?.accept(vi).wait(soon())?,
        false => loop {
            match vi.connect(&nic.address(NAMES[0], b"port")?).wait(soon()) {
                Err(refused) if refused.failure == ViFailure::NobodyThere => vi = refused.vi,
                other => break other?,
            }
        },
    };
    let (sends, receives) = vi.queues();
    sends.post(Work::send(nic.register(shared.remote().to_bytes())?))?;
    let mut region = sends.completed().wait(soon())?.done()?.region;
    let told = receives.completed().wait(soon())?.done()?;
    let theirs = RemoteRegion::from_bytes(&told.region[..told.bytes]).ok_or(ViFailure::Invalid)?;
    receives.post(told.region)?;
    for turn in 0..TURNS {
        region[..4].copy_from_slice(&turn.to_le_bytes());
        sends.post(Work::write(region, theirs).part(0..4))?;
        sends.post(Work::send(nic.register(turn.to_le_bytes())?))?;
        region = sends.completed().wait(soon())?.done()?.region;
        let came = receives.completed().wait(soon())?.done()?;
        let mut written = [0; 4];
        shared.read(0, &mut written)?;
        assert!(came.region[..4] == turn.to_le_bytes() && u32::from_le_bytes(written) >= turn);
        receives.post(came.region)?;
        sends.completed().wait(soon())?.done()?;
    }
    if is_server {
        return vi.ended().wait(soon());
    }
    let (_idle, back) = vi.disconnect();
    assert_eq!(back.iter().map(|one| one.outcome).collect::<Vec<_>>(), [Err(ViFailure::Ended); 2]);
    Ok(())
}

#[test]
fn two_nics_by_the_owned_interface() {
    for sleeps in [true, false] {
        let (table, base) = memory::<2>();
        let parts: Vec<_> = seats(2, sleeps)
            .into_iter()
            .map(|seat| {
                thread::spawn(move || {
                    let opened = open(&NAMES[..2], table, base, seat).unwrap();
                    let nic = owned::Nic::of(opened.node().clone()).unwrap();
                    let ended = owned_part(&nic, seat);
                    // Until the other has ended, too: a NIC that is dropped is gone.
                    (nic, ended)
                })
            })
            .collect();
        let ends: Vec<_> = parts.into_iter().map(|part| part.join().unwrap()).collect();
        ends.iter().for_each(|(_, ended)| assert_eq!(*ended, Ok(())));
    }
}
