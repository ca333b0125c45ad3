//! The types of include/vipl.h.
//!
//! What you may rely on: sizes and places are those that a test compares with the header's.

use core::ffi::{c_char, c_int, c_ulong, c_void};

use musubi_transport::Regulation;
use musubi_vipl::nic::{Notification, Weight};

pub(crate) type Handle = *mut c_void;
pub(crate) type Boolean = c_int;
pub(crate) type Ulong = c_ulong;
pub(crate) type MemoryHandle = u32;

/// `VIP_INFINITE`.
pub(crate) const INFINITE: Ulong = Ulong::MAX;

/// `VIP_NET_ADDRESS`: host bytes, then the discriminator's, behind the two lengths.
#[derive(Debug)]
#[repr(C)]
pub struct NetAddress {
    pub(crate) host_address_len: u16,
    pub(crate) discriminator_len: u16,
    pub(crate) host_address: [u8; 4],
}

/// `VIP_NIC_ATTRIBUTES`.
#[derive(Debug)]
#[repr(C)]
pub struct NicAttributes {
    pub(crate) name: [c_char; 64],
    pub(crate) hardware_version: Ulong,
    pub(crate) provider_version: Ulong,
    pub(crate) nic_address_len: u16,
    pub(crate) local_nic_address: *const u8,
    pub(crate) thread_safe: Boolean,
    pub(crate) max_discriminator_len: u16,
    pub(crate) max_register_bytes: Ulong,
    pub(crate) max_register_regions: Ulong,
    pub(crate) max_register_block_bytes: Ulong,
    pub(crate) max_vi: Ulong,
    pub(crate) max_descriptors_per_queue: Ulong,
    pub(crate) max_segments_per_desc: Ulong,
    pub(crate) max_cq: Ulong,
    pub(crate) max_cq_entries: Ulong,
    pub(crate) max_transfer_size: Ulong,
    pub(crate) native_mtu: Ulong,
    pub(crate) max_ptags: Ulong,
    pub(crate) reliability_level_support: u16,
    pub(crate) rdma_read_support: u16,
}

/// `VIP_VI_ATTRIBUTES`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ViAttributes {
    pub(crate) reliability_level: u16,
    pub(crate) max_transfer_size: Ulong,
    pub(crate) qos: *const Qos,
    pub(crate) ptag: Handle,
    pub(crate) enable_rdma_write: Boolean,
    pub(crate) enable_rdma_read: Boolean,
}

/// `VIP_MUSUBI_QOS`: what `VIP_QOS` points to. Fields behind `size` bytes are as if 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Qos {
    pub(crate) size: u32,
    pub(crate) class: u32,
    pub(crate) message_rate: u32,
    pub(crate) message_burst: u32,
    pub(crate) byte_rate: u64,
    pub(crate) byte_burst: u64,
    pub(crate) notify_latest: u32,
    pub(crate) notify_interval: u32,
    pub(crate) response_budget: u32,
    pub(crate) weight: u32,
}

impl Qos {
    /// The rates that it asks for.
    pub(crate) const fn regulation(&self) -> Regulation {
        Regulation {
            messages_per_s: self.message_rate,
            messages_burst: self.message_burst,
            bytes_per_s: self.byte_rate,
            bytes_burst: self.byte_burst,
        }
    }

    /// What it asks about who waits for completions.
    pub(crate) fn notification(&self) -> Notification {
        let ns = |microseconds: u32| u64::from(microseconds) * 1_000;
        Notification {
            interval_ns: ns(self.notify_interval),
            latest_ns: ns(self.notify_latest),
            budget_ns: ns(self.response_budget),
        }
    }

    /// Its share beside others of its class.
    pub(crate) fn weight(&self) -> Weight {
        u8::try_from(self.weight).ok().and_then(Weight::new).unwrap_or(Weight::DEFAULT)
    }

    /// Of a class, and nothing else asked for.
    pub(crate) const fn of_class(class: u32) -> Qos {
        Qos {
            size: size_of::<Qos>() as u32,
            class,
            message_rate: 0,
            message_burst: 0,
            byte_rate: 0,
            byte_burst: 0,
            notify_latest: 0,
            notify_interval: 0,
            response_budget: 0,
            weight: 0,
        }
    }
}

/// `VIP_MEM_ATTRIBUTES`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemAttributes {
    pub(crate) ptag: Handle,
    pub(crate) enable_rdma_write: Boolean,
    pub(crate) enable_rdma_read: Boolean,
}

/// `VIP_ERROR_DESCRIPTOR`.
#[derive(Debug)]
#[repr(C)]
pub struct ErrorDescriptor {
    pub(crate) nic: Handle,
    pub(crate) vi: Handle,
    pub(crate) queue: Handle,
    pub(crate) descriptor: *mut c_void,
    pub(crate) op_code: Ulong,
    pub(crate) resource_code: u32,
    pub(crate) error_code: u32,
}

/// `VIP_AUTODISCOVERY_LIST`.
#[derive(Debug)]
#[repr(C)]
pub struct AutodiscoveryList {
    pub(crate) number_of_hops: Ulong,
    pub(crate) addresses: *mut *mut NetAddress,
    pub(crate) address_count: Ulong,
}

/// What `VipSendNotify` and `VipRecvNotify` call.
pub(crate) type DescriptorHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, *mut c_void);
/// What `VipCQNotify` calls.
pub(crate) type QueueHandler = unsafe extern "C" fn(*mut c_void, Handle, Handle, Boolean);
/// What `VipErrorCallback` sets.
pub(crate) type ErrorHandler = unsafe extern "C" fn(*mut c_void, *mut ErrorDescriptor);

const _: () = {
    assert!(
        size_of::<Qos>() == 48 && size_of::<NetAddress>() == 8 && core::mem::offset_of!(NetAddress, host_address) == 4
    );
    assert!(size_of::<NicAttributes>() == 200 && size_of::<ViAttributes>() == 40);
    assert!(size_of::<MemAttributes>() == 16 && size_of::<ErrorDescriptor>() == 48);
};
