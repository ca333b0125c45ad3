//! A stand-in for the hardware: the shared memory and the interrupts of a chip, among processes of one Linux kernel.
//!
//! What you may rely on: the port does with it what it does with a device of the kernel's driver; only where the memory
//! and the events come from differs. Tests run on it, and programs can be tried before there is a board.
//!
//! How it works: a memfd is the memory, an event descriptor a domain its interrupt. A child process finds them by number:
//! [`Twin::numbers`] in the parent, [`Twin::from_numbers`] in the child.
//!
//! What it does not do: keep a process from writing the slots of others by other means than this port.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use musubi_core::layout;
use musubi_core::plan::Plan;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::dup;

use super::device::{Device, Part, Signals};
use crate::error::{Error, Tried};

/// The memory and interrupts of one system.
#[derive(Debug)]
pub struct Twin {
    memory: OwnedFd,
    interrupts: Vec<OwnedFd>,
}

impl Twin {
    /// Makes the memory, zeroed, and an interrupt for each domain. Children inherit them.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(plan: &Plan<'_>) -> Result<Twin, Error> {
        let memory = memfd_create("musubi-twin", MemfdFlags::empty()).tried("creating memory")?;
        ftruncate(&memory, layout::mapped_bytes(plan).ok_or(Error::Plan)?).tried("creating memory")?;
        let interrupt = |_| eventfd(0, EventfdFlags::NONBLOCK).tried("creating an event descriptor");
        Ok(Twin { memory, interrupts: plan.domains.iter().map(interrupt).collect::<Result<_, _>>()? })
    }

    /// The descriptors' numbers, for a child.
    pub fn numbers(&self) -> Vec<i32> {
        std::iter::once(&self.memory).chain(&self.interrupts).map(AsRawFd::as_raw_fd).collect()
    }

    /// The twin that a parent made; `None` without numbers.
    ///
    /// # Safety
    /// The numbers are those of the parent's [`Twin::numbers`], inherited, and nothing else in this process owns them.
    pub unsafe fn from_numbers(numbers: &[i32]) -> Option<Twin> {
        // SAFETY: the caller says that they are open and ours.
        let owned = |number: &i32| unsafe { OwnedFd::from_raw_fd(*number) };
        let (memory, interrupts) = numbers.split_first()?;
        Some(Twin { memory: owned(memory), interrupts: interrupts.iter().map(owned).collect() })
    }

    /// The device of a domain.
    ///
    /// # Errors
    /// If the kernel has no more descriptors.
    pub fn device(&self, plan: &Plan<'_>, domain: u16) -> Result<Device, Error> {
        let part = |from: u64, end: u64| Part { from, bytes: end - from, at: from };
        let first = plan.first_participant(domain);
        let behind = first + plan.domains[usize::from(domain)].participants;
        let slot = |participant| layout::slot_offset(plan, participant).ok_or(Error::Plan);
        let all = part(0, layout::mapped_bytes(plan).ok_or(Error::Plan)?);
        let segments = part(slot(plan.participants())?, all.bytes);
        let interrupt = |fd: &OwnedFd| dup(fd).tried("duplicating a descriptor");
        let own = self.interrupts.get(usize::from(domain)).ok_or(Error::Plan)?;
        let others = (0u16..).zip(&self.interrupts).filter(|(other, _)| *other != domain);
        let bells = others.map(|(other, fd)| Ok((other, interrupt(fd)?))).collect::<Result<_, Error>>()?;
        Ok(Device {
            memory: interrupt(&self.memory)?,
            all,
            own: part(slot(first)?, slot(behind)?),
            segments: (segments.bytes > 0).then_some(segments),
            signals: Signals::Events(interrupt(own)?, bells),
        })
    }
}
