//! The images that can be run, and the machine of each.

use std::ops::RangeInclusive;
use std::process::Command;

use anyhow::Result;

use super::launch::with_kernel;
use super::{Run, arm, zcu102};

/// An image and its machine.
pub struct Image {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// Its package in firmware/; `None` where `launch` builds what it needs.
    pub package: Option<&'static str>,
    /// What it is built for.
    pub target: &'static str,
    /// QEMU's program.
    pub emulator: &'static str,
    /// Numbers of cores that the machine can have.
    pub harts: RangeInclusive<u32>,
    /// That number if none is asked for.
    pub harts_usual: u32,
    /// Those that `cargo xtask test` runs.
    pub harts_tested: &'static [u32],
    /// Longest time that a run may take.
    pub seconds_max: u64,
    /// Debian packages that it needs besides the emulator.
    pub packages: &'static [&'static str],
    /// What stands before each console line, of the standard output and of the error output.
    pub labels: [&'static str; 2],
    /// Makes the command whose standard output is the image's console; a machine with two has the other one at its
    /// error output.
    pub launch: fn(&Run<'_>) -> Result<Command>,
}

/// Every image.
pub const IMAGES: &[Image] = &[
    Image {
        name: "riscv-virt",
        about: "the suite on QEMU's virt machine for RISC-V, 1 to 8 harts",
        package: Some("riscv-virt"),
        target: "riscv64gc-unknown-none-elf",
        emulator: "qemu-system-riscv64",
        harts: 1..=8,
        harts_usual: 4,
        harts_tested: &[1, 2, 4, 8],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: riscv_virt,
    },
    Image {
        name: "nas",
        about: "NAS EP, IS, CG and MG, class S, on one hart or two; its times mean something with a host core a hart",
        package: Some("measures-nas"),
        target: "riscv64gc-unknown-none-elf",
        emulator: "qemu-system-riscv64",
        harts: 1..=2,
        harts_usual: 2,
        harts_tested: &[],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: riscv_virt,
    },
    Image {
        name: "zcu102-a53",
        about: "the suite on the four Cortex-A53 of a ZCU102",
        package: Some("zcu102-a53"),
        target: "aarch64-unknown-none-softfloat",
        emulator: "qemu-system-aarch64",
        harts: 4..=4,
        harts_usual: 4,
        harts_tested: &[4],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: zcu102_a53,
    },
    Image {
        name: "freertos-r5",
        about: "FreeRTOS on a Cortex-R5F of a ZCU102: the suite in a task, sleeping and waking, C tasks",
        package: Some("freertos-r5"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-aarch64",
        harts: 1..=1,
        harts_usual: 1,
        harts_tested: &[1],
        seconds_max: 100,
        packages: &["gcc-arm-none-eabi"],
        labels: ["", ""],
        launch: arm::zcu102_r5,
    },
    Image {
        name: "freertos-riscv",
        about: "FreeRTOS on a RISC-V hart in machine mode: the suite in a task, sleeping and waking, C tasks",
        package: Some("freertos-riscv"),
        target: "riscv64gc-unknown-none-elf",
        emulator: "qemu-system-riscv64",
        harts: 2..=2,
        harts_usual: 2,
        harts_tested: &[2],
        seconds_max: 60,
        packages: &["gcc-riscv64-unknown-elf"],
        labels: ["", ""],
        launch: freertos_riscv,
    },
    Image {
        name: "vexpress-a9",
        about: "the suite on a Versatile Express with 1 to 4 Cortex-A9",
        package: Some("vexpress-a9"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-arm",
        harts: 1..=4,
        harts_usual: 4,
        harts_tested: &[4],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: arm::vexpress_a9,
    },
    Image {
        name: "sabrelite",
        about: "the suite on a SABRE Lite, an i.MX6 with 1 to 4 Cortex-A9",
        package: Some("sabrelite"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-arm",
        harts: 1..=4,
        harts_usual: 4,
        harts_tested: &[4],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: arm::sabrelite,
    },
    Image {
        name: "mcimx7d-sabre",
        about: "the suite on an i.MX7 SABRE board with 1 or 2 Cortex-A7",
        package: Some("mcimx7d-sabre"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-arm",
        harts: 1..=2,
        harts_usual: 2,
        harts_tested: &[2],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: arm::mcimx7d_sabre,
    },
    Image {
        name: "zcu102-r5",
        about: "the suite on the two Cortex-R5F of a ZCU102",
        package: Some("zcu102-r5"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-aarch64",
        harts: 2..=2,
        harts_usual: 2,
        harts_tested: &[2],
        seconds_max: 300,
        packages: &[],
        labels: ["", ""],
        launch: arm::zcu102_r5,
    },
    Image {
        name: "zcu102-r5-restart",
        about: "faults, memory protection, restart and clock of a Cortex-R5F of a ZCU102",
        package: Some("zcu102-r5-restart"),
        target: "armv7a-none-eabi",
        emulator: "qemu-system-aarch64",
        harts: 1..=1,
        harts_usual: 1,
        harts_tested: &[1],
        seconds_max: 60,
        packages: &[],
        labels: ["", ""],
        launch: arm::zcu102_r5,
    },
    Image {
        name: "zcu102-pair",
        about: "a Cortex-A53 and a Cortex-R5F of a ZCU102, both without operating systems, as Master and Remote",
        package: Some("zcu102-pair-a53"),
        target: "aarch64-unknown-none-softfloat",
        emulator: "qemu-system-aarch64",
        harts: 6..=6,
        harts_usual: 6,
        harts_tested: &[6],
        seconds_max: 90,
        packages: &[],
        labels: ["a53| ", "r5| "],
        launch: arm::zcu102_pair,
    },
    Image {
        name: "zcu102",
        about: "Debian's Linux on the Cortex-A53s and the demo's Master on a Cortex-R5F of one ZCU102",
        package: None,
        target: "",
        emulator: "qemu-system-aarch64",
        harts: 6..=6,
        harts_usual: 6,
        harts_tested: &[6],
        seconds_max: 100,
        packages: zcu102::PACKAGES,
        labels: ["linux| ", "r5| "],
        launch: zcu102::launch,
    },
    Image {
        name: "example-freertos",
        about: "examples/freertos/receive.c on a Cortex-R5F, which receives from Linux on the Cortex-A53s",
        package: Some("example-freertos"),
        ..EXAMPLE
    },
    Image {
        name: "example-embassy",
        about: "examples/embassy/receive.rs on a Cortex-R5F, which receives from Linux on the Cortex-A53s",
        package: Some("example-embassy"),
        ..EXAMPLE
    },
];

/// What the examples beside Linux have in common.
const EXAMPLE: Image = Image {
    name: "",
    about: "",
    package: None,
    target: "armv7a-none-eabi",
    emulator: "qemu-system-aarch64",
    harts: 6..=6,
    harts_usual: 6,
    harts_tested: &[6],
    seconds_max: 100,
    packages: zcu102::PACKAGES_OF_EXAMPLES,
    labels: ["linux| ", "r5| "],
    launch: zcu102::launch_example,
};

/// The image with this name.
pub fn find(name: &str) -> Option<&'static Image> {
    IMAGES.iter().find(|image| image.name == name)
}

fn riscv_virt(run: &Run<'_>) -> Result<Command> {
    Ok(with_kernel(run, &["-M", "virt", "-m", "128M"]))
}

fn zcu102_a53(run: &Run<'_>) -> Result<Command> {
    let mut qemu = with_kernel(run, &["-M", "xlnx-zcu102", "-m", "1G"]);
    qemu.args(arm::in_turns(run.harts));
    Ok(qemu)
}

/// Without firmware: the image has the machine to itself.
fn freertos_riscv(run: &Run<'_>) -> Result<Command> {
    Ok(with_kernel(run, &["-M", "virt", "-m", "64M", "-bios", "none"]))
}
