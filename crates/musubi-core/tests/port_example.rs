//! A small port: threads of one process, sections on the heap. docs/porting.md explains it step by step.
//!
//! Two participants exchange messages through one FIFO channel. The receiver dies in the middle with a block in its
//! hands; the port notices, ends the session, and links the successor, which goes on with the next message.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use musubi_core::Error;
use musubi_core::fifo::session::{end_link, publish_link};
use musubi_core::fifo::{Entry, Receiver, Ring, Sender};
use musubi_core::layout::{self, LINE_BYTES, Part, header, state, tx, waiting};
use musubi_core::plan::{Domain, Fifo, FilterRule, Liveness, OnRestart, Plan, PortKind, Regulation, Role, Trust};
use musubi_core::port::{Clock, Coherent, Doorbell};
use musubi_core::sync::Site;
use musubi_core::words::{OwnWords, PeerWords};

const MESSAGES: u32 = if cfg!(miri) { 40 } else { 20_000 };
/// The first receiver dies with this message in its hands.
const LAST_WORDS: u32 = MESSAGES / 3;
/// A wake-up that takes longer was lost.
const WAKE_MAX: Duration = Duration::from_secs(30);

const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    let (port, trust) = (PortKind::LinuxProcess, Trust::MayCrash);
    Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
}

const NUMBERS: Fifo<'static> = Fifo {
    name: "numbers",
    from: 0,
    to: 1,
    blocks: 4,
    block_bytes: 16,
    priority: 0,
    filter: FilterRule::EACH,
    regulation: Regulation::NONE,
    budget_ns: 0,
    on_restart: OnRestart::Keep,
    sample_every: 0,
};

static PLAN: Plan<'static> = Plan {
    name: "threads",
    hash: 1,
    domains: &[domain("source", Role::Master, 1), domain("sink", Role::Remote, 1)],
    fifos: &[NUMBERS],
    smems: &[],
    liveness: Liveness { heartbeat_ns: 100_000_000, stalled_ns: 500_000_000 },
};

/// Step 1: a clock that all participants read alike.
#[derive(Clone, Copy)]
struct Monotonic(Instant);

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Step 2: how the other side is woken. `unpark` never waits, and is not lost if it comes before the sleep.
struct Unpark<'t>(Option<&'t Thread>);

impl Doorbell for Unpark<'_> {
    fn ring(&self, bell: &AtomicU32, _: u32) {
        bell.fetch_add(1, Ordering::SeqCst);
        if let Some(thread) = self.0 {
            thread.unpark();
        }
    }
}

/// Sleeps until `changed`; the other half of [`Unpark`].
fn sleep_until(changed: impl Fn() -> bool) {
    let begin = Instant::now();
    while !changed() {
        thread::park_timeout(WAKE_MAX);
        assert!(begin.elapsed() < WAKE_MAX, "a wake-up was lost");
    }
}

#[derive(Default)]
#[repr(align(64))]
#[expect(dead_code, reason = "read and written through views only")]
struct Line([AtomicU32; LINE_BYTES as usize / 4]);

/// Step 3: a section, zeroed, aligned to a line, of the length that the plan gives.
struct Section {
    lines: Vec<Line>,
    domain: u16,
    me: (u16, u32),
}

impl Section {
    fn attach(domain: u16, epoch: u32, clock: Monotonic) -> Section {
        let bytes = layout::section_bytes(&PLAN, domain).unwrap();
        let me = (PLAN.first_participant(domain), epoch);
        let lines = (0..bytes / LINE_BYTES).map(|_| Line::default()).collect();
        let section = Section { lines, domain, me };
        let (words, start_ns) = (section.own(), clock.now_ns());
        words.set(header::MAGIC, layout::MAGIC);
        words.set(header::VERSION, layout::VERSION);
        words.set(header::PLAN_LOW, PLAN.hash as u32);
        words.set(header::PLAN_HIGH, (PLAN.hash >> 32) as u32);
        words.set(header::SECTION_BYTES, bytes);
        words.set(header::PARTICIPANT, u32::from(me.0));
        words.set(header::DOMAIN, u32::from(domain));
        words.set(header::STATE, state::ATTACHED);
        words.set(header::START_LOW, start_ns as u32);
        words.set(header::START_HIGH, (start_ns >> 32) as u32);
        words.publish(header::EPOCH, epoch, Site::PublishLink);
        section
    }

