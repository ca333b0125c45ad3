//! The port for shared memory of a chip, on its stand-in: the same code with a memfd and event descriptors.
//!
//! How it works: the test is the Master; Remotes are threads of it, or processes: the test binary starts itself again and
//! finds the stand-in's descriptors by number.

mod system;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use musubi_core::Error as CoreError;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_core::layout;
use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};
use musubi_linux::clock::now_ns;
use musubi_linux::uio::{Observer, Options, Participant, Twin};
use musubi_linux::{DeadlineExt, Error};
use system::instance;

const MASTER: u16 = 0;
const REMOTE: u16 = 1;
/// Master to Remote.
const DOWN: u16 = 0;
/// Remote to Master.
const UP: u16 = 1;
const VARIABLE: &str = "MUSUBI_TEST_TWIN";
const BLOCKS: u32 = 64;
/// No test may wait longer.
const LONG: Duration = Duration::from_secs(20);

const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    let (port, trust) = (PortKind::LinuxUio, Trust::MayCrash);
    Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
}

const fn fifo(name: &'static str, from: u16, to: u16) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks: BLOCKS,
        block_bytes: 256,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }
}

static PLAN: Plan<'static> = Plan {
    name: "uio-test",
    hash: 0x0123_4567_89AB_CDEF,
    domains: &[domain("master", Role::Master, 1), domain("remote", Role::Remote, 2)],
    fifos: &[fifo("down", MASTER, REMOTE), fifo("up", REMOTE, MASTER)],
    smems: &[Smem { name: "shared", domains: &[MASTER, REMOTE], bytes: 64, lock: LockKind::Bakery }],
    liveness: Liveness { heartbeat_ns: 20_000_000, stalled_ns: 5_000_000_000 },
};

fn attach(twin: &Twin, domain: u16, instance: &str) -> Participant {
    let device = Some(twin.device(&PLAN, domain).unwrap());
    Participant::attach(Options { instance: Some(instance.to_owned()), device, ..Options::new(&PLAN, domain) }).unwrap()
}

fn soon() -> Deadline {
    Deadline::At(now_ns() + LONG.as_nanos() as u64)
}

fn send(end: &impl SendingEnd, number: u32) {
    let mut loan = loop {
        match end.allocate(soon()) {
            Ok(loan) => break loan,
            Err(CoreError::PeerGone) => (),
            Err(error) => panic!("{error:?}"),
        }
    };
    loan[..4].copy_from_slice(&number.to_ne_bytes());
    end.enqueue(loan, 4).map_err(|(error, _)| error).unwrap();
    end.notify();
}

fn receive(end: &impl ReceivingEnd) -> u32 {
    loop {
        match end.dequeue() {
            Ok(received) => {
                let mut number = [0; 4];
                assert_eq!(received.copy_to(0, &mut number), 4);
                end.free(received).unwrap();
                return u32::from_ne_bytes(number);
            }
            Err(CoreError::Empty) => match end.wait(soon()) {
                Ok(()) | Err(CoreError::PeerGone) => (),
                Err(error) => panic!("{error:?}"),
            },
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn two_threads_talk_both_ways_and_share_memory() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let master = attach(&twin, MASTER, &instance);
    let count = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let remote = attach(&twin, REMOTE, &instance);
            let (down, up) = (remote.open_receiving(DOWN).unwrap(), remote.open_sending(UP).unwrap());
            (0..count).for_each(|number| {
                assert_eq!(receive(&down), number);
                send(&up, number + 1);
            });
            let segment = remote.open_segment(0, soon()).unwrap();
            segment.lock(soon()).unwrap();
            segment.write(8, &[7; 4]).unwrap();
            segment.unlock().unwrap();
            send(&up, u32::MAX);
            // Until the Master has seen it all.
            assert_eq!(receive(&down), u32::MAX);
        });
        let (down, up) = (master.open_sending(DOWN).unwrap(), master.open_receiving(UP).unwrap());
        (0..count).for_each(|number| {
            send(&down, number);
            assert_eq!(receive(&up), number + 1);
        });
        assert_eq!(receive(&up), u32::MAX);
        let segment = master.open_segment(0, soon()).unwrap();
        let mut bytes = [0; 4];
        segment.lock(soon()).unwrap();
        segment.read(8, &mut bytes).unwrap();
        segment.unlock().unwrap();
        assert_eq!(bytes, [7; 4]);
        send(&down, u32::MAX);
    });
}

