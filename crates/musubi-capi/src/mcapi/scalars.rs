//! Scalars for C.

use musubi_mcapi::engine::ChannelHandle;

use super::channels::{receive, send};
use super::exports::export;
use super::node::bound;
use super::status::Status;

#[inline]
fn put(handle: u32, size: u8, value: u64) -> Result<(), Status> {
    let handle = ChannelHandle(handle);
    bound(|bound| send(bound, handle, |engine, links| engine.send_scalar(handle, size, value, links)))
}

#[inline]
fn take(handle: u32, size: u8) -> Result<u64, Status> {
    let handle = ChannelHandle(handle);
    bound(|bound| receive(bound, handle, |engine, links| engine.receive_scalar(handle, size, links)))
}

/// Defines sending and receiving for a size.
macro_rules! scalars {
    ($($type:ident: $send:ident $receive:ident;)*) => {$(
        export! {
            /// Sends a scalar.
            fn $send(send_handle: u32, dataword: $type); {
                put(send_handle, size_of::<$type>() as u8, u64::from(dataword))
            }

            /// Receives a scalar.
            fn $receive(receive_handle: u32) -> $type, else 0; {
                take(receive_handle, size_of::<$type>() as u8).map(|value| value as $type)
            }
        }
    )*};
}

scalars! {
    u64: mcapi_sclchan_send_uint64 mcapi_sclchan_recv_uint64;
    u32: mcapi_sclchan_send_uint32 mcapi_sclchan_recv_uint32;
    u16: mcapi_sclchan_send_uint16 mcapi_sclchan_recv_uint16;
    u8: mcapi_sclchan_send_uint8 mcapi_sclchan_recv_uint8;
}
