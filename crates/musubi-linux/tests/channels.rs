//! FIFO and SMEM channels between participants of one process: the data path on real sections and sockets.

mod talk;

use std::thread;
use std::time::{Duration, Instant};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_linux::DeadlineExt;
use talk::{attach, instance, receive, send, soon};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not come");
        thread::yield_now();
    }
}

#[test]
fn messages_flow_both_ways_in_either_order_of_start() {
    for master_first in [true, false] {
        let instance = instance();
        let first = attach(if master_first { "control" } else { "gateway" }, &instance);
        let second = attach(if master_first { "gateway" } else { "control" }, &instance);
        let (control, gateway) = if master_first { (first, second) } else { (second, first) };
        let remote = thread::spawn(move || {
            let (down, up) = (gateway.open_receiving(0).unwrap(), gateway.open_sending(1).unwrap());
            for expected in 0..10_000 {
                assert_eq!(receive(&down).unwrap(), expected);
                send(&up, expected + 1).unwrap();
            }
            gateway
        });
        let (down, up) = (control.open_sending(0).unwrap(), control.open_receiving(1).unwrap());
        for value in 0..10_000 {
            send(&down, value).unwrap();
            assert_eq!(receive(&up).unwrap(), value + 1);
        }
        let gateway = remote.join().unwrap();
        assert_eq!(down.usage().queued, 0);
        drop(gateway);
    }
}

#[test]
fn a_stream_keeps_order_under_back_pressure() {
    let instance = instance();
    let control = attach("control", &instance);
    let gateway = attach("gateway", &instance);
    let remote = thread::spawn(move || {
        let down = gateway.open_receiving(0).unwrap();
        for expected in 0..200_000 {
            assert_eq!(receive(&down).unwrap(), expected);
        }
    });
    let down = control.open_sending(0).unwrap();
    for value in 0..200_000 {
        send(&down, value).unwrap();
    }
    remote.join().unwrap();
}

#[test]
fn deadlines_hold_and_ends_are_exclusive() {
    let instance = instance();
    let control = attach("control", &instance);
    let gateway = attach("gateway", &instance);
    let other = attach("gateway", &instance);
    let down = gateway.open_receiving(0).unwrap();
    assert!(other.open_receiving(0).is_err());
    assert!(gateway.open_sending(0).is_err(), "the domain is not on that side");
    assert_eq!(down.wait(Deadline::Poll), Err(Error::Timeout));
    let begin = std::time::Instant::now();
    let until = Deadline::after(Duration::from_millis(30));
    assert_eq!(down.wait(until), Err(Error::Timeout));
    assert!(begin.elapsed() >= Duration::from_millis(30));
    let sending = control.open_sending(0).unwrap();
    let loans: Vec<_> = (0..8).map(|_| sending.allocate(Deadline::Poll).unwrap()).collect();
    assert_eq!(sending.allocate(Deadline::Poll).unwrap_err(), Error::NoBlock);
    for loan in loans {
        sending.free(loan).unwrap();
    }
}

#[test]
fn a_receiver_that_leaves_is_reported_once_and_its_successor_goes_on() {
    let instance = instance();
    let control = attach("control", &instance);
    let down = control.open_sending(0).unwrap();
    let gateway = attach("gateway", &instance);
    let receiving = gateway.open_receiving(0).unwrap();
    for value in 0..6 {
        send(&down, value).unwrap();
    }
    assert_eq!(receive(&receiving).unwrap(), 0);
    let in_hand = receiving.dequeue().unwrap();
    drop(in_hand);
    drop(receiving);
    drop(gateway);
    eventually("the loss", || down.take_loss());
    let successor = attach("gateway", &instance);
    let receiving = successor.open_receiving(0).unwrap();
    for expected in 2..6 {
        assert_eq!(receive(&receiving).unwrap(), expected);
    }
    for value in 0..100 {
        send(&down, value).unwrap();
        assert_eq!(receive(&receiving).unwrap(), value);
    }
    assert!(!down.take_loss());
}

