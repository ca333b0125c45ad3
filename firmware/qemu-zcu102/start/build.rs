//! Passes the linker script.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=link.ld");
    println!("cargo::rustc-link-arg-bins=-T{directory}/link.ld");
}
