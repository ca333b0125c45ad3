//! Where certificates and keys lie, and how they are written.
//!
//! What you may rely on: a private key is readable by its owner alone from its first byte on. No file is overwritten unless that
//! was asked for, and no file is ever left half written.

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

/// Writes a private key and the certificate that goes with it, both or neither.
pub(super) fn write_pair(key: (&Path, &str), certificate: (&Path, &str), force: bool) -> Result<(), Error> {
    let files = [(key.0, key.1, PRIVATE_MODE), (certificate.0, certificate.1, PUBLIC_MODE)];
    if force { replace(&files) } else { make(&files) }
}

/// Path, text and mode.
type Text<'a> = (&'a Path, &'a str, u32);

/// Refuses files that exist, unless forced.
pub(super) fn refuse_existing(paths: &[&Path], force: bool) -> Result<(), Error> {
    match paths.iter().find(|path| !force && path.exists()) {
        Some(path) => Err(Error::Exists(path.to_path_buf())),
        None => Ok(()),
    }
}

/// Makes files that are not there yet.
fn make(files: &[Text<'_>]) -> Result<(), Error> {
    for (index, (path, text, mode)) in files.iter().enumerate() {
        create(path, text, *mode).map_err(|source| {
            // Those before it were not there either, and are worth nothing without it.
            files[..index].iter().for_each(|(path, ..)| remove(path));
            failed(path, source)
        })?;
    }
    Ok(())
}

/// Writes all of them beside and renames them then, so that they have their modes from the beginning and no name stands for a
/// part of a file.
fn replace(files: &[Text<'_>]) -> Result<(), Error> {
    let written = files
        .iter()
        .try_for_each(|(path, text, mode)| create(&beside(path), text, *mode).map_err(|source| failed(path, source)));
    let renamed = written.and_then(|()| {
        files.iter().try_for_each(|(path, ..)| fs::rename(beside(path), path).map_err(|source| failed(path, source)))
    });
    renamed.inspect_err(|_| files.iter().for_each(|(path, ..)| remove(&beside(path))))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    PathBuf::from(name)
}

/// What is not there need not be removed; what cannot be, stays.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.into()),
        _ => Error::File { path: path.into(), source },
    }
}

/// Makes a file with all of the text, or none.
fn create(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // Where it stayed, the next try would say that it exists.
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| remove(path))
}
