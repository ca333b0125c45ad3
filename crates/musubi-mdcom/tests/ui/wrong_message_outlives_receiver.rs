//! A received message outlives its channel.
use musubi_core::channel::Attachment;
use musubi_mdcom::Receiver;

fn wrong<A: Attachment>(receiver: Receiver<'_, A, u64>) {
    let message = receiver.dequeue().unwrap();
    drop(receiver);
    let _ = message.read();
}

fn main() {}
