//! The handlers that a program has set with one NIC, and the thread that calls them.
//!
//! What you may rely on: a handler that was set for a completion is called once, by a thread of the library, without a lock, so
//! it may call any function, close the NIC too. Handlers of one NIC are called one at a time.
//!
//! How it works: a thread, which begins with the first handler, waits for whatever a handler was set for. What it finds it takes
//! and hands on.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use musubi_linux::clock::now_ns;
use musubi_transport::runtime::{Block, Deadline};
use musubi_vipl::engine::{AsyncError, Dequeue, Operation, Queue, Status as DescriptorStatus};
use musubi_vipl::nic::{ErrorNews, NicState, QueueNumber, ViNumber};
use musubi_vipl::process::Nic;

use crate::abi::{Boolean, DescriptorHandler, ErrorDescriptor, ErrorHandler, Handle, QueueHandler, Ulong};
use crate::handles::{self, HandleKind, NicKey};
use crate::status::Status;

/// What a program wants its handler to be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: it is handed back to the program and never followed; the header says that another thread does so.
unsafe impl Send for Context {}

/// A handler that was set for one completion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Armed {
    Descriptor { vi: ViNumber, queue: Queue, context: Context, handler: DescriptorHandler },
    Completion { queue: QueueNumber, context: Context, handler: QueueHandler },
}

/// The handlers of an opened NIC.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    set: Arc<Mutex<SetHandlers>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct SetHandlers {
    armed: Vec<Armed>,
    of_errors: Option<(Context, ErrorHandler)>,
}

/// What a handler is called for.
enum Due {
    Descriptor { vi: ViNumber, context: Context, handler: DescriptorHandler, address: u64 },
    Completion { context: Context, handler: QueueHandler, vi: ViNumber, of: Queue },
    Error { context: Context, handler: ErrorHandler, news: ErrorNews },
}

impl Due {
    /// Whose completion it is.
    fn vi(&self) -> Option<ViNumber> {
        match self {
            Due::Descriptor { vi, .. } | Due::Completion { vi, .. } => Some(*vi),
            Due::Error { .. } => None,
        }
    }
}

/// Most handlers that are set for completions and were not called.
const ARMED_MAX: usize = 65_536;

impl Handlers {
    fn lock(&self) -> MutexGuard<'_, SetHandlers> {
        locked(&self.set)
    }

    /// Sets a handler for a completion.
    pub(crate) fn arm(&self, nic: &Nic, key: NicKey, armed: Armed) -> Result<(), Status> {
        let mut set = self.lock();
        if set.armed.len() >= ARMED_MAX {
            return Err(Status::ErrorResource);
        }
        set.armed.push(armed);
        drop(set);
        self.begin(nic, key)?;
        Ok(nic.rouse()?)
    }

    /// Sets the handler of errors, or takes it back.
    pub(crate) fn set_of_errors(
        &self,
        nic: &Nic,
        key: NicKey,
        handler: Option<(Context, ErrorHandler)>,
    ) -> Result<(), Status> {
        let is_one = handler.is_some();
        self.lock().of_errors = handler;
        if is_one {
            self.begin(nic, key)?;
            nic.rouse()?;
        }
        Ok(())
    }

    /// Whether there is a handler of errors.
    pub(crate) fn has_one_of_errors(&self) -> bool {
        self.lock().of_errors.is_some()
    }

    /// The handlers of a VI that is no more are not called.
    pub(crate) fn forget_vi(&self, gone: ViNumber) {
        self.lock().armed.retain(|armed| !matches!(armed, Armed::Descriptor { vi, .. } if *vi == gone));
    }

    /// The same of a completion queue.
    pub(crate) fn forget_queue(&self, gone: QueueNumber) {
        self.lock().armed.retain(|armed| !matches!(armed, Armed::Completion { queue, .. } if *queue == gone));
    }

    /// Begins the thread, if it has not.
    fn begin(&self, nic: &Nic, key: NicKey) -> Result<(), Status> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (set, nic) = (Arc::clone(&self.set), nic.clone());
            let name = String::from("vipl handlers");
            let spawned = std::thread::Builder::new().name(name).spawn(move || serve(&set, &nic, key));
            *thread = Some(spawned.map_err(|_| Status::ErrorResource)?);
        }
        Ok(())
    }

    /// The NIC was closed: waits for the thread, unless this is it.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // Handlers are C: it ended by returning.
            let _ = thread.join();
        }
    }
}

