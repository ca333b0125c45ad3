//! Keys in the order in which they were last used.
//!
//! What you may rely on: every call takes a time that grows with the logarithm of their number.

use std::collections::BTreeMap;

/// Keys by their last use.
#[derive(Debug)]
pub(super) struct Recent<K> {
    uses: BTreeMap<K, u64>,
    keys: BTreeMap<u64, K>,
    next: u64,
}

impl<K> Default for Recent<K> {
    fn default() -> Self {
        Recent { uses: BTreeMap::new(), keys: BTreeMap::new(), next: 0 }
    }
}

impl<K: Ord + Copy> Recent<K> {
    /// It is used now.
    pub(super) fn touch(&mut self, key: K) {
        self.forget(&key);
        self.uses.insert(key, self.next);
        self.keys.insert(self.next, key);
        self.next += 1;
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(at) = self.uses.remove(key) {
            self.keys.remove(&at);
        }
    }

    /// Forgets the one that was used longest ago, and says which that is.
    pub(super) fn forget_oldest(&mut self) -> Option<K> {
        let (_, key) = self.keys.pop_first()?;
        self.uses.remove(&key);
        Some(key)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.uses.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.uses.len()
    }
}
