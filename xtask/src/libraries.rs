//! Libraries and programs as they are installed: without what is for debuggers, which lies beside them, and the static
//! library without names of its insides.
//!
//! What you may rely on: the static library defines the functions of the headers and nothing else that a program or
//! another library could meet; a debugger finds the symbols of what is installed by itself.
//!
//! How it works: with the linker and `objcopy` of the C compiler's package. The parts of the static library become one
//! object, of which everything that no function of the headers needs is left out and every other name made local. (Bitcode
//! that the standard library carries for compilers is left out too; it is of no use here, and old tools stumble over it.)

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::runner::Context;

/// How the names of the headers begin.
const PREFIXES: [&str; 4] = ["mcapi_", "mca_", "mdcom_", "Vip"];

/// Installs a shared library or a program as `to`, and its symbols as `.debug/NAME.debug` beside it.
///
/// # Errors
/// If a tool fails or a file cannot be written.
pub fn put_stripped(context: &Context, from: &Path, to: &Path) -> Result<()> {
    let name = to.file_name().context("a file without a name")?.to_string_lossy();
    let symbols = to.with_file_name(".debug").join(format!("{name}.debug"));
    clear(&symbols)?;
    clear(to)?;
    context.must(
        Command::new("objcopy").args(["--only-keep-debug", "--compress-debug-sections"]).arg(from).arg(&symbols),
    )?;
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-unneeded").arg(format!("--add-gnu-debuglink={}", symbols.display())).arg(from).arg(to);
    context.must(&mut strip)?;
    Ok(())
}

/// Installs the static library as `to`, and one with symbols as `debug/NAME` beside it; `shared` says which names are for
/// programs.
///
/// # Errors
/// If a tool fails, a file cannot be written, or the shared library offers a name that no header has.
pub fn put_static(context: &Context, from: &Path, shared: &Path, to: &Path) -> Result<()> {
    let names = names(context, shared)?;
    let name = to.file_name().context("a file without a name")?;
    let whole = to.with_file_name("debug").join(name);
    clear(to)?;
    clear(&whole)?;
    let (linked, list) = (whole.with_extension("linked.o"), whole.with_extension("names"));
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "-o"]).arg(&linked);
    names.iter().for_each(|name| _ = link.args(["-u", name]));
    context.must(link.arg(from))?;
    std::fs::write(&list, names.join("\n") + "\n")?;
    for (library, strip) in [(to, "--strip-unneeded"), (whole.as_path(), "--compress-debug-sections")] {
        let object = whole.with_extension("o");
        let mut hide = Command::new("objcopy");
        hide.arg(format!("--keep-global-symbols={}", list.display())).arg(strip);
        context.must(hide.args(["-R", ".llvmbc", "-R", ".llvmcmd"]).arg(&linked).arg(&object))?;
        context.must(Command::new("ar").arg("rcsD").arg(library).arg(&object))?;
        std::fs::remove_file(object)?;
    }
    std::fs::remove_file(linked)?;
    std::fs::remove_file(list)?;
    Ok(())
}

/// What a shared library offers.
fn names(context: &Context, shared: &Path) -> Result<Vec<String>> {
    let text = context.must(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(shared))?;
    let names: Vec<String> = text.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    let strange: Vec<&String> = names.iter().filter(|name| !PREFIXES.iter().any(|p| name.starts_with(p))).collect();
    ensure!(strange.is_empty() && !names.is_empty(), "{} offers what no header has: {strange:?}", shared.display());
    Ok(names)
}

/// Names that others can meet in an installed static library and that no header has.
///
/// # Errors
/// If `nm` cannot be started.
pub fn strange_names(context: &Context, library: &Path) -> Result<Vec<String>> {
    let text = context.must(Command::new("nm").args(["-g", "--defined-only", "--format=posix"]).arg(library))?;
    let names = text.lines().filter(|line| line.contains(' ')).filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| !PREFIXES.iter().any(|prefix| name.starts_with(prefix))).map(str::to_owned).collect())
}

/// Makes the directory of a file, and removes the file: a program may be running from it.
///
/// # Errors
/// If the file system refuses.
pub fn clear(to: &Path) -> Result<()> {
    std::fs::create_dir_all(to.parent().context("a file without a directory")?)?;
    if to.symlink_metadata().is_ok() {
        std::fs::remove_file(to)?;
    }
    Ok(())
}

/// What must be beside an installed file for a debugger to find its symbols.
pub fn symbols_of(installed: &Path) -> PathBuf {
    let name = installed.file_name().unwrap_or_default().to_string_lossy();
    installed.with_file_name(".debug").join(format!("{name}.debug"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of the headers, which needs another of the library; and one that nobody needs.
    const LIBRARY: &str = "int blake3_seven(void);\nint blake3_seven(void) { return 7; }\n\
                           int unneeded(void);\nint unneeded(void) { return 1; }\n\
                           int mcapi_seven(void);\nint mcapi_seven(void) { return blake3_seven(); }\n";
    /// Has a function of its own by the name of the library's.
    const PROGRAM: &str = "int mcapi_seven(void);\nint blake3_seven(void);\nint blake3_seven(void) { return 8; }\n\
                           int main(void) { return mcapi_seven() == 7 && blake3_seven() == 8 ? 0 : 1; }\n";

    #[test]
    fn a_program_may_have_any_name_that_no_header_has() {
        let context = Context::find(false).unwrap();
        let directory = std::env::temp_dir().join(format!("musubi-libraries-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name);
        std::fs::write(at("library.c"), LIBRARY).unwrap();
        std::fs::write(at("program.c"), PROGRAM).unwrap();
        let cc = |arguments: &[&str]| context.must(Command::new("cc").current_dir(&directory).args(arguments)).unwrap();
        cc(&["-c", "-g", "-fPIC", "-ffunction-sections", "library.c"]);
        context.must(Command::new("ar").arg("rcs").arg(at("whole.a")).arg(at("library.o"))).unwrap();
        assert_eq!(strange_names(&context, &at("whole.a")).unwrap(), ["blake3_seven", "unneeded"]);
        std::fs::write(at("names"), "{ global: mcapi_*; local: *; };\n").unwrap();
        cc(&["-shared", "-g", "-o", "whole.so", "library.o", "-Wl,--version-script=names"]);
        put_static(&context, &at("whole.a"), &at("whole.so"), &at("lib/small.a")).unwrap();
        put_stripped(&context, &at("whole.so"), &at("lib/small.so")).unwrap();
        for library in [at("lib/small.a"), at("lib/debug/small.a")] {
            assert_eq!(strange_names(&context, &library).unwrap(), [""; 0], "{}", library.display());
            let symbols = context.must(Command::new("nm").arg(&library)).unwrap();
            assert!(symbols.contains("mcapi_seven") && !symbols.contains("unneeded"), "{symbols}");
        }
        assert!(symbols_of(&at("lib/small.so")).exists());
        cc(&["program.c", "lib/small.a", "-o", "program"]);
        assert!(Command::new(at("program")).status().unwrap().success());
        cc(&["-shared", "-o", "strange.so", "library.o"]);
        let refused = put_static(&context, &at("whole.a"), &at("strange.so"), &at("lib/other.a")).unwrap_err();
        assert!(refused.to_string().contains("blake3_seven"), "{refused}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
