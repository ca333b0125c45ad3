//! A block is enqueued twice.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Bytes, Sender, Wait};

fn wrong<A: Attachment>(sender: &Sender<'_, A, Bytes>) {
    let block = sender.alloc(Wait::Poll).unwrap();
    let _ = block.enqueue(1);
    let _ = block.enqueue(1);
}

fn main() {}
