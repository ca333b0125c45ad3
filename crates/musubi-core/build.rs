//! Says whether the object format has sections with free names, so that waiting loops can lie in one of their own.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(lock_section)");
    // Mach-O and COFF name sections by other rules; there the loops are only marked as cold.
    let elsewhere = ["apple", "pc-windows"].iter().any(|vendor| var("TARGET").is_ok_and(|t| t.contains(vendor)));
    if !elsewhere {
        println!("cargo::rustc-cfg=lock_section");
    }
}
