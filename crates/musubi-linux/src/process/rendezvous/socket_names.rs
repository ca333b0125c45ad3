//! The abstract Unix socket names of one run of a system. Binding a name claims what it stands for: the kernel lets
//! one socket have it and frees it at the holder's death.
//!
//! What you may rely on: names of different systems and instances differ; every name fits a socket address.

use crate::direction::Direction;
use crate::error::Error;

/// Environment variable that names the instance where the caller does not.
pub const INSTANCE_VARIABLE: &str = "MUSUBI_INSTANCE";
/// Instance if nobody names one.
pub const INSTANCE_DEFAULT: &str = "default";
/// Longest instance name, in bytes.
pub const INSTANCE_BYTES_MAX: usize = 32;

/// The names of one system and instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Names for a system; the instance is the given one, else that of the environment, else "default".
    ///
    /// # Errors
    /// [`Error::Instance`] if the instance name has other characters than letters, digits, `-`, `_` and `.`.
    pub fn new(system: &str, instance: Option<&str>) -> Result<Names, Error> {
        let from_environment = || std::env::var(INSTANCE_VARIABLE).ok().filter(|name| !name.is_empty());
        let instance =
            instance.map(str::to_owned).or_else(from_environment).unwrap_or_else(|| INSTANCE_DEFAULT.to_owned());
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if instance.is_empty() || instance.len() > INSTANCE_BYTES_MAX || !instance.bytes().all(allowed) {
            return Err(Error::Instance(instance));
        }
        Ok(Names { prefix: format!("musubi/{system}/{instance}") })
    }

    /// The slot of a participant, where it also listens.
    pub fn participant(&self, number: u16) -> String {
        format!("{}/p{number}", self.prefix)
    }

    /// The number of a node, and where it listens. Nodes of different users do not see each other.
    pub fn node(&self, uid: u32, index: u16) -> String {
        format!("{}/u{uid}/n{index}", self.prefix)
    }

    /// One end of a FIFO channel.
    pub fn end(&self, fifo: u16, direction: Direction) -> String {
        let side = match direction {
            Direction::Send => "tx",
            Direction::Receive => "rx",
        };
        format!("{}/c{fifo}/{side}", self.prefix)
    }

    /// The right to create the memory of an SMEM channel.
    pub fn segment(&self, smem: u16) -> String {
        format!("{}/s{smem}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::packet_socket::address;

    #[test]
    fn longest_names_fit() {
        let system = "s".repeat(musubi_core::plan::NAME_BYTES_MAX);
        let names = Names::new(&system, Some(&"i".repeat(INSTANCE_BYTES_MAX))).unwrap();
        address(&names.end(u16::MAX, Direction::Receive)).unwrap();
    }

    #[test]
    fn odd_instances_are_refused() {
        for name in ["", "a/b", "a b", "\u{7d50}", &"i".repeat(INSTANCE_BYTES_MAX + 1)] {
            assert!(matches!(Names::new("s", Some(name)), Err(Error::Instance(_))), "{name:?}");
        }
    }
}
