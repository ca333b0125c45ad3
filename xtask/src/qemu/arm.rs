//! Machines with 32-bit Arm cores: boards with Cortex-A9 and Cortex-A7, and the Cortex-R5Fs of a ZCU102.

use std::process::Command;

use anyhow::Result;

use super::Run;
use super::launch::{with_kernel, with_kernel_file};
use super::loadable;
use super::raw;

/// Target of what runs on the Cortex-A53s of the ZCU102.
const A53: &str = "aarch64-unknown-none-softfloat";
/// What starts the Cortex-R5Fs from there, and makes power calls for them.
const STARTER: &str = "zcu102-psci";
/// Target of what runs on a Cortex-R5F.
const ARM: &str = "armv7a-none-eabi";
/// The Cortex-R5F's half of the pair.
const PAIR_R5: &str = "zcu102-pair-r5";
/// Packages that images here need beside their own, and their targets.
pub const PARTS: [(&str, &str); 2] = [(STARTER, A53), (PAIR_R5, ARM)];
/// The four Cortex-A53 and the two Cortex-R5F: with fewer, newer versions of QEMU give the latter no interrupts.
const ZCU102_CORES: &str = "6";

/// Where QEMU puts a plain file on the i.MX7: 64 KiB behind the start of its memory.
const IMX7_KERNEL: u32 = 0x8001_0000;

/// Options of QEMU for a machine of which so many Arm cores are busy: if the host has fewer, they take turns in one thread, where
/// a core's `yield` gives the turn to the next. In a thread each, a core that waits would keep the one that it waits for from
/// running until the host's time slice is over. With as many as the host has, they truly run at the same time.
pub fn in_turns(busy: u32) -> &'static [&'static str] {
    let host = std::thread::available_parallelism().map_or(1, usize::from);
    if busy as usize > host { &["-accel", "tcg,thread=single"] } else { &[] }
}

/// Versatile Express with four Cortex-A9.
pub fn vexpress_a9(run: &Run<'_>) -> Result<Command> {
    let mut qemu = with_kernel(run, &["-M", "vexpress-a9", "-m", "128M"]);
    qemu.args(in_turns(run.harts));
    Ok(qemu)
}

/// SABRE Lite: i.MX6 with four Cortex-A9.
pub fn sabrelite(run: &Run<'_>) -> Result<Command> {
    let mut qemu = with_kernel(run, &["-M", "sabrelite", "-m", "256M"]);
    qemu.args(in_turns(run.harts));
    Ok(qemu)
}

/// SABRE board with an i.MX7: two Cortex-A7. QEMU starts an ELF file without firmware; a plain file it puts where Linux would lie,
/// enters it as it would enter Linux, and answers PSCI calls.
pub fn mcimx7d_sabre(run: &Run<'_>) -> Result<Command> {
    let kernel = raw::write(&run.elf, IMX7_KERNEL)?;
    let mut qemu = with_kernel_file(run, &["-M", "mcimx7d-sabre", "-m", "256M"], &kernel);
    qemu.args(in_turns(run.harts));
    Ok(qemu)
}

/// A Cortex-A53 and a Cortex-R5F of a ZCU102, each with an image of its own: the first one's console is the standard output,
/// the second one's the error output.
pub fn zcu102_pair(run: &Run<'_>) -> Result<Command> {
    let r5 = super::build_package(run.context, PAIR_R5, ARM, false)?;
    loadable::check(&r5)?;
    let mut qemu = run.emulator.command();
    qemu.args(["-M", "xlnx-zcu102", "-smp", ZCU102_CORES, "-m", "1G", "-display", "none", "-monitor", "none"]);
    qemu.args(["-serial", "stdio", "-serial", "file:/dev/stderr", "-no-reboot", "-kernel"]).arg(&run.elf);
    qemu.arg("-device").arg(format!("loader,file={}", r5.to_string_lossy().replace(',', ",,")));
    Ok(qemu)
}

/// The Cortex-R5Fs of a ZCU102, whose console is the second serial port.
pub fn zcu102_r5(run: &Run<'_>) -> Result<Command> {
    loadable::check(&run.elf)?;
    let starter = super::build_package(run.context, STARTER, A53, false)?;
    let mut qemu = run.emulator.command();
    qemu.args(["-M", "xlnx-zcu102", "-smp", ZCU102_CORES, "-m", "1G", "-display", "none", "-monitor", "none"]);
    // The core of the starter is one more.
    qemu.args(in_turns(run.harts + 1));
    qemu.args(["-serial", "null", "-serial", "stdio", "-no-reboot", "-kernel"]).arg(starter);
    qemu.arg("-device").arg(format!("loader,file={}", run.elf.to_string_lossy().replace(',', ",,")));
    Ok(qemu)
}
