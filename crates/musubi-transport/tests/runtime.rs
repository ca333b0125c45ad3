//! The runtime over links within the process: who drives, who is told, and that nothing is left over.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::{Outcome, RequestId, Sending};
use musubi_mcapi::limits::MESSAGE_CREDIT;
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, Error, NodeId};
use musubi_transport::LinkError;
use musubi_transport::runtime::switchboard::Switchboard;
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::Topology;

const PORT: u32 = 7;

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

fn start(board: &Switchboard, node: u32, spin_ns: u64) -> Node {
    let mut options = Options::default();
    options.spin_ns = spin_ns;
    Node::start_with(Arc::new(Topology::single_machine()), id(node), options, |wiring| board.join(wiring)).unwrap()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn create(node: &Node, port: Option<u32>) -> EndpointId {
    node.with(|engine, links| engine.create_endpoint(port, links)).unwrap().unwrap()
}

fn get(node: &Node, of: u32, port: u32) -> EndpointId {
    let request = node.with(|engine, links| engine.get_endpoint((0, of), port, links)).unwrap().unwrap();
    match outcome(node, request, soon()).unwrap() {
        Outcome::Endpoint(endpoint) => endpoint,
        other => panic!("{other:?}"),
    }
}

type Taken = Result<Outcome<musubi_transport::runtime::Block>, Error>;

fn outcome(node: &Node, request: RequestId, deadline: Deadline) -> Taken {
    node.wait_for(deadline, |engine, _| engine.take_outcome(request).transpose())?.unwrap()
}

fn send(node: &Node, from: EndpointId, to: EndpointId, text: &[u8], deadline: Deadline) -> Result<(), Error> {
    node.wait_for(deadline, |engine, links| match engine.send_message(from, to, 0, text, links) {
        Ok(Sending::Blocked) => None,
        Ok(_) => Some(Ok(())),
        Err(error) => Some(Err(error)),
    })?
}

fn receive(node: &Node, at: EndpointId, deadline: Deadline) -> Result<Vec<u8>, Error> {
    let message = node.wait_for(deadline, |engine, links| engine.receive_message(at, links).transpose())??;
    let mut bytes = vec![0; message.payload.len()];
    message.payload.copy_to(&mut bytes);
    Ok(bytes)
}

#[test]
fn two_nodes_play_ping_pong_sleeping_and_spinning() {
    for spin_ns in [0, 10_000, u64::MAX] {
        let board = Switchboard::new();
        let (one, other) = (start(&board, 1, spin_ns), start(&board, 2, spin_ns));
        let echo = thread::spawn(move || {
            let (here, there) = (create(&other, Some(PORT)), get(&other, 1, PORT));
            for _ in 0..500 {
                let text = receive(&other, here, soon()).unwrap();
                send(&other, here, there, &text, soon()).unwrap();
            }
        });
        let (here, there) = (create(&one, Some(PORT)), get(&one, 2, PORT));
        for round in 0..500u32 {
            send(&one, here, there, &round.to_le_bytes(), soon()).unwrap();
            let got = receive(&one, here, soon());
            assert_eq!(got, Ok(round.to_le_bytes().to_vec()), "{round} {spin_ns}");
        }
        echo.join().unwrap();
    }
}

#[test]
fn many_threads_of_a_node_wait_and_each_gets_its_own() {
    const THREADS: u32 = 8;
    const EACH: u32 = 200;
    let board = Switchboard::new();
    let (one, other) = (start(&board, 1, 10_000), start(&board, 2, 10_000));
    let inboxes: Vec<EndpointId> = (0..THREADS).map(|thread| create(&one, Some(10 + thread))).collect();
    let readers: Vec<_> = inboxes
        .iter()
        .map(|inbox| {
            let (one, inbox) = (one.clone(), *inbox);
            thread::spawn(move || {
                for expected in 0..EACH {
                    assert_eq!(receive(&one, inbox, soon()).unwrap(), expected.to_le_bytes());
                }
            })
        })
        .collect();
    let from = create(&other, None);
    for number in 0..EACH {
        for inbox in &inboxes {
            send(&other, from, *inbox, &number.to_le_bytes(), soon()).unwrap();
        }
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn a_receiver_that_sleeps_for_something_else_tells_its_sender_of_room() {
    const BELL: u32 = 8;
    let board = Switchboard::new();
    let (one, other) = (start(&board, 1, 0), start(&board, 2, 0));
    let (inbox, bell) = (create(&one, Some(PORT)), create(&one, Some(BELL)));
    let reader = {
        let one = one.clone();
        thread::spawn(move || receive(&one, inbox, soon()).and_then(|_| receive(&one, bell, soon())))
    };
    let (from, to) = (create(&other, None), get(&other, 1, PORT));
    for number in 0..=MESSAGE_CREDIT {
        assert_eq!(send(&other, from, to, &[number as u8], soon()), Ok(()), "message {number}: one has been read");
    }
    send(&other, from, get(&other, 1, BELL), b"ring", soon()).unwrap();
    assert_eq!(reader.join().unwrap(), Ok(b"ring".to_vec()));
}

#[test]
fn what_one_thread_does_wakes_another_of_the_same_node() {
    for spin_ns in [0, u64::MAX] {
        let node = start(&Switchboard::new(), 1, spin_ns);
        let (from, to) = (create(&node, None), create(&node, None));
        let reader = {
            let node = node.clone();
            thread::spawn(move || receive(&node, to, soon()).unwrap())
        };
        thread::sleep(Duration::from_millis(20));
        send(&node, from, to, b"within", soon()).unwrap();
        assert_eq!(reader.join().unwrap(), b"within");
    }
}

#[test]
fn deadlines_hold_for_leaders_and_followers() {
    let node = start(&Switchboard::new(), 1, 1000);
    let inbox = create(&node, None);
    assert_eq!(receive(&node, inbox, Deadline::Poll), Err(Error::Timeout));
    thread::scope(|scope| {
        for ms in [30, 60, 90] {
            let node = &node;
            scope.spawn(move || {
                let begin = Instant::now();
                let deadline = Deadline::after(Duration::from_millis(ms));
                assert_eq!(receive(node, inbox, deadline), Err(Error::Timeout));
                assert!(begin.elapsed() >= Duration::from_millis(ms));
                assert!(begin.elapsed() < Duration::from_secs(10));
            });
        }
    });
}

#[test]
fn ending_a_node_brings_everybody_back() {
    for spin_ns in [0, u64::MAX] {
        let node = start(&Switchboard::new(), 1, spin_ns);
        let inbox = create(&node, None);
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let node = node.clone();
                thread::spawn(move || receive(&node, inbox, Deadline::Forever))
            })
            .collect();
        thread::sleep(Duration::from_millis(20));
        node.finish().unwrap();
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), Err(Error::NodeNotInitialized));
        }
        assert_eq!(node.finish(), Err(LinkError::Ended));
        assert_eq!(node.with(|_, _| ()), Err(LinkError::Ended));
        assert!(node.has_finished());
    }
}

