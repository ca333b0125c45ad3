//! Shared memory is written without the lock.
use musubi_core::channel::Attachment;
use musubi_mdcom::Shared;

fn wrong<A: Attachment>(shared: &mut Shared<'_, A, u64>) {
    shared.write(&1);
}

fn main() {}
