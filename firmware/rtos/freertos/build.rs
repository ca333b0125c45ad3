//! Builds the FreeRTOS kernel's C sources for the target, with our configuration and without a C library.
//!
//! How it works: the package `freertos-next` tells where its copy of the kernel lies. What the kernel wants of a C
//! library (`memset` and its like) is in Rust's compiler support; `kernel/include` only declares it.

use std::env;
use std::path::{Path, PathBuf};

/// Parts of the kernel that every target has.
const SOURCES: [&str; 3] = ["tasks.c", "list.c", "queue.c"];

/// What the kernel needs to know of a target.
struct Port {
    /// The compiler's program.
    compiler: &'static str,
    /// Directory below `portable/GCC`.
    directory: &'static str,
    /// Our own directory with headers that the port includes.
    headers: &'static str,
    /// Flags of every file.
    flags: &'static [&'static str],
    /// Flags of the port's assembler file besides.
    assembler_flags: &'static [&'static str],
}

/// The R5F. Tasks have no floating point, as the Rust target has none; the assembler must know the registers all the
/// same, because the port can save them.
const CORTEX_R5: Port = Port {
    compiler: "arm-none-eabi-gcc",
    directory: "ARM_CRx_No_GIC",
    headers: "kernel",
    flags: &["-mcpu=cortex-r5", "-marm", "-mno-unaligned-access"],
    assembler_flags: &["-mfpu=vfpv3-d16", "-mfloat-abi=softfp"],
};
/// A RISC-V hart in machine mode.
const RISCV: Port = Port {
    compiler: "riscv64-unknown-elf-gcc",
    directory: "RISC-V",
    headers: "kernel/riscv",
    flags: &["-march=rv64imafdc", "-mabi=lp64d", "-mcmodel=medany"],
    assembler_flags: &[],
};

/// Flags of every file on every target.
const FLAGS: [&str; 6] = ["-O2", "-g1", "-std=gnu11", "-ffreestanding", "-ffunction-sections", "-fdata-sections"];

fn main() {
    println!("cargo:rerun-if-changed=kernel");
    println!("cargo:rerun-if-changed=build.rs");
    let port = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("arm") => CORTEX_R5,
        Ok("riscv64") => RISCV,
        other => panic!("the kernel is built for Cortex-R5F and 64-bit RISC-V, not for {other:?}"),
    };
    let kernel = PathBuf::from(env::var_os("DEP_FREERTOS_KERNEL").expect("freertos-next says where the kernel is"));
    let directory = kernel.join("portable/GCC").join(port.directory);
    let mut c = compiler(&port, &kernel, &directory);
    c.files(SOURCES.map(|name| kernel.join(name))).file(directory.join("port.c")).file("kernel/glue.c");
    c.compile("freertos");
    let mut assembler = compiler(&port, &kernel, &directory);
    for flag in port.assembler_flags {
        assembler.flag(flag);
    }
    assembler.file(directory.join("portASM.S")).compile("freertos_switch");
    tell_images(&port);
}

/// How an image compiles C tasks: `DEP_MUSUBI_FREERTOS_COMPILER`, `_FLAGS` and `_INCLUDE` in its build script.
fn tell_images(port: &Port) {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:compiler={}", port.compiler);
    println!("cargo:flags={} {}", FLAGS.join(" "), port.flags.join(" "));
    println!("cargo:include={} {}", here.join("../../../include").display(), here.join("kernel/include").display());
}

fn compiler(port: &Port, kernel: &Path, directory: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.compiler(port.compiler).no_default_flags(true).warnings(false);
    for flag in FLAGS {
        build.flag(flag);
    }
    for flag in port.flags {
        build.flag(flag);
    }
    let include =
        [Path::new("kernel"), Path::new("kernel/include"), Path::new(port.headers), &kernel.join("include"), directory];
    build.includes(include);
    build
}
