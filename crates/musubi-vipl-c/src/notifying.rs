//! Handlers: of one completion each (`VipSendNotify`, `VipRecvNotify`, `VipCQNotify`), and of errors (`VipErrorCallback`).
//!
//! What you may rely on: as [`crate::handlers`] says. Without a handler errors are said on the standard error, once a text.

use core::ffi::c_void;

use musubi_transport::notices;
use musubi_vipl::engine::{AsyncError, Queue};
use musubi_vipl::nic::{QueueNumber, ViNumber};

use crate::abi::{DescriptorHandler, ErrorHandler, Handle, QueueHandler};
use crate::handlers::{Armed, Context};
use crate::handles::{self, HandleKind};
use crate::nics::{self, OpenNic};
use crate::status::{Status, answer};

/// Says errors for which no handler is set.
pub(crate) fn say_errors(open: &OpenNic) {
    if open.handlers.has_one_of_errors() {
        return;
    }
    while let Ok(Some(news)) = open.nic.with(|nic| Ok(nic.take_news())) {
        // Every orderly end is one for the other side.
        if news.error == AsyncError::ConnectionLost && notices::level() < 2 {
            continue;
        }
        notices::say(|| format!("VI {:#x} of NIC {}: {:?}", news.vi.map_or(0, |vi| vi.0), open.key.0, news.error));
    }
}

fn notify(
    vi_handle: Handle,
    queue: Queue,
    context: *mut c_void,
    handler: Option<DescriptorHandler>,
) -> Result<(), Status> {
    let (key, vi) = handles::read(HandleKind::Vi, vi_handle)?;
    let open = nics::find(key)?;
    let handler = handler.ok_or(Status::InvalidParameter)?;
    let vi = ViNumber(vi);
    if open.nic.with(|nic| nic.has_completion_queue(vi, queue))? {
        return Err(Status::ErrorResource);
    }
    open.handlers.arm(&open.nic, key, Armed::Descriptor { vi, queue, context: Context(context), handler })
}

/// `VipSendNotify`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendNotify(vi: Handle, context: *mut c_void, handler: Option<DescriptorHandler>) -> u32 {
    answer(|| notify(vi, Queue::Send, context, handler))
}

/// `VipRecvNotify`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvNotify(vi: Handle, context: *mut c_void, handler: Option<DescriptorHandler>) -> u32 {
    answer(|| notify(vi, Queue::Receive, context, handler))
}

/// `VipCQNotify`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQNotify(cq_handle: Handle, context: *mut c_void, handler: Option<QueueHandler>) -> u32 {
    answer(|| {
        let (key, queue) = handles::read(HandleKind::Queue, cq_handle)?;
        let open = nics::find(key)?;
        let handler = handler.ok_or(Status::InvalidParameter)?;
        let queue = QueueNumber(queue);
        open.nic.with(|nic| nic.check_queue(queue))?;
        open.handlers.arm(&open.nic, key, Armed::Completion { queue, context: Context(context), handler })
    })
}

/// `VipErrorCallback`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipErrorCallback(
    nic_handle: Handle,
    context: *mut c_void,
    handler: Option<ErrorHandler>,
) -> u32 {
    answer(|| {
        let (key, _) = handles::read(HandleKind::Nic, nic_handle)?;
        let open = nics::find(key)?;
        open.handlers.set_of_errors(&open.nic, key, handler.map(|handler| (Context(context), handler)))
    })
}
