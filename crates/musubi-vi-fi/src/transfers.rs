//! What is posted to an active endpoint: messages, and reads and writes of the peer's memory.
//!
//! What you may rely on: calls that post wait for nothing: without room they answer `-FI_EAGAIN`. Where completions are selective, a
//! call without flags is not told of unless it fails.
//!
//! How it works: every call becomes one [`Transfer`], which becomes a descriptor. A remote key is a memory handle.
//!
//! What it does not do: immediate data with a write, more than one remote piece.

use core::ffi::c_void;

use musubi_vipl::engine::Queue;

use crate::abi::{self, EINVAL, ENOSYS, FiMessage, FiMessageRma, Iovec, RmaPiece};
use crate::endpoint;
use crate::info::PIECES_MAX;
use crate::object::{ABSENT, CallTable, answer, take};
use crate::work::{Piece, Posted, RemoteMemory, WorkContent, exposed};

/// `struct fi_ops_msg`.
pub(crate) static MESSAGES: CallTable<9> = CallTable::new([
    recv as *const (),
    recvv as *const (),
    recvmsg as *const (),
    send as *const (),
    sendv as *const (),
    sendmsg as *const (),
    inject as *const (),
    senddata as *const (),
    injectdata as *const (),
]);
/// `struct fi_ops_rma`.
pub(crate) static REMOTE: CallTable<9> = CallTable::new([
    read as *const (),
    readv as *const (),
    readmsg as *const (),
    write as *const (),
    writev as *const (),
    writemsg as *const (),
    inject_write as *const (),
    ABSENT,
    ABSENT,
]);

const RECEIVED: u64 = abi::MSG | abi::RECV;
const SENT: u64 = abi::MSG | abi::SEND;
const WRITTEN: u64 = abi::RMA | abi::WRITE;
const READ: u64 = abi::RMA | abi::READ;

/// One call.
struct Transfer {
    iov: *const Iovec,
    desc: *const *mut c_void,
    iov_count: usize,
    context: *mut c_void,
    data: Option<u64>,
    /// What a completion says that it was; which queue it goes to, too.
    kind: u64,
    remote: Option<RmaPiece>,
    /// Whether the program asked to be told, where completions are selective.
    is_asked: bool,
}

type Pointer = *mut c_void;

/// Posts.
///
/// # Safety
/// The endpoint is one, and what is posted describes memory of the program's that stays until it is complete.
unsafe fn post(fid: Pointer, transfer: &Transfer) -> isize {
    answer(|| {
        if transfer.iov_count > PIECES_MAX {
            return Err(EINVAL);
        }
        let mut pieces = [Piece::default(); PIECES_MAX];
        let (mut buffer, mut count) = (0, 0);
        for at in 0..transfer.iov_count {
            // SAFETY: the caller's promise: so many pieces.
            let piece = unsafe { take(transfer.iov.wrapping_add(at))? };
            if piece.bytes == 0 {
                continue;
            }
            if transfer.desc.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: likewise: as many descriptors of memory.
            let handle = unsafe { take(transfer.desc.wrapping_add(at))? };
            let bytes = u32::try_from(piece.bytes).map_err(|_| EINVAL)?;
            pieces[count] = Piece { address: exposed(piece.base), handle: handle.addr() as u32, bytes };
            buffer = if count == 0 { piece.base.expose_provenance() } else { buffer };
            count += 1;
        }
        let immediate = transfer.data.map(u32::try_from).transpose().map_err(|_| EINVAL)?;
        // SAFETY: the caller's promise.
        let side = unsafe { endpoint::of(fid) }.side()?;
        let is_receive = transfer.kind == RECEIVED;
        let posted = Posted {
            context: transfer.context.expose_provenance(),
            buffer: if is_receive { buffer } else { 0 },
            is_silent: !is_receive && side.is_selective && !transfer.is_asked,
            flags: transfer.kind,
        };
        let queue = if is_receive { Queue::Receive } else { Queue::Send };
        side.post(queue, (&WorkContent::Pieces(&pieces[..count]), remote_of(transfer)?), immediate, posted)
    })
}

