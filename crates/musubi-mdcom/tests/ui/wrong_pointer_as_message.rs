//! A type with a pointer in it is sent to another process.
use musubi_core::channel::Attachment;
use musubi_mdcom::Mdcom;

fn wrong<A: Attachment>(mdcom: Mdcom<'_, A>) {
    let _ = mdcom.sender_of::<&'static str>("a");
}

fn main() {}
