//! A channel is initialised again while a block is in hand.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Sender, Wait};

fn wrong<A: Attachment>(mut sender: Sender<'_, A, u64>) {
    let block = sender.alloc(Wait::Poll).unwrap();
    sender.reset();
    let _ = block.enqueue();
}

fn main() {}
