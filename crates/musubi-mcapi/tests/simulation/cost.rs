//! What a message costs with many idle endpoints and nodes around: run under an instruction counter by
//! `cargo xtask simulate --cost`.
//!
//! How it works: two engines with their sessions, bytes handed over at once, no time. Beside them lie idle endpoints, or
//! idle nodes that are linked; each has been sent one message, so nothing of it is unknown.

use std::collections::BTreeMap;

use musubi_mcapi::engine::frame::{KINDS, Kind};
use musubi_mcapi::engine::{Engine, Sending};
use musubi_mcapi::limits::ENDPOINTS_MAX;
use musubi_mcapi::{EndpointId, NodeId};
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, NoBlock, Payload, Report, Sent, Short};
use musubi_transport::session::{Greeting, Identity, Session, State};
use musubi_transport::topology::Network;

use super::node::id;

/// Endpoints of a node beside the one that is used.
const IDLE_OF_A_NODE: usize = ENDPOINTS_MAX - 24;

/// One session, and nodes that take everything.
struct Wire {
    session: Session,
}

impl Links for Wire {
    type Block = NoBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        if peer == self.session.peer() { self.session.enqueue(header, payload) } else { Sent::Delivered }
    }

    fn want(&mut self, _: NodeId, _: bool) {}

    fn knows(&self, _: NodeId) -> bool {
        true
    }
}

struct Side {
    engine: Engine<NoBlock>,
    wire: Wire,
    used: EndpointId,
}

impl Side {
    fn new(side: usize, idle_endpoints: usize, idle_nodes: usize) -> Side {
        let identity = Identity { system: "cost".into(), hash: 1, node: id(side), incarnation: 1 };
        let mut wire = Wire { session: Session::new(&identity, id(1 - side), &Network::default(), &KINDS) };
        let mut engine = Engine::new(id(side), 1);
        let used = engine.create_endpoint(None, &mut wire).expect("room for one");
        for _ in 0..idle_endpoints.min(IDLE_OF_A_NODE) {
            engine.create_endpoint(None, &mut wire).expect("room for idle ones");
        }
        let nodes = idle_nodes.max(idle_endpoints.div_ceil(IDLE_OF_A_NODE));
        let endpoints_of_a_node = if idle_nodes > 0 { 1 } else { IDLE_OF_A_NODE };
        for node in (2..2 + nodes).map(id) {
            engine.report(1, Report::Up { peer: node, incarnation: 1 }, &mut wire);
            // None of its endpoints is connected.
            let (header, payload) = (Header::new(Kind::Connected as u8), Payload::Short(Short::EMPTY));
            engine.report(1, Report::Frame { peer: node, header, payload }, &mut wire);
            for slot in 0..endpoints_of_a_node {
                let to = EndpointId::new(node, slot as u16, 1);
                let sent = engine.send_message(used, to, 0, &[1; 8], &mut wire);
                assert_eq!(sent, Ok(Sending::Done));
            }
        }
        Side { engine, wire, used }
    }

    /// Gives the engine what the session reports.
    fn report(&mut self) {
        while let Some(report) = self.wire.session.next_report() {
            self.engine.report(1, report, &mut self.wire);
        }
        self.engine.tick(1, &mut self.wire);
    }
}

/// Everything that one side has to say goes to the other.
fn carry(from: &mut Side, to: &mut Side) {
    from.wire.session.flush();
    let ready = from.wire.session.fill(0, 64 * 1024);
    if ready == 0 {
        return;
    }
    for slice in from.wire.session.slices() {
        to.wire.session.input(1, slice).expect("both are right");
    }
    from.wire.session.consumed(1, ready);
    to.report();
}

/// Sends so many messages, one after the other.
fn send(endpoints: usize, nodes: usize, messages: usize) {
    let mut first = Side::new(0, endpoints, nodes);
    let mut second = Side::new(1, endpoints, nodes);
    first.wire.session.dial(1);
    first.wire.session.fill(0, usize::MAX);
    let hello: Vec<u8> = first.wire.session.slices().flatten().copied().collect();
    first.wire.session.consumed(1, hello.len());
    let hello = Greeting::new().input(&hello).expect("a hello").expect("a whole one");
    second.wire.session.accept(1, &hello).expect("a right one");
    for _ in 0..2 {
        carry(&mut second, &mut first);
        first.report();
        carry(&mut first, &mut second);
    }
    assert_eq!([first.wire.session.state(), second.wire.session.state()], [State::Live; 2]);
    let mut requests = BTreeMap::new();
    for number in 0..messages {
        let sent = first.engine.send_message(first.used, second.used, 1, &number.to_le_bytes(), &mut first.wire);
        let Ok(Sending::Confirming(request)) = sent else { panic!("{number} was not sent: {sent:?}") };
        requests.insert(number, request);
        carry(&mut first, &mut second);
        let message = second.engine.receive_message(second.used, &mut second.wire).expect("our endpoint");
        assert!(message.is_some_and(|message| message.payload.len() == 8));
        second.engine.tick(1, &mut second.wire);
        carry(&mut second, &mut first);
        let outcome = requests.remove(&number).map(|request| first.engine.take_outcome(request));
        assert!(matches!(outcome, Some(Ok(Some(Ok(_))))), "{number} was not confirmed: {outcome:?}");
    }
}

/// Numbers come from the environment; by themselves they are small.
#[test]
fn messages_beside_idle_ones() {
    let number = |name, otherwise| super::number(name, otherwise) as usize;
    let endpoints = number("MUSUBI_COST_ENDPOINTS", 100);
    let nodes = number("MUSUBI_COST_NODES", 0);
    send(endpoints, nodes, number("MUSUBI_COST_MESSAGES", 100));
}
