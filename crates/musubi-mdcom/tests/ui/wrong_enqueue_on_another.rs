//! A block is enqueued on another channel.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Sender, Wait};

fn wrong<A: Attachment>(sender: &Sender<'_, A, u64>, other: &Sender<'_, A, u32>) {
    let block = sender.alloc(Wait::Poll).unwrap();
    let _ = other.enqueue(block);
}

fn main() {}