#[test]
fn who_sleeps_is_woken_and_not_only_by_the_heartbeat() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let (master, remote) = (attach(&twin, MASTER, &instance), attach(&twin, REMOTE, &instance));
    let (told, hear) = std::sync::mpsc::channel();
    let receiver = std::thread::spawn(move || {
        let down = remote.open_receiving(DOWN).unwrap();
        (0..50).for_each(|number| {
            assert_eq!(receive(&down), number);
            told.send(Instant::now()).unwrap();
        });
    });
    let down = master.open_sending(DOWN).unwrap();
    let mut fastest = Duration::MAX;
    for number in 0..50 {
        std::thread::sleep(Duration::from_millis(3));
        let begin = Instant::now();
        send(&down, number);
        fastest = fastest.min(hear.recv_timeout(LONG).unwrap().saturating_duration_since(begin));
    }
    receiver.join().unwrap();
    assert!(fastest < Duration::from_millis(2), "woken after {fastest:?} at best");
}

#[test]
fn a_slot_has_one_process_and_there_are_as_many_as_the_plan_says() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let first = attach(&twin, REMOTE, &instance);
    let second = attach(&twin, REMOTE, &instance);
    assert_ne!(first.participant(), second.participant());
    let third = |slot| {
        let device = Some(twin.device(&PLAN, REMOTE).unwrap());
        let deadline = musubi_linux::Deadline::after(Duration::from_millis(20));
        let instance = Some(instance.clone());
        Participant::attach(Options { instance, device, slot, deadline, ..Options::new(&PLAN, REMOTE) })
    };
    assert!(matches!(third(None), Err(Error::DomainFull { .. })));
    assert!(matches!(third(Some(1)), Err(Error::DomainFull { .. })));
    let epoch = first.epoch();
    first.leave();
    let successor = third(None).unwrap();
    assert_ne!(successor.epoch(), epoch);
}

#[test]
fn a_slot_is_taken_as_long_as_an_end_is_open() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let (master, remote) = (attach(&twin, MASTER, &instance), attach(&twin, REMOTE, &instance));
    let (slot, down) = (remote.participant() - 1, remote.open_receiving(DOWN).unwrap());
    let again = |wait_ms| {
        let device = Some(twin.device(&PLAN, REMOTE).unwrap());
        let deadline = musubi_linux::Deadline::after(Duration::from_millis(wait_ms));
        let (instance, slot) = (Some(instance.clone()), Some(slot));
        Participant::attach(Options { instance, device, slot, deadline, ..Options::new(&PLAN, REMOTE) })
    };
    remote.leave();
    assert!(matches!(again(50), Err(Error::DomainFull { .. })));
    send(&master.open_sending(DOWN).unwrap(), 7);
    assert_eq!(receive(&down), 7, "the end goes on");
    drop(down);
    assert!(again(20_000).is_ok());
}

#[test]
fn only_the_own_slot_and_the_segments_can_be_written() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let (_first, second) = (attach(&twin, REMOTE, &instance), attach(&twin, REMOTE, &instance));
    let own = layout::slot_offset(&PLAN, second.participant()).unwrap();
    let all = layout::mapped_bytes(&PLAN).unwrap();
    let segments = layout::segment_offset(&PLAN, 0).unwrap();
    let address = second.address() as u64;
    let rights = |offset: u64| rights_at(address + offset);
    assert_eq!(rights(0), "r--s", "the Master's slot");
    assert_eq!(rights(own), "rw-s");
    assert_eq!(rights(own - 1), "r--s", "the other slot of the domain");
    assert_eq!((rights(segments), rights(all - 1)), ("rw-s".to_owned(), "rw-s".to_owned()));
}

/// What may be done at an address, as the kernel says.
fn rights_at(address: u64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        (number(from)? <= address && address < number(to)?).then(|| words.next().map(str::to_owned))?
    };
    maps.lines().find_map(of_line).unwrap()
}

// ---- processes ----

/// What a child does: receives, and sends back what it got, until it is killed.
#[test]
fn child() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let (instance, numbers) = text.split_once(' ').unwrap();
    let numbers: Vec<i32> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
    // SAFETY: the parent made them and left them to us alone.
    let twin = unsafe { Twin::from_numbers(&numbers) }.unwrap();
    let remote = attach(&twin, REMOTE, instance);
    let (down, up) = (remote.open_receiving(DOWN).unwrap(), remote.open_sending(UP).unwrap());
    loop {
        send(&up, receive(&down));
    }
}