impl SetHandlers {
    /// What is due next; a handler of a completion is taken out.
    fn next(&mut self, nic: &mut NicState<Block>) -> Option<Due> {
        if let Some((context, handler)) = self.of_errors
            && let Some(news) = nic.take_news()
        {
            return Some(Due::Error { context, handler, news });
        }
        for place in 0..self.armed.len() {
            let due = match self.armed[place] {
                Armed::Descriptor { vi, queue, context, handler } => match nic.dequeue(vi, queue) {
                    Ok(Dequeue::Complete { address, .. }) => Due::Descriptor { vi, context, handler, address },
                    _ => continue,
                },
                Armed::Completion { queue, context, handler } => match nic.take_completion(queue) {
                    Ok(Some((vi, of))) => Due::Completion { context, handler, vi, of },
                    _ => continue,
                },
            };
            self.armed.remove(place);
            return Some(due);
        }
        None
    }
}

/// Calls handlers until the NIC is closed.
fn serve(set: &Mutex<SetHandlers>, nic: &Nic, key: NicKey) {
    musubi_linux::signals::leave_to_program();
    // Of which VI the last one was, and how long it took.
    let mut last: Option<(ViNumber, u64)> = None;
    while let Ok(due) = nic.wait_until(Deadline::Forever, |nic| {
        if let Some((vi, took_ns)) = last.take() {
            nic.note_handled(vi, took_ns);
        }
        locked(set).next(nic)
    }) {
        let (vi, begun_ns) = (due.vi(), now_ns());
        call(key, due);
        last = vi.map(|vi| (vi, now_ns().saturating_sub(begun_ns)));
    }
}

fn locked(set: &Mutex<SetHandlers>) -> MutexGuard<'_, SetHandlers> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

fn call(key: NicKey, due: Due) {
    let nic = handles::handle(HandleKind::Nic, key, 0);
    let vi_handle = |vi: ViNumber| handles::handle(HandleKind::Vi, key, vi.0);
    match due {
        Due::Descriptor { vi, context, handler, address } => {
            let descriptor = core::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: the program gave the handler for this, with the context that it wants.
            unsafe { handler(context.0, nic, vi_handle(vi), descriptor) };
        }
        Due::Completion { context, handler, vi, of } => {
            // SAFETY: as above.
            unsafe { handler(context.0, nic, vi_handle(vi), Boolean::from(of == Queue::Receive)) };
        }
        Due::Error { context, handler, news } => {
            let mut told = error_descriptor(nic, &news, key);
            // SAFETY: as above; the descriptor of the error lives during the call.
            unsafe { handler(context.0, &raw mut told) };
        }
    }
}

/// `VIP_RESOURCE_CODE`.
const RESOURCE_NIC: u32 = 0;
const RESOURCE_VI: u32 = 1;
const RESOURCE_QUEUE: u32 = 2;
const RESOURCE_DESCRIPTOR: u32 = 3;

/// `VIP_STATUS_OP_...` of the operation that an error is about, where only one can be.
fn operation_of(error: AsyncError) -> Ulong {
    let operation = match error {
        AsyncError::ReceiveQueueEmpty => DescriptorStatus::OP_RECEIVE,
        AsyncError::WriteProtection | AsyncError::WriteData | AsyncError::WriteAborted => {
            DescriptorStatus::OP_REMOTE_WRITE
        }
        AsyncError::ReadProtection => DescriptorStatus::of_send(Operation::Read),
        _ => DescriptorStatus::default(),
    };
    Ulong::from(operation.0)
}

fn error_descriptor(nic: Handle, news: &ErrorNews, key: NicKey) -> ErrorDescriptor {
    let resource_code = match news {
        ErrorNews { queue: Some(_), .. } => RESOURCE_QUEUE,
        ErrorNews { error: AsyncError::PostDescriptor, .. } => RESOURCE_DESCRIPTOR,
        ErrorNews { vi: Some(_), .. } => RESOURCE_VI,
        _ => RESOURCE_NIC,
    };
    let handle =
        |kind, number: Option<u32>| number.map_or(core::ptr::null_mut(), |number| handles::handle(kind, key, number));
    ErrorDescriptor {
        nic,
        vi: handle(HandleKind::Vi, news.vi.map(|vi| vi.0)),
        queue: handle(HandleKind::Queue, news.queue.map(|queue| queue.0)),
        descriptor: core::ptr::with_exposed_provenance_mut(news.descriptor as usize),
        op_code: operation_of(news.error),
        resource_code,
        error_code: news.error as u32,
    }
}
