//! Whole conversations of two sessions, with cuts, in a thread that must end: a session that goes round for ever fails here.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::frame::Shape;
use crate::links::Payload;

const KINDS: &Kinds =
    &Kinds { least_urgent: Priority::LEAST_URGENT, shapes: &[Some(Shape { payload_max: 1 << 20, awaited: false })] };
/// Far beyond what a conversation takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Rounds after which nothing more is expected.
const ROUNDS_MAX: u32 = 20_000;

/// One side: what it has sent, and what it has heard.
struct Speaker {
    session: Session,
    /// By class: number of the link, number of the text, length.
    sent: Vec<Vec<(u64, u32, usize)>>,
    acknowledged: Vec<u64>,
    came: Vec<Vec<(u32, usize)>>,
    rooms: u32,
    ups: u32,
    downs: Vec<Loss>,
}

fn identity(node: u32) -> Identity {
    Identity { system: "test".into(), hash: 7, node: NodeId::new(1, node).unwrap(), incarnation: 1 }
}

fn text(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number as usize * 31 + at * 3) as u8).collect()
}

impl Speaker {
    fn new(me: u32, network: &Network) -> Speaker {
        let session = Session::new(&identity(me), identity(1 - me).node, network, KINDS);
        let classes = || vec![Vec::new(); Priority::COUNT];
        let (sent, came) = (classes(), vec![Vec::new(); Priority::COUNT]);
        Speaker { session, sent, acknowledged: Vec::new(), came, rooms: 0, ups: 0, downs: Vec::new() }
    }

    /// True if it was taken.
    fn send(&mut self, class: u8, number: u32, bytes: usize) -> bool {
        let class = Priority::new(class).unwrap();
        let header = Header { class, length: bytes as u32, tag: number, ..Header::new(0) };
        let sent = if number.is_multiple_of(2) {
            self.session.enqueue(&header, &text(number, bytes))
        } else {
            self.session.enqueue_shared(&header, &text(number, bytes).into())
        };
        if let Sent::Numbered(link_number) = sent {
            self.sent[class.index()].push((link_number, number, bytes));
        }
        matches!(sent, Sent::Numbered(_))
    }

    fn hear(&mut self) {
        while let Some(report) = self.session.next_report() {
            match report {
                Report::Up { .. } => self.ups += 1,
                Report::Down { loss, .. } => self.downs.push(loss),
                Report::Room { .. } => self.rooms += 1,
                Report::Acknowledged { number, .. } => self.acknowledged.push(number),
                Report::Absent { .. } => unreachable!("a session does not look for anybody"),
                Report::Frame { header, payload, .. } => {
                    let mut bytes = vec![0; payload.len()];
                    payload.copy_to(&mut bytes);
                    assert!(bytes == text(header.tag, header.length as usize), "{header:?}");
                    self.came[header.class.index()].push((header.tag, bytes.len()));
                    if let Payload::Owned(buffer) = payload {
                        self.session.recycle(buffer);
                    }
                }
            }
        }
    }

    /// What it writes, `budget` bytes or a little more at a time.
    fn write(&mut self, now_ns: u64, budget: usize) -> Vec<u8> {
        let ready = self.session.fill(now_ns, budget);
        let bytes: Vec<u8> = self.session.slices().flatten().copied().collect();
        assert_eq!(bytes.len(), ready);
        if let Some(parts) = self.session.only_frame() {
            assert_eq!(parts.concat(), bytes);
        }
        self.session.consumed(now_ns, bytes.len());
        bytes
    }
}

/// A new connection, which the first one begins.
fn connect(sides: &mut [Speaker; 2], now_ns: u64) {
    sides[0].session.dial(now_ns);
    let said = sides[0].write(now_ns, usize::MAX);
    let mut greeting = Greeting::new();
    let hello = greeting.input(&said).unwrap().expect("a whole hello");
    assert_eq!(sides[1].session.accept(now_ns, &hello), Ok(()));
}