    fn own(&self) -> OwnWords<'_> {
        let base = self.lines.as_ptr().cast_mut().cast();
        // SAFETY: the lines are atomics, aligned and alive as long as `self`; only the participant that attached this
        // section stores through the view, and of its threads each writes other words (the supervisor: the link line).
        unsafe { OwnWords::new(base, self.lines.len() as u32 * (LINE_BYTES / 4)) }
    }

    fn own_part(&self, wanted: Part) -> OwnWords<'_> {
        let (first, words) = place(self.domain, wanted);
        self.own().part(first, words)
    }

    /// What a peer gets; a port whose peers are no threads of its own checks the whole header here.
    fn peer_part(&self, wanted: Part) -> PeerWords<'_> {
        let words = self.own().as_peer();
        assert_eq!(words.see(header::EPOCH, Site::SeeLink), self.me.1);
        assert_eq!((words.get(header::MAGIC), words.get(header::PLAN_LOW)), (layout::MAGIC, PLAN.hash as u32));
        let (first, words_of_part) = place(self.domain, wanted);
        words.part(first, words_of_part)
    }
}

fn place(domain: u16, wanted: Part) -> (u32, u32) {
    let mut found = None;
    layout::walk(&PLAN, domain, |part, offset, bytes| {
        if part == wanted {
            found = Some((offset / 4, bytes / 4));
        }
    });
    found.unwrap()
}

/// Step 4: who the receiver is, told by the port's supervisor to the thread that sends.
#[derive(Default)]
struct Mailbox<'m> {
    version: AtomicU32,
    link: Mutex<(Option<Link<'m>>, u32)>,
}

#[derive(Clone)]
struct Link<'m> {
    words: PeerWords<'m>,
    thread: Thread,
}

impl<'m> Mailbox<'m> {
    fn tell(&self, link: Option<Link<'m>>, start: u32, sender: &Thread) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = (link, start);
        self.version.fetch_add(1, Ordering::SeqCst);
        sender.unpark();
    }

    fn read(&self) -> (u32, (Option<Link<'m>>, u32)) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        (self.version.load(Ordering::SeqCst), link.clone())
    }
}

/// Step 5: a sending end that follows its receivers.
fn send_all<'m>(section: &'m Section, mailbox: &Mailbox<'m>, clock: Monotonic) {
    let entries = vec![Entry::NEW; NUMBERS.blocks as usize];
    let mut sender = Sender::new(section.own_part(Part::Tx(0)), &NUMBERS, section.me, entries, Coherent).unwrap();
    let (mut seen, mut thread) = (0, None);
    let mut next = 0u32;
    while next < MESSAGES {
        if mailbox.version.load(Ordering::SeqCst) != seen {
            let (version, (link, start)) = mailbox.read();
            seen = version;
            // An event that the former one raised before it went is kept.
            sender.poll();
            sender.set_receiver(link.as_ref().map(|link| link.words), start);
            thread = link.map(|link| link.thread);
            // What was notified before we knew of it.
            sender.ring_if_waiting(&Unpark(thread.as_ref()));
        }
        match sender.allocate() {
            Ok(mut loan) => {
                loan[..4].copy_from_slice(&next.to_le_bytes());
                assert!(sender.enqueue(loan, 4, &clock).is_ok());
                sender.notify(&clock, &Unpark(thread.as_ref()));
                next += 1;
            }
            Err(error) => {
                assert_eq!(error, Error::NoBlock);
                let bell = sender.bell().map(|word| (word, word.see(0, Site::SeeReturn)));
                if !sender.announce_wait(waiting::ASLEEP).block {
                    let rung = || bell.is_some_and(|(word, before)| word.get(0) != before);
                    sleep_until(|| rung() || mailbox.version.load(Ordering::SeqCst) != seen);
                }
                sender.withdraw_wait(0);
            }
        }
    }
}

