//! What a first process does for the machine: file systems, kernel modules, power.

use std::ffi::CStr;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot, uname};

/// What the kernel's own UIO part and our driver are called in the initial file system, in the order of loading.
const MODULES: [&str; 2] = ["/modules/uio.ko", "/modules/musubi_uio.ko"];
/// The device that our driver makes.
pub const DEVICE: &str = "/dev/uio0";
/// How long the device may take to appear.
const DEVICE_WAIT: Duration = Duration::from_secs(5);

/// File systems to mount: kind and place.
const MOUNTS: [(&CStr, &str); 4] = [(c"proc", "/proc"), (c"sysfs", "/sys"), (c"devtmpfs", "/dev"), (c"tmpfs", "/run")];

/// Mounts what programs expect and loads the driver.
///
/// # Errors
/// What the kernel refused.
pub fn prepare() -> Result<()> {
    for (kind, place) in MOUNTS {
        fs::create_dir_all(place).with_context(|| format!("making {place}"))?;
        mount(kind, place, kind, MountFlags::empty(), None).with_context(|| format!("mounting {place}"))?;
    }
    for module in MODULES {
        let file = File::open(module).with_context(|| format!("opening {module}"))?;
        finit_module(&file, c"", 0).with_context(|| format!("loading {module}"))?;
    }
    wait_for_device()
}

fn wait_for_device() -> Result<()> {
    let begin = Instant::now();
    while !Path::new(DEVICE).exists() {
        if begin.elapsed() > DEVICE_WAIT {
            bail!("the driver made no {DEVICE}; see the kernel's messages");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The kernel's release.
pub fn release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// How many processors this kernel runs on.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Switches the machine off; returns only if the kernel refuses.
pub fn power_off() {
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
}