#[test]
fn a_receivers_last_event_survives_it() {
    let instance = instance();
    let control = attach("control", &instance);
    let down = control.open_sending(0).unwrap();
    let gateway = attach("gateway", &instance);
    let receiving = gateway.open_receiving(0).unwrap();
    send(&down, 1).unwrap();
    assert_eq!(receive(&receiving).unwrap(), 1);
    receiving.notify();
    drop(receiving);
    drop(gateway);
    eventually("the loss", || down.has_loss());
    assert_eq!(down.wait(Deadline::Poll), Ok(()), "the event comes first");
    assert_eq!(down.wait(Deadline::Poll), Err(Error::PeerGone));
    assert_eq!(down.wait(Deadline::Poll), Err(Error::Timeout));
}

#[test]
fn usage_counts_every_block_that_has_come_back() {
    let instance = instance();
    let control = attach("control", &instance);
    let gateway = attach("gateway", &instance);
    let (down, receiving) = (control.open_sending(0).unwrap(), gateway.open_receiving(0).unwrap());
    for value in 0..5 {
        send(&down, value).unwrap();
    }
    assert_eq!((down.usage().free, down.usage().queued), (3, 5));
    for value in 0..5 {
        assert_eq!(receive(&receiving).unwrap(), value);
    }
    assert_eq!((down.usage().free, down.usage().queued), (8, 0));
}

#[test]
fn a_senders_committed_messages_survive_it() {
    let instance = instance();
    let gateway = attach("gateway", &instance);
    let receiving = gateway.open_receiving(0).unwrap();
    for round in 0..3 {
        let control = attach("control", &instance);
        let down = control.open_sending(0).unwrap();
        send(&down, round * 10).unwrap();
        assert_eq!(receive(&receiving).unwrap(), round * 10);
        for value in 1..4 {
            send(&down, round * 10 + value).unwrap();
        }
        drop(down);
        drop(control);
        for value in 1..4 {
            assert_eq!(receive(&receiving).unwrap(), round * 10 + value);
        }
        assert_eq!(receive(&receiving), Err(Error::PeerGone));
    }
}

#[test]
fn a_handle_that_is_opened_again_goes_on() {
    let instance = instance();
    let control = attach("control", &instance);
    let gateway = attach("gateway", &instance);
    for round in 0..50 {
        let down = control.open_sending(0).unwrap();
        let receiving = gateway.open_receiving(0).unwrap();
        send(&down, round).unwrap();
        send(&down, round + 1000).unwrap();
        assert_eq!(receive(&receiving).unwrap(), round);
        drop(receiving);
        let receiving = gateway.open_receiving(0).unwrap();
        assert_eq!(receive(&receiving).unwrap(), round + 1000);
    }
}

#[test]
fn the_lock_excludes_and_the_memory_is_shared() {
    let instance = instance();
    let participants = [attach("control", &instance), attach("gateway", &instance), attach("gateway", &instance)];
    let threads = participants.map(|participant| {
        thread::spawn(move || {
            let end = Attachment::open_segment(&participant, 0, soon()).unwrap();
            for _ in 0..2000 {
                end.lock(soon()).unwrap();
                let mut bytes = [0; 8];
                end.read(0, &mut bytes).unwrap();
                end.write(0, &(u64::from_le_bytes(bytes) + 1).to_le_bytes()).unwrap();
                end.unlock().unwrap();
            }
            assert_eq!(end.unlock(), Err(Error::NotHeld));
            participant
        })
    });
    let participants = threads.map(|thread| thread.join().unwrap());
    let end = Attachment::open_segment(&participants[0], 0, soon()).unwrap();
    let mut bytes = [0; 8];
    end.read(0, &mut bytes).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 6000);
}