/// The peer's memory that a transfer is about.
fn remote_of(transfer: &Transfer) -> Result<RemoteMemory, i32> {
    let Some(place) = transfer.remote else { return Ok(RemoteMemory::None) };
    let handle = u32::try_from(place.key).map_err(|_| EINVAL)?;
    let piece = Piece { address: place.addr, handle, bytes: 0 };
    Ok(if transfer.kind == READ { RemoteMemory::Read(piece) } else { RemoteMemory::Written(piece) })
}

/// Posts one piece.
///
/// # Safety
/// As [`post`].
unsafe fn post_one(
    fid: Pointer,
    (buffer, bytes): (*const c_void, usize),
    desc: Pointer,
    context: Pointer,
    kind: u64,
    (data, remote): (Option<u64>, Option<RmaPiece>),
) -> isize {
    let piece = Iovec { base: buffer.cast_mut(), bytes };
    let (iov, desc) = (&raw const piece, &raw const desc);
    let transfer = Transfer { iov, desc, iov_count: 1, context, data, kind, remote, is_asked: false };
    // SAFETY: the caller's promise; piece and descriptor live during the call.
    unsafe { post(fid, &transfer) }
}

/// Posts several pieces.
///
/// # Safety
/// As [`post`].
unsafe fn post_several(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    iov_count: usize,
    context: Pointer,
    (kind, remote): (u64, Option<RmaPiece>),
) -> isize {
    let transfer = Transfer { iov, desc, iov_count, context, data: None, kind, remote, is_asked: false };
    // SAFETY: the caller's promise.
    unsafe { post(fid, &transfer) }
}

/// Posts a copy.
///
/// # Safety
/// The endpoint is one, and there are so many bytes.
unsafe fn post_copy(
    fid: Pointer,
    (from, bytes): (*const c_void, usize),
    data: Option<u64>,
    remote: Option<RmaPiece>,
) -> isize {
    answer(|| {
        if bytes > crate::info::INJECT_BYTES || (from.is_null() && bytes > 0) {
            return Err(EINVAL);
        }
        let mut copy = [0_u8; crate::info::INJECT_BYTES];
        // SAFETY: the caller's promise; the copy has room for as many.
        unsafe { core::ptr::copy_nonoverlapping(from.cast(), copy.as_mut_ptr(), bytes) };
        let immediate = data.map(u32::try_from).transpose().map_err(|_| EINVAL)?;
        let kind = if remote.is_some() { WRITTEN } else { SENT };
        let (iov, desc) = (core::ptr::null(), core::ptr::null());
        let context = core::ptr::null_mut();
        let transfer = Transfer { iov, desc, iov_count: 0, context, data, kind, remote, is_asked: false };
        let posted = Posted { context: 0, buffer: 0, is_silent: true, flags: kind };
        let content = WorkContent::Injected(&copy[..bytes]);
        // SAFETY: the caller's promise.
        unsafe { endpoint::of(fid) }.side()?.post(Queue::Send, (&content, remote_of(&transfer)?), immediate, posted)
    })
}

// ---- messages ----

unsafe extern "C" fn recv(
    fid: Pointer,
    to: *const c_void,
    bytes: usize,
    desc: Pointer,
    _from: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, (to, bytes), desc, context, RECEIVED, (None, None)) }
}

unsafe extern "C" fn recvv(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    count: usize,
    _from: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_several(fid, iov, desc, count, context, (RECEIVED, None)) }
}

unsafe extern "C" fn recvmsg(fid: Pointer, message: *const FiMessage, _flags: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_message(fid, message, RECEIVED, 0) }
}

unsafe extern "C" fn send(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    desc: Pointer,
    _to: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, (from, bytes), desc, context, SENT, (None, None)) }
}

