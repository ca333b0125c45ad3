//! Which node a thread belongs to, and the nodes of this process.
//!
//! What you may rely on: a call of a thread that knows its node takes no lock here and no reference count. A node that
//! has been ended is found by nobody.
//!
//! How it works: a thread that initialised a node keeps it, also after its end (so that it hears that it has none). Other
//! threads belong to the oldest living node of the process; they remember which that was, together with a count of
//! beginnings and ends. A child made by `fork` has none of its parent's nodes, and may begin its own.
//!
//! What it does not do: end a node whose thread ended without saying so, as other threads may use it; its number is
//! free for another thread of the process all the same.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock, TryLockError};

use musubi_mcapi::NodeId;
use musubi_mcapi::process::Running as Node;
use musubi_transport::notices;
use musubi_transport::runtime::Options;

use super::node::ThreadNode;
use super::status::Status;
use crate::mdcom::failure::{Failure, note};

/// What is kept of a node's life.
#[derive(Debug)]
pub(crate) struct Life {
    ended: AtomicBool,
    /// [`FORKS`] when it began.
    forks: u64,
    /// The thread that initialised it has ended.
    orphaned: AtomicBool,
}

impl ThreadNode {
    /// Whether it has not been ended, and is of this process.
    #[inline]
    fn lives(&self) -> bool {
        !self.life.ended.load(Ordering::Acquire) && self.life.forks == FORKS.load(Ordering::Relaxed)
    }

    /// Whether the thread that has it is gone, or it has been ended.
    fn is_vacant(&self) -> bool {
        !self.lives() || self.life.orphaned.load(Ordering::Acquire)
    }

    fn finish(&self) -> Result<(), Status> {
        if self.life.ended.swap(true, Ordering::AcqRel) {
            return Err(Status::NodeNotInit);
        }
        let mut nodes = NODES.write().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|other| !std::ptr::eq(Arc::as_ptr(other), self));
        CHANGES.fetch_add(1, Ordering::Release);
        drop(nodes);
        // What a program has not released stays readable for it.
        self.held().leave(self.node.id());
        self.node.finish()?;
        Ok(())
    }
}

/// The living nodes of this process, the oldest first.
static NODES: RwLock<Vec<Arc<ThreadNode>>> = RwLock::new(Vec::new());
/// Beginnings and ends.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// How many forks lie between this process and the one that first began a node.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts forks from now on.
fn notice_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler lives as long as the program and changes two words.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// In a child, sets the parent's nodes aside: they must not be ended by it, nor found.
fn leave_to_parent() {
    let mut nodes = NODES.write().unwrap_or_else(PoisonError::into_inner);
    let forks = FORKS.load(Ordering::Relaxed);
    for foreign in nodes.extract_if(.., |bound| bound.life.forks != forks) {
        std::mem::forget(foreign);
    }
}

/// The living nodes; none where another thread is just changing them.
pub(crate) fn living() -> Vec<Arc<ThreadNode>> {
    let nodes = match NODES.try_read() {
        Ok(nodes) => nodes,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Vec::new(),
    };
    nodes.iter().filter(|bound| bound.lives()).cloned().collect()
}

/// What a thread knows.
enum Known {
    Nothing,
    /// Its own node; may have been ended.
    Own(Arc<ThreadNode>),
    /// The process's, as of so many changes.
    Inherited(u64, Arc<ThreadNode>),
}

/// Says that the thread has ended.
struct Thread(RefCell<Known>);

impl Drop for Thread {
    fn drop(&mut self) {
        if let Known::Own(bound) = self.0.get_mut() {
            bound.life.orphaned.store(true, Ordering::Release);
        }
    }
}

thread_local! {
    static THREAD: Thread = const { Thread(RefCell::new(Known::Nothing)) };
}

