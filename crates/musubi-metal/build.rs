//! Lets images include `musubi.ld` in their linker scripts.

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={manifest}/link");
    println!("cargo::rerun-if-changed=link");
}
