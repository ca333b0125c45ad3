//! Debian's arm64 kernel, its headers and the tools that build modules for it, without installing anything.
//!
//! What you may rely on: nothing outside the build directory changes, and root is not needed. What was unpacked once is
//! used again, also without a network.
//!
//! How it works: apt with directories of its own, a system without packages, arm64 as its architecture, and the package
//! sources of this machine. `linux-image-arm64` names the newest kernel of these sources. The packages are unpacked by
//! dpkg-deb; the one path in the headers' makefile that says where they are installed is replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::packages::Unavailable;
use crate::runner::{COMMAND_TIME_MAX, Context};

/// The package that depends on the newest kernel.
const NEWEST_IMAGE: &str = "linux-image-arm64:arm64";
/// What to take of the kernel's package: the kernel itself and the UIO part, which is a module.
const WANTED: [&str; 2] = ["./boot/vmlinuz-*", "./lib/modules/*/kernel/drivers/uio/uio.ko*"];
/// Where Debian's headers expect each other.
const INSTALLED_HEADERS: &str = "/usr/src";

/// An unpacked kernel.
pub struct Kernel {
    /// Its release, such as `6.1.0-40-arm64`.
    pub release: String,
    root: PathBuf,
}

impl Kernel {
    /// Unpacks the newest kernel, unless one has been unpacked before.
    ///
    /// # Errors
    /// Where apt knows no such kernel, or cannot fetch it.
    pub fn find(context: &Context) -> Result<Kernel> {
        let directory = context.target.join("zcu102/debian");
        let (ready, root) = (directory.join("ready"), directory.join("root"));
        if let Ok(release) = fs::read_to_string(&ready) {
            return Ok(Kernel { release, root });
        }
        println!("   fetching Debian's arm64 kernel (once)");
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        let apt = Apt::new(context, &directory)?;
        let kernel = Kernel { release: apt.newest_release()?, root };
        kernel.unpack(&apt, &apt.download(&kernel.release)?)?;
        fs::write(&ready, &kernel.release)?;
        Ok(kernel)
    }

    fn unpack(&self, apt: &Apt<'_>, packages: &[PathBuf]) -> Result<()> {
        fs::create_dir_all(&self.root)?;
        for package in packages {
            if name_of(package).starts_with("linux-image-") {
                unpack_some(package, &self.root)?;
            } else {
                apt.context.must(Command::new("dpkg-deb").arg("-x").arg(package).arg(&self.root))?;
            }
            fs::remove_file(package)?;
        }
        let makefile = self.headers().join("Makefile");
        let text = fs::read_to_string(&makefile).with_context(|| format!("reading {}", makefile.display()))?;
        let here = self.root.join("usr/src");
        fs::write(&makefile, text.replace(INSTALLED_HEADERS, &here.to_string_lossy()))?;
        Ok(())
    }

    /// The kernel image.
    pub fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    /// The directory in which modules are built.
    pub fn headers(&self) -> PathBuf {
        self.root.join("usr/src").join(format!("linux-headers-{}", self.release))
    }

    /// The module of the kernel's UIO part.
    ///
    /// # Errors
    /// If it is not there, or compressed in a way that is not known here.
    pub fn uio_module(&self, context: &Context) -> Result<PathBuf> {
        let directory = self.root.join("lib/modules").join(&self.release).join("kernel/drivers/uio");
        let (plain, compressed) = (directory.join("uio.ko"), directory.join("uio.ko.xz"));
        if !plain.exists() && compressed.exists() {
            context.must(Command::new("xz").args(["--decompress", "--keep"]).arg(&compressed))?;
        }
        ensure!(plain.exists(), "{} has no module uio.ko", self.release);
        Ok(plain)
    }
}

/// apt with directories of its own.
struct Apt<'c> {
    context: &'c Context,
    configuration: PathBuf,
    packages: PathBuf,
}

