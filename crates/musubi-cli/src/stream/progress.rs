//! The progress bar: on standard error, only on a terminal.

use std::cell::RefCell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use musubi_linux::Error;

use crate::output;

/// Redraws a second.
const DRAWS_PER_S: u8 = 10;
const WAITING: &str = "{spinner} waiting for the {msg} ({elapsed})";
const UNKNOWN_LENGTH: &str = "{spinner} {bytes} in {elapsed}, {binary_bytes_per_sec}";
const KNOWN_LENGTH: &str = "{bar:30} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";

/// What a person sees while a stream runs.
pub struct Progress {
    bar: ProgressBar,
    /// The obstacle that was said last.
    said: RefCell<String>,
}

impl Progress {
    /// Shows that the other side is not there yet. `total` is the stream's length if that is known.
    pub fn waiting_for(side: &'static str, total: Option<u64>) -> Progress {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S);
        let bar = ProgressBar::with_draw_target(total, target).with_message(side);
        bar.set_style(style(WAITING));
        bar.tick();
        Progress { bar, said: RefCell::default() }
    }

    /// From now on bytes flow.
    pub fn begin(&self) {
        let known = self.bar.length().is_some();
        self.bar.set_style(style(if known { KNOWN_LENGTH } else { UNKNOWN_LENGTH }));
        self.bar.reset_elapsed();
    }

    /// Says what the other side is waited for in vain for, once for each different obstacle.
    pub fn say_obstacle(&self, obstacle: Option<Error>) {
        let Some(text) = obstacle.map(|obstacle| obstacle.to_string()) else { return };
        let mut said = self.said.borrow_mut();
        if *said != text {
            self.bar.suspend(|| output::note(&format!("note: {text}; waiting for another")));
            *said = text;
        }
    }

    /// So many bytes have passed, from the beginning.
    pub fn at(&self, bytes: u64) {
        if !self.bar.is_hidden() {
            self.bar.set_position(bytes);
        }
    }

    /// Leaves the final figures on the screen.
    pub fn finish(&self) {
        self.bar.abandon();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.bar.is_finished() {
            self.bar.abandon();
        }
    }
}

/// The templates are ours and valid; a plain bar would stand in.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