#[test]
fn futures_are_woken_under_any_executor() {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    fn block_on<F: Future>(future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = std::pin::pin!(future);
        let begin = Instant::now();
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => assert!(begin.elapsed() < PATIENCE, "nobody wakes the future"),
            }
            thread::park_timeout(PATIENCE);
        }
    }
    let instance = instance();
    let control = attach("control", &instance);
    let gateway = attach("gateway", &instance);
    let remote = thread::spawn(move || {
        let down = gateway.open_receiving(0).unwrap();
        for expected in 0..300 {
            block_on(poll_fn(|context| down.poll_event(context))).unwrap();
            let received = down.dequeue().unwrap();
            let mut bytes = [0; 4];
            received.copy_to(0, &mut bytes);
            assert_eq!(u32::from_le_bytes(bytes), expected);
            down.free(received).unwrap();
            if expected % 32 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
    });
    let down = control.open_sending(0).unwrap();
    for value in 0..300u32 {
        block_on(poll_fn(|context| down.poll_block(context))).unwrap();
        send(&down, value).unwrap();
    }
    remote.join().unwrap();
}

/// Two channels to control, so that it can wait for both.
static PLAN_OF_TWO: musubi_core::plan::Plan<'static> = musubi_core::plan::Plan {
    name: "channels-two",
    fifos: &[talk::fifo("first", 1, 0, 8, 64), talk::fifo("second", 1, 0, 8, 64)],
    ..talk::PLAN
};

fn attach_two(domain: &str, instance: &str) -> musubi_linux::Participant {
    let options = musubi_linux::Options::new(&PLAN_OF_TWO, domain);
    let options = musubi_linux::Options { instance: Some(instance.to_owned()), ..options };
    musubi_linux::Participant::attach(options).unwrap()
}

#[test]
fn one_waits_for_several_ends_at_once() {
    let instance = instance();
    let control = attach_two("control", &instance);
    let gateway = attach_two("gateway", &instance);
    let ends = [control.open_receiving(0).unwrap(), control.open_receiving(1).unwrap()];
    let both = [&ends[0], &ends[1]];
    let sending = [gateway.open_sending(0).unwrap(), gateway.open_sending(1).unwrap()];
    let most = musubi_core::channel::WAIT_MAX;
    assert_eq!(control.wait_any(&vec![&ends[0]; most + 1], Deadline::Poll), Err(Error::TooLong));
    assert_eq!(control.wait_any(&vec![&ends[0]; most], Deadline::Poll), Err(Error::Timeout));
    assert_eq!(control.wait_any(&both, Deadline::Poll), Err(Error::Timeout));
    let begin = Instant::now();
    assert_eq!(control.wait_any(&both, Deadline::after(Duration::from_millis(20))), Err(Error::Timeout));
    assert!(begin.elapsed() >= Duration::from_millis(20));
    // What is there already, at either.
    for (place, end) in ends.iter().enumerate() {
        send(&sending[place], place as u32).unwrap();
        assert_eq!(control.wait_any(&both, Deadline::after(PATIENCE)), Ok(()));
        assert_eq!(control.wait_any(&both, Deadline::Poll), Ok(()), "a level");
        assert_eq!(receive(end).unwrap(), place as u32);
        assert_eq!(control.wait_any(&both, Deadline::Poll), Err(Error::Timeout));
    }
    // What comes while it sleeps, at either. At last the sender is lost, which ends it too.
    let (asks, asked) = std::sync::mpsc::channel::<u64>();
    let sender = thread::spawn(move || {
        let _open = &gateway;
        for round in asked {
            thread::sleep(Duration::from_millis(round % 3));
            send(&sending[round as usize % 2], 7).unwrap();
        }
    });
    for round in 0..20 {
        let until = Deadline::after(PATIENCE);
        asks.send(round).unwrap();
        assert_eq!(control.wait_any(&both, until), Ok(()));
        assert!(!until.passed());
        assert_eq!(receive(&ends[round as usize % 2]).unwrap(), 7);
    }
    drop(asks);
    assert_eq!(control.wait_any(&both, Deadline::after(PATIENCE)), Ok(()));
    sender.join().unwrap();
}
