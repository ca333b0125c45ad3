fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-T{directory}/probe.ld");
    println!("cargo:rustc-link-arg-bins=--gc-sections");
    println!("cargo:rerun-if-changed=probe.ld");
}
