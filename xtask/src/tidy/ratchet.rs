//! What broke a rule before the rule came, in `xtask/ratchet.toml`: accepted as it is, never more of it.

use serde::Deserialize;

use super::{Finding, Tree};

/// The list.
pub const RATCHET: &str = "xtask/ratchet.toml";

/// All that is accepted.
#[derive(Deserialize, Default)]
pub struct Ratchet {
    #[serde(default)]
    pub function: Vec<Function>,
    #[serde(default)]
    pub circle: Vec<Circle>,
    #[serde(default)]
    pub homonym: Vec<Homonym>,
    #[serde(default)]
    pub folder: Vec<Folder>,
}

/// One long function.
#[derive(Deserialize)]
pub struct Function {
    pub path: String,
    pub name: String,
    pub lines_max: usize,
    pub reason: String,
}

/// Concepts of one crate that depend on each other in a circle.
#[derive(Deserialize)]
pub struct Circle {
    /// Where the crate's sources lie.
    pub sources: String,
    pub concepts: Vec<String>,
}

/// A type name that means several things.
#[derive(Deserialize)]
pub struct Homonym {
    pub name: String,
    pub times_max: usize,
}

/// A folder with many files.
#[derive(Deserialize)]
pub struct Folder {
    pub path: String,
    pub files_max: usize,
}

impl Ratchet {
    /// Reads the list; a tree without one accepts nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(tree: &Tree) -> Result<Ratchet, Finding> {
        let Some(text) = tree.files.get(RATCHET) else { return Ok(Ratchet::default()) };
        toml::from_str(text).map_err(|error| Finding::new(RATCHET, error.to_string()))
    }
}
