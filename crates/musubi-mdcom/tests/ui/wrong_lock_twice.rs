//! The lock is taken while it is held.
use musubi_core::channel::Attachment;
use musubi_mdcom::{Shared, Wait};

fn wrong<A: Attachment>(shared: &mut Shared<'_, A, u64>) {
    let guard = shared.try_lock().unwrap();
    let _ = shared.lock(Wait::Forever);
    drop(guard);
}

fn main() {}
