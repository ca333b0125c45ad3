//! Says where the image lies in memory, and where the shared memory of the description.

fn main() {
    let told = |key: &str| std::env::var(key).unwrap_or_else(|_| panic!("{key} is not set"));
    println!("cargo:rustc-link-arg-bins=-L{}", told("DEP_ZCU102_DEMO_GENERATED"));
    println!("cargo:rustc-link-arg-bins=-T{}/../../demo-zcu102/r5-side/memory.ld", told("CARGO_MANIFEST_DIR"));
}
