//! Active endpoints: a VI with its two queues of descriptors.
//!
//! What you may rely on: receives may be posted once it is enabled, before it is connected. A message waits until the other side
//! has posted a receive for it (`FI_RM_ENABLED`).
//!
//! How it works: the calls that post are [`crate::transfers`], those that connect [`crate::connections`].
//!
//! What it does not do: tagged messages, atomics, cancelling.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use musubi_transport::Priority;
use musubi_vipl::ViError;
use musubi_vipl::engine::{Dequeue, Queue, Reliability, ViAttributes, ViState};
use musubi_vipl::nic::{Awaited, CallerNumber, ViNumber};

use crate::abi::{self, ENOMEM, ENOSYS, EOPBADSTATE};
use crate::codes::code;
use crate::completions::Completions;
use crate::domain::{Core, Domain, ViSide};
use crate::events::{Events, QueuedEvent};
use crate::info::MESSAGE_BYTES_MAX;
use crate::object::{self, answer_int, take};
use crate::waiting::watching::await_that;
use crate::work::{Ended, Posted, RemoteMemory, Work, WorkContent};

/// What an enabled endpoint has.
pub(crate) struct Side {
    pub(crate) core: Arc<Core>,
    pub(crate) vi: ViNumber,
    sends: Mutex<Work>,
    receives: Mutex<Work>,
    /// Where completions of sends and of receives are told.
    queues: [Option<Arc<Completions>>; 2],
    pub(crate) is_selective: bool,
    events: Option<Arc<Events>>,
    is_open: Mutex<bool>,
    fid: usize,
    context: usize,
}

#[derive(Default)]
struct Bound {
    events: Option<Arc<Events>>,
    sends: Option<Arc<Completions>>,
    receives: Option<Arc<Completions>>,
    /// Sends are told of only if they ask for it.
    is_selective: bool,
}

/// What libfabric has of it.
pub(crate) struct Endpoint {
    domain: Domain,
    bound: Mutex<Bound>,
    /// Who asked, if it is to be accepted by this one.
    pub(crate) caller: Mutex<Option<CallerNumber>>,
    side: OnceLock<Arc<Side>>,
}

impl Endpoint {
    pub(crate) fn new(domain: Domain, caller: Option<CallerNumber>) -> Endpoint {
        Endpoint { domain, bound: Mutex::default(), caller: Mutex::new(caller), side: OnceLock::new() }
    }
}

/// # Safety
/// It is an endpoint.
pub(crate) unsafe fn of<'o>(fid: *mut c_void) -> &'o Endpoint {
    // SAFETY: the caller's promise.
    &unsafe { object::of::<Endpoint, 7>(fid) }.own
}

