//! What the sections of participants say, the dead ones' included.
//!
//! How it works: an observer holds read-only mappings, which outlive their owners. A dead section does not change any
//! more, so its words are the exact state at the instant of death.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use musubi_core::layout::{Part, rx, tx};
use musubi_linux::{Deadline, DeadlineExt, Observer, PeerSection};

use crate::system::PLAN;

/// How long an observer waits for answers.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(20);

/// A participant in one incarnation.
pub type Who = (u16, u32);

/// The sections seen.
#[derive(Debug)]
pub struct Witness {
    observer: Observer,
    sections: HashMap<Who, Arc<PeerSection>>,
}

impl Witness {
    /// One that has seen nobody.
    pub fn new(instance: &str) -> anyhow::Result<Witness> {
        Ok(Witness { observer: Observer::new(&PLAN, Some(instance))?, sections: HashMap::new() })
    }

    /// Looks who is there; `of_process` says who a process is.
    pub fn look(&mut self, of_process: impl Fn(i32) -> Option<Who>) {
        // Who is in the middle of coming or going cannot be seen now; the caller looks again.
        let _ = self.observer.refresh(Deadline::after(ANSWER_TIME_MAX));
        for seen in self.observer.participants() {
            if let Some(who) = of_process(seen.pid) {
                self.sections.insert(who, Arc::clone(&seen.section));
            }
        }
    }

    /// Whether an incarnation has been seen.
    pub fn has_seen(&self, who: Who) -> bool {
        self.sections.contains_key(&who)
    }

    /// Forgets incarnations that nobody asks for any more.
    pub fn forget(&mut self, who: Who) {
        self.sections.remove(&who);
    }

    /// How many messages of a sender had been dequeued when its receiver died; `None` if that one never began.
    pub fn taken(&self, channel: u16, sender: Who, receiver: Who) -> Option<u32> {
        let (sender, receiver) = (self.sections.get(&sender)?, self.sections.get(&receiver)?);
        let part = receiver.part(Part::Rx(channel))?;
        let words = part.words();
        (words.get(rx::LINK_EPOCH) == sender.epoch()).then(|| words.get(rx::TAKEN))
    }

    /// Where a sender that has noticed its receiver's death says that the next one begins.
    pub fn start(&self, channel: u16, sender: Who) -> Option<u32> {
        let part = self.sections.get(&sender)?.part(Part::Tx(channel))?;
        let words = part.words();
        (words.get(tx::LINK_EPOCH) == 0).then(|| words.get(tx::START))
    }

    /// Messages that a sender dropped because its receiver restarted.
    pub fn dropped(&self, channel: u16, sender: Who) -> u32 {
        self.counter(channel, sender, tx::DROPPED)
    }

    /// Blocks that receivers held when they died.
    pub fn abandoned(&self, channel: u16, sender: Who) -> u32 {
        self.counter(channel, sender, tx::ABANDONED)
    }

    /// Returns that a sender refused.
    pub fn refused(&self, channel: u16, sender: Who) -> u32 {
        self.counter(channel, sender, tx::REFUSED)
    }

    fn counter(&self, channel: u16, sender: Who, word: u32) -> u32 {
        let part = self.sections.get(&sender).and_then(|section| section.part(Part::Tx(channel)));
        part.map_or(0, |part| part.words().get(word))
    }
}
