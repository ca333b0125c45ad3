//! A process as a participant in memory that it shares with other cores.
//!
//! What you may rely on: [`Participant::attach`] takes a slot that no other process has. A process that was killed has
//! lost its slot at once; its successor is another incarnation. One that leaves has the slot until its last end is dropped.
//!
//! How it works: the slot's name is bound first, so of two processes one is refused. The private memory of the port's
//! logic, the mapping and the host live as long as the process: handles of channels may outlive the participant.

use std::ops::Deref;

use musubi_core::mapped::{self, Memory, Setup, StorageLine, storage_lines};
use musubi_core::plan::{Plan, PortKind};

use super::attendant::Attendant;
use super::{Device, ProcessHost};
use crate::error::Error;
use crate::os::clock::{Deadline, DeadlineExt};
use crate::os::mapping::Mapping;
use crate::process::participant::{Whose, check_user, find_domain};
use crate::process::rendezvous::slot::{new_epoch, take_slot_of};
use crate::process::rendezvous::socket_names::Names;

/// How to attach.
#[derive(Debug)]
pub struct Options {
    /// The system.
    pub plan: &'static Plan<'static>,
    /// The domain, whose port is `uio`.
    pub domain: Whose,
    /// A slot of the domain; any free one if not given.
    pub slot: Option<u16>,
    /// The instance; see [`crate::names`]. There is one chip, so one instance, unless twins are used.
    pub instance: Option<String>,
    /// How long to wait for a free slot.
    pub deadline: Deadline,
    /// The domain's device; the kernel's, if not given.
    pub device: Option<Device>,
}

impl Options {
    /// Any free slot of a domain, on the kernel's device, waiting up to five seconds.
    pub fn new(plan: &'static Plan<'static>, domain: impl Into<Whose>) -> Options {
        let deadline = Deadline::after(std::time::Duration::from_secs(5));
        Options { plan, domain: domain.into(), slot: None, instance: None, deadline, device: None }
    }
}

/// A process's place in a system; dereferences to the port's logic, whose [`musubi_core::channel::Attachment`]
/// interfaces use.
#[derive(Debug)]
pub struct Participant {
    // Dropped in this order.
    mapped: mapped::Participant<'static, ProcessHost>,
    mapping: &'static Mapping,
    _attendant: Attendant,
}

impl Participant {
    /// Attaches this process to a domain.
    ///
    /// # Errors
    /// [`Error`] says which: the plan, the domain or slot, the user, a slot in use, or the device.
    pub fn attach(options: Options) -> Result<Participant, Error> {
        let plan = options.plan;
        plan.check().map_err(|_| Error::Plan)?;
        let domain = find_domain(plan, &options.domain, PortKind::LinuxUio)?;
        check_user(plan, domain)?;
        let names = Names::new(plan.name, options.instance.as_deref())?;
        let (number, slot) = take_slot_of(plan, domain, options.slot, options.deadline, &names)?;
        let device = match options.device {
            Some(device) => device,
            None => Device::open(plan, domain)?,
        };
        let mapping: &'static Mapping = Box::leak(Box::new(device.map(plan, number)?));
        let host: &'static ProcessHost = Box::leak(Box::new(ProcessHost::new(plan, device)));
        // SAFETY: the mapping lives as long as the process and is as long as the plan says, which `Device::open` checks;
        // the slot's name is ours, so nobody else writes the slot, and there are no references into the mapping.
        let memory = unsafe { Memory::whole(mapping.address(), plan, number) }.ok_or(Error::Plan)?;
        let lines = storage_lines::<ProcessHost>(plan, domain);
        let storage: &'static [StorageLine] = Vec::leak((0..lines).map(|_| StorageLine::new()).collect());
        let setup = Setup { first_epoch: new_epoch(), ..Setup::new(plan, number, host, memory, storage) };
        let mapped = mapped::Participant::attach(setup).map_err(|_| Error::Plan)?;
        let attendant = Attendant::start(host, &mapped, slot)?;
        Ok(Participant { mapped, mapping, _attendant: attendant })
    }

    /// Where this process has the shared memory.
    pub fn address(&self) -> *const u8 {
        self.mapping.address()
    }

    /// Leaves the system once the last handle of a channel is dropped: peers see that we are gone.
    pub fn leave(self) {
        drop(self);
    }
}

impl Deref for Participant {
    type Target = mapped::Participant<'static, ProcessHost>;

    fn deref(&self) -> &Self::Target {
        &self.mapped
    }
}
