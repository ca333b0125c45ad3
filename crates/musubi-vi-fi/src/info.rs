//! `fi_getinfo`: what this provider offers, and whether that is what a program asks for.
//!
//! What you may rely on: any part of the hints may be NULL; what is answered is memory that `fi_freeinfo` frees.
//!
//! What it does not do: other addresses than ports of this machine (`FI_SOCKADDR_IN` at 127.0.0.1).

use core::ffi::{CStr, c_char, c_void};

use crate::abi::*;
use crate::object::{answer_int, give};

/// Bytes that `fi_inject` takes.
pub(crate) const INJECT_BYTES: usize = 128;
/// Sends, and receives, that may be posted to an endpoint at a time.
pub(crate) const QUEUE_SIZE: usize = 256;
/// Pieces of one message.
pub(crate) const PIECES_MAX: usize = 4;
/// Bytes of one message.
pub(crate) const MESSAGE_BYTES_MAX: u32 = 1 << 30;
/// Bytes of a `sockaddr_in`.
pub(crate) const ADDRESS_BYTES: usize = 16;
/// Bytes that go with a request for a connection, and with the answer.
pub(crate) const DATA_BYTES_MAX: usize = 96;
const TRANSMITS: u64 = MSG | SEND | RMA | READ | WRITE;
const RECEIVES: u64 = MSG | RECV | RMA | REMOTE_READ | REMOTE_WRITE;
const CAPS: u64 = TRANSMITS | RECEIVES | LOCAL_COMM | REMOTE_COMM;

unsafe extern "C" {
    fn calloc(count: usize, bytes: usize) -> *mut c_void;
}

/// Memory that `fi_freeinfo` frees, zeroed.
fn zeroed<T>() -> Result<*mut T, i32> {
    // SAFETY: any count and size may be asked for.
    let memory = unsafe { calloc(1, size_of::<T>()) };
    if memory.is_null() { Err(ENOMEM) } else { Ok(memory.cast()) }
}

/// A copy of bytes that `fi_freeinfo` frees.
fn copied<const N: usize>(bytes: [u8; N]) -> Result<*mut c_void, i32> {
    let memory = zeroed::<[u8; N]>()?;
    // SAFETY: it has just been allocated for so many bytes.
    unsafe { memory.write(bytes) };
    Ok(memory.cast())
}

/// The `sockaddr_in` of a port of this machine.
pub(crate) fn sockaddr(port: u16) -> [u8; ADDRESS_BYTES] {
    let [high, low] = port.to_be_bytes();
    [2, 0, high, low, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// The port of an address of this machine.
///
/// # Safety
/// `address` is NULL or has as many bytes.
pub(crate) unsafe fn port_of(address: *const c_void, bytes: usize) -> Result<u16, i32> {
    if bytes < ADDRESS_BYTES {
        return Err(EINVAL);
    }
    // SAFETY: the caller's promise.
    let address = unsafe { crate::object::take(address.cast::<[u8; ADDRESS_BYTES]>())? };
    let is_here = address[..2] == [2, 0] && (address[4] == 127 || address[4..8] == [0; 4]);
    if is_here { Ok(u16::from_be_bytes([address[2], address[3]])) } else { Err(ENODATA) }
}

/// `fi_getinfo` of this provider.
pub(crate) unsafe extern "C" fn getinfo(
    version: u32,
    _node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    out: *mut *mut Info,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: NULL, or hints.
        let hints = unsafe { hints.as_ref() };
        let (mut source, mut destination) = (None, None);
        if let Some(hints) = hints {
            // SAFETY: libfabric's promise: these are hints.
            unsafe { check(hints)? };
            // SAFETY: as many bytes as the hints say.
            source = unsafe { port_of(hints.src_addr, hints.src_addrlen) }.ok();
            // SAFETY: likewise.
            destination = unsafe { port_of(hints.dest_addr, hints.dest_addrlen) }.ok();
        }
        if !service.is_null() {
            // SAFETY: libfabric's promise: a string.
            let service = unsafe { CStr::from_ptr(service) };
            let port = service.to_str().ok().and_then(|text| text.parse::<u16>().ok()).ok_or(ENODATA)?;
            *(if flags & SOURCE != 0 { &mut source } else { &mut destination }) = Some(port);
        }
        let info = describe(source, destination, version)?;
        // SAFETY: libfabric's promise.
        unsafe { give(out, info) }
    })
}

