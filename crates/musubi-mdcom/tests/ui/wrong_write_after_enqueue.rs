//! A block is written after it was sent.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Sender, Wait};

fn wrong<A: Attachment>(sender: &Sender<'_, A, u64>) {
    let mut block = sender.alloc(Wait::Poll).unwrap();
    let value = &mut *block;
    let _ = block.enqueue();
    *value = 1;
}

fn main() {}
