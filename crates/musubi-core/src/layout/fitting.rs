//! Whether a plan can be laid out.
//!
//! What you may rely on: a plan that [`Plan::check`] accepts has its indices in range, and every section has a length.
//!
//! How it works: the limits of [`crate::plan`], then the length of each domain's section, which only the layout knows.
//!
//! What it does not do: look at names, or at addresses; the configurator does.

use super::section_bytes;
use crate::error::Error;
use crate::plan::{
    BLOCKS_MAX, DOMAINS_MAX, FIFOS_MAX, Fifo, PARTICIPANTS_MAX, PAYLOAD_BYTES_MAX, PRIORITIES, Plan, Role, SMEMS_MAX,
    Smem,
};

impl Plan<'_> {
    /// Checks what attaching relies on.
    ///
    /// # Errors
    /// [`Error::Plan`] if an index, a count or a size is out of range, or there is not exactly one Master.
    pub fn check(&self) -> Result<(), Error> {
        let masters = self.domains.iter().filter(|d| d.role == Role::Master).count();
        let participants: usize = self.domains.iter().map(|d| usize::from(d.participants)).sum();
        let counts_fit = masters == 1
            && self.domains.len() <= DOMAINS_MAX
            && participants <= PARTICIPANTS_MAX
            && self.fifos.len() <= FIFOS_MAX
            && self.smems.len() <= SMEMS_MAX;
        let parts_fit = self.domains.iter().all(|d| d.participants > 0)
            && self.fifos.iter().all(|f| self.fifo_fits(f))
            && self.smems.iter().all(|s| self.smem_fits(s));
        let sections_fit = (0..self.domains.len()).all(|d| section_bytes(self, d as u16).is_some());
        if counts_fit && parts_fit && sections_fit { Ok(()) } else { Err(Error::Plan) }
    }

    fn fifo_fits(&self, f: &Fifo<'_>) -> bool {
        let domains = self.domains.len() as u16;
        f.from < domains
            && f.to < domains
            && f.from != f.to
            && (1..=BLOCKS_MAX).contains(&f.blocks)
            && (1..=PAYLOAD_BYTES_MAX).contains(&f.block_bytes)
            && f.priority < PRIORITIES
    }

    fn smem_fits(&self, s: &Smem<'_>) -> bool {
        let domains = self.domains.len() as u16;
        (1..=PAYLOAD_BYTES_MAX).contains(&s.bytes) && s.domains.len() >= 2 && s.domains.iter().all(|&d| d < domains)
    }
}
