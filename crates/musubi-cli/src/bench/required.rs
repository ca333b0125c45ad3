//! Figures beside their limits and beside what is required of them.
//!
//! How it works: medians are compared, except where a percentile is named. A requirement whose figures were not measured
//! is said to be so, and counts as neither met nor missed.

use serde::Serialize;

use super::figures::Figure;
use super::run::Figures;

/// A figure's median over that of its limit.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    pub name: String,
    pub limit: String,
    pub ratio: f64,
}

/// One requirement.
#[derive(Debug, Serialize)]
pub(crate) struct Requirement {
    pub name: &'static str,
    pub against: &'static str,
    /// "at most" or "at least".
    pub relation: &'static str,
    pub required: f64,
    /// The ratio; `null` if it was not measured.
    pub measured: Option<f64>,
    pub met: Option<bool>,
}

pub(super) const AT_MOST: &str = "at most";
pub(super) const AT_LEAST: &str = "at least";

/// Figure, what it is compared with, how, and by which factor.
pub(super) type Rule = (&'static str, &'static str, &'static str, f64);

type PercentileOf = fn(&Figure) -> f64;

/// Percentiles that a rule may name behind a figure's name.
const PERCENTILES: [(&str, PercentileOf); 2] = [(" p99", |figure| figure.p99), (" p99.9", |figure| figure.p999)];

impl Ratio {
    /// Of each result whose limit, as `limit_of` says, was measured.
    pub fn of(figures: &Figures, limit_of: impl Fn(&str) -> Option<String>) -> Vec<Ratio> {
        let ratio = |result: &Figure| {
            let limit = limit_of(&result.name)?;
            let limit = figures.limits.iter().find(|figure| figure.name == limit && figure.is_measured())?;
            Some(Ratio { name: result.name.clone(), limit: limit.name.clone(), ratio: result.p50 / limit.p50 })
        };
        figures.results.iter().filter_map(ratio).collect()
    }

    /// For the table.
    pub fn text(&self) -> String {
        format!("{:.2} x {}", self.ratio, self.limit)
    }
}

impl Requirement {
    /// Compares; `otherwise` gives what is no figure.
    pub fn of(
        &(name, against, relation, required): &Rule,
        figures: &Figures,
        otherwise: impl Fn(&str) -> Option<f64>,
    ) -> Requirement {
        let value = |name: &str| otherwise(name).or_else(|| value(figures, name));
        let measured = value(name).zip(value(against)).map(|(result, limit)| result / limit);
        let met = measured.map(|ratio| if relation == AT_MOST { ratio <= required } else { ratio >= required });
        Requirement { name, against, relation, required, measured, met }
    }

    /// Whether it is about this figure.
    pub fn is_of(&self, name: &str) -> bool {
        self.name.split(' ').next() == Some(name)
    }

    /// For the table.
    pub fn verdict(&self) -> String {
        let verdict = if self.met == Some(false) { "MISSED" } else { "met" };
        let Requirement { against, relation, required, measured, .. } = self;
        format!("{:.2} x {against}, {relation} {required:.2}: {verdict}", measured.unwrap_or_default())
    }

    /// One line for people.
    pub fn text(&self) -> String {
        let verdict = match self.met {
            Some(true) => "met   ",
            Some(false) => "MISSED",
            None => "not measured",
        };
        let measured = self.measured.map_or("-".to_owned(), |measured| format!("{measured:.2}"));
        let Requirement { name, against, relation, required, .. } = self;
        format!("{verdict}  {name}: {measured} x {against}, required {relation} {required:.2} x")
    }
}

/// The median of a figure, or the percentile that stands behind its name.
fn value(figures: &Figures, name: &str) -> Option<f64> {
    let measured = |name: &str| figures.named(name).filter(|figure| figure.is_measured());
    for (suffix, percentile) in PERCENTILES {
        if let Some(name) = name.strip_suffix(suffix) {
            return measured(name).map(percentile);
        }
    }
    measured(name).map(|figure| figure.p50)
}
