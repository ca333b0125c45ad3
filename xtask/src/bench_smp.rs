//! `cargo xtask bench-smp`: what being built for several cores costs, in instructions on an image.
//!
//! What you may rely on: the figures of one core are counts of instructions, which do not depend on the host: QEMU runs
//! with `-icount`, and the image reads the instruction counter. Those across two cores are nanoseconds of an emulator and
//! say only that it works.
//!
//! How it works: the same list is built twice, for one core (its locks are a mask) and for two; the ratio of each item on
//! one core is what the second build costs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::qemu::emulator;
use crate::runner::{COMMAND_TIME_MAX, Context};

/// Target of both images.
const TARGET: &str = "riscv64gc-unknown-none-elf";
/// Longest run of an image.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);
/// Most that an item may cost more when it is built for several cores and runs on one.
const RATIO_MAX: f64 = 1.05;

/// What the command can be told.
#[derive(Args)]
pub struct Options {
    /// Write the figures as JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// One item in all its forms.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    /// Instructions, built for one core.
    up_instructions: f64,
    /// Instructions, built for two, on one.
    smp_one_core_instructions: f64,
    /// The second over the first.
    smp_one_core_over_up: f64,
    /// Nanoseconds across two cores of the emulator; `None` for items without a partner.
    smp_two_cores_ns: Option<f64>,
}

/// Measures and prints; gives whether every item is within [`RATIO_MAX`].
///
/// # Errors
/// If QEMU is not there, or an image does not build or does not pass.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    let up = list(context, "measures-up", &["-smp", "1", "-icount", "shift=0"])?;
    let one = list(context, "measures-smp", &["-smp", "1", "-icount", "shift=0"])?;
    let two = list(context, "measures-smp", &["-smp", "2"])?;
    let figures = figures(&up, &one, &two)?;
    if options.json {
        println!("{:#}", serde_json::json!({ "ratio_max": RATIO_MAX, "results": figures }));
    } else {
        print(&figures);
    }
    let above: Vec<_> = figures.iter().filter(|figure| figure.smp_one_core_over_up > RATIO_MAX).collect();
    for figure in &above {
        eprintln!("{}: {:.3} times UP, limit {RATIO_MAX}", figure.name, figure.smp_one_core_over_up);
    }
    Ok(above.is_empty())
}

/// Figures of an image by name and place.
type List = BTreeMap<(String, String), f64>;

fn figures(up: &List, one: &List, two: &List) -> Result<Vec<Figure>> {
    let of = |list: &List, name: &str, place: &str| list.get(&(name.to_owned(), place.to_owned())).copied();
    let names = up.keys().filter(|(_, place)| place == "one_core").map(|(name, _)| name);
    names
        .map(|name| {
            let up_instructions = of(up, name, "one_core").context("listed above")?;
            let smp = of(one, name, "one_core").with_context(|| format!("the second image lacks {name}"))?;
            Ok(Figure {
                name: name.clone(),
                up_instructions,
                smp_one_core_instructions: smp,
                smp_one_core_over_up: smp / up_instructions,
                smp_two_cores_ns: of(two, name, "two_cores"),
            })
        })
        .collect()
}

/// Builds an image and runs it; gives its figures.
fn list(context: &Context, package: &str, machine: &[&str]) -> Result<List> {
    let elf = build(context, package)?;
    let mut qemu = match emulator::find("qemu-system-riscv64")? {
        Ok(emulator) => emulator.command(),
        Err(reason) => bail!("{reason}"),
    };
    qemu.args(["-M", "virt", "-m", "128M", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"]);
    let output = context.run_unseen(qemu.args(machine).arg("-kernel").arg(elf), RUN_TIME_MAX)?;
    let passed = output.text.lines().any(|line| line.trim_end().ends_with(" passed, 0 failed"));
    ensure!(passed, "{package} did not pass:\n{}", output.text);
    Ok(output.text.lines().filter_map(figure_of).collect())
}

/// The figure of a line `count NAME PLACE NUMBER`.
fn figure_of(line: &str) -> Option<((String, String), f64)> {
    let mut words = line.trim_end().strip_prefix("count ")?.split(' ');
    let (name, place) = (words.next()?, words.next()?);
    Some(((name.to_owned(), place.to_owned()), words.next()?.parse().ok()?))
}

fn build(context: &Context, package: &str) -> Result<PathBuf> {
    let directory = context.target.join("firmware");
    let mut cargo = context.cargo();
    cargo.current_dir(context.root.join("firmware"));
    cargo.args(["build", "--quiet", "--release", "--package", package, "--target", TARGET]);
    let output = context.run_unseen(cargo.arg("--target-dir").arg(&directory), COMMAND_TIME_MAX)?;
    ensure!(output.status.success(), "{package} does not build: {}", output.text);
    Ok(directory.join(TARGET).join("release").join(package))
}

fn print(figures: &[Figure]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["item", "UP", "SMP on one core", "ratio", "two cores, ns in QEMU"]);
    for figure in figures {
        let two = figure.smp_two_cores_ns.map_or_else(String::new, |ns| format!("{ns:.0}"));
        table.add_row([
            figure.name.clone(),
            format!("{:.1}", figure.up_instructions),
            format!("{:.1}", figure.smp_one_core_instructions),
            format!("{:.3}", figure.smp_one_core_over_up),
            two,
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    println!("UP and SMP on one core: instructions of RISC-V; limit of the ratio {RATIO_MAX}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_of(text: &str) -> List {
        text.lines().filter_map(figure_of).collect()
    }

    #[test]
    fn lines_of_an_image_become_figures() {
        let up = list_of("Boot HART ID : 0\ncount lock_unlock one_core 12.05\n1 passed, 0 failed\ncount a b c");
        assert_eq!(up.len(), 1);
        let smp = list_of("count lock_unlock one_core 24.10\ncount lock_unlock two_cores 90");
        let figures = figures(&up, &smp, &smp).unwrap();
        assert!((figures[0].smp_one_core_over_up - 2.0).abs() < 1e-9);
        assert_eq!(figures[0].smp_two_cores_ns, Some(90.0));
    }

    #[test]
    fn an_item_that_one_image_lacks_is_an_error() {
        let up = list_of("count lock_unlock one_core 12.05");
        assert!(figures(&up, &List::new(), &List::new()).is_err());
    }
}
