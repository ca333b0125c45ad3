//! libfabric's structures, as its manual pages and installed headers (1.17) document them, and the numbers in them.
//!
//! What you may rely on: layouts are those of a 64-bit Linux; sizes are asserted here against those of the headers.
//!
//! What it does not do: declare what this provider never touches.

use core::ffi::{c_char, c_void};

/// `FI_VERSION(1, 17)`.
pub(crate) const API_VERSION: u32 = 1 << 16 | 17;
/// `FI_VERSION(2, 6)`: the newest whose structures were compared.
pub(crate) const API_VERSION_MAX: u32 = 2 << 16 | 6;

/// `FI_MSG`, `FI_RMA`, `FI_READ`, `FI_WRITE`, `FI_RECV`, `FI_SEND`, `FI_REMOTE_READ`, `FI_REMOTE_WRITE`, `FI_LOCAL_COMM`.
pub(crate) const MSG: u64 = 1 << 1;
pub(crate) const RMA: u64 = 1 << 2;
pub(crate) const READ: u64 = 1 << 8;
pub(crate) const WRITE: u64 = 1 << 9;
pub(crate) const RECV: u64 = 1 << 10;
pub(crate) const SEND: u64 = 1 << 11;
pub(crate) const REMOTE_READ: u64 = 1 << 12;
pub(crate) const REMOTE_WRITE: u64 = 1 << 13;
pub(crate) const LOCAL_COMM: u64 = 1 << 51;
pub(crate) const REMOTE_COMM: u64 = 1 << 52;
/// `FI_PEEK`, `FI_COMPLETION`: flags of calls.
pub(crate) const PEEK: u64 = 1 << 19;
pub(crate) const COMPLETION: u64 = 1 << 24;
/// `FI_REMOTE_CQ_DATA`.
pub(crate) const REMOTE_CQ_DATA: u64 = 1 << 17;
/// `FI_SOURCE`, a flag of `fi_getinfo`.
pub(crate) const SOURCE: u64 = 1 << 57;
/// `FI_SELECTIVE_COMPLETION`, a flag of `fi_bind`.
pub(crate) const SELECTIVE_COMPLETION: u64 = 1 << 59;
/// `FI_ORDER_SAS`.
pub(crate) const ORDER_SAS: u64 = 1 << 8;

pub(crate) const MR_LOCAL: i32 = 1 << 2;
pub(crate) const MR_VIRT_ADDR: i32 = 1 << 4;
pub(crate) const MR_ALLOCATED: i32 = 1 << 5;
pub(crate) const MR_PROV_KEY: i32 = 1 << 6;

pub(crate) const EP_MSG: u32 = 1;
pub(crate) const SOCKADDR: u32 = 1;
pub(crate) const SOCKADDR_IN: u32 = 2;
pub(crate) const THREAD_SAFE: u32 = 1;
pub(crate) const PROGRESS_AUTO: u32 = 1;
pub(crate) const RM_ENABLED: u32 = 2;
/// `FI_GETWAIT`, `FI_ENABLE`: commands of `fi_control`.
pub(crate) const GETWAIT: i32 = 5;
pub(crate) const ENABLE: i32 = 6;

/// Kinds of objects, `FI_CLASS_*`.
pub(crate) const CLASS_FABRIC: usize = 1;
pub(crate) const CLASS_DOMAIN: usize = 2;
pub(crate) const CLASS_EP: usize = 3;
pub(crate) const CLASS_PEP: usize = 9;
pub(crate) const CLASS_MR: usize = 12;
pub(crate) const CLASS_EQ: usize = 13;
pub(crate) const CLASS_CQ: usize = 14;
pub(crate) const CLASS_CONNREQ: usize = 18;

/// Events of connections.
pub(crate) const CONNREQ: u32 = 1;
pub(crate) const CONNECTED: u32 = 2;
pub(crate) const SHUTDOWN: u32 = 3;

/// `FI_CQ_FORMAT_*`.
pub(crate) const FORMAT_CONTEXT: u32 = 1;
pub(crate) const FORMAT_MSG: u32 = 2;
pub(crate) const FORMAT_DATA: u32 = 3;
/// `FI_WAIT_UNSPEC`, `FI_WAIT_FD`; `FI_WAIT_NONE` is 0.
pub(crate) const WAIT_UNSPEC: u32 = 1;
pub(crate) const WAIT_FD: u32 = 3;
/// `FI_OPT_ENDPOINT`, and its `FI_OPT_CM_DATA_SIZE`.
pub(crate) const OPT_ENDPOINT: i32 = 0;
pub(crate) const OPT_CM_DATA_SIZE: i32 = 1;

/// Errors, positive; calls return them negative.
pub(crate) const EIO: i32 = 5;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const ENOSYS: i32 = 38;
pub(crate) const ENODATA: i32 = 61;
pub(crate) const EADDRINUSE: i32 = 98;
pub(crate) const ETIMEDOUT: i32 = 110;
pub(crate) const ECONNREFUSED: i32 = 111;
pub(crate) const ECANCELED: i32 = 125;
pub(crate) const ETOOSMALL: i32 = 257;
pub(crate) const EOPBADSTATE: i32 = 258;
pub(crate) const EAVAIL: i32 = 259;

