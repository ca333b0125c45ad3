//! The image's attachment for its C tasks: one at a time, from `mdcom_init` to `mdcom_term`.
//!
//! What you may rely on: a task that waits while the attachment ends is woken and told, within [`SLICE_NS`].
//!
//! How it works: everything here is inside the system's monitor, so it is plain cells. Calls that rest are counted;
//! ending lets no new call begin, waits until none rests, then closes the ends.

use core::cell::Cell;

use musubi_core::channel::Deadline;
use musubi_core::plan::{Plan, Role};

use super::entered::Entered;
use super::failure::Failure;
use super::installed::{inside, system};
use super::{Inside, Node, SLICE_NS, System};
use crate::mdcom::contract::abi::{FOREVER, Wanted};
use crate::mdcom::contract::status::Status;

/// Between two looks of a task that waits for something other than a channel, in nanoseconds.
pub(super) const LOOK_NS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Never,
    Beginning,
    Up,
    Ending,
    Ended,
}

/// The attachment as all tasks know it. Used inside the monitor only.
struct Session {
    phase: Cell<Phase>,
    node: Cell<Option<&'static dyn Node>>,
    /// `mdcom_term` was called while `mdcom_init` waited.
    give_up: Cell<bool>,
    /// Calls that may rest.
    resting: Cell<u32>,
}

// SAFETY: used inside the monitor only, so by one task at a time.
unsafe impl Sync for Session {}

static SESSION: Session =
    Session { phase: Cell::new(Phase::Never), node: Cell::new(None), give_up: Cell::new(false), resting: Cell::new(0) };

