//! `cargo xtask size`: code and RAM of Musubi's parts on each bare-metal target.
//!
//! What you may rely on: the figures are of images that were linked as a product's are (unused sections collected, link
//! time optimisation, panics abort), not of archives. The command fails if the FIFO path on a Cortex-M passes its limits.
//!
//! How it works: `firmware/measures/size-probe` is built once for each target and set of features; [`image`] reads the sections
//! and symbols of the result. A part's size is what it adds to the image that it stands on.
//!
//! What it does not do: count stacks, or what a board adds (its clock, its bell, its start-up code).

mod image;
mod parts;
mod report;

use anyhow::Result;
use clap::Args;

use crate::runner::{Context, Verdict};
use parts::Figures;

/// Most bytes of code of the FIFO path with all checks, on a Cortex-M.
const CODE_BYTES_MAX: u64 = 4096;
/// Most bytes of RAM of the FIFO path besides the channels' own memory, on a Cortex-M.
const RAM_BYTES_MAX: u64 = 512;

/// What the command can be told.
#[derive(Args)]
pub struct Options {
    /// Print the figures as JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures and prints; gives whether all limits are kept.
///
/// # Errors
/// If an image cannot be built or read.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    let figures = parts::measure(context, options.json)?;
    if options.json {
        print!("{}", report::json(&figures));
    } else {
        report::print(&figures);
    }
    let broken = broken_limits(&figures);
    broken.iter().for_each(|limit| eprintln!("{limit}"));
    Ok(broken.is_empty())
}

/// Step: the limits are kept.
///
/// # Errors
/// If an image cannot be built or read.
pub fn step(context: &Context) -> Result<Verdict> {
    let figures = parts::measure(context, false)?;
    report::print(&figures);
    let broken = broken_limits(&figures);
    Ok(if broken.is_empty() { Verdict::passed() } else { Verdict::failed(broken.join("; ")) })
}

/// What is larger than it may be, a line each.
fn broken_limits(figures: &Figures) -> Vec<String> {
    let Some(fifo) = figures.part("thumbv7em-none-eabihf", "fifo") else {
        return vec!["the FIFO path on the Cortex-M was not measured".into()];
    };
    let limits = [("code", fifo.size.code, CODE_BYTES_MAX), ("RAM", fifo.size.ram, RAM_BYTES_MAX)];
    let broken = limits.iter().filter(|(_, bytes, most)| bytes > most);
    broken.map(|(what, bytes, most)| format!("FIFO path on thumbv7em: {bytes} bytes of {what}, limit {most}")).collect()
}

#[cfg(test)]
mod tests {
    use super::image::Size;
    use super::parts::Part;
    use super::*;

    fn figures(code: u64, ram: u64) -> Figures {
        let size = Size { code, ram, channels: 0 };
        let part = Part { target: "thumbv7em-none-eabihf", name: "fifo", size };
        Figures { parts: vec![part], sites: Vec::new() }
    }

    #[test]
    fn limits_hold_up_to_the_last_byte() {
        assert!(broken_limits(&figures(4096, 512)).is_empty());
        assert_eq!(broken_limits(&figures(4097, 512)).len(), 1);
        assert_eq!(broken_limits(&figures(4097, 513)).len(), 2);
    }

    #[test]
    fn what_was_not_measured_is_not_kept() {
        assert_eq!(broken_limits(&Figures { parts: Vec::new(), sites: Vec::new() }).len(), 1);
    }
}
