//! Compiles the tests that are in C.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=c");
    let told = |key: &str| env::var(format!("DEP_MUSUBI_FREERTOS_{key}")).expect("the kernel's package says it");
    let mut build = cc::Build::new();
    build
        .compiler(told("COMPILER"))
        .no_default_flags(true)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true);
    for flag in told("FLAGS").split_whitespace() {
        build.flag(flag);
    }
    build.includes(told("INCLUDE").split_whitespace());
    build.file("c/calls.c").compile("freertos_tests_c");
}
