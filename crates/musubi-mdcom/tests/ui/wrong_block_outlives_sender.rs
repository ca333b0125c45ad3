//! A block outlives its channel.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Sender, Wait};

fn wrong<A: Attachment>(sender: Sender<'_, A, u64>) {
    let mut block = sender.alloc(Wait::Poll).unwrap();
    drop(sender);
    *block = 1;
}

fn main() {}
