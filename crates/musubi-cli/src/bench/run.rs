//! What a run has measured so far, and what it has not.

use serde::{Deserialize, Serialize};

use super::figures::Figure;

/// Figures of one group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub limits: Vec<Figure>,
    pub results: Vec<Figure>,
}

/// Something that was not measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Skipped {
    pub name: String,
    pub reason: String,
}

/// Everything that was measured: on two cores, on one, and what was not.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub two_cores: Figures,
    pub one_core: Figures,
    pub skipped: Vec<Skipped>,
    /// Whether it is all that was asked for.
    pub whole: bool,
}

impl Figures {
    /// Limits, then results.
    pub fn all(&self) -> impl Iterator<Item = &Figure> {
        self.limits.iter().chain(&self.results)
    }

    /// The figure of this name, limit or result.
    pub fn named(&self, name: &str) -> Option<&Figure> {
        self.all().find(|figure| figure.name == name)
    }
}

impl Run {
    pub fn add(&mut self, one_core: bool, more: Figures) {
        let figures = if one_core { &mut self.one_core } else { &mut self.two_cores };
        figures.limits.extend(more.limits);
        figures.results.extend(more.results);
    }

    pub fn skip(&mut self, name: String, reason: String) {
        self.skipped.push(Skipped { name, reason });
    }
}
