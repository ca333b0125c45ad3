//! The paper's gigabit Ethernet: two network namespaces with a link of 1 Gbit/s between them.
//!
//! How it works: iproute2 makes the namespaces, a pair of virtual Ethernet devices, and a token bucket at each end. All
//! of it is taken away again when [`Line`] is dropped. Needs root.

use std::process::Command;

use anyhow::{Context, bail};

/// Bytes a second of the line.
pub(super) const LINE_BYTES_PER_S: f64 = 125e6;
/// Addresses of the two ends.
pub(super) const ADDRESSES: [&str; 2] = ["10.203.71.1", "10.203.71.2"];
/// How the line is shaped: a bucket of a millisecond, as timers may be late, and a longer queue.
const SHAPE: [&str; 7] = ["tbf", "rate", "1gbit", "burst", "128kb", "latency", "20ms"];

/// Two namespaces and the link between them.
pub(super) struct Line {
    names: [String; 2],
}

impl Line {
    /// Makes them.
    pub fn make() -> anyhow::Result<Line> {
        if !rustix::process::geteuid().is_root() {
            bail!("network namespaces can be made by root only");
        }
        let pid = std::process::id();
        let line = Line { names: [format!("musubi-{pid}-a"), format!("musubi-{pid}-b")] };
        for name in &line.names {
            ip(&["netns", "add", name])?;
        }
        let devices = [format!("mb{pid}a"), format!("mb{pid}b")];
        ip(&["link", "add", &devices[0], "type", "veth", "peer", "name", &devices[1]])?;
        for (end, (name, device)) in line.names.iter().zip(&devices).enumerate() {
            ip(&["link", "set", device, "netns", name])?;
            let address = format!("{}/24", ADDRESSES[end]);
            ip(&["-n", name, "address", "add", &address, "dev", device])?;
            ip(&["-n", name, "link", "set", device, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            call("tc", &[&["-n", name, "qdisc", "add", "dev", device, "root"], &SHAPE[..]].concat())?;
        }
        Ok(line)
    }

    /// What runs a program in the first (0) or second (1) namespace, to stand before it.
    pub fn inside(&self, end: usize) -> Vec<String> {
        ["ip", "netns", "exec", &self.names[end]].map(String::from).to_vec()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for name in &self.names {
            // The devices go with their namespaces. What was not made cannot be taken away.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    call("ip", arguments)
}

fn call(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), said.trim());
    }
    Ok(())
}
