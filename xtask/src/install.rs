//! `cargo xtask install`: what a program in C or Rust needs to use Musubi, below one directory.
//!
//! How it works: each C library is built twice from one crate, as `libNAME.so.<version>` with the soname
//! `libNAME.so.<major>` and as `libNAME.a`; rustc says which system libraries the static one needs, and the
//! pkg-config file repeats it under `Libs.private`, but for the shared one of the compiler's own, which a static program
//! could not have: C compilers add what fits the way of linking. [`crate::libraries`] strips them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::libraries::{clear, put_static, put_stripped};
use crate::runner::Context;

/// Shells whose completions are installed, and where each looks for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/musubi"),
    ("zsh", "share/zsh/site-functions/_musubi"),
    ("fish", "share/fish/vendor_completions.d/musubi.fish"),
];

/// A library for programs in C.
struct CLibrary {
    package: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

const LIBRARIES: [CLibrary; 2] = [
    CLibrary {
        package: "musubi-capi",
        name: "musubi",
        title: "Musubi",
        description: "Messages between real-time and Linux domains, with a stated response time",
    },
    CLibrary {
        package: "musubi-vipl-c",
        name: "vipl",
        title: "Musubi VIPL",
        description: "The VI Architecture: work queues of a program's own between processes and machines",
    },
];

/// Builds everything with `profile` and installs it below `prefix`, which is created.
///
/// # Errors
/// If something does not build or cannot be written.
pub fn install(context: &Context, prefix: &Path, profile: &str) -> Result<()> {
    std::fs::create_dir_all(prefix).with_context(|| format!("cannot create {}", prefix.display()))?;
    let prefix = prefix.canonicalize()?;
    let version = version(&std::fs::read_to_string(context.root.join("Cargo.toml"))?)?;
    let major = version.split('.').next().unwrap_or("0");
    let built = context.target.join(profile);
    for library in &LIBRARIES {
        let name = library.name;
        let needs = build(context, library, major, profile)?;
        let shared = built.join(format!("lib{name}.so"));
        let file = format!("lib{name}.so.{version}");
        put_stripped(context, &shared, &prefix.join("lib").join(&file))?;
        link(&prefix, &file, &format!("lib{name}.so.{major}"))?;
        link(&prefix, &format!("lib{name}.so.{major}"), &format!("lib{name}.so"))?;
        let archive = format!("lib{name}.a");
        put_static(context, &built.join(&archive), &shared, &prefix.join("lib").join(&archive))?;
        let described = prefix.join(format!("lib/pkgconfig/{name}.pc"));
        write(&described, &pkg_config(&prefix, library, &version, &needs))?;
    }
    context.must(context.cargo().args(["build", "--profile", profile, "-p", "musubi-cli"]))?;
    put_stripped(context, &built.join("musubi"), &prefix.join("bin/musubi"))?;
    for entry in std::fs::read_dir(context.root.join("include"))? {
        let header = entry?.path();
        if header.extension().is_some_and(|e| e == "h") {
            put(&header, &prefix.join("include").join(header.file_name().context("a header without a name")?))?;
        }
    }
    for (shell, place) in COMPLETIONS {
        let output = Command::new(prefix.join("bin/musubi")).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "`musubi completions {shell}`: {}", output.status);
        write(&prefix.join(place), &String::from_utf8(output.stdout)?)?;
    }
    println!("   installed Musubi {version} in {}", prefix.display());
    Ok(())
}

/// Builds a library both ways; gives the system libraries that the static one needs.
fn build(context: &Context, library: &CLibrary, major: &str, profile: &str) -> Result<String> {
    let of_kind = |kind: &str| {
        let mut cargo = context.cargo();
        cargo.args(["rustc", "--profile", profile, "-p", library.package, "--lib", "--crate-type", kind, "--"]);
        cargo
    };
    let soname = format!("-Clink-arg=-Wl,-soname,lib{}.so.{major}", library.name);
    context.must(of_kind("cdylib").arg(soname))?;
    let text = context.must(of_kind("staticlib").args(["--print", "native-static-libs"]))?;
    native_libraries(&text).context("rustc did not say what the static library needs")
}

/// The list after rustc's `native-static-libs:`, without what the C compiler adds.
fn native_libraries(text: &str) -> Option<String> {
    let (_, list) = text.lines().find_map(|line| line.split_once("native-static-libs:"))?;
    let needed: Vec<&str> = list.split_whitespace().filter(|library| *library != "-lgcc_s").collect();
    Some(needed.join(" "))
}

fn pkg_config(prefix: &Path, library: &CLibrary, version: &str, needs: &str) -> String {
    let CLibrary { name, title, description, .. } = library;
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: {title}\nDescription: {description}\n\
         Version: {version}\nCflags: -I${{includedir}}\nLibs: -L${{libdir}} -l{name}\nLibs.private: {needs}\n",
        prefix.display()
    )
}

fn version(manifest: &str) -> Result<String> {
    let table: toml::Table = manifest.parse()?;
    let version = table.get("workspace").and_then(|w| w.get("package")?.get("version")?.as_str());
    Ok(version.context("the workspace has no version")?.to_owned())
}

/// Copies a file, making its directory. The old one is removed first: a program may be running from it.
fn put(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        bail!("{} was not built", from.display());
    }
    clear(to)?;
    std::fs::copy(from, to).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(())
}

fn write(to: &Path, text: &str) -> Result<()> {
    clear(to)?;
    std::fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
}

fn link(prefix: &Path, name: &str, alias: &str) -> Result<()> {
    let place = prefix.join("lib").join(alias);
    clear(&place)?;
    std::os::unix::fs::symlink(name, &place).with_context(|| format!("cannot link {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rustc_says_what_the_static_library_needs() {
        let text = "warning: x\nnote: native-static-libs: -lgcc_s -lutil -lc\n";
        assert_eq!(native_libraries(text).as_deref(), Some("-lutil -lc"));
        assert_eq!(native_libraries("Finished"), None);
    }

    #[test]
    fn the_pkg_config_file_has_what_static_linking_needs() {
        let text = pkg_config(Path::new("/opt/m"), &LIBRARIES[1], "0.1.0", "-lc");
        assert!(text.starts_with("prefix=/opt/m\n") && text.contains("-lvipl\nLibs.private: -lc\n"), "{text}");
    }

    #[test]
    fn the_version_is_the_workspaces() {
        assert_eq!(version("[workspace.package]\nversion = '1.2.3'\n").unwrap(), "1.2.3");
    }
}
