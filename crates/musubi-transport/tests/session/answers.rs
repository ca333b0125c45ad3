//! What answers to a hello, and hellos, may do to a link: from the peer, from others, and from the past.

use musubi_transport::NodeId;
use musubi_transport::links::{Loss, Report};
use musubi_transport::session::{Broken, Hello, Identity, Reason, Session, State, Step};

use super::world::{World, identity, network, session};
use super::{MILLISECOND_NS, hello_of, linked};

const STRANGER: u32 = 9;

/// A linked session of node 0 that was touched, has lost its connection and has dialed again; and what it said.
fn redialed() -> (Session, Hello) {
    let mut world = linked();
    world.send(1, 1, 100);
    world.settle();
    world.cut();
    let [mut session, _] = world.sessions;
    let hello = hello_of(&mut session);
    assert!(hello.touched && session.is_up() && session.state() == State::Dialing);
    (session, hello)
}

/// The right answer of node 1.
fn welcome(hello: &Hello) -> Hello {
    Hello { step: Step::Welcome, identity: identity(1, 1), to: hello.identity.node, received: 0, ..hello.clone() }
}

fn losses(session: &mut Session) -> Vec<Loss> {
    let reports = core::iter::from_fn(|| session.next_report());
    reports.filter_map(|report| if let Report::Down { loss, .. } = report { Some(loss) } else { None }).collect()
}

#[test]
fn only_the_peer_that_was_called_may_answer() {
    let stranger = NodeId::new(1, STRANGER).unwrap();
    let (_, hello) = redialed();
    let right = welcome(&hello);
    let from_stranger = Hello { identity: Identity { node: stranger, ..identity(1, 1) }, ..right.clone() };
    let to_stranger = Hello { to: stranger, ..right.clone() };
    let of_other_plan = Hello { identity: Identity { hash: 8, ..identity(1, 1) }, ..right.clone() };
    let refusal = |hello: &Hello| Hello { step: Step::Refusal, reason: Some(Reason::SessionUnknown), ..hello.clone() };
    let lies = [
        from_stranger.clone(),
        to_stranger.clone(),
        of_other_plan,
        refusal(&from_stranger),
        refusal(&to_stranger),
        Hello { reason: None, ..refusal(&right) },
        Hello { step: Step::Hello, ..right.clone() },
    ];
    for lie in lies {
        let (mut session, _) = redialed();
        assert_eq!(session.input(0, &lie.encode()), Err(Broken::Protocol), "{lie:?}");
        assert_eq!((session.counts().violations, session.counts().refused), (1, Default::default()), "{lie:?}");
        // It does not speak for the peer: the link may be resumed.
        assert!(session.is_up() && session.state() == State::Disconnected && losses(&mut session).is_empty());
    }
    let (mut session, hello) = redialed();
    session.input(0, &welcome(&hello).encode()).unwrap();
    assert_eq!((session.state(), session.counts().connections, session.counts().resumed), (State::Live, 2, 1));
}

#[test]
fn a_refusal_ends_the_link_only_if_nothing_can_go_on() {
    for reason in Reason::ALL {
        for (incarnation, same) in [(1, true), (2, false)] {
            let (mut session, hello) = redialed();
            let refusal = Hello { reason: Some(reason), step: Step::Refusal, ..welcome(&hello) };
            let refusal = Hello { identity: identity(1, incarnation), ..refusal };
            assert_eq!(session.input(0, &refusal.encode()), Err(Broken::Refused(reason)));
            let expected = match (reason, same) {
                (Reason::SessionUnknown, true) => vec![Loss::Cut],
                (Reason::SessionUnknown, false) | (Reason::Leaving, true) => vec![Loss::Gone],
                _ => vec![],
            };
            assert_eq!(session.is_up(), expected.is_empty(), "{reason:?} {same}");
            assert_eq!(session.counts().cuts, u64::from(expected == [Loss::Cut]));
            assert_eq!(losses(&mut session), expected, "{reason:?} {same}");
            assert_eq!(session.counts().refused.iter().map(|(_, times)| times).sum::<u64>(), 1);
            assert_eq!(session.counts().refused.of(reason), 1);
        }
    }
}

