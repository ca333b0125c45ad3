//! The repository as a value: its text files and its packages.
//!
//! How it works: each Rust file is cut into words and parsed when the first rule asks for it, and once for all of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use proc_macro2::TokenStream;
use serde::Deserialize;

/// Larger files are data, not sources.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Directories with a workspace of their own.
const OWN_WORKSPACES: [&str; 3] = ["firmware", "fuzz", "peers"];

/// What the rules look at.
#[derive(Default)]
pub struct Tree {
    /// Text of each text file, by path from the root with `/`.
    pub files: BTreeMap<String, String>,
    /// Packages of all workspaces.
    pub packages: Vec<Package>,
    /// The Rust files once a rule has asked for them.
    sources: OnceCell<Vec<(String, Source)>>,
}

/// A Rust file as the compiler sees it.
pub struct Source {
    /// Its words with their lines; none if it cannot be cut into words.
    pub tokens: TokenStream,
    /// What they say.
    pub syntax: syn::Result<syn::File>,
}

impl Source {
    fn of(text: &str) -> Self {
        match text.parse::<TokenStream>() {
            Ok(tokens) => Self { syntax: syn::parse2(tokens.clone()), tokens },
            Err(error) => Self { tokens: TokenStream::new(), syntax: Err(error.into()) },
        }
    }
}

/// One package, as `cargo metadata` describes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Path of its manifest from the root.
    pub manifest_path: String,
    /// What it depends on, tests and build scripts included.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// What is built from it.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// One dependency of a package.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// Where it lies, if it is in the tree.
    pub path: Option<String>,
    /// `dev`, `build`, or nothing for what the package itself is built with.
    #[serde(default)]
    pub kind: Option<String>,
}

/// One library, program, test or example of a package.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Target {
    /// `lib`, `bin`, `test` and so on.
    pub kind: Vec<String>,
    /// Path of its first source file from the root.
    pub src_path: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Tree {
    /// Reads the repository: every text file that git would not ignore.
    ///
    /// # Errors
    /// If a directory cannot be read or cargo cannot describe the workspaces.
    pub fn read(root: &Path) -> Result<Self> {
        let packages_here = packages(root, &root.join("Cargo.toml"))?;
        let mut tree = Self { files: read_files(root)?, packages: packages_here, sources: OnceCell::new() };
        for directory in OWN_WORKSPACES {
            let manifest = root.join(directory).join("Cargo.toml");
            if manifest.exists() {
                tree.packages.extend(packages(root, &manifest)?);
            }
        }
        Ok(tree)
    }

    /// Rust files, cut into words and parsed.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        let read = || self.rust_files().map(|(path, text)| (path.to_owned(), Source::of(text))).collect();
        self.sources.get_or_init(read).iter().map(|(path, source)| (path.as_str(), source))
    }

    /// Rust files that parse, by their syntax.
    pub fn syntax(&self) -> impl Iterator<Item = (&str, &syn::File)> {
        self.sources().filter_map(|(path, source)| Some((path, source.syntax.as_ref().ok()?)))
    }

    /// Rust files and their text.
    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn read_files(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in ignore::WalkBuilder::new(root).require_git(false).build() {
        let entry = entry?;
        let is_source = entry.file_type().is_some_and(|t| t.is_file()) && entry.metadata()?.len() <= FILE_BYTES_MAX;
        if !is_source {
            continue;
        }
        // What is not UTF-8 is not a source; a file that vanished since is nobody's business here.
        if let (Ok(path), Ok(text)) = (entry.path().strip_prefix(root), std::fs::read_to_string(entry.path())) {
            files.insert(path.to_string_lossy().replace('\\', "/"), text);
        }
    }
    Ok(files)
}

fn packages(root: &Path, manifest: &Path) -> Result<Vec<Package>> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(manifest);
    let output = cargo.output().context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut packages = serde_json::from_slice::<Metadata>(&output.stdout)?.packages;
    let from_root = |path: &str| Path::new(path).strip_prefix(root).map_or(path.into(), |p| p.display().to_string());
    for package in &mut packages {
        package.manifest_path = from_root(&package.manifest_path);
        for target in &mut package.targets {
            target.src_path = from_root(&target.src_path);
        }
    }
    Ok(packages)
}

#[cfg(test)]
impl Tree {
    /// A tree of these files, without packages.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        Self { files, ..Self::default() }
    }

    /// The same with a package; dependencies that begin with `musubi` lie in the tree.
    pub fn with_package(mut self, name: &str, dependencies: &[&str]) -> Self {
        let depend = |name: &&str| Dependency {
            name: (*name).into(),
            path: name.starts_with("musubi").then(|| format!("crates/{name}")),
            kind: None,
        };
        self.packages.push(Package {
            name: name.into(),
            manifest_path: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies.iter().map(depend).collect(),
            targets: vec![Target { kind: vec!["lib".into()], src_path: format!("crates/{name}/src/lib.rs") }],
        });
        self
    }
}
