//! The states of two ends: every order of what their programs and the links between them do.

use super::*;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::vec::Vec;

const SENDS: Role = Role { kind: ChannelKind::Packet, receives: false };
const RECEIVES: Role = Role { kind: ChannelKind::Packet, receives: true };
/// How often each program opens its end.
const OPENS: u8 = 2;
/// Frames of one class that are under way at a time.
const UNDER_WAY: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Frame {
    Open(bool),
    Close,
    Data,
    /// The sending end's owner has undone the connection, or the receiving one's has given it up.
    Undone,
    GivenUp,
}

/// Two ends that are connected, the sending one first, and what is under way to each: control, data.
#[derive(Clone, Debug)]
struct Pair {
    ends: [ChannelState; 2],
    opens: [u8; 2],
    under_way: [[VecDeque<Frame>; 2]; 2],
}

const DATA: usize = 1;

impl Pair {
    fn new() -> Pair {
        let mut ends = [ChannelState::NEW; 2];
        ends[0].ask(SENDS);
        assert_eq!(ends[1].join(RECEIVES), Todo::default());
        assert_eq!(ends[0].join(SENDS), Todo::default());
        Pair { ends, opens: [0; 2], under_way: Default::default() }
    }

    /// What either program or a link can do next.
    fn successors(&self) -> Vec<Pair> {
        let mut all = Vec::new();
        for at in 0..2 {
            all.extend(self.after(|pair| pair.program_opens(at)));
            all.extend(self.after(|pair| pair.program_cancels(at)));
            all.extend(self.after(|pair| pair.program_polls(at)));
            all.extend(self.after(|pair| pair.program_closes(at)));
            all.extend(self.after(|pair| pair.program_gives_up(at)));
            all.extend(self.after(|pair| pair.arrives(at, 0)));
            all.extend(self.after(|pair| pair.arrives(at, DATA)));
        }
        all.extend(self.after(Pair::program_sends));
        all
    }

    fn after(&self, change: impl FnOnce(&mut Pair) -> Option<()>) -> Option<Pair> {
        let mut pair = self.clone();
        change(&mut pair)?;
        let bounded = pair.under_way.iter().flatten().all(|frames| frames.len() <= UNDER_WAY);
        bounded.then_some(pair)
    }

    fn role(at: usize) -> Role {
        if at == 0 { SENDS } else { RECEIVES }
    }

    fn program_opens(&mut self, at: usize) -> Option<()> {
        self.opens[at] += 1;
        if self.opens[at] > OPENS || !self.ends[at].is_bound() {
            return None;
        }
        let todo = self.ends[at].open(Pair::role(at)).ok()?;
        self.tell(at, todo);
        Some(())
    }

    fn program_cancels(&mut self, at: usize) -> Option<()> {
        if !self.ends[at].is_opening() {
            return None;
        }
        let todo = self.ends[at].cancel_open();
        self.tell(at, todo);
        Some(())
    }

    /// Asks for a pending opening until it has it. That is only where both ends are of one node: nothing is under way.
    fn program_polls(&mut self, at: usize) -> Option<()> {
        if !self.is_quiet() || !self.ends[at].is_opening() || !self.ends[at].is_joined() {
            return None;
        }
        self.ends[1 - at].expect_alone();
        let todo = self.ends[at].open_alone();
        self.tell(at, todo);
        Some(())
    }

    fn program_closes(&mut self, at: usize) -> Option<()> {
        let todo = self.ends[at].close().ok()?;
        self.tell(at, todo);
        Some(())
    }

    fn program_gives_up(&mut self, at: usize) -> Option<()> {
        if !self.ends[at].is_joined() || at == 0 && !self.ends[at].may_part() {
            return None;
        }
        let (todo, frame) =
            if at == 0 { (self.ends[at].part(), Frame::Undone) } else { (self.ends[at].give_up(), Frame::GivenUp) };
        self.tell(at, todo.ok()?);
        self.under_way[1 - at][0].push_back(frame);
        Some(())
    }

    fn program_sends(&mut self) -> Option<()> {
        if !self.ends[0].is_open() || self.ends[0].peer_closed() {
            return None;
        }
        self.under_way[1][DATA].push_back(Frame::Data);
        Some(())
    }

    fn arrives(&mut self, at: usize, class: usize) -> Option<()> {
        let frame = self.under_way[at][class].pop_front()?;
        // Frames for an end that has parted name a connection that is no more.
        if !self.ends[at].is_bound() || frame == Frame::Data && self.ends[at].is_closing() {
            return Some(());
        }
        let todo = match frame {
            Frame::Open(open) => self.ends[at].peer_opened(open),
            Frame::Close => self.ends[at].peer_close(false),
            Frame::Data => self.ends[at].peer_sent(),
            Frame::Undone => self.ends[at].part(),
            Frame::GivenUp => self.ends[at].given_up(),
        };
        self.tell(at, todo.expect("nobody here breaks the rules"));
        Some(())
    }

