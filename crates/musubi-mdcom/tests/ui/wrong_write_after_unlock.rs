//! Shared memory is written after it was unlocked.
use musubi_core::channel::Attachment;
use musubi_mdcom::Shared;

fn wrong<A: Attachment>(shared: &mut Shared<'_, A, u64>) {
    let mut guard = shared.try_lock().unwrap();
    drop(guard);
    guard.write(&1);
}

fn main() {}
