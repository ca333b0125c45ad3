//! Which values may go from one thread to another, and which may be used by several: checked by the compiler.
#![forbid(unsafe_code)]

use musubi_linux::Participant;
use musubi_mdcom::{Bytes, Mdcom, Receiver, Sender, Shared};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Mdcom<'static, Participant>: Send, Sync, Copy);
assert_impl_all!(Sender<'static, Participant, Bytes>: Send);
assert_impl_all!(Receiver<'static, Participant, Bytes>: Send);
assert_impl_all!(Shared<'static, Participant, u64>: Send);

// An end is used by one thread at a time; a program that wants more puts it into a lock.
assert_not_impl_any!(Sender<'static, Participant, Bytes>: Sync, Clone);
assert_not_impl_any!(Receiver<'static, Participant, Bytes>: Sync, Clone);
assert_not_impl_any!(Shared<'static, Participant, u64>: Sync, Clone);
