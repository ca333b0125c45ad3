//! What the machine was, for reports.

use std::fs;

use serde::Serialize;

/// The machine and the program.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Cores that the demo may use.
    pub cores_allowed: Vec<usize>,
    /// System, release and version of the kernel.
    pub kernel: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Version of this program.
    pub musubi: &'static str,
    /// Whether this program was built for speed.
    pub optimised: bool,
    /// When the run began, in UTC.
    pub began: String,
}

impl Machine {
    /// This machine, now.
    pub fn look() -> Machine {
        let uname = rustix::system::uname();
        let parts = [uname.sysname(), uname.release(), uname.version(), uname.machine()];
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned()),
            cores: fs::read_to_string("/proc/cpuinfo").unwrap_or_default().matches("\nprocessor").count() + 1,
            cores_allowed: musubi_linux::realtime::cores(),
            kernel: parts.map(|part| part.to_string_lossy().into_owned()).join(" "),
            memory_mib: memory_mib().unwrap_or(0),
            musubi: env!("CARGO_PKG_VERSION"),
            optimised: !cfg!(debug_assertions),
            began: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        }
    }
}

fn memory_mib() -> Option<u64> {
    let kib: u64 = field("/proc/meminfo", "MemTotal")?.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}

/// The value of the first line `key : value` of a file.
fn field(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
