//! What a sample came to: a table by crate, and what was not noticed.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};

use super::list::Mutant;
use super::trial::Outcome;

/// Sums by crate.
#[derive(Default)]
pub struct Report {
    crates: BTreeMap<String, Sums>,
    unnoticed: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    caught: u32,
    missed: u32,
    hung: u32,
    unviable: u32,
    equivalent: u32,
}

impl Sums {
    fn plus(self, other: Self) -> Self {
        Self {
            caught: self.caught + other.caught,
            missed: self.missed + other.missed,
            hung: self.hung + other.hung,
            unviable: self.unviable + other.unviable,
            equivalent: self.equivalent + other.equivalent,
        }
    }

    /// Share of those that a test could notice. Where there is none, nothing was missed.
    fn noticed_percent(self) -> f64 {
        match self.caught + self.missed + self.hung {
            0 => 100.0,
            tried => 100.0 * f64::from(self.caught) / f64::from(tried),
        }
    }

    fn row(self, name: &str) -> [String; 7] {
        let Self { caught, missed, hung, unviable, equivalent } = self;
        let [caught, missed, hung, unviable, equivalent] =
            [caught, missed, hung, unviable, equivalent].map(|count| count.to_string());
        [name.into(), caught, missed, hung, unviable, equivalent, format!("{:.1}", self.noticed_percent())]
    }
}

impl Report {
    /// Takes note of one.
    pub fn add(&mut self, mutant: &Mutant, outcome: Outcome) {
        let sums = self.crates.entry(mutant.package.clone()).or_default();
        match outcome {
            Outcome::Caught(_) => sums.caught += 1,
            Outcome::Missed => sums.missed += 1,
            Outcome::Hung => sums.hung += 1,
            Outcome::Unviable => sums.unviable += 1,
            Outcome::Equivalent => sums.equivalent += 1,
        }
        if matches!(outcome, Outcome::Missed | Outcome::Hung) {
            self.unnoticed.push(format!("{}: {}", outcome.word(), mutant.name));
        }
    }

    /// A row a crate, and their sum.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["crate", "caught", "missed", "hung", "unviable", "equivalent", "noticed %"]);
        table.add_rows(self.crates.iter().map(|(name, sums)| sums.row(name)));
        table.add_row(self.sum().row("all"));
        table
    }

    /// Those that no test has noticed by failing, one line each.
    pub fn unnoticed(&self) -> &[String] {
        &self.unnoticed
    }

    /// Share of all that a test could notice.
    pub fn noticed_percent(&self) -> f64 {
        self.sum().noticed_percent()
    }

    fn sum(&self) -> Sums {
        self.crates.values().fold(Sums::default(), |sum, sums| sum.plus(*sums))
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::tests::mutant;
    use super::*;

    #[test]
    fn what_hangs_is_not_noticed_and_what_cannot_be_does_not_count() {
        let mut report = Report::default();
        let one = mutant("a.rs:1:1: replace f with ()");
        for outcome in [Outcome::Caught("t".into()), Outcome::Caught("u".into()), Outcome::Hung, Outcome::Missed] {
            report.add(&one, outcome);
        }
        report.add(&one, Outcome::Unviable);
        report.add(&one, Outcome::Equivalent);
        assert_eq!(report.noticed_percent(), 50.0);
        assert_eq!(report.unnoticed(), ["HUNG: a.rs:1:1: replace f with ()", "MISSED: a.rs:1:1: replace f with ()"]);
        let table = report.table().to_string();
        assert!(table.contains("musubi-core") && table.contains("50.0"), "{table}");
    }

    #[test]
    fn a_sample_of_nothing_missed_nothing() {
        assert_eq!(Report::default().noticed_percent(), 100.0);
    }
}