/// Calls `by` with the node, inside the monitor.
pub(super) fn with<R>(by: impl FnOnce(Entered<'_>) -> Result<R, Failure>) -> Result<R, Failure> {
    let result = inside(|proof, _| by(Entered::new(check()?, proof)));
    result.unwrap_or_else(|| Err(Status::NotInit.into()))
}

/// The same for a call that may rest, in slices of [`SLICE_NS`] after each of which it calls [`check`].
pub(super) fn with_rest<R>(by: impl FnOnce(Entered<'_>) -> Result<R, Failure>) -> Result<R, Failure> {
    with(|node| {
        SESSION.resting.set(SESSION.resting.get() + 1);
        let result = by(node);
        SESSION.resting.set(SESSION.resting.get() - 1);
        result
    })
}

/// The node, if calls may go on. Inside the monitor.
pub(super) fn check() -> Result<&'static dyn Node, Failure> {
    match (SESSION.phase.get(), SESSION.node.get()) {
        (Phase::Up, Some(node)) => Ok(node),
        (Phase::Never | Phase::Beginning, _) => Err(Status::NotInit.into()),
        _ => Err(Status::Terminated.into()),
    }
}

/// Leaves the monitor until about this instant. Only inside it.
pub(super) fn look_later(node: Entered<'_>, deadline_ns: u64) {
    if let Some(system) = system() {
        let at_ns = node.now_ns().saturating_add(LOOK_NS).min(deadline_ns);
        system.leave();
        system.sleep_until(at_ns);
        system.enter();
    }
}

/// When a timeout ends that begins now; `u64::MAX`: never.
pub(super) fn deadline_ns(node: Entered<'_>, timeout_ns: u64) -> u64 {
    if timeout_ns == FOREVER { u64::MAX } else { node.now_ns().saturating_add(timeout_ns) }
}

/// The end of the next slice of a wait.
pub(super) fn slice(node: Entered<'_>, deadline_ns: u64) -> Deadline {
    Deadline::At(node.now_ns().saturating_add(SLICE_NS).min(deadline_ns))
}

/// How many participants of a domain are attached.
pub(crate) fn attached(domain: u32) -> Result<u16, Failure> {
    with(|node| {
        let number = u16::try_from(domain).ok().filter(|number| usize::from(*number) < node.plan().domains.len());
        let number = number.ok_or_else(|| Failure::saying(Status::Domain, c"no domain has this number"))?;
        Ok(node.attached(number))
    })
}

/// What the plan says.
pub(crate) fn with_plan<R>(by: impl FnOnce(&Plan<'_>) -> R) -> Result<R, Failure> {
    with(|node| Ok(by(node.plan())))
}

/// `mdcom_init`.
pub(crate) fn init(wanted: Wanted<'_>) -> Result<(), Failure> {
    if wanted.description.is_some() {
        return Err(Failure::saying(Status::Description, c"the plan is compiled in: config.description must be NULL"));
    }
    if wanted.instance.is_some() {
        return Err(Failure::saying(Status::Argument, c"an image is one instance: config.instance must be NULL"));
    }
    let system = system().ok_or_else(|| Failure::saying(Status::System, c"the image has installed no system"))?;
    inside(|proof, _| begin(system, wanted, proof)).unwrap_or_else(|| Err(Status::Internal.into()))
}

fn begin(system: &'static dyn System, wanted: Wanted<'_>, inside: Inside<'_>) -> Result<(), Failure> {
    if !matches!(SESSION.phase.get(), Phase::Never | Phase::Ended) {
        return Err(Status::Already.into());
    }
    SESSION.phase.set(Phase::Beginning);
    SESSION.give_up.set(false);
    match attach(system, wanted, inside) {
        Ok(node) => {
            SESSION.node.set(Some(node));
            SESSION.phase.set(Phase::Up);
            Ok(())
        }
        Err(failure) => {
            SESSION.phase.set(Phase::Never);
            Err(failure)
        }
    }
}

fn attach(system: &'static dyn System, wanted: Wanted<'_>, inside: Inside<'_>) -> Result<&'static dyn Node, Failure> {
    let node = system.attach(inside)?;
    let entered = Entered::new(node, inside);
    let ready = fits(entered, wanted).and_then(|role| match role {
        Role::Remote if wanted.timeout_ns != 0 => wait_for_master(entered, wanted.timeout_ns),
        _ => Ok(()),
    });
    if let Err(failure) = ready {
        // SAFETY: no call has had the node yet.
        unsafe { node.close(inside) };
        return Err(failure);
    }
    Ok(node)
}

/// Whether what the program expects is what the image has; gives the domain's role.
fn fits(node: Entered<'_>, wanted: Wanted<'_>) -> Result<Role, Failure> {
    let plan = node.plan();
    if wanted.plan_hash != 0 && wanted.plan_hash != plan.hash {
        return Err(Failure::saying(Status::Plan, c"the header and the image are of different plans"));
    }
    let domain = plan.domains.get(usize::from(node.domain())).ok_or(Status::Internal)?;
    if domain.name != wanted.domain {
        return Err(Failure::saying(Status::Domain, c"config.domain is not the domain of this image"));
    }
    if wanted.slot.is_some_and(|slot| slot >= domain.participants) {
        return Err(Failure::saying(Status::Domain, c"the domain has no such slot"));
    }
    Ok(domain.role)
}

fn wait_for_master(node: Entered<'_>, timeout_ns: u64) -> Result<(), Failure> {
    let master = node.plan().domains.iter().position(|domain| domain.role == Role::Master);
    let master = master.and_then(|number| u16::try_from(number).ok()).ok_or(Status::Internal)?;
    let deadline_ns = deadline_ns(node, timeout_ns);
    while node.attached(master) == 0 {
        if SESSION.give_up.get() {
            return Err(Status::Terminated.into());
        }
        if node.now_ns() >= deadline_ns {
            return Err(Status::Timeout.into());
        }
        look_later(node, deadline_ns);
    }
    Ok(())
}

/// Ends the attachment; `forget` forgets blocks and locks, when no call rests.
pub(super) fn end(forget: impl FnOnce(Entered<'_>)) -> Result<(), Failure> {
    let Some(system) = system() else { return Err(Status::NotInit.into()) };
    inside(|proof, _| match check() {
        Ok(node) => {
            close(system, node, proof, forget);
            Ok(())
        }
        Err(_) if SESSION.phase.get() == Phase::Beginning => {
            SESSION.give_up.set(true);
            Ok(())
        }
        Err(failure) => Err(failure),
    })
    .unwrap_or(Ok(()))
}

/// Ends the attachment; every call that rests comes back within [`SLICE_NS`].
fn close(system: &dyn System, node: &'static dyn Node, inside: Inside<'_>, forget: impl FnOnce(Entered<'_>)) {
    let entered = Entered::new(node, inside);
    SESSION.phase.set(Phase::Ending);
    system.wake();
    while SESSION.resting.get() != 0 {
        look_later(entered, u64::MAX);
    }
    forget(entered);
    SESSION.node.set(None);
    // SAFETY: no call rests, none can begin, and the blocks are forgotten.
    unsafe { node.close(inside) };
    SESSION.phase.set(Phase::Ended);
}
