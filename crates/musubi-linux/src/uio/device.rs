//! The UIO device of a domain: memory that is shared with other cores, an interrupt, and the others' doorbells.
//!
//! What you may rely on: only the domain's own slots and the segments can be written through what is mapped here; the
//! kernel's driver refuses anything else. [`Device::ring`] waits for no peer; inside the kernel the rings of a domain's
//! processes take turns by a mutex, which lends no priority.
//!
//! How it works: the driver of firmware/demo-zcu102/linux/module gives each device the name `SYSTEM/DOMAIN` and the mappings
//! `all`, `own` and `segments`, which sysfs describes. They are put over one another, so that all of it lies at one
//! address as the plan places it: first `all`, readable; then, over parts of it, the two that may be written. A read
//! of the device returns when the interrupt has been raised; a write of a domain's number rings that domain.
//!
//! [`Twin`](super::Twin) stands in for the hardware where there is none; this file is the same for both.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use musubi_core::layout;
use musubi_core::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::error::{Error, Tried};
use crate::os::clock::{Deadline, DeadlineExt, timespec};
use crate::os::mapping::{Access, Mapping};

/// Where the kernel lists its UIO devices.
const CLASS: &str = "/sys/class/uio";
/// Most UIO devices that are looked at.
const DEVICES_MAX: usize = 256;
/// The driver's mappings, by number.
const MAPPINGS: [&str; 3] = ["all", "own", "segments"];
/// The distance that tells mappings apart when a UIO device is mapped is one page of the kernel.
const UIO_STEP_BYTES: u64 = 4096;

/// A part of the shared memory, and where it is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Byte of the shared memory at which it begins.
    pub(super) from: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Offset to give when it is mapped.
    pub(super) at: u64,
}

/// How the other domains are rung, and what comes of being rung.
#[derive(Debug)]
pub(super) enum Signals {
    /// By the device itself: events and numbers of domains, 32 bits each.
    Device {
        /// Whether the device has an interrupt.
        has_interrupt: bool,
    },
    /// By event descriptors: ours, and each domain's.
    Events(OwnedFd, Vec<(u16, OwnedFd)>),
}

/// A domain's device.
#[derive(Debug)]
pub struct Device {
    pub(super) memory: OwnedFd,
    pub(super) all: Part,
    pub(super) own: Part,
    pub(super) segments: Option<Part>,
    pub(super) signals: Signals,
}

impl Device {
    /// Opens the device of a domain.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is none with that name; [`Error::OtherDevice`] if its memory is not the plan's; what
    /// the kernel refused.
    pub fn open(plan: &Plan<'_>, domain: u16) -> Result<Device, Error> {
        let wanted = format!("{}/{}", plan.name, plan.domains[usize::from(domain)].name);
        let (class, node) = find(&wanted).ok_or_else(|| Error::NoDevice(wanted.clone()))?;
        check_hash(plan, &class, &wanted)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let memory = open(&node, flags, Mode::empty()).tried("opening the UIO device")?;
        let mut parts = (0u64..).zip(MAPPINGS).map(|(number, name)| part(&class, number, name));
        let broken = || Error::OtherDevice(wanted.clone());
        let all = parts.next().flatten().ok_or_else(broken)?;
        let base = all.from;
        let relative = |part: Part| Part { from: part.from.wrapping_sub(base), ..part };
        let device = Device {
            memory,
            all: relative(all),
            own: parts.next().flatten().map(relative).ok_or_else(broken)?,
            segments: parts.next().flatten().map(relative),
            signals: Signals::Device { has_interrupt: class.join("device/of_node/interrupts").exists() },
        };
        if device.fits(plan, domain) { Ok(device) } else { Err(broken()) }
    }

    /// Whether the mappings are where the plan has the domain's slots and segments.
    fn fits(&self, plan: &Plan<'_>, domain: u16) -> bool {
        let first = plan.first_participant(domain);
        let behind = first + plan.domains[usize::from(domain)].participants;
        let own = layout::slot_offset(plan, first).zip(layout::slot_offset(plan, behind));
        let inside = |part: Part| part.from.checked_add(part.bytes).is_some_and(|end| end <= self.all.bytes);
        layout::mapped_bytes(plan).is_some_and(|bytes| bytes <= self.all.bytes)
            && own.is_some_and(|(begin, end)| self.own.from == begin && self.own.bytes == end - begin)
            && self.segments.is_none_or(inside)
    }