/// Calls `by` with the node of the calling thread.
#[inline]
pub(crate) fn bound<R>(by: impl FnOnce(&ThreadNode) -> Result<R, Status>) -> Result<R, Status> {
    let called = THREAD.try_with(|thread| {
        let known = thread.0.borrow();
        match &*known {
            Known::Own(bound) if bound.lives() => by(bound),
            Known::Inherited(changes, bound) if *changes == CHANGES.load(Ordering::Acquire) => by(bound),
            Known::Own(_) => Err(Status::NodeNotInit),
            _ => {
                drop(known);
                inherit(thread)?;
                match &*thread.0.borrow() {
                    Known::Inherited(_, bound) => by(bound),
                    _ => Err(Status::NodeNotInit),
                }
            }
        }
    });
    // While a thread is torn down it has no node any more.
    called.unwrap_or(Err(Status::NodeNotInit))
}

/// Makes the oldest node of the process the thread's.
#[cold]
fn inherit(thread: &Thread) -> Result<(), Status> {
    let nodes = NODES.read().unwrap_or_else(PoisonError::into_inner);
    let changes = CHANGES.load(Ordering::Acquire);
    *thread.0.borrow_mut() = Known::Nothing;
    let oldest = nodes.iter().find(|bound| bound.lives()).ok_or(Status::NodeNotInit)?;
    *thread.0.borrow_mut() = Known::Inherited(changes, Arc::clone(oldest));
    Ok(())
}

/// Starts a node and makes it the calling thread's; gives what `told` makes of it.
pub(crate) fn initialize<R>(domain: u32, node: u32, told: impl FnOnce(&Node) -> R) -> Result<R, Status> {
    if domain > musubi_mcapi::limits::DOMAIN_MAX {
        return Err(Status::DomainInvalid);
    }
    let id = NodeId::new(domain, node).ok_or(Status::NodeInvalid)?;
    let started = THREAD.try_with(|thread| {
        if matches!(&*thread.0.borrow(), Known::Own(bound) if bound.lives()) {
            return Err(Status::NodeInitialized);
        }
        notice_forks();
        leave_to_parent();
        let bound = Arc::new(start(id)?);
        let result = told(&bound.node);
        let mut nodes = NODES.write().unwrap_or_else(PoisonError::into_inner);
        nodes.push(Arc::clone(&bound));
        CHANGES.fetch_add(1, Ordering::Release);
        *thread.0.borrow_mut() = Known::Own(bound);
        Ok(result)
    });
    started.unwrap_or(Err(Status::NodeInitFailed))
}

fn start(id: NodeId) -> Result<ThreadNode, Status> {
    let topology = musubi_config::topology_from_env_by(crate::reading::read).map_err(|report| {
        let text = report.render(false);
        notices::say(|| text.clone());
        note(Failure::with_text(crate::mdcom::status::Status::Description, text));
        Status::NodeInitFailed
    })?;
    clear_vacant(id)?;
    let node = Node::start(Arc::new(topology), id, Options::default())?;
    let (ended, orphaned) = (AtomicBool::new(false), AtomicBool::new(false));
    Ok(ThreadNode::new(node, Life { ended, forks: FORKS.load(Ordering::Relaxed), orphaned }))
}

/// Ends a node of this number whose thread has gone.
///
/// # Errors
/// [`Status::NodeInitialized`] if another thread has it.
fn clear_vacant(id: NodeId) -> Result<(), Status> {
    let nodes = NODES.read().unwrap_or_else(PoisonError::into_inner);
    let same = nodes.iter().find(|bound| bound.node.id() == id).cloned();
    drop(nodes);
    match same {
        Some(bound) if bound.is_vacant() => {
            // Another thread may be at it too.
            let _ = bound.finish();
            Ok(())
        }
        Some(_) => Err(Status::NodeInitialized),
        None => Ok(()),
    }
}

/// Ends the calling thread's node.
pub(crate) fn finalize() -> Result<(), Status> {
    bound(ThreadNode::finish)
}
