//! A session, or the greeting of a stranger, and whatever bytes come: no panic, no memory beyond what a link may have,
//! every call ends.
//!
//! How it works: the input is read to a greeting, whose hello is offered to a session; or to a session that waits for its
//! welcome; or to one that has been welcomed, or has just welcomed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use musubi_fuzz::nodes::{hello, identity, session};
use musubi_transport::session::{Greeting, Hello, Session, State, Step};

/// More than a session may hold of what it has been sent: an unfinished frame of each class.
const FRAMES_MAX: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((mode, bytes)) = input.split_first() else { return };
    let mut session = session(0);
    match mode % 4 {
        0 => {
            let mut greeting = Greeting::new();
            let (first, rest) = bytes.split_at(bytes.len().min(greeting.missing()));
            let Ok(Some(said)) = greeting.input(first) else { return };
            if session.accept(1, &said).is_ok() {
                feed(&mut session, rest);
            }
        }
        1 => {
            session.dial(1);
            feed(&mut session, bytes);
        }
        2 => {
            session.dial(1);
            session.fill(1, usize::MAX);
            let ours: Vec<u8> = session.slices().flatten().copied().collect();
            let ours = Hello::decode(ours.as_slice().try_into().expect("a hello")).expect("our own");
            let welcome = Hello { session: ours.session, ..hello(1, Step::Welcome) };
            session.input(1, &welcome.encode()).expect("a right welcome");
            feed(&mut session, bytes);
        }
        _ => {
            session.accept(1, &hello(1, Step::Hello)).expect("a right hello");
            feed(&mut session, bytes);
        }
    }
});

/// In parts of changing size, by both ways of reading.
fn feed(session: &mut Session, bytes: &[u8]) {
    assert_ne!(identity(0).node, session.peer());
    for (turn, part) in bytes.chunks(97).enumerate() {
        let result = match session.landing() {
            Some(places) if turn % 2 == 0 => {
                let mut rest = part;
                for place in places {
                    let (here, behind) = rest.split_at(rest.len().min(place.len()));
                    place[..here.len()].copy_from_slice(here);
                    rest = behind;
                }
                session.landed(2, part.len() - rest.len())
            }
            _ => session.input(2, part),
        };
        while let Some(report) = session.next_report() {
            drop(report);
        }
        session.flush();
        let ready = session.fill(2, 4096);
        session.consumed(2, ready);
        if result.is_err() {
            assert!(matches!(session.state(), State::Disconnected));
            return;
        }
        let _ = session.tick(3);
        assert!(session.counts().frames_received < FRAMES_MAX && session.unacknowledged_bytes() == 0);
    }
}
