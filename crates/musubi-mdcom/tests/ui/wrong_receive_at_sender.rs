//! The sending end receives.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Bytes, Sender};

fn wrong<A: Attachment>(sender: &Sender<'_, A, Bytes>) {
    let _ = sender.dequeue();
}

fn main() {}
