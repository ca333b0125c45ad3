//! A channel is used after its attachment has ended.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Mdcom, Wait};

fn wrong<A: Attachment>(attachment: A)
where
    A::Error: std::fmt::Debug,
{
    let sender = Mdcom::init(&attachment).sender_of::<u64>("a").unwrap();
    drop(attachment);
    let _ = sender.send(1, Wait::Poll);
}

fn main() {}
