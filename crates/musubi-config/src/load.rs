//! From a file to a checked description.
//!
//! What you may rely on: no input panics; a file larger than [`DESCRIPTION_BYTES_MAX`] is refused unread. Only user and
//! group names are looked up outside the file, in /etc/passwd and /etc/group.
//!
//! How it works: the TOML parser reports all syntax errors it can recover from. If there are some, only mistakes inside
//! single values are reported beside them, because what is missing or unknown may be their consequence.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use musubi_transport::topology::Topology;
use toml::de::DeTable;

use crate::report::{Findings, Scope};
use crate::{Description, Error, Report, grammar, nodes};

/// The environment variable that names a description file.
pub const SYSTEM_VARIABLE: &str = "MUSUBI_SYSTEM";
/// Largest description file, in bytes.
pub const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// The description file to use: the explicit one, else what `MUSUBI_SYSTEM` names.
///
/// # Errors
/// [`Error::NoDescription`] if there is neither.
pub fn find(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    choose(explicit, std::env::var_os(SYSTEM_VARIABLE))
}

/// An empty variable counts as none, as shells make it hard to tell them apart.
fn choose(explicit: Option<&Path>, variable: Option<OsString>) -> Result<PathBuf, Error> {
    let named = explicit.map(Path::to_path_buf);
    named.or_else(|| variable.filter(|value| !value.is_empty()).map(PathBuf::from)).ok_or(Error::NoDescription)
}

/// Reads a file, or as many bytes of it; otherwise says why it cannot be read.
pub type Reader = fn(&Path, u64) -> Result<Vec<u8>, String>;

/// Reads and checks a description file. Relative paths in it become paths relative to the file's directory.
///
/// # Errors
/// All mistakes of the file, or the one reason why it cannot be read.
pub fn load(path: &Path) -> Result<Description, Report> {
    load_by(read_by_std, path)
}

/// As [`load`], for programs in which the standard library's way to read files cannot be used.
///
/// # Errors
/// As there.
pub fn load_by(reader: Reader, path: &Path) -> Result<Description, Report> {
    let name = path.display().to_string();
    let mut description = match reader(path, DESCRIPTION_BYTES_MAX + 1).and_then(text_of) {
        Ok(text) => parse(&name, &text)?,
        Err(reason) => return Err(Report::unreadable(name, reason)),
    };
    let directory = path.parent().map(std::path::absolute).and_then(Result::ok).unwrap_or_default();
    for topology in [&mut description.topology, &mut description.nics.topology] {
        nodes::locate(topology, &directory);
    }
    Ok(description)
}

/// The nodes of the system that `MUSUBI_SYSTEM` names; where it names none, all nodes are on this machine and reached
/// by shared memory.
///
/// # Errors
/// All mistakes of the file, or the one reason why it cannot be read.
pub fn topology_from_env() -> Result<Topology, Report> {
    topology_from_env_by(read_by_std)
}

/// As [`topology_from_env`], by a way to read files of the caller's.
///
/// # Errors
/// As there.
pub fn topology_from_env_by(reader: Reader) -> Result<Topology, Report> {
    Ok(from_env_by(reader)?.map_or_else(Topology::single_machine, |description| description.topology))
}

/// The description that `MUSUBI_SYSTEM` names, if it names one, by a way to read files of the caller's.
///
/// # Errors
/// All mistakes of the file, or the one reason why it cannot be read.
pub fn from_env_by(reader: Reader) -> Result<Option<Description>, Report> {
    find(None).ok().map(|path| load_by(reader, &path)).transpose()
}

fn read_by_std(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    // Opening a named pipe would wait for its writer, without a deadline.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err("cannot read: not a file (a pipe, a socket or a device)".to_owned());
    }
    let file = File::open(path).map_err(|error| format!("cannot open: {error}"))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).map_err(|error| format!("cannot read: {error}"))?;
    Ok(bytes)
}

fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() as u64 > DESCRIPTION_BYTES_MAX {
        return Err(format!("larger than {DESCRIPTION_BYTES_MAX} bytes, so hardly a description"));
    }
    String::from_utf8(bytes).map_err(|error| format!("not UTF-8 text from byte {}", error.utf8_error().valid_up_to()))
}

/// Checks the text of a description; `name` stands for the file in messages. Paths in it stay as they are.
///
/// # Errors
/// All mistakes of the text.
pub fn parse(name: &str, text: &str) -> Result<Description, Report> {
    let mut findings = Findings::default();
    let (table, syntax_errors) = DeTable::parse_recoverable(text);
    for error in &syntax_errors {
        let span = error.span().unwrap_or(0..0);
        findings.add(Scope::Syntax, span, format!("not valid TOML: {}", error.message()), "here");
    }
    let description = grammar::read(table.get_ref(), &mut findings);
    match description {
        Some(description) if findings.is_empty() => Ok(description),
        _ => Err(findings.into_report(name, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explicit_file_comes_before_the_variable() {
        let variable = |value: &str| Some(OsString::from(value));
        let chosen = |explicit: Option<&str>, value| choose(explicit.map(Path::new), value).ok();
        assert_eq!(chosen(Some("a.toml"), variable("b.toml")), Some(PathBuf::from("a.toml")));
        assert_eq!(chosen(None, variable("b.toml")), Some(PathBuf::from("b.toml")));
        assert_eq!(chosen(None, variable("")), None);
        let message = choose(None, None).map_err(|error| error.to_string());
        assert!(message.is_err_and(|text| text.contains("--system FILE") && text.contains(SYSTEM_VARIABLE)));
    }

    #[test]
    fn what_is_named_is_found() {
        assert_eq!(find(Some(Path::new("a.toml"))).ok(), Some(PathBuf::from("a.toml")));
    }

    #[test]
    fn what_is_no_file_is_told_from_one_that_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let reason = |path: &Path| load(path).unwrap_err().render(false);
        assert!(reason(&socket).contains("not a file"), "{}", reason(&socket));
        assert!(reason(directory.path()).contains("cannot read: Is a directory"), "{}", reason(directory.path()));
        assert!(reason(&directory.path().join("none")).contains("cannot open"));
    }
}
