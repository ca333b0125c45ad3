//! Generates the plan, the linker script and the devicetree fragment from `system.toml`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=system.toml");
    let description = match musubi_config::load("system.toml".as_ref()) {
        Ok(description) => description,
        Err(report) => {
            eprintln!("{report}");
            return ExitCode::FAILURE;
        }
    };
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    match musubi_config::generate(&description, &directory) {
        Ok(_) => {
            // For the build script of an image that links with the generated script.
            println!("cargo::metadata=generated={}", directory.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
