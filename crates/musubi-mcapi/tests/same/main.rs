//! The same tests over every kind of links.

mod bodies;
mod forms;
#[path = "../../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bodies::Pair;
use musubi_mcapi::{Node, NodeId, Options, Topology};
use musubi_transport::runtime;
use musubi_transport::runtime::switchboard::Switchboard;
use musubi_transport::topology::Place;

/// Starts node 0:1 or 0:2.
type Start = Box<dyn Fn(u32) -> Node>;

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

/// A name that no other test has.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("same-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// By queues within the process.
fn within() -> Start {
    let board = Switchboard::new();
    let system = Arc::new(Topology::single_machine());
    Box::new(move |node| {
        let started =
            runtime::Node::start_with(Arc::clone(&system), id(node), Options::default(), |wiring| board.join(wiring));
        Node::of(started.unwrap())
    })
}

/// By shared memory, as between processes.
fn memory() -> Start {
    let system = Arc::new(Topology { system: name(), ..Topology::single_machine() });
    Box::new(move |node| Node::initialize(&system, 0, node).unwrap())
}

/// By TCP over loopback.
fn tcp() -> Start {
    let mut system = Topology { system: name(), hash: 1, ..Topology::single_machine() };
    for node in [1, 2] {
        system.nodes.insert(id(node), Place { tcp: Some(loopback::own_address()), ..Place::default() });
    }
    let system = Arc::new(system);
    Box::new(move |node| Node::initialize(&system, 0, node).unwrap())
}

fn pair(start: &Start) -> Pair {
    Pair { one: start(1), other: start(2) }
}

macro_rules! over {
    ($links:ident: $($body:ident),* $(,)?) => {
        mod $links {
            $(#[test]
            fn $body() {
                let pair = crate::pair(&crate::$links());
                crate::bodies::$body(&pair);
            })*

            #[test]
            fn an_ended_node_can_begin_again() {
                let start = crate::$links();
                crate::bodies::an_ended_node_can_begin_again(&crate::pair(&start), || start(2));
            }
        }
    };
}

/// The same of what stands in `forms`.
macro_rules! forms_over {
    ($links:ident: $($body:ident),* $(,)?) => {
        mod $links {
            $(#[test]
            fn $body() {
                let pair = crate::pair(&crate::$links());
                crate::forms::$body(&pair);
            })*
        }
    };
}

macro_rules! over_all {
    ($($links:ident),*; $bodies:tt) => { $(over_all!(@ $links $bodies);)* };
    (@ $links:ident { $($body:ident),* $(,)? }) => { over!($links: $($body),*); };
}

over_all!(within, memory, tcp; {
    messages_arrive_whole_and_in_order,
    the_first_message_over_a_link_is_refused_if_its_endpoint_is_connected,
    the_urgent_is_taken_first,
    a_slow_receiver_holds_its_sender_back_and_loses_nothing,
    an_endpoint_is_found_when_it_comes_to_exist,
    attributes_are_read_from_afar,
    a_ping_comes_back,
    packets_arrive_whole_and_in_order,
    a_shared_packet_is_sent_again_and_again_and_let_go,
    a_burst_says_how_much_of_it_went,
    packets_in_hand_hold_the_sender_back,
    a_closed_sender_leaves_what_it_sent,
    a_channel_is_opened_again_after_both_have_closed,
    scalars_of_every_size_arrive,
    a_request_that_is_dropped_takes_nothing,
    any_of_several_is_waited_for,
    futures_complete,
    an_ended_node_says_so_and_its_peers_notice,
});

/// What is of the interface, over the links of this machine.
mod forms_over_links {
    forms_over!(within: messages_go_and_are_taken_without_waiting, packets_go_and_are_taken_without_waiting,
        scalars_go_and_are_taken_without_waiting, what_is_dropped_is_given_back, a_node_shows_a_picture_of_itself);
    forms_over!(memory: messages_go_and_are_taken_without_waiting, packets_go_and_are_taken_without_waiting,
        scalars_go_and_are_taken_without_waiting, what_is_dropped_is_given_back, a_node_shows_a_picture_of_itself,
        a_node_runs_once_and_where_the_system_has_it);
}
