//! A value of another type than the channel's is sent.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Sender, Wait};

fn wrong<A: Attachment>(sender: &Sender<'_, A, u64>) {
    let _ = sender.send(1.5f32, Wait::Poll);
}

fn main() {}
