//! The owned interface in processes of Linux.

use musubi_transport::runtime::Options;

use super::ViFailure;
use crate::process::{self, NicSystem, ProcessNode};

/// An opened NIC.
pub type Nic = super::Nic<ProcessNode>;
/// A VI, in state [`Idle`](super::Idle) or [`Connected`](super::Connected).
pub type Vi<S> = super::Vi<S, ProcessNode>;
/// Registered memory of this program's own.
pub type OwnRegion = super::OwnRegion<ProcessNode>;
/// Registered memory that peers may use.
pub type SharedRegion = super::SharedRegion<ProcessNode>;
/// The right to post sends and RDMA.
pub type SendQueue = super::SendQueue<ProcessNode>;
/// The right to post receives.
pub type ReceiveQueue = super::ReceiveQueue<ProcessNode>;
/// A queue for the completions of many VIs.
pub type CompletionQueue = super::CompletionQueue<ProcessNode>;
/// How a posted region came back.
pub type Completion = super::Completion<ProcessNode>;
/// What is to be done with a region.
pub type Work = super::Work<ProcessNode>;
/// Who listens by a name.
pub type Listener = super::Listener<ProcessNode>;
/// Who asked for a connection.
pub type Caller = super::Caller<ProcessNode>;

impl Nic {
    /// Opens a NIC of a system by its name, or by a usual name of a device if the system has one NIC only
    /// ([`NicSystem::choose`]).
    ///
    /// # Errors
    /// [`ViFailure::NobodyThere`] if the system has no such NIC; [`ViFailure::Limit`] if as many processes have it open as may, or
    /// memory, descriptors or threads cannot be had.
    pub fn open(system: &NicSystem, name: &str) -> Result<Nic, ViFailure> {
        let mut options = Options::default();
        options.is_one_of_several = true;
        Nic::open_with(system, name, options)
    }

    /// The same, with what its node is to do otherwise.
    ///
    /// # Errors
    /// As [`Nic::open`].
    pub fn open_with(system: &NicSystem, name: &str, options: Options) -> Result<Nic, ViFailure> {
        let number = system.choose(name, None).ok_or(ViFailure::NobodyThere)?;
        let opened = process::Nic::open(system, number, options)?;
        Nic::of(opened.node().clone())
    }
}
