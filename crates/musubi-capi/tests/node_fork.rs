//! A child made by `fork` has no part in its parent's node: it is told so, and its end harms nobody. Here because forking is
//! `unsafe`, which the runtime's own crate forbids.

use std::sync::Arc;
use std::time::Duration;

use musubi_mcapi::process::Running as Node;
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::Topology;
use musubi_transport::{LinkError, NodeId};

/// Exit status of a child that was told what it should be.
const TOLD: i32 = 7;

fn start(system: &Arc<Topology>, node: u32) -> Node {
    Node::start(Arc::clone(system), NodeId::new(0, node).unwrap(), Options::default()).unwrap()
}

fn ping(node: &Node, of: u32) -> bool {
    let peer = NodeId::new(0, of).unwrap();
    let request = node.with(|engine, links| {
        let now_ns = links.now_ns();
        engine.ping(now_ns, peer, 8, links)
    });
    let request = request.unwrap().unwrap();
    let deadline = Deadline::after(Duration::from_secs(20));
    node.wait_for(deadline, |engine, _| engine.take_outcome(request).transpose())
        .is_ok_and(|outcome| matches!(outcome, Ok(Ok(_))))
}

/// What the child does: every call says that there is no node; dropping the handle returns.
fn child(node: Node) -> i32 {
    let call = node.with(|_, _| ());
    let wait = node.wait_for(Deadline::Forever, |_, _| None::<()>);
    let finish = node.finish();
    drop(node);
    let refused = Err(LinkError::Ended);
    if call == refused && wait == refused && finish == refused { TOLD } else { 1 }
}

#[test]
fn a_forked_child_has_no_part_in_the_node() {
    let system = Topology { system: format!("fork-{}", std::process::id()), ..Topology::single_machine() };
    let system = Arc::new(system);
    let (one, other) = (start(&system, 1), start(&system, 2));
    assert!(ping(&one, 2));
    // SAFETY: the child touches only what `child` touches, none of which another thread of the parent may have held
    // half-done at this moment, and ends without running anything of the test's.
    let forked = unsafe { libc::fork() };
    assert!(forked >= 0);
    if forked == 0 {
        let status = child(one);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: the pointer is valid for one status word.
    let waited = unsafe { libc::waitpid(forked, &mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (forked, TOLD));
    // The parent's nodes go on, and their names are free afterwards.
    assert!(ping(&one, 2) && ping(&other, 1));
    one.finish().unwrap();
    start(&system, 1).finish().unwrap();
}
