//! What another node is told of our connected endpoints: the state of each, not what became of it on the way.
//!
//! What you may rely on: however often endpoints are connected and parted, a peer that does not keep up has at most one frame
//! of each before it, in the end the right one. Any peer is told at most [`NEWS_BURST`] times in [`NEWS_NS`], and of each
//! endpoint at most once. What is connected when a link begins is said first, and then that this was all.
//!
//! How it works: a set of endpoints whose state the peer was not told since it changed. Whoever tells goes round, once in that
//! time, so that one which changes again and again does not keep the others back.
//!
//! What it does not do: know the states, or send; see the engine's `messages`.

use alloc::collections::BTreeMap;

/// How often a peer is told in [`NEWS_NS`] at most, but for the beginning of a link.
pub(crate) const NEWS_BURST: u32 = 16;
/// See there.
pub(crate) const NEWS_NS: u64 = 1_000_000;

/// Counts what is said to a peer because of others.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// How much was said since when.
    said: u32,
    since_ns: u64,
}

impl Pace {
    /// Begins to count anew if it is time.
    fn begins_anew(&mut self, now_ns: u64) -> bool {
        let anew = now_ns.saturating_sub(self.since_ns) >= NEWS_NS;
        if anew {
            *self = Pace { said: 0, since_ns: now_ns };
        }
        anew
    }

    /// Whether something may be said now.
    pub fn admits(&mut self, now_ns: u64) -> bool {
        self.begins_anew(now_ns);
        self.said < NEWS_BURST
    }

    /// Something was said.
    pub fn count(&mut self) {
        self.said = self.said.saturating_add(1);
    }
}

/// What is to be told next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// The state of the endpoint of this slot and generation.
    Endpoint(u16, u8),
    /// That all has been told that was connected when the link began.
    ThatWasAll,
}

/// What a peer is still to be told.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Generations of endpoints by their slots.
    untold: BTreeMap<u16, u8>,
    /// The slot at which telling goes on.
    at: u16,
    /// The link begins: the first round is not over.
    begins: bool,
    pace: Pace,
}

impl News {
    /// A link begins, with these endpoints connected.
    pub fn begin(&mut self, connected: impl Iterator<Item = (u16, u8)>) {
        self.untold = connected.collect();
        (self.at, self.begins) = (0, true);
    }

    /// The link has ended.
    pub fn end(&mut self) {
        self.untold.clear();
        self.begins = false;
    }

    /// An endpoint has been connected or parted.
    pub fn changed(&mut self, slot: u16, generation: u8) {
        self.untold.insert(slot, generation);
    }

    /// Whether nothing is to be told.
    pub fn is_empty(&self) -> bool {
        self.untold.is_empty() && !self.begins
    }

    /// What is to be told next, if anything may be told now.
    pub fn next(&mut self, now_ns: u64) -> Option<Item> {
        if self.begins {
            return Some(self.ahead().unwrap_or(Item::ThatWasAll));
        }
        if self.pace.begins_anew(now_ns) && self.ahead().is_none() {
            self.at = 0;
        }
        self.ahead().filter(|_| self.pace.admits(now_ns))
    }

    /// The first of this round.
    fn ahead(&self) -> Option<Item> {
        let (slot, generation) = self.untold.range(self.at..).next()?;
        Some(Item::Endpoint(*slot, *generation))
    }

    /// It has been told.
    pub fn was_told(&mut self, item: Item) {
        self.pace.count();
        match item {
            Item::ThatWasAll => self.begins = false,
            Item::Endpoint(slot, _) => {
                self.untold.remove(&slot);
                self.at = slot + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Tells all that may be told at this instant.
    fn tell(news: &mut News, now_ns: u64) -> Vec<Item> {
        let mut told = Vec::new();
        while let Some(item) = news.next(now_ns) {
            news.was_told(item);
            told.push(item);
        }
        told
    }

    #[test]
    fn what_is_connected_when_a_link_begins_comes_first_and_without_a_pause() {
        let mut news = News::default();
        news.begin((0..100).map(|slot| (slot, 1)));
        let told = tell(&mut news, 0);
        let all = (0..100).map(|slot| Item::Endpoint(slot, 1)).chain([Item::ThatWasAll]);
        assert_eq!(told, all.collect::<Vec<_>>());
        assert!(news.is_empty());
        news.begin([].into_iter());
        assert!(!news.is_empty());
        assert_eq!(tell(&mut news, 0), [Item::ThatWasAll]);
    }

    #[test]
    fn what_changes_meanwhile_does_not_put_the_end_of_the_beginning_off() {
        let mut news = News::default();
        news.begin((0..4).map(|slot| (slot, 1)));
        for slot in 0..4 {
            assert_eq!(news.next(0), Some(Item::Endpoint(slot, 1)));
            news.was_told(Item::Endpoint(slot, 1));
            news.changed(0, 1);
        }
        assert_eq!(news.next(0), Some(Item::ThatWasAll));
        news.was_told(Item::ThatWasAll);
        assert_eq!(tell(&mut news, NEWS_NS), [Item::Endpoint(0, 1)]);
    }

    #[test]
    fn an_endpoint_that_changes_again_and_again_is_told_once_at_a_time_and_keeps_nobody_back() {
        let mut news = News::default();
        for _ in 0..1_000_000 {
            news.changed(3, 1);
        }
        news.changed(3, 2);
        assert_eq!(tell(&mut news, NEWS_NS), [Item::Endpoint(3, 2)]);
        news.changed(3, 2);
        news.changed(9, 1);
        assert_eq!(tell(&mut news, NEWS_NS), [Item::Endpoint(9, 1)]);
        assert!(!news.is_empty());
        assert_eq!(tell(&mut news, 2 * NEWS_NS), [Item::Endpoint(3, 2)]);
    }

    #[test]
    fn so_much_is_told_at_a_time_and_the_rest_later() {
        let mut news = News::default();
        for slot in 0..3 * NEWS_BURST as u16 + 1 {
            news.changed(slot, 1);
        }
        let burst = NEWS_BURST as usize;
        for (now_ns, count) in [(NEWS_NS, burst), (2 * NEWS_NS - 1, 0), (2 * NEWS_NS, burst), (3 * NEWS_NS, burst)] {
            assert_eq!(tell(&mut news, now_ns).len(), count);
        }
        assert_eq!(tell(&mut news, 4 * NEWS_NS).len(), 1);
        assert!(news.is_empty());
    }

    #[test]
    fn nothing_is_told_of_a_link_that_has_ended() {
        let mut news = News::default();
        news.begin([(1, 1)].into_iter());
        news.changed(2, 1);
        news.end();
        assert_eq!(news.next(NEWS_NS), None);
        assert!(news.is_empty());
    }
}
