//! What can go wrong in the configurator, apart from mistakes in a description ([`crate::Report`]).

use std::path::PathBuf;

/// Errors of the configurator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither an explicit file nor the environment names a description.
    #[error("no system description: name one with `--system FILE`, or set the environment variable MUSUBI_SYSTEM=FILE")]
    NoDescription,
    /// A generated file cannot be written; give a directory that can be.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
