//! How the emulator is begun where an image is its kernel.

use std::path::Path;
use std::process::Command;

use super::Run;

/// QEMU with the console on its standard output and nothing else, the image as the kernel.
pub fn with_kernel(run: &Run<'_>, machine: &[&str]) -> Command {
    with_kernel_file(run, machine, &run.elf)
}

/// The same with another form of the image.
pub fn with_kernel_file(run: &Run<'_>, machine: &[&str], kernel: &Path) -> Command {
    let mut qemu = run.emulator.command();
    qemu.args(machine).args(["-smp", &run.harts.to_string()]);
    qemu.args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-kernel"]).arg(kernel);
    qemu
}
