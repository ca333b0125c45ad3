//! Messages that wait at their sender: for receives, and for what a class may still bring.

use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_transport::topology::{ClassIntake, Network, Place, Topology};
use musubi_transport::{Priority, Regulation};
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::engine::{Reliability, ViAttributes};
use musubi_vipl::nic::ViNumber;
use musubi_vipl::process::NicSystem;

use super::rules::{receives, send, wait};
use super::{Side, at, loopback, soon, system};

const CLASS: u8 = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// Two NICs that take so much of the class, over shared memory or TCP.
fn taking(regulation: Regulation, is_tcp: bool) -> NicSystem {
    let intake = ClassIntake { class: Priority::new(CLASS).unwrap(), regulation };
    let place = || Place {
        shared_memory: (!is_tcp).then(|| "here".to_owned()),
        tcp: is_tcp.then(|| loopback::own_address().to_string()),
        intakes: vec![intake],
        ..Place::default()
    };
    let nodes = [0, 1].map(|nic| (NicNumber(nic).node(0).unwrap(), place()));
    let network = Network { insecure: true, ..Network::default() };
    let topology = Topology { hash: 1, nodes: nodes.into(), network, ..Arc::unwrap_or_clone(system().topology) };
    NicSystem::new([("left".to_owned(), 1), ("right".to_owned(), 1)], topology)
}

fn connected(client: &Side, server: &Side, credit: bool) -> (ViNumber, ViNumber) {
    let vi = |side: &Side| {
        let attributes = ViAttributes {
            reliability: Reliability::Delivery,
            transfer_bytes_max: 4096,
            class: CLASS,
            tag: side.tag,
            remote_write: false,
            remote_read: false,
            credit,
        };
        side.nic.with(|nic| nic.create_vi(attributes, None, None)).unwrap()
    };
    let (a, b) = (vi(client), vi(server));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (caller, ..) = server.nic.wait_caller(&at(b"held"), soon()).unwrap();
            server.nic.accept(caller, b, soon()).unwrap();
        });
        let own = || Address::new(client.nic.with(|nic| Ok(nic.number())).unwrap(), b"client").unwrap();
        while client.nic.request(a, own(), at(b"held"), soon()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (a, b)
}

fn what_comes_is_what_is_taken(is_tcp: bool) {
    const MESSAGES: usize = 200;
    let system = taking(Regulation { messages_per_s: 500, messages_burst: 10, ..Regulation::NONE }, is_tcp);
    let (client, server) = (Side::open_nic(&system, NicNumber(1)), Side::open(&system));
    let (a, b) = connected(&client, &server, false);
    receives(&server, b, 0..MESSAGES);
    let began = Instant::now();
    (0..MESSAGES).for_each(|turn| send(&client, a, turn));
    assert!((0..MESSAGES).all(|_| wait(&server, b, PATIENCE)));
    // 500 a second, two bursts of 10 and one message.
    assert!(began.elapsed() >= Duration::from_millis(350), "{:?}", began.elapsed());
    let refused = [&client, &server].map(|side| side.nic.with(|nic| Ok(nic.refused())).unwrap());
    assert_eq!(refused, [0, 0]);
}

#[test]
fn what_comes_of_a_class_is_no_more_than_its_receiver_takes() {
    what_comes_is_what_is_taken(false);
}

#[test]
fn the_same_over_tcp() {
    what_comes_is_what_is_taken(true);
}

#[test]
fn messages_wait_for_receives_that_are_posted_later() {
    const MESSAGES: usize = 300;
    let system = system();
    let (client, server) = (Side::open(&system), Side::open(&system));
    let (a, b) = connected(&client, &server, true);
    (0..MESSAGES).for_each(|turn| send(&client, a, turn));
    for turn in (0..MESSAGES).step_by(3) {
        receives(&server, b, turn..turn + 3);
        assert!((0..3).all(|_| wait(&server, b, PATIENCE)));
    }
}
