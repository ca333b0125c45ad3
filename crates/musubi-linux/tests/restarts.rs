//! What lasts over restarts, and what must not: cases that a review found.

mod talk;

use std::thread;
use std::time::Duration;

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, SendingEnd, SharedSegment};
use musubi_linux::{DeadlineExt, Participant};
use talk::{attach, instance, receive, send, soon};

fn ms(n: u64) -> Deadline {
    Deadline::after(Duration::from_millis(n))
}
fn settle() {
    thread::sleep(Duration::from_millis(60));
}

#[test]
fn a_held_block_outlives_a_forgotten_sender() {
    let i = instance();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    send(&tx, 7).unwrap();
    down.wait(soon()).unwrap();
    let held = down.dequeue().unwrap();
    drop(tx);
    drop(control);
    settle();
    for _ in 0..5 {
        let control = attach("control", &i);
        let tx = control.open_sending(0).unwrap();
        send(&tx, 8).unwrap();
        settle();
        drop(tx);
        drop(control);
        settle();
    }
    let _ = down.wait(Deadline::Poll);
    let mut b = [0; 4];
    held.copy_to(0, &mut b);
    assert_eq!(b, [7, 0, 0, 0]);
    assert!(down.free(held).is_ok());
}

/// Waits until somebody receives, or nobody.
fn until_received(end: &musubi_linux::SendingEnd, received: bool) {
    let deadline = soon();
    while end.receiver().is_some() != received {
        assert!(!deadline.passed(), "receiver: {:?}", end.receiver());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_event_of_a_former_receiver_is_not_its_successors() {
    let i = instance();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    // Raises an event and goes.
    let raise_and_go = || {
        let gateway = attach("gateway", &i);
        let down = gateway.open_receiving(0).unwrap();
        until_received(&tx, true);
        send(&tx, 1).unwrap();
        assert!(receive(&down).is_ok());
        down.notify();
        let receiver = tx.receiver().unwrap();
        drop(down);
        drop(gateway);
        until_received(&tx, false);
        receiver
    };
    let first = raise_and_go();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    until_received(&tx, true);
    let second = tx.receiver().unwrap();
    send(&tx, 2).unwrap();
    assert!(receive(&down).is_ok());
    assert!(tx.take_loss());
    assert!(tx.look().event);
    assert_eq!(tx.wait_for(first, soon()), Err(Error::PeerGone));
    assert_eq!(tx.wait_for(second, Deadline::Poll), Err(Error::Timeout));
    down.notify();
    assert_eq!(tx.wait_for(second, soon()), Ok(()));
    drop(down);
    drop(gateway);
    until_received(&tx, false);
    // Who asks for an event of anybody has it.
    raise_and_go();
    assert_eq!(tx.wait(Deadline::Poll), Ok(()));
}

#[test]
fn a_channel_has_one_handle_of_its_shared_memory() {
    let i = instance();
    let control = attach("control", &i);
    let gateway = attach("gateway", &i);
    let first = control.open_segment_();
    first.try_lock().unwrap();
    assert!(Attachment::open_segment(&control, 0, soon()).is_err());
    let other = gateway.open_segment_();
    assert_eq!(other.try_lock(), Err(Error::Locked));
    drop(first);
    assert_eq!(control.open_segment_().try_lock(), Ok(()));
}

trait O {
    fn open_segment_(&self) -> musubi_linux::SharedEnd;
}
impl O for Participant {
    fn open_segment_(&self) -> musubi_linux::SharedEnd {
        Attachment::open_segment(self, 0, soon()).unwrap()
    }
}

#[test]
fn a_new_sender_hears_no_event_of_its_predecessor() {
    let i = instance();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    send(&tx, 1).unwrap();
    receive(&down).unwrap();
    down.notify();
    tx.wait(soon()).unwrap();
    drop(tx);
    drop(control);
    settle();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    settle();
    let _ = down.wait(Deadline::Poll);
    let _ = down.wait(Deadline::Poll);
    assert_eq!(tx.wait(ms(100)), Err(Error::Timeout), "no event was raised for this sender");
}

#[test]
fn arming_goes_on_to_the_next_sender() {
    let i = instance();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    let _fd = down.event_fd().unwrap();
    down.arm();
    settle();
    send(&tx, 1).unwrap();
    drop(tx);
    drop(control);
    settle();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    settle();
    send(&tx, 2).unwrap();
    settle();
    assert!(down.arm());
    let m = down.dequeue().unwrap();
    let _ = down.free(m);
    let (armed, loss) = (down.arm(), down.has_loss());
    thread::sleep(Duration::from_millis(200));
    let fd = down.event_fd().unwrap();
    let mut p = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let readable = rustix::event::poll(&mut p, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    let queued = (down.wait(Deadline::Poll), down.wait(Deadline::Poll));
    assert!(armed || loss || readable > 0, "arm said nothing, fd stays silent, but wait says {queued:?}");
}

#[test]
fn an_event_loop_hears_of_a_loss() {
    let i = instance();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    let _fd = down.event_fd().unwrap();
    down.arm();
    settle();
    send(&tx, 1).unwrap();
    drop(tx);
    drop(control);
    settle();
    assert!(down.arm());
    let m = down.dequeue().unwrap();
    let _ = down.free(m);
    let armed = down.arm();
    assert!(armed || down.has_loss(), "armed {armed}, loss not told");
}

/// The loss comes to be known by the very step that prepares the sleep, which nothing would end.
#[test]
fn nobody_falls_asleep_over_a_loss() {
    let i = instance();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    settle();
    assert!(!down.has_loss(), "the sender is known");
    drop(tx);
    drop(control);
    settle();
    let (_, ready) = down.prepare_sleep();
    down.finish_sleep();
    assert!(ready, "a thread would sleep here for ever");
    assert_eq!(down.wait(Deadline::Forever), Err(Error::PeerGone));
}

#[test]
fn a_handle_that_outlives_its_participant_delivers_nothing() {
    let i = instance();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    let gateway = attach("gateway", &i);
    let down = gateway.open_receiving(0).unwrap();
    for v in 1..4 {
        send(&tx, v).unwrap();
    }
    assert_eq!(receive(&down), Ok(1));
    gateway.leave();
    settle();
    let first = receive(&down);
    let gateway = attach("gateway", &i);
    let down2 = gateway.open_receiving(0).unwrap();
    let second = receive(&down2);
    assert_ne!(first, second, "delivered twice");
}

#[test]
fn a_reset_leaves_loans_alone() {
    let i = instance();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    let mut loans: Vec<_> = (0..8).map(|_| tx.allocate(Deadline::Poll).unwrap()).collect();
    tx.reset();
    assert_eq!(tx.allocate(Deadline::Poll).unwrap_err(), Error::NoBlock);
    loans.drain(..).for_each(|loan| tx.free(loan).unwrap());
    assert_eq!(tx.usage().free, 8);
}

#[test]
fn what_an_unseen_receiver_gave_back_is_not_abandoned() {
    let i = instance();
    let control = attach("control", &i);
    let tx = control.open_sending(0).unwrap();
    let g1 = attach("gateway", &i);
    let d1 = g1.open_receiving(0).unwrap();
    settle();
    for v in 0..3 {
        send(&tx, v).unwrap();
    }
    drop(d1);
    drop(g1);
    settle();
    let g2 = attach("gateway", &i);
    let d2 = g2.open_receiving(0).unwrap();
    settle();
    for v in 0..3 {
        assert_eq!(receive(&d2), Ok(v));
    }
    drop(d2);
    drop(g2);
    settle();
    let g3 = attach("gateway", &i);
    let _d3 = g3.open_receiving(0).unwrap();
    settle();
    assert_eq!(tx.usage().free, 8);
    let control_info = g3.peers().into_iter().find(|p| p.domain == 0).unwrap();
    let part = control_info.section.part(musubi_core::layout::Part::Tx(0)).unwrap();
    assert_eq!(part.words().get(musubi_core::layout::tx::ABANDONED), 0, "all three were dequeued and freed");
}

#[test]
fn a_dropped_handle_gives_the_lock_back() {
    let i = instance();
    let control = attach("control", &i);
    let gateway = attach("gateway", &i);
    let a = control.open_segment_();
    a.try_lock().unwrap();
    drop(a);
    assert_eq!(gateway.open_segment_().try_lock(), Ok(()));
}