/// What one writes arrives at the other, `step` bytes at a time; gives how many there were.
fn carry(sides: &mut [Speaker; 2], from: usize, now_ns: u64, budget: usize, step: usize) -> usize {
    let bytes = sides[from].write(now_ns, budget);
    let to = &mut sides[1 - from];
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (here, behind) = rest.split_at(step.min(rest.len()));
        rest = behind;
        let taken = match to.session.landing() {
            None => to.session.input(now_ns, here),
            Some(parts) => {
                let mut left = here;
                for part in parts {
                    let (fits, more) = left.split_at(left.len().min(part.len()));
                    part[..fits.len()].copy_from_slice(fits);
                    left = more;
                }
                let landed = here.len() - left.len();
                to.session.landed(now_ns, landed).and_then(|()| to.session.input(now_ns, left))
            }
        };
        taken.unwrap();
    }
    to.hear();
    sides[from].hear();
    bytes.len()
}

/// Both talk, with so many frames each, through so many cuts, and leave.
fn talk(network: &Network, frames: u32, cuts: u32, budget: usize, step: usize) {
    let mut sides = [Speaker::new(0, network), Speaker::new(1, network)];
    let mut now_ns = 0;
    connect(&mut sides, now_ns);
    let mut next = [0u32; 2];
    let mut cuts_left = cuts;
    for round in 0..ROUNDS_MAX {
        now_ns += 1000;
        for from in 0..2 {
            let number = next[from];
            let (class, bytes) = ((number % 5) as u8, [0, 8, 95, 96, 700, 5000, 20_000][number as usize % 7]);
            if number < frames && sides[from].send(class, number, bytes) {
                next[from] += 1;
            }
            carry(&mut sides, from, now_ns, budget, step);
        }
        if cuts_left > 0 && round % 7 == 6 {
            cuts_left -= 1;
            // What was on its way in one direction is lost.
            sides[0].write(now_ns, budget);
            sides.iter_mut().for_each(|side| side.session.disconnected(now_ns));
            connect(&mut sides, now_ns);
        }
        sides.iter_mut().for_each(|side| side.session.flush());
        let is_quiet = |side: &Speaker| side.session.unacknowledged_bytes() == 0 && !side.session.has_output();
        if next == [frames; 2] && sides.iter().all(is_quiet) {
            break;
        }
    }
    assert_eq!(next, [frames; 2]);
    for side in 0..2 {
        let (sender, receiver) = (&sides[side], &sides[1 - side]);
        for class in 0..Priority::COUNT {
            let sent: Vec<_> = sender.sent[class].iter().map(|(_, number, bytes)| (*number, *bytes)).collect();
            assert_eq!(sent, receiver.came[class], "class {class}");
        }
        let mut numbers: Vec<u64> = sender.sent.iter().flatten().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=u64::from(frames)), "numbers rise by one");
        for class in sender.sent.iter().filter(|class| !class.is_empty()) {
            let last = class.last().unwrap().0;
            assert!(sender.acknowledged.contains(&last), "the last of each class is acknowledged");
        }
        let counts = sender.session.counts();
        assert_eq!((counts.frames_sent, counts.frames_received), (frames.into(), frames.into()));
        assert_eq!((sender.ups, &sender.downs[..]), (1, &[][..]));
        assert_eq!(counts.resumed, u64::from(cuts));
    }
    sides[0].session.leave();
    for from in [0, 1, 0] {
        carry(&mut sides, from, now_ns, budget, step);
    }
    assert_eq!(sides.each_ref().map(|side| side.downs.clone()), [vec![Loss::Gone], vec![Loss::Gone]]);
}

/// Fails if it does not end in time.
fn ends(by: impl FnOnce() + Send + 'static) {
    let (says, is_over) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        by();
        let _ = says.send(());
    });
    match is_over.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it goes round for ever"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn conversations_end_whole_however_they_are_cut_and_read() {
    for (budget, step) in [(usize::MAX, usize::MAX), (1000, usize::MAX), (100_000, 4096), (3000, 13)] {
        for cuts in [0, 5] {
            ends(move || talk(&Network::default(), 70, cuts, budget, step));
            let small = Network { piece_bytes: 256, window_bytes: 40_000, ..Network::default() };
            let plain = Network { priorities: false, ..small.clone() };
            ends(move || talk(&small, 70, cuts, budget, step));
            ends(move || talk(&plain, 40, cuts, budget, step));
        }
    }
}