fn start_child(twin: &Twin, instance: &str) -> Child {
    let numbers: Vec<String> = twin.numbers().iter().map(i32::to_string).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(VARIABLE, format!("{instance} {}", numbers.join(",")));
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_processes_lose_and_repeat_nothing() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let master = attach(&twin, MASTER, &instance);
    let (down, up) = (master.open_sending(DOWN).unwrap(), master.open_receiving(UP).unwrap());
    let observer = Observer::new(&PLAN, &twin.device(&PLAN, MASTER).unwrap()).unwrap();
    let (rounds, each) = (12, 4_000);
    let (mut sent, mut returned, mut in_hand) = (0, Vec::new(), 0);
    for round in 0..rounds {
        let mut child = start_child(&twin, &instance);
        let wanted = returned.len() + each;
        let begin = Instant::now();
        while returned.len() < wanted {
            assert!(begin.elapsed() < LONG, "round {round}: {} of {wanted}", returned.len());
            if let Ok(loan) = down.allocate(Deadline::Poll) {
                let mut loan = loan;
                loan[..4].copy_from_slice(&u32::to_ne_bytes(sent));
                down.enqueue(loan, 4).map_err(|(error, _)| error).unwrap();
                down.notify();
                sent += 1;
            }
            take_all(&up, &mut returned);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        in_hand += 1;
    }
    // One more, which is left alone until it has answered everything.
    let mut child = start_child(&twin, &instance);
    let begin = Instant::now();
    while *returned.last().unwrap() + 1 < sent {
        assert!(begin.elapsed() < LONG);
        take_all(&up, &mut returned);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(returned.is_sorted_by(|one, next| one < next), "each at most once, and in order");
    let missing = sent as usize - returned.len();
    assert!(missing <= in_hand, "{missing} of {sent} messages are missing after {in_hand} kills");
    assert_ne!(observer.epoch(1), 0);
    assert_ne!(observer.epoch(0), 0);
}

#[test]
fn an_observer_sees_who_is_there_and_the_parts_of_its_section() {
    let (twin, instance) = (Twin::new(&PLAN).unwrap(), instance());
    let observer = Observer::new(&PLAN, &twin.device(&PLAN, MASTER).unwrap()).unwrap();
    let part = |participant, epoch, part| observer.part(participant, epoch, part).is_some();
    assert_eq!([0, 1, 2, 3].map(|participant| observer.epoch(participant)), [0; 4]);
    assert!(!part(0, 0, layout::Part::Tx(DOWN)));
    let mut last = 0;
    for _ in 0..3 {
        let master = attach(&twin, MASTER, &instance);
        let epoch = observer.epoch(0);
        assert!(epoch != 0 && epoch != last, "each life has a number of its own");
        assert_eq!([1, 2].map(|participant| observer.epoch(participant)), [0; 2]);
        let _down = master.open_sending(DOWN).unwrap();
        let words = observer.part(0, epoch, layout::Part::Tx(DOWN)).unwrap();
        assert_eq!(words.get(layout::tx::OPEN), 1);
        assert!(part(0, epoch, layout::Part::Rx(UP)) && part(0, epoch, layout::Part::Ticket(0)));
        assert!(!part(0, epoch, layout::Part::Tx(UP)), "it does not send there");
        assert!(!part(0, epoch.wrapping_add(2), layout::Part::Tx(DOWN)), "another life in that bank");
        assert!(!part(1, epoch, layout::Part::Tx(UP)) && !part(9, epoch, layout::Part::Tx(UP)));
        last = epoch;
    }
}

fn take_all(up: &impl ReceivingEnd, returned: &mut Vec<u32>) {
    match up.wait(Deadline::At(now_ns() + 1_000_000)) {
        Ok(()) | Err(CoreError::PeerGone | CoreError::Timeout) => (),
        Err(error) => panic!("{error:?}"),
    }
    while let Ok(received) = up.dequeue() {
        let mut number = [0; 4];
        received.copy_to(0, &mut number);
        up.free(received).unwrap();
        returned.push(u32::from_ne_bytes(number));
    }
}
