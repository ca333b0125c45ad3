//! Linux on the Cortex-A53s and an RTOS on a Cortex-R5F, in one machine: what QEMU has to load, and where.
//!
//! What you may rely on: everything is built or fetched into the build directory; nothing is installed.
//!
//! How it works: the parts are `crate::linux`'s: Debian's kernel, the module for it, the programs, the initial file
//! system. QEMU's loader puts all of it into memory; a few instructions
//! (firmware/qemu-zcu102/start) start the Cortex-R5F and then Linux, whose first process switches the machine off.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};

use super::{Run, loadable};
use crate::linux::archive::Archive;
use crate::linux::debian::Kernel;
use crate::linux::programs::Programs;
use crate::linux::{driver, programs};
use crate::runner::Context;

/// Debian packages without which this cannot be built.
pub const PACKAGES: &[&str] = &["gcc-aarch64-linux-gnu", "make", "device-tree-compiler"];
/// And the examples.
pub const PACKAGES_OF_EXAMPLES: &[&str] =
    &["gcc-aarch64-linux-gnu", "make", "device-tree-compiler", "gcc-arm-none-eabi"];
/// The board's devicetree source, which includes the generated fragments.
const BOARD: &str = "firmware/demo-zcu102/linux/board.dts";
/// What only QEMU's model needs; its doorbells are included there.
const EMULATOR: &str = "firmware/qemu-zcu102";
/// Where QEMU puts the parts; firmware/qemu-zcu102/start has the first two of these addresses too.
const KERNEL_AT: u32 = 0x0020_0000;
const TREE_AT: u32 = 0x0700_0000;
const FILES_AT: u32 = 0x0800_0000;
/// The four Cortex-A53 and the two Cortex-R5F: with fewer, newer versions of QEMU give the latter no interrupts.
const CORES: &str = "6";

/// Builds everything and makes the command: Linux's console is its standard output, the Cortex-R5F's its error output.
///
/// # Errors
/// If something cannot be fetched or does not build.
pub fn launch(run: &Run<'_>) -> Result<Command> {
    launch_with(run, |programs| programs)
}

/// The same with an image of the examples on the Cortex-R5F, and the process that sends to it.
///
/// # Errors
/// As [`launch`].
pub fn launch_example(run: &Run<'_>) -> Result<Command> {
    launch_with(run, |demo| Programs { r5: run.elf.clone(), init: demo.greeter.clone(), ..demo })
}

fn launch_with(run: &Run<'_>, choose: impl FnOnce(Programs) -> Programs) -> Result<Command> {
    let context = run.context;
    let directory = context.target.join("zcu102").join(run.image.name);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    // Fetching waits for the network most of the time, so it costs nothing beside the compilers.
    let (kernel, programs) = thread::scope(|scope| {
        let fetched = scope.spawn(|| {
            let kernel = Kernel::find(context)?;
            let module = driver::build(context, &kernel)?;
            Ok((kernel, module))
        });
        let programs = programs::build(context, &context.target.join("firmware"));
        (fetched.join().unwrap_or_else(|_| bail!("the kernel's thread panicked")), programs)
    });
    let ((kernel, module), programs) = (kernel?, choose(programs?));
    loadable::check(&programs.r5)?;
    let files = files(context, &directory, &kernel, &module, &programs)?;
    let tree = tree(context, &directory, &programs, &files)?;
    let mut qemu = run.emulator.command();
    qemu.args(["-M", "xlnx-zcu102", "-smp", CORES, "-m", "1G", "-display", "none", "-monitor", "none", "-no-reboot"]);
    qemu.args(["-serial", "stdio", "-serial", "file:/dev/stderr", "-kernel"]).arg(&programs.start);
    for (file, at) in [(kernel.image(), KERNEL_AT), (tree, TREE_AT), (files, FILES_AT)] {
        qemu.arg("-device").arg(format!("loader,file={},addr={at:#x},force-raw=on", doubled(&file)));
    }
    qemu.arg("-device").arg(format!("loader,file={}", doubled(&programs.r5)));
    Ok(qemu)
}

/// Packs the initial file system.
fn files(context: &Context, directory: &Path, kernel: &Kernel, module: &Path, programs: &Programs) -> Result<PathBuf> {
    let mut archive = Archive::default();
    archive.device("dev/console", 5, 1);
    archive.file("init", &programs.init)?;
    archive.file("bin/remote", &programs.remote)?;
    archive.file("bin/node", &programs.node)?;
    archive.file("bin/nic", &programs.nic)?;
    archive.file("bin/exchange", &programs.exchange)?;
    archive.file("modules/uio.ko", &kernel.uio_module(context)?)?;
    archive.file("modules/musubi_uio.ko", module)?;
    let path = directory.join("files.cpio");
    fs::write(&path, archive.finish()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Compiles the devicetree.
fn tree(context: &Context, directory: &Path, programs: &Programs, files: &Path) -> Result<PathBuf> {
    let bytes = fs::metadata(files)?.len();
    fs::copy(&programs.fragment, directory.join("system.dtsi")).context("the generated devicetree fragment")?;
    let place = format!(
        "/ {{\n\tchosen {{\n\t\tlinux,initrd-start = <{FILES_AT:#x}>;\n\t\tlinux,initrd-end = <{:#x}>;\n\t}};\n}};\n",
        u64::from(FILES_AT) + bytes
    );
    fs::write(directory.join("initrd.dtsi"), place)?;
    let output = directory.join("board.dtb");
    let mut dtc = Command::new("dtc");
    dtc.arg("-i")
        .arg(directory)
        .arg("-i")
        .arg(context.root.join(EMULATOR))
        .args(["-O", "dtb", "-o"])
        .arg(&output)
        .arg(context.root.join(BOARD));
    context.must(&mut dtc)?;
    Ok(output)
}

/// A path inside one of QEMU's options, where a comma is written twice.
fn doubled(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}