pub(crate) unsafe extern "C" fn bind(fid: *mut c_void, other: *mut c_void, flags: u64) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let mut bound = unsafe { of(fid) }.bound.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: every object begins with its class.
        match unsafe { take(other.cast::<usize>())? } {
            // SAFETY: the class says so.
            abi::CLASS_EQ => bound.events = Some(unsafe { crate::events::of(other) }),
            abi::CLASS_CQ => {
                // SAFETY: the class says so.
                let queue = unsafe { crate::completions::of(other) };
                if flags & abi::SEND != 0 {
                    bound.sends = Some(Arc::clone(&queue));
                    bound.is_selective = flags & abi::SELECTIVE_COMPLETION != 0;
                }
                if flags & abi::RECV != 0 {
                    bound.receives = Some(queue);
                }
            }
            _ => return Err(ENOSYS),
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn control(fid: *mut c_void, command: i32, _argument: *mut c_void) -> i32 {
    answer_int(|| {
        if command != abi::ENABLE {
            return Err(ENOSYS);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let object = unsafe { object::of::<Endpoint, 7>(fid) };
        object.own.enable(fid.expose_provenance(), object.context.expose_provenance())
    })
}

impl Endpoint {
    fn enable(&self, fid: usize, context: usize) -> Result<(), i32> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if self.side.get().is_some() {
            return Err(EOPBADSTATE);
        }
        let Domain { core, tag } = self.domain.clone();
        let attributes = ViAttributes {
            reliability: Reliability::Delivery,
            transfer_bytes_max: MESSAGE_BYTES_MAX,
            class: Priority::LEAST_URGENT.class(),
            tag,
            remote_write: true,
            remote_read: true,
            credit: true,
        };
        let number = |queue: &Option<Arc<Completions>>| queue.as_ref().map(|queue| queue.queue);
        let (to_sends, to_receives) = (number(&bound.sends), number(&bound.receives));
        let vi = core.nic.with(|nic| nic.create_vi(attributes, to_sends, to_receives)).map_err(code)?;
        let (sends, receives) = match (Work::new(&core.nic, tag), Work::new(&core.nic, tag)) {
            (Ok(sends), Ok(receives)) => (Mutex::new(sends), Mutex::new(receives)),
            (one, other) => {
                // Nothing is left behind; whatever fails here, the NIC is closed and has nothing of it.
                for work in [&one, &other].into_iter().flatten() {
                    let _ = core.nic.with(|nic| nic.deregister(work.address, work.handle));
                }
                let _ = core.nic.with(|nic| nic.destroy_vi(vi));
                return Err(one.err().or(other.err()).unwrap_or(ENOMEM));
            }
        };
        let side = Arc::new(Side {
            core: Arc::clone(&core),
            vi,
            sends,
            receives,
            queues: [bound.sends.clone(), bound.receives.clone()],
            is_selective: bound.is_selective,
            events: bound.events.clone(),
            is_open: Mutex::new(true),
            fid,
            context,
        });
        let told: Arc<dyn ViSide> = side.clone();
        core.sides.lock().unwrap_or_else(PoisonError::into_inner).insert(vi, told);
        self.side.set(side).map_err(|_| EOPBADSTATE)
    }

    /// The enabled one's.
    pub(crate) fn side(&self) -> Result<&Arc<Side>, i32> {
        self.side.get().ok_or(EOPBADSTATE)
    }
}

impl Side {
    fn work(&self, queue: Queue) -> std::sync::MutexGuard<'_, Work> {
        let work = if queue == Queue::Send { &self.sends } else { &self.receives };
        work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kind: u32, error: i32, data: Vec<u8>) {
        // Of an endpoint that is closed nobody hears: it is closed before, or after the event is there to be forgotten.
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = self.events.as_ref().filter(|_| *is_open) {
            events.push(QueuedEvent { kind, fid: self.fid, context: self.context, info: 0, error, data });
        }
    }

    /// Tells how connecting or accepting ended, with what the other side said.
    pub(crate) fn connected(&self, result: Result<(), ViError>, data: Vec<u8>) {
        self.push(abi::CONNECTED, result.map_or_else(code, |()| 0), data);
    }

    /// Whether the program has not closed it.
    pub(crate) fn is_open(&self) -> bool {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a connection that was made, and tells of it, unless the program has ended it.
    pub(crate) fn tell_end(&self, is_made: bool) {
        if is_made && await_that(&self.core.nic, Awaited::End(self.vi), || self.is_open()) {
            let state = self.core.nic.with(|nic| Ok(nic.query_vi(self.vi)?.state));
            if state == Ok(ViState::Error) {
                self.push(abi::SHUTDOWN, 0, Vec::new());
            }
        }
    }

    /// Posts a descriptor.
    pub(crate) fn post(
        &self,
        queue: Queue,
        (what, remote): (&WorkContent<'_>, RemoteMemory),
        immediate: Option<u32>,
        posted: Posted,
    ) -> Result<usize, i32> {
        let mut work = self.work(queue);
        let address = work.write(what, remote, immediate, posted)?;
        if let Err(error) = self.core.nic.post(self.vi, queue, (address, work.handle)) {
            work.take(address);
            return Err(code(error));
        }
        Ok(0)
    }

    /// Ends the VI: what is posted is flushed, which its completion queues still tell.
    pub(crate) fn end(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.core.sides.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.vi);
        // Whatever fails here, the NIC is closed and has nothing of it.
        let _ = self.core.nic.disconnect(self.vi);
        for (queue, told) in [Queue::Send, Queue::Receive].into_iter().zip(&self.queues) {
            let mut work = self.work(queue);
            while let Ok(Dequeue::Complete { address, .. }) = self.core.nic.dequeue(self.vi, queue) {
                if let (Some(ended), Some(told)) = (work.take(address), told) {
                    told.leave(queue, ended);
                }
            }
            let (address, handle) = (work.address, work.handle);
            drop(work);
            let _ = self.core.nic.with(|nic| nic.deregister(address, handle));
        }
        let _ = self.core.nic.with(|nic| nic.destroy_vi(self.vi));
        self.events.iter().for_each(|events| events.forget(self.fid));
    }
}

impl ViSide for Side {
    fn ended(&self, queue: Queue, address: u64) -> Option<Ended> {
        self.work(queue).take(address)
    }
}

pub(crate) unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        if let Ok(side) = unsafe { of(fid) }.side() {
            side.end();
        }
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Endpoint, 7>(fid) };
        Ok(())
    })
}
