//! Compiles the C task against the header that is generated from the description, and says where the image lies.

use std::env;

/// The example.
const SOURCE: &str = "../../../examples/freertos/receive.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let told = |key: &str| env::var(key).unwrap_or_else(|_| panic!("a package that this one depends on sets {key}"));
    let (manifest, generated) = (told("CARGO_MANIFEST_DIR"), told("DEP_ZCU102_DEMO_GENERATED"));
    println!("cargo:rustc-link-arg-bins=-L{generated}");
    println!("cargo:rustc-link-arg-bins=-T{manifest}/../../demo-zcu102/r5-side/memory.ld");
    let mut build = cc::Build::new();
    build
        .compiler(told("DEP_MUSUBI_FREERTOS_COMPILER"))
        .no_default_flags(true)
        .warnings(true)
        .warnings_into_errors(true);
    for flag in told("DEP_MUSUBI_FREERTOS_FLAGS").split_whitespace() {
        build.flag(flag);
    }
    build.includes(told("DEP_MUSUBI_FREERTOS_INCLUDE").split_whitespace()).include(generated);
    build.file(SOURCE).compile("example_freertos");
}