/// Whether hints ask for what there is.
///
/// # Safety
/// Their pointers are NULL or what they say.
unsafe fn check(hints: &Info) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    let kind = unsafe { hints.ep_attr.as_ref() }.map_or(0, |attr| attr.kind);
    // SAFETY: likewise.
    let domain = unsafe { hints.domain_attr.as_ref() };
    // Who does not register what it posts cannot use it.
    let registers = domain.is_none_or(|attr| attr.mr_mode & MR_LOCAL != 0);
    let fits = hints.caps & !CAPS == 0
        && matches!(kind, 0 | EP_MSG)
        && matches!(hints.addr_format, 0 | SOCKADDR | SOCKADDR_IN)
        && registers;
    if fits { Ok(()) } else { Err(ENODATA) }
}

/// What there is, between these ports.
pub(crate) fn describe(source: Option<u16>, destination: Option<u16>, version: u32) -> Result<*mut Info, i32> {
    let mut info = Info {
        next: core::ptr::null_mut(),
        caps: CAPS,
        mode: 0,
        addr_format: SOCKADDR_IN,
        src_addrlen: ADDRESS_BYTES,
        dest_addrlen: 0,
        src_addr: copied(sockaddr(source.unwrap_or(0)))?,
        dest_addr: core::ptr::null_mut(),
        handle: core::ptr::null_mut(),
        tx_attr: placed(TxAttr {
            caps: TRANSMITS,
            mode: 0,
            op_flags: 0,
            msg_order: ORDER_SAS,
            comp_order: 0,
            inject_size: INJECT_BYTES,
            size: QUEUE_SIZE,
            iov_limit: PIECES_MAX,
            rma_iov_limit: 1,
            tclass: 0,
        })?,
        rx_attr: placed(RxAttr {
            caps: RECEIVES,
            mode: 0,
            op_flags: 0,
            msg_order: ORDER_SAS,
            comp_order: 0,
            total_buffered_recv: 0,
            size: QUEUE_SIZE,
            iov_limit: PIECES_MAX,
        })?,
        ep_attr: zeroed()?,
        domain_attr: zeroed()?,
        fabric_attr: zeroed()?,
        nic: core::ptr::null_mut(),
    };
    if let Some(port) = destination {
        info.dest_addr = copied(sockaddr(port))?;
        info.dest_addrlen = ADDRESS_BYTES;
    }
    // SAFETY: it has just been allocated.
    let ep = unsafe { &mut *info.ep_attr };
    (ep.kind, ep.protocol_version, ep.max_msg_size) = (EP_MSG, 1, MESSAGE_BYTES_MAX as usize);
    (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (1, 1);
    // SAFETY: likewise.
    fill_domain(unsafe { &mut *info.domain_attr })?;
    // SAFETY: likewise.
    let fabric = unsafe { &mut *info.fabric_attr };
    fabric.name = copied(*b"vi\0")?.cast();
    (fabric.prov_version, fabric.api_version) = (1 << 16, version);
    placed(info)
}

fn fill_domain(domain: &mut DomainAttr) -> Result<(), i32> {
    domain.name = copied(*b"vi\0")?.cast();
    domain.threading = THREAD_SAFE;
    (domain.control_progress, domain.data_progress) = (PROGRESS_AUTO, PROGRESS_AUTO);
    domain.resource_mgmt = RM_ENABLED;
    domain.mr_mode = MR_LOCAL | MR_VIRT_ADDR | MR_ALLOCATED | MR_PROV_KEY;
    (domain.mr_key_size, domain.cq_data_size) = (4, 4);
    (domain.cq_cnt, domain.ep_cnt, domain.mr_cnt) = (1024, 4096, 16_384);
    (domain.tx_ctx_cnt, domain.rx_ctx_cnt) = (4096, 4096);
    (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
    domain.mr_iov_limit = 1;
    domain.caps = LOCAL_COMM | REMOTE_COMM;
    Ok(())
}

fn placed<T>(what: T) -> Result<*mut T, i32> {
    let place = zeroed::<T>()?;
    // SAFETY: it has just been allocated for that.
    unsafe { place.write(what) };
    Ok(place)
}