#[test]
fn a_welcome_to_another_session_is_taken_only_while_ours_is_untouched() {
    let (_, hello) = redialed();
    for other in [0, hello.session + 2] {
        let (mut session, hello) = redialed();
        let answer = Hello { session: other, ..welcome(&hello) };
        assert_eq!(session.input(0, &answer.encode()), Err(Broken::Protocol), "{other}");
        assert_eq!((session.counts().violations, losses(&mut session)), (1, vec![Loss::Cut]));
    }
    // Nothing has come in a session that begins: the peer's may take its place, but none that was ended.
    let ended = hello.session;
    for (other, taken) in [(0, false), (ended, false), (ended + 4, true)] {
        let (mut session, _) = redialed();
        session.disconnected(0);
        session.tick(u64::from(network().resume_ms) * MILLISECOND_NS).unwrap();
        let hello = hello_of(&mut session);
        assert_eq!((hello.ended, hello.touched), (ended, false));
        let answer = Hello { session: other, ..welcome(&hello) };
        assert_eq!(session.input(0, &answer.encode()).is_ok(), taken, "{other} after {ended}");
    }
}

#[test]
fn what_is_no_hello_of_the_peer_is_garbage() {
    let right = hello_of(&mut session(0, 1));
    let stranger = Identity { node: NodeId::new(1, STRANGER).unwrap(), ..identity(0, 1) };
    let lies = [
        Hello { step: Step::Welcome, ..right.clone() },
        Hello { step: Step::Refusal, ..right.clone() },
        Hello { session: 0, ..right.clone() },
        Hello { identity: stranger, ..right.clone() },
    ];
    for lie in lies {
        assert_eq!(session(1, 1).accept(0, &lie), Err(Reason::Garbage), "{lie:?}");
    }
    assert_eq!(session(1, 1).accept(0, &right), Ok(()));
}

#[test]
fn of_a_successors_connections_the_last_counts() {
    let mut world = linked();
    let hello = |attempt| Hello { attempt, ..hello_of(&mut session(0, 2)) };
    let accept = |world: &mut World, attempt| world.sessions[1].accept(0, &hello(attempt));
    assert_eq!(accept(&mut world, 5), Ok(()));
    for earlier in [5, 4, 0] {
        assert_eq!(accept(&mut world, earlier), Err(Reason::Stale), "{earlier}");
    }
    assert_eq!(accept(&mut world, 6), Ok(()));
}

#[test]
fn a_session_that_was_ended_stays_unknown_though_another_has_begun() {
    let mut world = linked();
    world.cut();
    let [mut dialer, mut other] = world.sessions;
    let old = hello_of(&mut dialer);
    other.tick(u64::from(network().resume_ms) * MILLISECOND_NS).unwrap();
    assert!(!other.is_up());
    let hello = |attempt, session| Hello { attempt, session, touched: false, ended: 0, received: 0, ..old.clone() };
    assert_eq!(other.accept(0, &hello(old.attempt + 1, old.session + 2)), Ok(()));
    assert_eq!(other.accept(0, &hello(old.attempt + 2, old.session)), Err(Reason::SessionUnknown));
}

#[test]
fn the_two_never_propose_the_same_session() {
    let proposals = |side| {
        let mut session = session(side, 7);
        let first = hello_of(&mut session).session;
        session.disconnected(0);
        (first, hello_of(&mut session).session)
    };
    let (zero, one) = (proposals(0), proposals(1));
    assert_eq!((zero.0 & 1, one.0 & 1), (0, 1));
    assert_eq!((zero.0 >> 32, one.0 >> 32), (7, 7));
    assert_eq!((zero.0, one.0), (zero.1, one.1), "a proposal stands until it is taken or refused");
}