    /// Maps all of it to be read.
    pub(super) fn map_all(&self) -> Result<Mapping, Error> {
        let bytes = usize::try_from(self.all.bytes).map_err(|_| Error::Plan)?;
        let mapping = Mapping::reserved(bytes).tried("reserving addresses")?;
        mapping
            .overlay(self.memory.as_fd(), 0, self.all.bytes, self.all.at, Access::Read)
            .tried("mapping the memory")?;
        Ok(mapping)
    }

    /// Maps all of it at one address, for one participant of the domain; see the top of this file.
    pub(super) fn map(&self, plan: &Plan<'_>, participant: u16) -> Result<Mapping, Error> {
        let mapping = self.map_all()?;
        for part in [Some(self.own), self.segments].into_iter().flatten() {
            let (fd, access) = (self.memory.as_fd(), Access::Write);
            mapping.overlay(fd, part.from, part.bytes, part.at, access).tried("mapping the memory")?;
        }
        // The domain's other slots belong to other processes.
        let begin = layout::slot_offset(plan, participant).ok_or(Error::Plan)?;
        let end = layout::slot_offset(plan, participant + 1).ok_or(Error::Plan)?;
        let behind = self.own.from + self.own.bytes;
        for (from, to) in [(self.own.from, begin), (end, behind)] {
            mapping.protect(from, to - from).tried("protecting the slots of others")?;
        }
        Ok(mapping)
    }

    /// Whether others can wake us.
    pub fn has_interrupt(&self) -> bool {
        match &self.signals {
            Signals::Device { has_interrupt } => *has_interrupt,
            Signals::Events(..) => true,
        }
    }

    /// Raises another domain's interrupt. A domain without one polls, so nothing is lost.
    pub fn ring(&self, domain: u16) {
        let _ = match &self.signals {
            Signals::Device { .. } => rustix::io::write(&self.memory, &u32::from(domain).to_ne_bytes()),
            Signals::Events(_, bells) => match bells.iter().find(|(other, _)| *other == domain) {
                Some((_, bell)) => rustix::io::write(bell, &1u64.to_ne_bytes()),
                None => Ok(0),
            },
        };
    }

    /// Waits until the interrupt has been raised since the last call, `other` is readable, or the deadline has passed.
    /// Gives whether the interrupt was.
    ///
    /// # Errors
    /// If the kernel refuses; the device is gone then.
    pub(super) fn wait(&self, other: BorrowedFd<'_>, deadline: Deadline) -> Result<bool, Error> {
        let events = self.events();
        let watched = if self.has_interrupt() { events } else { other };
        let mut fds =
            [PollFd::from_borrowed_fd(other, PollFlags::IN), PollFd::from_borrowed_fd(watched, PollFlags::IN)];
        let timeout = deadline.left_ns().map(timespec);
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) | Ok(_) => (),
            Err(errno) => return Err(errno).tried("waiting for the interrupt"),
        }
        self.take_event()
    }

    fn events(&self) -> BorrowedFd<'_> {
        match &self.signals {
            Signals::Device { .. } => self.memory.as_fd(),
            Signals::Events(own, _) => own.as_fd(),
        }
    }

    /// Whether the interrupt was raised since the last call. Does not wait.
    fn take_event(&self) -> Result<bool, Error> {
        // A UIO device gives a count of 32 bits, and nothing else; an event descriptor one of 64.
        let mut count = [0; 8];
        let bytes = match &self.signals {
            Signals::Device { has_interrupt: false } => return Ok(false),
            Signals::Device { .. } => 4,
            Signals::Events(..) => 8,
        };
        match rustix::io::read(self.events(), &mut count[..bytes]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno).tried("reading the UIO device"),
        }
    }
}

/// Finds a device by its name: its directory in sysfs and its node.
fn find(wanted: &str) -> Option<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(CLASS).ok()?.take(DEVICES_MAX).flatten();
    let class = entries.map(|entry| entry.path()).find(|class| text(&class.join("name")).as_deref() == Some(wanted))?;
    let node = Path::new("/dev").join(class.file_name()?);
    Some((class, node))
}

/// Refuses a device whose devicetree was made from another description.
fn check_hash(plan: &Plan<'_>, class: &Path, wanted: &str) -> Result<(), Error> {
    match fs::read(class.join("device/of_node/musubi,plan-hash")) {
        Ok(hash) if hash != plan.hash.to_be_bytes() => Err(Error::OtherDevice(wanted.to_owned())),
        // Without a devicetree the roots' hashes in the memory itself tell.
        _ => Ok(()),
    }
}

