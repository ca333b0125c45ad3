//! Instants that futures wait for.
//!
//! What you may rely on: an alarm rings once, not before its instant, and is there until it is taken away; looking for due
//! ones costs a comparison while none is.
//!
//! How it works: the node asks in each tick when something is due next, and tells who waits when an alarm has rung.

use musubi_transport::links::Block;

use super::NicState;
use crate::error::ViError;
use crate::slots::{SLOTS_MAX, Slots};

/// An alarm, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmNumber(u32);

#[derive(Debug)]
struct Alarm {
    at_ns: u64,
    has_rung: bool,
}

/// All of a NIC.
#[derive(Debug)]
pub(super) struct Alarms {
    alarms: Slots<Alarm>,
    /// No alarm rings before this instant.
    next_ns: u64,
}

impl Default for Alarms {
    fn default() -> Alarms {
        Alarms { alarms: Slots::new(SLOTS_MAX), next_ns: u64::MAX }
    }
}

impl<B: Block> NicState<B> {
    /// Sets one; says too whether who sleeps on the links must be woken, as it has to be up earlier now than for any other:
    /// by a change, in a call that takes the links.
    ///
    /// # Errors
    /// [`ViError::Resource`] if too many are set.
    pub fn set_alarm(&mut self, at_ns: u64) -> Result<(AlarmNumber, bool), ViError> {
        let number = self.alarms.alarms.insert(Alarm { at_ns, has_rung: false }).ok_or(ViError::Resource)?;
        let is_first = at_ns < self.alarms.next_ns;
        self.alarms.next_ns = self.alarms.next_ns.min(at_ns);
        Ok((AlarmNumber(number), is_first))
    }

    /// Takes one away. Who sleeps until then is up for nothing once, and not woken for that before: an alarm that is set anew for
    /// each message, and seldom rings, costs no wake-up.
    pub fn clear_alarm(&mut self, alarm: AlarmNumber) {
        self.alarms.alarms.remove(alarm.0);
    }

    /// Whether its instant was seen to be over, or it is no more.
    pub fn has_rung(&self, alarm: AlarmNumber) -> bool {
        self.alarms.alarms.get(alarm.0).is_none_or(|alarm| alarm.has_rung)
    }

    /// Rings what is due; gives when something is next.
    pub(super) fn alarms_ring(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.alarms.next_ns {
            return self.alarms.next_ns;
        }
        let mut next_ns = u64::MAX;
        for alarm in self.alarms.alarms.iter_mut().filter(|alarm| !alarm.has_rung) {
            if alarm.at_ns <= now_ns {
                alarm.has_rung = true;
                self.changes += 1;
            } else {
                next_ns = next_ns.min(alarm.at_ns);
            }
        }
        self.alarms.next_ns = next_ns;
        next_ns
    }
}