/// Step 6: a receiving end. Gives the numbers it dequeued; dies without a word at `last`, with that block in its hands.
fn receive_until(own: &Section, peer: &Section, sender: &Thread, clock: Monotonic, last: u32) -> Vec<u32> {
    type End<'m> = Receiver<'m, Vec<u32>, Coherent>;
    let (words, tx) = (own.own_part(Part::Rx(0)), peer.peer_part(Part::Tx(0)));
    let held = vec![0; End::held_words(NUMBERS.blocks)];
    let trust = PLAN.domains[0].trust;
    let mut receiver = End::new(words, tx, &NUMBERS, own.me, peer.me, trust, held, Coherent).unwrap();
    let doorbell = Unpark(Some(sender));
    let mut numbers = Vec::new();
    loop {
        let (bell, before) = (receiver.bell(), receiver.bell().see(0, Site::SeeTurn));
        if !receiver.announce_wait(waiting::ASLEEP) {
            sleep_until(|| bell.get(0) != before);
        }
        receiver.withdraw_wait(0);
        while let Ok(received) = receiver.dequeue(&clock, &doorbell) {
            let mut bytes = [0; 4];
            assert_eq!(received.copy_to(0, &mut bytes), 4);
            numbers.push(u32::from_le_bytes(bytes));
            if numbers.last() == Some(&last) {
                return numbers;
            }
            assert!(receiver.free(received, &doorbell).is_ok());
        }
        receiver.take_event();
    }
}

/// Step 7: the supervisor opens a session: the words first, then the mailbox, then a ring for who sleeps already.
fn link<'m>(
    source: &Section,
    sink: &'m Section,
    mailbox: &Mailbox<'m>,
    start: u32,
    (sender, receiver): (&Thread, &Thread),
) {
    let own = source.own_part(Part::Tx(0));
    publish_link(&own, sink.me.0, sink.me.1, start);
    let words = sink.peer_part(Part::Rx(0));
    mailbox.tell(Some(Link { words, thread: receiver.clone() }), start, sender);
    Unpark(Some(receiver)).ring(own.word(tx::BELL), waiting::ASLEEP);
}

#[test]
fn messages_survive_the_death_of_a_receiver() {
    PLAN.check().unwrap();
    let clock = Monotonic(Instant::now());
    let source = Section::attach(0, 10, clock);
    // The successor has a section and an epoch of its own.
    let (first, second) = (Section::attach(1, 20, clock), Section::attach(1, 21, clock));
    let mailbox = Mailbox::default();
    thread::scope(|scope| {
        let sending = scope.spawn(|| send_all(&source, &mailbox, clock));
        let sender = sending.thread().clone();
        let receive = |own, last| {
            let (sender, source) = (sender.clone(), &source);
            scope.spawn(move || receive_until(own, source, &sender, clock, last))
        };

        let receiving = receive(&first, LAST_WORDS);
        link(&source, &first, &mailbox, 0, (&sender, receiving.thread()));
        let mut numbers = receiving.join().unwrap();

        // Here a port on processes has noticed a death. Its section does not change any more.
        let rx = first.peer_part(Part::Rx(0));
        let own = source.own_part(Part::Tx(0));
        let start = end_link(&own, Some(rx), Ring::new(NUMBERS.blocks), source.me, 0, NUMBERS.on_restart);
        mailbox.tell(None, start, &sender);
        let receiving = receive(&second, MESSAGES - 1);
        link(&source, &second, &mailbox, start, (&sender, receiving.thread()));
        numbers.extend(receiving.join().unwrap());

        sending.join().unwrap();
        assert!(numbers.into_iter().eq(0..MESSAGES), "each message once, in order");
        assert_eq!(own.get(tx::ABANDONED), 1, "the block in the first receiver's hands");
    });
}