/// What sysfs says of a mapping; `from` is its address still.
fn part(class: &Path, number: u64, name: &str) -> Option<Part> {
    let directory = class.join(format!("maps/map{number}"));
    let value = |file: &str| {
        let text = text(&directory.join(file))?;
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    (text(&directory.join("name"))? == name).then_some(())?;
    Some(Part { from: value("addr")?, bytes: value("size")?, at: number * UIO_STEP_BYTES })
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::section::tests::PLAN;
    use crate::uio::Twin;

    #[test]
    fn a_device_fits_if_its_mappings_are_where_the_plan_has_the_domain() {
        let twin = Twin::new(&PLAN).unwrap();
        for domain in 0..3 {
            let fits = |change: &dyn Fn(&mut Device)| {
                let mut device = twin.device(&PLAN, domain).unwrap();
                change(&mut device);
                device.fits(&PLAN, domain)
            };
            assert!(fits(&|_| ()) && fits(&|device| device.segments = None));
            assert!(!fits(&|device| device.own.from += 4096), "another slot");
            assert!(!fits(&|device| device.own.bytes -= 4096), "too short");
            assert!(!fits(&|device| device.own.bytes += 4096), "too long");
            assert!(!fits(&|device| device.segments.as_mut().unwrap().bytes += 1), "beyond the end");
            assert!(!fits(&|device| device.segments.as_mut().unwrap().from = u64::MAX), "beyond all numbers");
            assert!(!fits(&|device| device.all.bytes -= 1), "less than the plan has");
            let with_more = fits(&|device| device.all.bytes += 4096);
            assert!(with_more, "there may be more memory than the plan has");
        }
        assert!(!twin.device(&PLAN, 0).unwrap().fits(&PLAN, 1));
    }

    #[test]
    fn a_ring_is_heard_once_by_the_domain_that_was_rung() {
        let twin = Twin::new(&PLAN).unwrap();
        let [zero, one, two] = [0, 1, 2].map(|domain| twin.device(&PLAN, domain).unwrap());
        assert!(zero.has_interrupt());
        (0..3).for_each(|_| zero.ring(2));
        assert_eq!(
            (one.take_event().unwrap(), two.take_event().unwrap(), two.take_event().unwrap()),
            (false, true, false)
        );
        zero.ring(0);
        assert!(!zero.take_event().unwrap(), "nobody rings itself");
        let (idle, _kept) = rustix::pipe::pipe().unwrap();
        assert!(!one.wait(idle.as_fd(), Deadline::At(1)).unwrap());
        two.ring(1);
        assert!(one.wait(idle.as_fd(), Deadline::after(std::time::Duration::from_secs(30))).unwrap());
    }

    #[test]
    fn a_mapping_is_what_sysfs_says_of_it_under_its_number_and_name() {
        let class = std::env::temp_dir().join(format!("musubi-uio-{}", std::process::id()));
        for (number, name, size) in [(0, "all\n", "0x30000\n"), (2, "segments\n", "0x1000"), (3, "own", "4096")] {
            let directory = class.join(format!("maps/map{number}"));
            fs::create_dir_all(&directory).unwrap();
            let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
            write("name", name);
            write("addr", "0x3ed00000\n");
            write("size", size);
        }
        let (all, segments) = (part(&class, 0, "all"), part(&class, 2, "segments"));
        let wrong = [part(&class, 0, "own"), part(&class, 1, "own"), part(&class, 3, "own")];
        let hash_file = class.join("device/of_node/musubi,plan-hash");
        let without = check_hash(&PLAN, &class, "x").is_ok();
        fs::create_dir_all(hash_file.parent().unwrap()).unwrap();
        let with = |hash: u64| {
            fs::write(&hash_file, hash.to_be_bytes()).unwrap();
            check_hash(&PLAN, &class, "x").is_ok()
        };
        let judged = [without, with(PLAN.hash), with(PLAN.hash + 1), with(PLAN.hash.swap_bytes())];
        fs::remove_dir_all(&class).unwrap();
        assert_eq!(all, Some(Part { from: 0x3ed0_0000, bytes: 0x3_0000, at: 0 }));
        assert_eq!(segments, Some(Part { from: 0x3ed0_0000, bytes: 0x1000, at: 8192 }));
        assert_eq!(wrong, [None; 3], "another name, no such mapping, no number");
        assert_eq!(judged, [true, true, false, false]);
    }
}
