//! Certificates of nodes: a small authority, what it issues, and where the files lie.
//!
//! What you may rely on: a private key is readable by its owner only from the instant its file exists; no file is
//! replaced unless that is asked for; every certificate names exactly one node of one system, as
//! `musubi://SYSTEM/DOMAIN/NODE` among its alternative names, and nothing else in it is looked at but its validity.
//!
//! How it works: keys are ECDSA over P-256, made by `ring`; certificates are X.509 version 3, made by `rcgen`. The
//! authority signs node certificates directly; there is nothing between. A node needs `ca.crt` and its own two files;
//! `ca.key` stays with whoever issues.
//!
//! What it does not do: revoke. Issue for a short time instead, or begin with a new authority.

mod authority;
mod examine;
mod files;
mod identity;

pub use authority::{Authority, Validity};
pub use examine::{Examined, examine};
pub use files::{AUTHORITY_CERTIFICATE, AUTHORITY_KEY, NodeFiles};
pub use identity::{Identity, certificate_identity, identity};

use std::path::PathBuf;

/// What can go wrong with certificates and their files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file exists and was not to be replaced.
    #[error("{0} exists; it is replaced only if that is forced")]
    Exists(PathBuf),
    /// The file does not hold what its name says.
    #[error("{path}: {what}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Certificate and key of the authority are not of one another, or the authority is of another system.
    #[error("{0}: certificate and key do not belong together, or to this system")]
    NotOfOneAuthority(PathBuf),
    /// The time of validity ends before it begins, or lies beyond what certificates can say.
    #[error("a certificate cannot be valid for this time")]
    Validity,
    /// The library that makes certificates refuses.
    #[error("the certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
}
