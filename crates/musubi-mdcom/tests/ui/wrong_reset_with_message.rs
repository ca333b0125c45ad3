//! A channel is initialised again while a message is in hand.
use musubi_core::channel::Attachment;
use musubi_mdcom::Receiver;

fn wrong<A: Attachment>(mut receiver: Receiver<'_, A, u64>) {
    let message = receiver.dequeue().unwrap();
    receiver.reset();
    let _ = message.read();
}

fn main() {}
