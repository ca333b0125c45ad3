//! The right way, so that the others fail for their one mistake only.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Bytes, Mdcom, Receiver, Sender, Shared, Wait};

fn send<A: Attachment>(sender: &mut Sender<'_, A, Bytes>) {
    let mut block = sender.alloc(Wait::Poll).unwrap();
    let other = sender.alloc(Wait::Poll).unwrap();
    block[0] = 1;
    block.enqueue(1).map_err(|rejected| rejected.error).unwrap();
    other.free();
    sender.notify();
    sender.reset();
}

fn receive<A: Attachment>(receiver: &mut Receiver<'_, A, u64>) -> u64 {
    let message = receiver.next(Wait::Forever).unwrap();
    let value = message.read().unwrap();
    message.free();
    receiver.reset();
    value
}

fn share<A: Attachment>(shared: &mut Shared<'_, A, u64>) {
    let mut guard = shared.try_lock().unwrap();
    guard.write(&1);
    drop(guard);
    drop(shared.lock(Wait::Poll).unwrap());
}

#[allow(dead_code, reason = "checked, not run: that takes a port")]
fn all<A: Attachment>(attachment: A)
where
    A::Error: std::fmt::Debug,
{
    let mdcom = Mdcom::init(&attachment);
    send(&mut mdcom.sender("a").unwrap());
    receive(&mut mdcom.receiver_of("b").unwrap());
    share(&mut mdcom.shared("c", Wait::Poll).unwrap());
    drop(attachment);
}

fn main() {}
