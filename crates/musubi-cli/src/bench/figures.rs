//! Samples to figures, figures to a table and to JSON.

use musubi_config::table::{Column, Table};
use serde::{Deserialize, Serialize};

use crate::table::NONE;
use crate::{output, screen};

const COLUMNS: &[Column] = &[
    Column::words("figure", 0),
    Column::words("unit", 0),
    Column::number("n", 7),
    Column::number("p50", 0),
    Column::number("p99", 2),
    Column::number("p99.9", 3),
    Column::number("max", 4),
    Column::number("mean", 6),
    Column::words("against the limit", 1),
];

/// The distribution of one item's samples; without samples, `n` is 0 and nothing was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    pub name: String,
    pub unit: String,
    pub n: usize,
    pub min: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    pub mean: f64,
}

/// All figures of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub limits: Vec<Figure>,
    pub results: Vec<Figure>,
}

/// What each result is compared with: result, limit, and whether the limit is divided by the result's rate.
const RATIOS: [(&str, &str); 14] = [
    ("fifo_oneway_poll_8", "cacheline_oneway"),
    ("fifo_oneway_poll_64", "cacheline_oneway"),
    ("fifo_oneway_poll_4096", "cacheline_oneway"),
    ("fifo_oneway_poll_65536", "cacheline_oneway"),
    ("fifo_oneway_block_64", "futex_oneway"),
    ("smem_handover_64", "cacheline_oneway"),
    ("fifo_rate_64", "cacheline_oneway"),
    ("fifo_copy_64k", "shm_copy_64k"),
    ("api_alloc", "cacheline_oneway"),
    ("api_free", "cacheline_oneway"),
    ("api_get", "cacheline_oneway"),
    ("api_notify", "cacheline_oneway"),
    ("api_enqueue", "cacheline_oneway"),
    ("api_dequeue", "cacheline_oneway"),
];

impl Figure {
    pub fn of_samples(name: String, unit: &str, mut samples: Vec<f64>) -> Figure {
        samples.sort_by(f64::total_cmp);
        let n = samples.len();
        let at = |permille: usize| samples.get((n * permille / 1000).min(n.saturating_sub(1))).copied().unwrap_or(0.0);
        let mean = if n > 0 { samples.iter().sum::<f64>() / n as f64 } else { 0.0 };
        Figure {
            name,
            unit: unit.to_owned(),
            n,
            min: at(0),
            p50: at(500),
            p99: at(990),
            p999: at(999),
            max: at(1000),
            mean,
        }
    }
}

impl Figure {
    /// Whether there is anything to compare with.
    pub fn is_measured(&self) -> bool {
        self.n > 0
    }
}

impl Report {
    pub fn new(limits: Vec<Figure>, results: Vec<Figure>) -> Report {
        Report { limits, results }
    }

    /// The result's p50 over its limit's; for the message rate, messages a bare one-way time.
    fn ratio(&self, result: &Figure) -> Option<String> {
        let (_, limit) = RATIOS.iter().find(|(name, _)| *name == result.name)?;
        let limit = self.limits.iter().find(|figure| figure.name == *limit && figure.is_measured())?;
        Some(match result.unit.as_str() {
            "msg/s" => format!("{:.2} per {}", result.p50 * limit.p50 / 1e9, limit.name),
            _ => format!("{:.2} x {}", result.p50 / limit.p50, limit.name),
        })
    }

    pub fn print(&self) -> anyhow::Result<()> {
        output::print(&self.text(screen::width()))
    }

    fn text(&self, width: Option<usize>) -> String {
        let all: Vec<&Figure> = self.limits.iter().chain(&self.results).collect();
        let mut text = table(&all, |figure| self.ratio(figure).unwrap_or_default(), width);
        let calls: Vec<f64> = self.results.iter().filter(|f| f.name.starts_with("api_")).map(|f| f.p50).collect();
        let line = self.limits.iter().find(|figure| figure.name == "cacheline_oneway");
        if let (Some(line), 6) = (line, calls.len()) {
            let calls: f64 = calls.iter().sum();
            let ratio = calls / line.p50;
            text.push_str(&format!("the six calls together: {calls:.1} ns, {ratio:.2} x cacheline_oneway\n"));
        }
        text
    }
}

/// A table of figures, for a terminal of so many characters a line; `against` says in words what one is against its limit.
pub(super) fn table(figures: &[&Figure], against: impl Fn(&Figure) -> String, width: Option<usize>) -> String {
    let mut table = Table::new(COLUMNS);
    for figure in figures {
        let number = |value: f64| if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.1}") };
        let numbers = [figure.p50, figure.p99, figure.p999, figure.max, figure.mean].map(number);
        let mut row = vec![figure.name.clone(), figure.unit.clone(), figure.n.to_string()];
        row.extend(if figure.is_measured() { numbers } else { [(); 5].map(|()| NONE.to_owned()) });
        row.push(against(figure));
        table.add_row(row);
    }
    table.fitted(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, unit: &str, scale: f64) -> Figure {
        let samples = (0..100_000).map(|sample| scale + f64::from(sample) * scale).collect();
        Figure::of_samples(name.to_owned(), unit, samples)
    }

    /// Names and values as long as they are in real runs.
    #[test]
    fn the_figures_fit_terminals_of_every_width() {
        let report = Report::new(
            vec![figure("cacheline_oneway", "ns", 1.5), figure("futex_oneway", "ns", 170.0)],
            vec![
                figure("fifo_oneway_poll_65536", "ns", 2.4),
                figure("fifo_oneway_block_64", "ns", 180.0),
                figure("fifo_rate_64", "msg/s", 169.0),
                Figure::of_samples("msg_oneway_tcp_block_65536".to_owned(), "ns", Vec::new()),
            ],
        );
        crate::screen::assert_fits(|width| report.text(width));
        let narrow = report.text(Some(80));
        assert!(narrow.contains("p50") && narrow.contains("1.60 x cacheline_oneway"), "{narrow}");
        assert!(narrow.contains("Not shown, for want of room: n, p99, p99.9, max, mean."), "{narrow}");
    }
}