#[test]
fn a_node_whose_program_computes_answers_all_the_same() {
    let board = Switchboard::new();
    let (one, other) = (start(&board, 1, 0), start(&board, 2, 0));
    create(&other, Some(PORT));
    // Nobody calls `other` any more: its own thread answers.
    for _ in 0..3 {
        get(&one, 2, PORT);
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_name_is_taken_while_its_node_runs() {
    let board = Switchboard::new();
    let system = Arc::new(Topology::single_machine());
    let begin = |board: &Switchboard| {
        Node::start_with(Arc::clone(&system), id(1), Options::default(), |wiring| board.join(wiring))
    };
    let first = begin(&board).unwrap();
    assert_eq!(begin(&board).unwrap_err(), LinkError::NodeRuns);
    first.finish().unwrap();
    drop(begin(&board).unwrap());
    begin(&board).unwrap();
}

#[test]
fn a_node_that_the_system_does_not_have_cannot_start() {
    let mut system = Topology::single_machine();
    system.nodes.insert(id(1), Default::default());
    let system = Arc::new(system);
    let begin = |domain, node| {
        let me = NodeId::new(domain, node).unwrap();
        Node::start_with(Arc::clone(&system), me, Options::default(), |wiring| Switchboard::new().join(wiring))
    };
    assert_eq!(begin(0, 2).unwrap_err(), LinkError::NodeUnknown);
    assert_eq!(begin(1, 1).unwrap_err(), LinkError::DomainUnknown);
}

/// Number of open descriptors and of threads.
fn possessions() -> (usize, usize) {
    let count = |directory: &str| std::fs::read_dir(directory).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}

#[test]
fn nothing_is_left_of_nodes_that_ended() {
    // In a process of its own: the counts are the process's.
    if std::env::var_os("MUSUBI_TEST_ALONE").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "nothing_is_left_of_nodes_that_ended", "--test-threads=1"]);
        assert!(again.env("MUSUBI_TEST_ALONE", "1").stdout(std::process::Stdio::null()).status().unwrap().success());
        return;
    }
    let board = Switchboard::new();
    let cycle = || {
        let (one, other) = (start(&board, 1, 0), start(&board, 2, 0));
        let (inbox, from) = (create(&one, Some(PORT)), create(&other, None));
        let to = get(&other, 1, PORT);
        send(&other, from, to, b"text", soon()).unwrap();
        assert_eq!(receive(&one, inbox, soon()).unwrap(), b"text");
    };
    cycle();
    let before = possessions();
    for _ in 0..200 {
        cycle();
    }
    assert_eq!(possessions(), before);
}

