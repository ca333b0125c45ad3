//! A message is read after its block was given back.
use musubi_core::channel::Attachment;
use musubi_mdcom::Receiver;

fn wrong<A: Attachment>(receiver: &Receiver<'_, A, u64>) {
    let message = receiver.dequeue().unwrap();
    message.free();
    let _ = message.read();
}

fn main() {}