    fn tell(&mut self, at: usize, todo: Todo) {
        if let Some(open) = todo.tell_open {
            self.under_way[1 - at][0].push_back(Frame::Open(open));
        }
        if todo.tell_close {
            let class = if at == 0 && !todo.parted { DATA } else { 0 };
            self.under_way[1 - at][class].push_back(Frame::Close);
        }
    }

    fn is_quiet(&self) -> bool {
        self.under_way.iter().flatten().all(|frames| frames.is_empty())
    }

    /// What must hold when nothing is under way.
    fn check(&self) {
        let [a, b] = &self.ends;
        // What the receiver gave up before it heard that it was open is closed to the sender.
        let given_up = a.is_open() && a.peer_closed();
        assert!(a.is_bound() == b.is_bound() || given_up, "{self:?}");
        for (one, other) in [(a, b), (b, a)] {
            if one.is_opening() && one.is_bound() {
                assert!(!other.is_open() && !other.is_opening(), "an opening is forgotten: {self:?}");
            }
            if one.is_closing() {
                assert!(other.is_bound(), "a closing is forgotten: {self:?}");
                assert!(other.is_open() && other.peer_closed(), "a closing is forgotten: {self:?}");
            }
        }
    }
}

#[test]
fn in_every_order_of_what_two_programs_and_links_do_both_ends_agree() {
    let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([Pair::new()]));
    let mut quiet = 0;
    while let Some(pair) = next.pop_front() {
        if pair.is_quiet() {
            pair.check();
            quiet += 1;
        }
        for pair in pair.successors() {
            if seen.insert(format!("{pair:?}")) {
                next.push_back(pair);
            }
        }
    }
    assert!(seen.len() > 1000 && quiet > 10, "{} states, {quiet} of them quiet", seen.len());
}

#[test]
fn a_loss_ends_every_state_and_only_a_program_that_had_it_open_has_to_close() {
    for steps in 0..4 {
        let mut end = ChannelState::NEW;
        end.join(RECEIVES);
        if steps > 0 {
            end.open(RECEIVES).unwrap();
        }
        if steps > 1 {
            end.peer_opened(true).unwrap();
        }
        if steps > 2 {
            end.close().unwrap();
        }
        let todo = end.lost();
        match steps {
            0 => assert!(todo.parted),
            1 => assert!(todo.parted && todo.opened == Some(Err(Error::Transmission))),
            2 => assert!(!todo.parted && todo.peer_ended == Some(Error::Transmission) && end.is_broken()),
            _ => assert!(todo.parted && todo.closed),
        }
        if steps == 2 {
            assert!(end.close().unwrap().closed);
        }
        assert!(end.is_idle());
    }
}

#[test]
fn frames_against_the_rules_change_nothing() {
    let mut never_opened = ChannelState::NEW;
    never_opened.join(RECEIVES);
    let before = never_opened;
    assert_eq!(never_opened.peer_sent(), Err(NotAllowed));
    assert_eq!(never_opened.peer_close(false), Err(NotAllowed));
    assert_eq!(never_opened, before);
    let mut idle = ChannelState::NEW;
    assert_eq!(idle.peer_opened(true), Err(NotAllowed));
    assert!(idle.is_idle());
    let mut open = before;
    open.open(RECEIVES).unwrap();
    open.peer_opened(true).unwrap();
    let before = open;
    assert_eq!(open.part(), Err(NotAllowed));
    assert_eq!(open, before);
}

/// A receiving end that is joined.
fn joined() -> ChannelState {
    let mut end = ChannelState::NEW;
    end.join(RECEIVES);
    end
}

#[test]
fn an_end_whose_other_one_was_opened_or_closed_is_not_given_up() {
    let mut end = joined();
    end.peer_opened(true).unwrap();
    assert_eq!(end.give_up(), Err(NotAllowed));
    // The close has overtaken the opening, and what it left is unread.
    let mut end = joined();
    end.open(RECEIVES).unwrap();
    end.cancel_open();
    assert_eq!(end.peer_close(true).map(|todo| todo.parted), Ok(false));
    assert!(!end.peer_open && end.peer_closed());
    assert_eq!(end.give_up(), Err(NotAllowed));
    // Who opens it now reads that, and knows that nothing more comes.
    let todo = end.open(RECEIVES).unwrap();
    assert_eq!((todo.opened, todo.peer_ended), (Some(Ok(())), Some(Error::ChannelInvalid)));
    assert!(joined().give_up().is_ok());
}

#[test]
fn data_opens_an_end_that_expected_the_other_one() {
    let mut end = joined();
    end.open(RECEIVES).unwrap();
    end.expect_alone();
    assert!(end.is_opening());
    assert_eq!(end.peer_sent().map(|todo| todo.opened), Ok(Some(Ok(()))));
    let mut alone = joined();
    alone.open(RECEIVES).unwrap();
    alone.open_alone();
    assert!(alone.is_open() && !alone.peer_open);
    assert_eq!(alone.peer_sent(), Ok(Todo::default()));
    assert!(alone.peer_open, "who sends is open");
}
