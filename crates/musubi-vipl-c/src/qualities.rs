//! `VIP_QOS`: what a program asks for besides the standard's attributes.
//!
//! What you may rely on: what is told lies still until its NIC is closed, as the standard has nobody who gives it back. Of
//! the other side's quality of service only the class is known.
//!
//! How it works: told structures are kept once each, however many VIs have the like.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use musubi_transport::Priority;
use musubi_vipl::nic::ViNumber;

use crate::abi::Qos;
use crate::status::Status;

/// What is told of VIs of which nothing but the class is known.
static CLASSES: [Qos; Priority::COUNT] = {
    let mut qualities = [Qos::of_class(0); Priority::COUNT];
    let mut class = 0;
    while class < qualities.len() {
        qualities[class] = Qos::of_class(class as u32);
        class += 1;
    }
    qualities
};

/// Qualities of the VIs of one NIC that asked for some.
#[derive(Debug, Default)]
pub(crate) struct Qualities(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    asked: BTreeMap<u32, usize>,
    /// Each once; by place.
    #[allow(clippy::vec_box, reason = "they must not move")]
    told: Vec<Box<Qos>>,
}

impl Qualities {
    /// A VI has this one from now on.
    pub(crate) fn set(&self, vi: ViNumber, quality: Option<Qos>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(quality) = quality else {
            kept.asked.remove(&vi.0);
            return;
        };
        let place = kept.told.iter().position(|told| **told == quality).unwrap_or_else(|| {
            kept.told.push(Box::new(quality));
            kept.told.len() - 1
        });
        kept.asked.insert(vi.0, place);
    }

    /// Where that of a VI lies, if it has one.
    pub(crate) fn of_vi(&self, vi: ViNumber) -> Option<*const Qos> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked.get(&vi.0).and_then(|place| kept.told.get(*place)).map(|told| std::ptr::from_ref(&**told))
    }
}

/// What is told of a VI of a class.
pub(crate) fn of_class(class: u8) -> *const Qos {
    CLASSES.get(usize::from(class)).map_or(std::ptr::null(), std::ptr::from_ref)
}

/// What a program asks for; `None` for NULL.
pub(crate) fn read(qos: *const Qos) -> Result<Option<Qos>, Status> {
    if qos.is_null() {
        return Ok(None);
    }
    if !qos.is_aligned() {
        return Err(Status::InvalidQos);
    }
    // SAFETY: the C program's promise: it is not NULL, so it points to a `VIP_MUSUBI_QOS`, which begins with its size.
    let size = unsafe { qos.cast::<u32>().read() } as usize;
    if size < core::mem::offset_of!(Qos, message_rate) {
        return Err(Status::InvalidQos);
    }
    let mut told = Qos::of_class(0);
    // SAFETY: as above: it has as many bytes as it says, and no more are copied than there is room for.
    unsafe {
        core::ptr::copy_nonoverlapping(qos.cast::<u8>(), (&raw mut told).cast::<u8>(), size.min(size_of::<Qos>()))
    };
    told.size = size_of::<Qos>() as u32;
    let is_one = told.class < CLASSES.len() as u32 && told.weight <= u32::from(u8::MAX);
    if is_one { Ok(Some(told)) } else { Err(Status::InvalidQos) }
}
