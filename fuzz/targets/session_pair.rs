//! Two sessions over connections that break at any byte: everything arrives once and in the order of its class.
#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use musubi_fuzz::nodes::session;
use musubi_mcapi::engine::frame::{Header, KINDS, Kind};
use musubi_transport::Priority;
use musubi_transport::links::{Report, Sent};
use musubi_transport::session::{Greeting, Session, State};

#[derive(Arbitrary, Debug)]
enum Step {
    Send { second: bool, class: u8, length: u16 },
    Write { second: bool, bytes: u16 },
    Read { second: bool, bytes: u16 },
    Flush { second: bool },
    Cut,
    Dial { second: bool },
}

struct Pair {
    sessions: [Session; 2],
    /// From each side to the other.
    streams: [VecDeque<u8>; 2],
    /// Who is dialed and has not understood by whom.
    greeting: Option<(usize, Greeting)>,
    sent: [[VecDeque<u32>; Priority::COUNT]; 2],
    next: u32,
}

impl Pair {
    fn dial(&mut self, side: usize) {
        if self.sessions.iter().all(|session| session.state() == State::Disconnected) {
            self.sessions[side].dial(0);
            self.greeting = Some((1 - side, Greeting::new()));
        }
    }

    fn cut(&mut self) {
        self.streams.iter_mut().for_each(VecDeque::clear);
        self.sessions.iter_mut().for_each(|session| session.disconnected(0));
        self.greeting = None;
    }

    fn send(&mut self, side: usize, class: u8, length: usize) {
        let class = Priority::new(class % (1 + KINDS.least_urgent.class())).expect("a class in use");
        let header = Header { class, length: length as u32, tag: self.next, ..Header::new(Kind::Packet as u8) };
        let payload = vec![self.next as u8; length];
        if let Sent::Numbered(_) = self.sessions[side].enqueue(&header, &payload) {
            self.sent[side][class.index()].push_back(self.next);
        }
        self.next += 1;
    }

    fn write(&mut self, side: usize, bytes: usize) {
        self.sessions[side].fill(0, bytes);
        let ready: Vec<u8> = self.sessions[side].slices().flatten().copied().take(bytes).collect();
        self.sessions[side].consumed(0, ready.len());
        self.streams[side].extend(ready);
    }

    fn read(&mut self, side: usize, bytes: usize) {
        let greets = self.greeting.as_ref().is_some_and(|(dialed, _)| *dialed == side);
        let most = match &self.greeting {
            Some((_, greeting)) if greets => greeting.missing(),
            _ => usize::MAX,
        };
        let stream = &mut self.streams[1 - side];
        let count = bytes.min(stream.len()).min(most);
        let bytes: Vec<u8> = stream.drain(..count).collect();
        if greets {
            let Some((_, greeting)) = &mut self.greeting else { return };
            if let Some(hello) = greeting.input(&bytes).expect("our own hello") {
                self.sessions[side].accept(0, &hello).expect("nothing is refused here");
                self.greeting = None;
            }
        } else if self.sessions[side].state() != State::Disconnected {
            self.sessions[side].input(0, &bytes).expect("nobody breaks the protocol");
        }
        while let Some(report) = self.sessions[side].next_report() {
            match report {
                Report::Frame { header, payload, .. } => {
                    let expected = self.sent[1 - side][header.class.index()].pop_front();
                    assert_eq!(expected, Some(header.tag));
                    let mut bytes = vec![0; payload.len()];
                    payload.copy_to(&mut bytes);
                    assert!(bytes.iter().all(|byte| *byte == header.tag as u8));
                    assert_eq!(bytes.len(), header.length as usize);
                }
                Report::Down { .. } => panic!("no cut lasts"),
                _ => {}
            }
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut pair = Pair {
        sessions: [session(0), session(1)],
        streams: Default::default(),
        greeting: None,
        sent: Default::default(),
        next: 0,
    };
    for step in steps {
        match step {
            Step::Send { second, class, length } => pair.send(second.into(), class, usize::from(length)),
            Step::Write { second, bytes } => pair.write(second.into(), bytes.into()),
            Step::Read { second, bytes } => pair.read(second.into(), bytes.into()),
            Step::Flush { second } => pair.sessions[usize::from(second)].flush(),
            Step::Cut => pair.cut(),
            Step::Dial { second } => pair.dial(second.into()),
        }
    }
    pair.cut();
    pair.dial(0);
    for _ in 0..2000 {
        for side in 0..2 {
            pair.sessions[side].flush();
            pair.write(side, 100_000);
            pair.read(1 - side, usize::MAX);
        }
        if pair.sent.iter().flatten().all(VecDeque::is_empty) && pair.sessions.iter().all(|s| s.state() == State::Live)
        {
            return;
        }
    }
    panic!("it never settles");
});
