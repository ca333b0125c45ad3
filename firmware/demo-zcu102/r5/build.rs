//! Says where the image lies in memory, and where the shared memory of the description.

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let generated = std::env::var("DEP_ZCU102_DEMO_GENERATED").expect("the description's package sets it");
    println!("cargo::rustc-link-arg-bins=-L{generated}");
    println!("cargo::rustc-link-arg-bins=-T{manifest}/memory.ld");
    println!("cargo::rerun-if-changed=memory.ld");
}
