//! Compiles the C program: as a C task on the Cortex-R5F, with the cross compiler for Linux on the Cortex-A53s.

use std::env;

/// Where include/mcapi.h is.
const INCLUDE: &str = "../../../include";

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed={INCLUDE}");
    let told = |key: &str| env::var(key).unwrap_or_default();
    let mut build = cc::Build::new();
    build.warnings(true).extra_warnings(true).warnings_into_errors(true);
    match told("CARGO_CFG_TARGET_OS").as_str() {
        "none" => {
            build.compiler(told("DEP_MUSUBI_FREERTOS_COMPILER")).no_default_flags(true);
            for flag in told("DEP_MUSUBI_FREERTOS_FLAGS").split_whitespace() {
                build.flag(flag);
            }
            build.includes(told("DEP_MUSUBI_FREERTOS_INCLUDE").split_whitespace());
        }
        _ => {
            // Of the other machine's C library nothing is needed: the program includes only what the compiler brings.
            if told("TARGET") != told("HOST") && told("CARGO_CFG_TARGET_ARCH") == "aarch64" {
                build.compiler("aarch64-linux-gnu-gcc");
            }
            build.flag("-ffreestanding").flag("-fno-stack-protector").flag("-U_FORTIFY_SOURCE").include(INCLUDE);
        }
    }
    build.file("c/exchange.c").compile("exchange");
}
