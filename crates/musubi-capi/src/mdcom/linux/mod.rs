//! MDCOM for C programs on Linux: the process's one attachment and its channels, in statics.
//!
//! What you may rely on: the data path takes its channel's lock and nothing else.
//!
//! How it works: [`session`] has the attachment; [`fifo`] and [`smem`] open a channel at its first use; [`failure`] keeps
//! each thread's last one.

pub(crate) mod failure;
pub(crate) mod fifo;
pub(crate) mod session;
pub(crate) mod smem;

use failure::Failure;

/// `mdcom_term`.
pub(crate) fn term() -> Result<(), Failure> {
    session::end(|| {
        fifo::close_all();
        smem::close_all();
    })
}
