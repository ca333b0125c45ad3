//! What the examples over the VI Architecture share: two processes, `--role server` and `--role client`, in any order; each
//! with one NIC. Where the other is, only the description knows that `MUSUBI_SYSTEM` names.

use std::error::Error;

use musubi_vipl::owned::process::{Listener, Nic, Vi};
use musubi_vipl::owned::{Connected, Idle, ViFailure};
use musubi_vipl::process::NicSystem;

use crate::{PATIENCE, soon};

/// What an example ends with.
pub type Ending = Result<(), Box<dyn Error>>;

/// What the command line says.
#[derive(Clone, Debug)]
pub struct ViArguments {
    /// Whether this process is the server.
    pub is_server: bool,
    /// The NIC that it opens.
    pub nic: String,
    /// The server's NIC.
    pub peer: String,
    /// How many of what the example counts.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// Runs one role of an example, as the command line says, with its NIC opened.
///
/// # Errors
/// A wrong command line, a description with mistakes, and what the role fails with.
pub fn run(about: &str, count: usize, bytes: usize, role: fn(&Nic, &ViArguments) -> Ending) -> Ending {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let Some(arguments) = read(&given, count, bytes)? else {
        println!(
            "{about}\n\n  --role server|client\n  --nic NAME     the NIC to open [default: right for the server, left for the \
             client]\n  --peer NAME    the server's NIC [default: right]\n  --count N      [default: {count}]\n  --bytes N      \
             [default: {bytes}]"
        );
        return Ok(());
    };
    role(&Nic::open(&system()?, &arguments.nic)?, &arguments)
}

/// Reads the words of a command line; none if they ask for help.
fn read(given: &[&str], count: usize, bytes: usize) -> Result<Option<ViArguments>, Box<dyn Error>> {
    let (mut role, mut nic) = (None, None);
    let mut arguments = ViArguments { is_server: false, nic: String::new(), peer: "right".to_owned(), count, bytes };
    for pair in given.chunks(2) {
        match *pair {
            ["--help" | "-h", ..] => return Ok(None),
            ["--role", value] => role = Some(value),
            ["--nic", value] => nic = Some(value),
            ["--peer", value] => arguments.peer = value.to_owned(),
            ["--count", value] => arguments.count = number(value)?,
            ["--bytes", value] => arguments.bytes = number(value)?,
            _ => return Err(format!("{} is not an option, or lacks its value; see --help", pair[0]).into()),
        }
    }
    arguments.is_server = match role {
        Some("server") => true,
        Some("client") => false,
        _ => return Err("--role must be server or client".into()),
    };
    arguments.nic = nic.unwrap_or(if arguments.is_server { "right" } else { "left" }).to_owned();
    Ok(Some(arguments))
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("not a number above 0: {text}"))
}

/// The system of the description that the environment names.
fn system() -> Result<NicSystem, Box<dyn Error>> {
    let description = musubi_config::load(&musubi_config::find(None)?)?;
    let nics = description.nics();
    let entries = nics.entries.iter().map(|entry| (entry.name.clone(), entry.processes));
    let is_trusted = |name: &str| nics.entries.iter().any(|entry| entry.name == name && entry.is_trusted);
    Ok(NicSystem::new(entries, nics.topology.clone()).trusting(is_trusted))
}

/// Connects a VI with who listens by a name at the server, which may not have begun.
///
/// # Errors
/// What a connection fails with, but that nobody is there yet.
pub fn connect(nic: &Nic, arguments: &ViArguments, name: &[u8], vi: Vi<Idle>) -> Result<Vi<Connected>, ViFailure> {
    let to = nic.address(&arguments.peer, name)?;
    let begun = std::time::Instant::now();
    let mut idle = vi;
    loop {
        match idle.connect(&to).wait(soon()) {
            Ok(vi) => return Ok(vi),
            Err(refused) if refused.failure == ViFailure::NobodyThere && begun.elapsed() < PATIENCE => {
                idle = refused.vi;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(refused) => return Err(refused.into()),
        }
    }
}

/// Takes the next client of a listener.
///
/// # Errors
/// What a connection fails with.
pub fn accept(listener: &mut Listener, vi: Vi<Idle>) -> Result<Vi<Connected>, ViFailure> {
    Ok(listener.caller().wait(soon())?.accept(vi).wait(soon())?)
}

/// An error if something is not as it should be.
///
/// # Errors
/// What is said.
pub fn check(is_right: bool, what: impl FnOnce() -> String) -> Ending {
    if is_right { Ok(()) } else { Err(what().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_or_refused() {
        let arguments = read(&["--role", "client", "--count", "7", "--peer", "far"], 1, 2).unwrap().unwrap();
        assert_eq!((arguments.is_server, arguments.nic.as_str(), arguments.peer.as_str()), (false, "left", "far"));
        assert_eq!((arguments.count, arguments.bytes), (7, 2));
        assert_eq!(read(&["--role", "server"], 1, 2).unwrap().unwrap().nic, "right");
        assert!(read(&["--help"], 1, 2).unwrap().is_none());
        for wrong in [&[][..], &["--role"], &["--role", "both"], &["--count", "0"], &["--what", "1"]] {
            assert!(read(wrong, 1, 2).is_err(), "{wrong:?}");
        }
    }
}
