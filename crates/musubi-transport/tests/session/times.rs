//! When a session does what nobody asks for, and what it counts.

use musubi_transport::links::{Loss, Report};
use musubi_transport::session::{Broken, Greeting, Hello, Reason, Session, State, Step};

use crate::MILLISECOND_NS;
use crate::world::{World, identity, network, session};

fn linked() -> World {
    let mut world = World::new();
    world.settle();
    world
}

fn ns(milliseconds: u32) -> u64 {
    u64::from(milliseconds) * MILLISECOND_NS
}

#[test]
fn each_deadline_is_met_to_the_nanosecond() {
    let (heartbeat, silence, resume) = (ns(network().heartbeat_ms), ns(network().silence_ms), ns(network().resume_ms));
    let mut session = session(0, 1);
    assert_eq!((session.deadline_ns(), session.tick(u64::MAX / 2)), (u64::MAX, Ok(())), "nothing is due");
    // A connection on which nobody answers.
    session.dial(1000);
    assert_eq!(session.deadline_ns(), 1000 + silence);
    assert_eq!((session.tick(1000 + silence - 1), session.state()), (Ok(()), State::Dialing));
    assert_eq!((session.tick(1000 + silence), session.state()), (Err(Broken::Silent), State::Disconnected));
    assert_eq!(session.counts().silences, 1);
    // A link on which nothing is said.
    let mut world = linked();
    let one = &mut world.sessions[0];
    assert_eq!(one.deadline_ns(), heartbeat);
    one.tick(heartbeat - 1).unwrap();
    assert!(!one.has_output());
    one.tick(heartbeat).unwrap();
    assert!(one.has_output() && one.fill(heartbeat, 1000) == 16);
    assert_eq!(one.deadline_ns(), 2 * heartbeat);
    assert_eq!(one.tick(silence), Err(Broken::Silent));
    assert_eq!((one.counts().silences, one.counts().cuts, one.deadline_ns()), (1, 0, silence + resume));
    // Tries that come to nothing do not lengthen it.
    one.dial(silence + resume - 10);
    one.disconnected(silence + resume - 5);
    assert_eq!(one.deadline_ns(), silence + resume);
    one.tick(silence + resume - 1).unwrap();
    assert!(one.is_up());
    one.tick(silence + resume).unwrap();
    assert!(!one.is_up());
    assert_eq!((one.counts().cuts, one.deadline_ns()), (1, u64::MAX));
    assert!(one.has_report());
    assert!(matches!(one.next_report(), Some(Report::Down { loss: Loss::Cut, .. })));
    assert!(!one.has_report());
}

#[test]
fn what_a_session_did_is_counted() {
    let mut world = linked();
    for number in 0..5 {
        world.send(0, 1 + number % 3, 100);
    }
    world.settle();
    world.cut();
    world.send(1, 2, 50);
    world.settle();
    let [one, other] = world.sessions.each_ref().map(Session::counts);
    assert_eq!((one.connections, one.resumed, other.connections, other.resumed), (2, 1, 2, 1));
    assert_eq!((one.frames_sent, one.frames_received), (5, 1));
    assert_eq!((other.frames_sent, other.frames_received), (1, 5));
    assert_eq!((one.cuts, one.violations, one.silences), (0, 0, 0));
    let taken = |class| world.sessions[0].class_counts(musubi_transport::Priority::new(class).unwrap()).taken;
    assert_eq!([0, 1, 2, 3, 4].map(taken), [0, 2, 2, 1, 0]);
}

/// What a session says first on a connection.
fn hello(from: &mut Session) -> Hello {
    from.dial(0);
    from.fill(0, 1000);
    let bytes: Vec<u8> = from.slices().flatten().copied().collect();
    Greeting::new().input(&bytes).unwrap().expect("a whole hello")
}

#[test]
fn a_hello_that_means_something_else_is_refused() {
    let good = hello(&mut session(1, 1));
    let refused = |hello: Hello| session(0, 1).accept(0, &hello).err();
    assert_eq!(refused(good.clone()), None);
    assert_eq!(refused(Hello { step: Step::Welcome, ..good.clone() }), Some(Reason::Garbage));
    assert_eq!(refused(Hello { session: 0, ..good.clone() }), Some(Reason::Garbage));
    let mut third = good.clone();
    third.identity.node = musubi_transport::NodeId::new(1, 5).unwrap();
    assert_eq!(refused(third), Some(Reason::Garbage));
    assert_eq!(refused(Hello { touched: true, ..good.clone() }), Some(Reason::SessionUnknown));
    let mut leaves = session(0, 1);
    leaves.leave();
    assert_eq!(leaves.accept(0, &good), Err(Reason::Leaving));
    // Of one run of a node only later tries count.
    let mut session = session(0, 1);
    assert_eq!(session.accept(0, &good), Ok(()));
    assert_eq!(session.accept(0, &good), Err(Reason::Stale));
    assert_eq!(session.accept(0, &Hello { attempt: good.attempt + 1, ..good.clone() }), Ok(()));
}

#[test]
fn sessions_are_proposed_by_run_place_and_number() {
    let mut numbers = Vec::new();
    for (side, incarnation) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
        let mut session = session(side, incarnation);
        for _ in 0..3 {
            let hello = hello(&mut session);
            assert_eq!((hello.session >> 32, hello.session & 1), (u64::from(incarnation), side as u64));
            numbers.push(hello.session);
            session.disconnected(0);
        }
    }
    let many = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.len() <= many && !numbers.contains(&0));
}

#[test]
fn a_refusal_counts_only_if_the_peer_gives_it_to_us() {
    let answer = |node: usize, to: usize, reason| {
        let to = identity(to, 0).node;
        Hello::refusal(&identity(node, 7), to, reason).encode()
    };
    let after = |bytes: &[u8]| {
        let mut world = linked();
        world.cut();
        let mut session = world.sessions.into_iter().next().unwrap();
        session.dial(0);
        let came = session.input(0, bytes);
        (came, session.counts().violations, session.counts().refused.of(Reason::Crossed), session.is_up())
    };
    assert_eq!(after(&answer(1, 0, Reason::Crossed)), (Err(Broken::Refused(Reason::Crossed)), 0, 1, true));
    assert_eq!(after(&answer(1, 1, Reason::Crossed)), (Err(Broken::Protocol), 1, 0, true), "not for us");
    assert_eq!(after(&answer(0, 0, Reason::Crossed)), (Err(Broken::Protocol), 1, 0, true), "not from the peer");
    let (came, _, _, up) = after(&answer(1, 0, Reason::SessionUnknown));
    assert_eq!((came, up), (Err(Broken::Refused(Reason::SessionUnknown)), false), "another run of it knows nothing");
}
