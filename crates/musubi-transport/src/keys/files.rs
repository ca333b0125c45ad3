//! Where certificates and keys lie, and how they are written.
//!
//! What you may rely on: a private key is readable by its owner alone from its first byte on. No file is overwritten unless that
//! was asked for, and one that is replaced is never half there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Error;
use crate::NodeId;
use crate::topology::{Place, Topology};

/// The authority's certificate in the directory of keys; every node needs it.
pub const AUTHORITY_CERTIFICATE: &str = "ca.crt";
/// The authority's private key there; only who issues needs it.
pub const AUTHORITY_KEY: &str = "ca.key";

/// Who may read what everybody may know.
const PUBLIC_MODE: u32 = 0o644;
/// Who may read a private key.
const PRIVATE_MODE: u32 = 0o600;

/// The two files of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFiles {
    /// Its certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl NodeFiles {
    /// The files of `node`: what the description says, else `NAME.crt` and `.key` in the directory of keys, or
    /// `DOMAIN-NODE.crt` and `.key` if it has no name. `None` if neither is said.
    pub fn of(topology: &Topology, node: NodeId) -> Option<NodeFiles> {
        let nowhere = Place::default();
        // A tool has no place in the description.
        let place = topology.nodes.get(&node).or(node.is_tool().then_some(&nowhere))?;
        let stem = match place.name.as_str() {
            "" => format!("{}-{}", node.domain(), node.node()),
            name => name.to_owned(),
        };
        let place_of = |said: &Option<String>, extension: &str| match (said, &topology.network.keys) {
            (Some(path), _) => Some(PathBuf::from(path)),
            (None, Some(directory)) => Some(Path::new(directory).join(format!("{stem}.{extension}"))),
            (None, None) => None,
        };
        Some(NodeFiles { certificate: place_of(&place.certificate, "crt")?, key: place_of(&place.key, "key")? })
    }
}

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })
}

/// Writes a certificate.
pub(super) fn write_public(path: &Path, text: &str, force: bool) -> Result<(), Error> {
    write(path, text, force, PUBLIC_MODE)
}

/// Writes a private key.
pub(super) fn write_private(path: &Path, text: &str, force: bool) -> Result<(), Error> {
    write(path, text, force, PRIVATE_MODE)
}

/// Refuses files that exist, unless forced.
pub(super) fn refuse_existing(paths: &[&Path], force: bool) -> Result<(), Error> {
    match paths.iter().find(|path| !force && path.exists()) {
        Some(path) => Err(Error::Exists(path.to_path_buf())),
        None => Ok(()),
    }
}

/// A forced file is written beside and renamed, so that it has its mode from the beginning and is never half there.
fn write(path: &Path, text: &str, force: bool, mode: u32) -> Result<(), Error> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.into()),
        _ => Error::File { path: path.into(), source },
    };
    if !force {
        return create(path, text, mode).map_err(failed);
    }
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    create(&beside, text, mode).and_then(|()| fs::rename(&beside, path)).map_err(|source| {
        // It may not be there; then there is nothing to remove.
        let _ = fs::remove_file(&beside);
        failed(source)
    })
}

fn create(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