#[repr(C)]
pub(crate) struct TxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct RxAttr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) total_buffered_recv: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

#[repr(C)]
pub(crate) struct EpAttr {
    pub(crate) kind: u32,
    pub(crate) protocol: u32,
    pub(crate) protocol_version: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) msg_prefix_size: usize,
    pub(crate) max_order_raw_size: usize,
    pub(crate) max_order_war_size: usize,
    pub(crate) max_order_waw_size: usize,
    pub(crate) mem_tag_format: u64,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) auth_key: *mut u8,
}

#[repr(C)]
pub(crate) struct DomainAttr {
    pub(crate) domain: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) threading: u32,
    pub(crate) control_progress: u32,
    pub(crate) data_progress: u32,
    pub(crate) resource_mgmt: u32,
    pub(crate) av_type: u32,
    pub(crate) mr_mode: i32,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) cq_cnt: usize,
    pub(crate) ep_cnt: usize,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) max_ep_tx_ctx: usize,
    pub(crate) max_ep_rx_ctx: usize,
    pub(crate) max_ep_stx_ctx: usize,
    pub(crate) max_ep_srx_ctx: usize,
    pub(crate) cntr_cnt: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) auth_key: *mut u8,
    pub(crate) auth_key_size: usize,
    pub(crate) max_err_data: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) tclass: u32,
    /// From here on of 2.x.
    pub(crate) max_ep_auth_key: usize,
    pub(crate) max_group_id: u32,
}

#[repr(C)]
pub(crate) struct FabricAttr {
    pub(crate) fabric: *mut c_void,
    pub(crate) name: *mut c_char,
    pub(crate) prov_name: *mut c_char,
    pub(crate) prov_version: u32,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct Info {
    pub(crate) next: *mut Info,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) addr_format: u32,
    pub(crate) src_addrlen: usize,
    pub(crate) dest_addrlen: usize,
    pub(crate) src_addr: *mut c_void,
    pub(crate) dest_addr: *mut c_void,
    pub(crate) handle: *mut c_void,
    pub(crate) tx_attr: *mut TxAttr,
    pub(crate) rx_attr: *mut RxAttr,
    pub(crate) ep_attr: *mut EpAttr,
    pub(crate) domain_attr: *mut DomainAttr,
    pub(crate) fabric_attr: *mut FabricAttr,
    pub(crate) nic: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Iovec {
    pub(crate) base: *mut c_void,
    pub(crate) bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FiMessage {
    pub(crate) iov: *const Iovec,
    pub(crate) desc: *const *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

/// `fi_rma_iov`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RmaPiece {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

/// `fi_msg_rma`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FiMessageRma {
    pub(crate) iov: *const Iovec,
    pub(crate) desc: *const *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) rma_iov: *const RmaPiece,
    pub(crate) rma_iov_count: usize,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

/// `fi_eq_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) wait_obj: u32,
    pub(crate) signaling_vector: i32,
    pub(crate) wait_set: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CqAttr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) format: u32,
    pub(crate) wait_obj: u32,
    pub(crate) signaling_vector: i32,
    pub(crate) wait_cond: u32,
    pub(crate) wait_set: *mut c_void,
}

/// `fi_cq_data_entry`; shorter formats are its beginning.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CqEntry {
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CqError {
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: *mut c_void,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    pub(crate) olen: usize,
    pub(crate) err: i32,
    pub(crate) prov_errno: i32,
    pub(crate) err_data: *mut c_void,
    pub(crate) err_data_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EqError {
    pub(crate) fid: *mut c_void,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
    pub(crate) err: i32,
    pub(crate) prov_errno: i32,
    pub(crate) err_data: *mut c_void,
    pub(crate) err_data_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MrAttr {
    pub(crate) iov: *const Iovec,
    pub(crate) iov_count: usize,
    pub(crate) access: u64,
    pub(crate) offset: u64,
    pub(crate) requested_key: u64,
    pub(crate) context: *mut c_void,
}

/// `fi_provider`.
#[repr(C)]
pub(crate) struct Provider {
    pub(crate) version: u32,
    pub(crate) fi_version: u32,
    pub(crate) context: [usize; 4],
    pub(crate) name: *const c_char,
    pub(crate) getinfo: *const (),
    pub(crate) fabric: *const (),
    pub(crate) cleanup: *const (),
}

const _: () = assert!(size_of::<TxAttr>() == 80 && size_of::<RxAttr>() == 64 && size_of::<EpAttr>() == 96);
const _: () = assert!(size_of::<RmaPiece>() == 24 && size_of::<FiMessageRma>() == 64 && size_of::<EqAttr>() == 32);
const _: () = assert!(size_of::<FabricAttr>() == 32 && size_of::<Info>() == 120 && size_of::<DomainAttr>() == 208);
