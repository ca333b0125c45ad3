//! Tells the linker where the image lies.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rustc-link-arg=-T{directory}/link.ld");
}
