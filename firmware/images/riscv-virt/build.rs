//! Says where the image lies in memory.

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bins=-T{manifest}/memory.ld");
    println!("cargo::rerun-if-changed=memory.ld");
}
