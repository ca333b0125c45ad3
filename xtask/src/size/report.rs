//! The figures as tables for people and as JSON for programs.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use super::parts::Figures;
use super::{CODE_BYTES_MAX, RAM_BYTES_MAX};

/// Prints two tables: parts, then lock sites.
pub fn print(figures: &Figures) {
    let mut parts = table(["target", "part", "code B", "RAM B", "channels B"]);
    for part in &figures.parts {
        let size = part.size;
        let numbers = [size.code, size.ram, size.channels].map(|n| n.to_string());
        parts.add_row([part.target, part.name].map(str::to_owned).into_iter().chain(numbers));
    }
    println!("{parts}");
    println!(
        "fifo: both ends with all checks; limits on thumbv7em: {CODE_BYTES_MAX} B of code, {RAM_BYTES_MAX} B of RAM"
    );
    let mut sites = table(["target", "lock site", "hot path B", "waiting loop B"]);
    for site in &figures.sites {
        let waiting = if site.wait_bytes == 0 { String::new() } else { site.wait_bytes.to_string() };
        sites.add_row([site.target.into(), site.lock.into(), site.site_bytes.to_string(), waiting]);
    }
    println!("{sites}");
    println!("hot path: bytes at each place that takes and gives the lock; the waiting loop is there once a program");
}

fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Lists `limits`, `parts` and `lock_sites`.
pub fn json(figures: &Figures) -> String {
    let parts = figures.parts.iter().map(|part| {
        json!({
            "target": part.target, "part": part.name, "code_bytes": part.size.code, "ram_bytes": part.size.ram,
            "channel_bytes": part.size.channels,
        })
    });
    let limit = json!({
        "target": "thumbv7em-none-eabihf", "part": "fifo", "code_bytes_max": CODE_BYTES_MAX, "ram_bytes_max": RAM_BYTES_MAX,
    });
    let value = json!({ "limits": [limit], "parts": parts.collect::<Vec<_>>(), "lock_sites": figures.sites });
    format!("{value:#}\n")
}
