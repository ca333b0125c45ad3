//! The figures as a table for people and as JSON for programs.

use comfy_table::{CellAlignment, Table, presets};

use super::series::Measurement;

/// Prints one table: the bare limits, then each way of waiting and payload, fastest first.
pub fn print(bare: &[Measurement], results: &[Measurement]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["one way", "bytes", "system", "n", "p50 ns", "p99 ns", "p99.9 ns", "max ns", "x bare"]);
    for column in table.column_iter_mut() {
        if !matches!(column.index, 0 | 2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for figure in bare.iter().chain(&sorted(results)) {
        table.add_row(row(figure));
    }
    println!("{table}");
    println!("`x bare`: median against the bare cache-line (poll) or futex (block) ping-pong measured beside it");
}

fn sorted(results: &[Measurement]) -> Vec<Measurement> {
    let mut sorted = results.to_vec();
    sorted.sort_by(|a, b| {
        let place = |m: &Measurement| (m.mode == "block", m.bytes);
        place(a).cmp(&place(b)).then(a.ratio.unwrap_or(0.0).total_cmp(&b.ratio.unwrap_or(0.0)))
    });
    sorted
}

fn row(figure: &Measurement) -> [String; 9] {
    [
        figure.mode.into(),
        figure.bytes.to_string(),
        figure.peer.into(),
        figure.n.to_string(),
        format!("{:.0}", figure.p50),
        format!("{:.0}", figure.p99),
        format!("{:.0}", figure.p999),
        format!("{:.0}", figure.max),
        figure.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
    ]
}

/// Lists `limits`, `results` and `skipped`.
pub fn json(bare: &[Measurement], results: &[Measurement], skipped: &[(&str, String)]) -> String {
    let skipped: Vec<_> =
        skipped.iter().map(|(name, reason)| serde_json::json!({ "name": name, "reason": reason })).collect();
    let value = serde_json::json!({ "limits": bare, "results": sorted(results), "skipped": skipped });
    format!("{value:#}\n")
}
