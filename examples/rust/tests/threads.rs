//! Which values may go from one thread to another, and which may be used by several: checked by the compiler.
#![forbid(unsafe_code)]

use musubi_linux::Participant;
use musubi_mdcom::{Bytes, Mdcom, Receiver, Sender, Shared};
use musubi_vipl::owned::process::{CompletionQueue, Nic, OwnRegion, ReceiveQueue, SendQueue, SharedRegion, Vi};
use musubi_vipl::owned::{Connected, Connecting, Idle, NextCompletion};
use musubi_vipl::process::ProcessNode;
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Mdcom<'static, Participant>: Send, Sync, Copy);
assert_impl_all!(Sender<'static, Participant, Bytes>: Send);
assert_impl_all!(Receiver<'static, Participant, Bytes>: Send);
assert_impl_all!(Shared<'static, Participant, u64>: Send);

// An end is used by one thread at a time; a program that wants more puts it into a lock.
assert_not_impl_any!(Sender<'static, Participant, Bytes>: Sync, Clone);
assert_not_impl_any!(Receiver<'static, Participant, Bytes>: Sync, Clone);
assert_not_impl_any!(Shared<'static, Participant, u64>: Sync, Clone);

// What is posted to a VI, and what is awaited, may be another thread's; a queue is posted to and awaited by one at a time.
assert_impl_all!(Nic: Send, Sync, Clone);
assert_impl_all!(OwnRegion: Send, Sync);
assert_impl_all!(SharedRegion: Send, Sync);
assert_impl_all!(Vi<Idle>: Send);
assert_impl_all!(Vi<Connected>: Send);
assert_impl_all!(SendQueue: Send);
assert_impl_all!(ReceiveQueue: Send);
assert_impl_all!(CompletionQueue: Send);
assert_impl_all!(NextCompletion<'static, ProcessNode>: Send, Unpin);
assert_impl_all!(Connecting<ProcessNode>: Send, Unpin);
assert_not_impl_any!(OwnRegion: Clone);
assert_not_impl_any!(SendQueue: Clone);
assert_not_impl_any!(ReceiveQueue: Clone);
assert_not_impl_any!(Vi<Connected>: Clone);