unsafe extern "C" fn sendv(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    count: usize,
    _to: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_several(fid, iov, desc, count, context, (SENT, None)) }
}

unsafe extern "C" fn sendmsg(fid: Pointer, message: *const FiMessage, flags: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_message(fid, message, SENT, flags) }
}

/// Posts what a message with flags describes.
///
/// # Safety
/// As [`post`].
unsafe fn post_message(fid: Pointer, message: *const FiMessage, kind: u64, flags: u64) -> isize {
    // SAFETY: the caller's promise.
    let message = match unsafe { take(message) } {
        Ok(message) => message,
        Err(error) => return -(error as isize),
    };
    let FiMessage { iov, desc, iov_count, context, data, .. } = message;
    let data = (flags & abi::REMOTE_CQ_DATA != 0).then_some(data);
    let is_asked = flags & abi::COMPLETION != 0;
    // SAFETY: likewise.
    unsafe { post(fid, &Transfer { iov, desc, iov_count, context, data, kind, remote: None, is_asked }) }
}

unsafe extern "C" fn senddata(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    desc: Pointer,
    data: u64,
    _to: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, (from, bytes), desc, context, SENT, (Some(data), None)) }
}

unsafe extern "C" fn inject(fid: Pointer, from: *const c_void, bytes: usize, _to: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_copy(fid, (from, bytes), None, None) }
}

unsafe extern "C" fn injectdata(fid: Pointer, from: *const c_void, bytes: usize, data: u64, _to: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_copy(fid, (from, bytes), Some(data), None) }
}

// ---- the peer's memory ----

fn remote(addr: u64, key: u64) -> Option<RmaPiece> {
    Some(RmaPiece { addr, len: 0, key })
}

unsafe extern "C" fn read(
    fid: Pointer,
    to: *const c_void,
    bytes: usize,
    desc: Pointer,
    _from: u64,
    address: u64,
    key: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, (to, bytes), desc, context, READ, (None, remote(address, key))) }
}

unsafe extern "C" fn readv(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    count: usize,
    _from: u64,
    address: u64,
    key: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_several(fid, iov, desc, count, context, (READ, remote(address, key))) }
}

unsafe extern "C" fn readmsg(fid: Pointer, message: *const FiMessageRma, flags: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_remote(fid, message, READ, flags) }
}

unsafe extern "C" fn write(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    desc: Pointer,
    _to: u64,
    address: u64,
    key: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, (from, bytes), desc, context, WRITTEN, (None, remote(address, key))) }
}

unsafe extern "C" fn writev(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    count: usize,
    _to: u64,
    address: u64,
    key: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_several(fid, iov, desc, count, context, (WRITTEN, remote(address, key))) }
}

unsafe extern "C" fn writemsg(fid: Pointer, message: *const FiMessageRma, flags: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_remote(fid, message, WRITTEN, flags) }
}

/// The same as [`post_message`] of the peer's memory.
///
/// # Safety
/// As [`post`].
unsafe fn post_remote(fid: Pointer, message: *const FiMessageRma, kind: u64, flags: u64) -> isize {
    // SAFETY: the caller's promise.
    let message = match unsafe { take(message) } {
        Ok(message) if message.rma_iov_count == 1 && flags & abi::REMOTE_CQ_DATA == 0 => message,
        Ok(_) => return -(ENOSYS as isize),
        Err(error) => return -(error as isize),
    };
    // SAFETY: likewise: there is one.
    let remote = match unsafe { take(message.rma_iov) } {
        Ok(remote) => Some(remote),
        Err(error) => return -(error as isize),
    };
    let FiMessageRma { iov, desc, iov_count, context, .. } = message;
    let is_asked = flags & abi::COMPLETION != 0;
    // SAFETY: likewise.
    unsafe { post(fid, &Transfer { iov, desc, iov_count, context, data: None, kind, remote, is_asked }) }
}

unsafe extern "C" fn inject_write(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    _to: u64,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_copy(fid, (from, bytes), None, remote(address, key)) }
}