impl<'c> Apt<'c> {
    /// Fetches the lists of packages.
    fn new(context: &'c Context, directory: &Path) -> Result<Apt<'c>> {
        let apt = Apt { context, configuration: directory.join("apt.conf"), packages: directory.join("packages") };
        let state = directory.join("apt");
        for needed in [state.join("lists/partial"), state.join("archives/partial"), apt.packages.clone()] {
            fs::create_dir_all(&needed).with_context(|| format!("making {}", needed.display()))?;
        }
        fs::write(state.join("status"), "")?;
        fs::write(&apt.configuration, configuration(&state, &host_architecture(context)?))?;
        // Sources that this machine has for other purposes may fail; what is missing shows below.
        context.run_quietly(apt.command("apt-get").arg("update"), COMMAND_TIME_MAX)?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.packages).env("APT_CONFIG", &self.configuration).env("LC_ALL", "C");
        command
    }

    fn newest_release(&self) -> Result<String> {
        let image = self.depends(NEWEST_IMAGE)?.into_iter().find(|name| name.starts_with("linux-image-"));
        let release = image.and_then(|name| name.strip_prefix("linux-image-").map(str::to_owned));
        release.ok_or_else(|| unavailable("the package sources of this machine have no linux-image-arm64").into())
    }

    /// Names of the packages that one depends on.
    fn depends(&self, package: &str) -> Result<Vec<String>> {
        let output = self.context.run_quietly(
            self.command("apt-cache").args(["depends", "--no-recommends", "--no-suggests", package]),
            COMMAND_TIME_MAX,
        )?;
        let names = output.text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(|name| name.split(':').next().unwrap_or(name).to_owned()).collect())
    }

    /// Fetches the packages of a kernel.
    fn download(&self, release: &str) -> Result<Vec<PathBuf>> {
        let headers = format!("linux-headers-{release}:arm64");
        let needed = self.depends(&headers)?;
        let of_kind = |prefix: &str, suffix: &str| {
            let found = needed.iter().find(|name| name.starts_with(prefix) && name.ends_with(suffix));
            found.cloned().with_context(|| format!("{headers} depends on no {prefix}*{suffix}"))
        };
        let host = host_architecture(self.context)?;
        let mut download = self.command("apt-get");
        download.args(["download", &format!("linux-image-{release}:arm64"), &headers]);
        download.arg(of_kind("linux-headers-", "-common")?).arg(format!("{}:{host}", of_kind("linux-kbuild-", "")?));
        if !self.context.run(&mut download)?.status.success() {
            return Err(unavailable("the kernel's packages could not be fetched").into());
        }
        let files: Vec<PathBuf> =
            fs::read_dir(&self.packages)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        ensure!(files.len() == 4, "apt fetched {} packages instead of 4", files.len());
        Ok(files)
    }
}

fn unavailable(what: &str) -> Unavailable {
    Unavailable(format!("{what}; the first time, this needs a network and Debian's package sources"))
}

fn configuration(state: &Path, host: &str) -> String {
    let state = state.display();
    format!(
        "Dir::State \"{state}\";\nDir::State::lists \"{state}/lists\";\nDir::State::status \"{state}/status\";\n\
         Dir::Cache \"{state}\";\nAPT::Architecture \"arm64\";\nAPT::Architectures {{ \"arm64\"; \"{host}\"; }};\n\
         Acquire::Languages \"none\";\nAPT::Sandbox::User \"root\";\n"
    )
}

/// The architecture of the tools that build modules.
fn host_architecture(context: &Context) -> Result<String> {
    Ok(context.must(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

/// Unpacks [`WANTED`] of a package that has much more.
fn unpack_some(package: &Path, root: &Path) -> Result<()> {
    let mut contents = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start dpkg-deb")?;
    let Some(stream) = contents.stdout.take() else { bail!("dpkg-deb has no output") };
    let mut tar = Command::new("tar");
    tar.args(["-x", "--wildcards", "-C"]).arg(root).args(WANTED).stdin(stream);
    let unpacked = tar.status().context("cannot start tar")?;
    let read = contents.wait()?;
    ensure!(unpacked.success() && read.success(), "{} cannot be unpacked", package.display());
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