/// Unparks the thread that polls, and counts.
struct Unpark(thread::Thread, AtomicU32);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(thread::current(), AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while unpark.1.swap(0, Ordering::SeqCst) == 0 {
            thread::park();
        }
    }
}

#[test]
fn a_future_is_woken_when_its_request_completes() {
    let board = Switchboard::new();
    let (one, other) = (start(&board, 1, 0), start(&board, 2, 0));
    let (inbox, from) = (create(&one, Some(PORT)), create(&other, None));
    let to = get(&other, 1, PORT);
    let (ready, is_ready) = mpsc::channel();
    let task = thread::spawn(move || {
        for round in 0..100u32 {
            let request = one.with_aside(|engine, links| engine.receive_message_later(inbox, links)).unwrap().unwrap();
            ready.send(()).unwrap();
            block_on(std::future::poll_fn(|context| match one.wake_when_complete(request, context.waker()) {
                Ok(true) => Poll::Ready(()),
                Ok(false) => Poll::Pending,
                Err(error) => panic!("{error}"),
            }));
            let taken = one.with_aside(|engine, _| engine.take_outcome(request)).unwrap().unwrap().unwrap();
            let Ok(Outcome::Message(message)) = taken else { panic!("{taken:?}") };
            let mut number = [0; 4];
            message.payload.copy_to(&mut number);
            assert_eq!(u32::from_le_bytes(number), round);
        }
    });
    for round in 0..100u32 {
        is_ready.recv_timeout(Duration::from_secs(20)).unwrap();
        send(&other, from, to, &round.to_le_bytes(), soon()).unwrap();
    }
    task.join().unwrap();
}

#[test]
fn an_event_loop_is_woken_for_everything() {
    let board = Switchboard::new();
    let (one, other) = (start(&board, 1, 0), start(&board, 2, 0));
    let (inbox, from) = (create(&one, Some(PORT)), create(&other, None));
    let to = get(&other, 1, PORT);
    let sender = thread::spawn(move || {
        for round in 0..300u32 {
            send(&other, from, to, &round.to_le_bytes(), soon()).unwrap();
            if round % 50 == 0 {
                // Long enough for the loop to sleep, and for the background thread to be parked.
                thread::sleep(Duration::from_millis(15));
            }
        }
        other
    });
    let (mut taken, mut armed) = (0u32, 0);
    let end = Instant::now() + Duration::from_secs(20);
    while taken < 300 {
        assert!(Instant::now() < end, "{taken} of 300 came");
        while let Ok(text) = receive(&one, inbox, Deadline::Poll) {
            assert_eq!(text, taken.to_le_bytes());
            taken += 1;
        }
        if let Some(until_ns) = one.arm().unwrap() {
            armed += 1;
            let ns = until_ns.saturating_sub(one.now_ns()).min(20_000_000_000);
            let timeout =
                rustix::event::Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
            let mut watched = [rustix::event::PollFd::new(&one, rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut watched, Some(&timeout)).unwrap();
        }
    }
    assert!(armed > 0);
    drop(sender.join().unwrap());
}

#[test]
fn a_waiting_thread_takes_the_links_from_an_event_loop() {
    let node = start(&Switchboard::new(), 1, 0);
    let (from, inbox) = (create(&node, None), create(&node, None));
    while node.arm().unwrap().is_none() {}
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(receive(&node, inbox, soon()).unwrap(), b"on"));
        thread::sleep(Duration::from_millis(10));
        assert!(node.arm().is_ok());
        send(&node, from, inbox, b"on", soon()).unwrap();
    });
    while node.arm().unwrap().is_none() {}
}

#[test]
fn a_spinning_leader_makes_way() {
    let node = start(&Switchboard::new(), 1, u64::MAX);
    let inbox = create(&node, None);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| receive(&node, inbox, Deadline::Forever));
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                node.with(|engine, _| engine.messages_available(inbox)).unwrap().unwrap();
            }
        });
        for _ in 0..2000 {
            node.with(|engine, _| engine.messages_available(inbox)).unwrap().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        let from = create(&node, None);
        send(&node, from, inbox, b"", soon()).unwrap();
    });
}
