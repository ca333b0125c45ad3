//! An opened NIC and a protection tag of it: what everything else hangs on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use musubi_vipl::engine::{Queue, TagHandle};
use musubi_vipl::nic::ViNumber;
use musubi_vipl::process::Nic;

use crate::work::Ended;

/// What queues and the NIC's news need of an enabled endpoint.
pub(crate) trait ViSide: Send + Sync {
    /// What was posted at this address, which is complete.
    fn ended(&self, queue: Queue, address: u64) -> Option<Ended>;
}

/// An opened NIC, and whose VIs it has.
pub(crate) struct Core {
    pub(crate) nic: Nic,
    pub(crate) sides: Mutex<HashMap<ViNumber, Arc<dyn ViSide>>>,
}

/// A protection tag.
#[derive(Clone)]
pub(crate) struct Domain {
    pub(crate) core: Arc<Core>,
    pub(crate) tag: TagHandle,
}

impl Core {
    /// The endpoint of a VI.
    pub(crate) fn side(&self, vi: ViNumber) -> Option<Arc<dyn ViSide>> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner).get(&vi).cloned()
    }
}
