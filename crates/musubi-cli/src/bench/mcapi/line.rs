//! The paper's gigabit Ethernet: two network namespaces with a link of 1 Gbit/s between them.
//!
//! What you may rely on: nothing of it is left, however this process ends.
//!
//! How it works: a process holds each namespace, and ends when its input does, which is a pipe of ours; a namespace without
//! processes is gone, and its devices with it. iproute2 makes a pair of virtual Ethernet devices and a token bucket at each
//! end. Needs root.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

/// Bytes a second of the line.
pub(super) const LINE_BYTES_PER_S: f64 = 125e6;
/// Addresses of the two ends.
pub(super) const ADDRESSES: [&str; 2] = ["10.203.71.1", "10.203.71.2"];
/// How the line is shaped: a bucket of a millisecond, as timers may be late, and a longer queue.
const SHAPE: [&str; 7] = ["tbf", "rate", "1gbit", "burst", "128kb", "latency", "20ms"];

/// Two namespaces and the link between them.
pub(super) struct Line {
    holders: [Holder; 2],
}

/// Who keeps a namespace: a process in it that ends with its input.
struct Holder(Child);

impl Holder {
    /// Starts it, and waits until it has a namespace of its own.
    fn start() -> anyhow::Result<Holder> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "echo && exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = Holder(command.spawn().context("running unshare")?);
        let mut said = holder.0.stdout.take().context("a pipe from unshare")?;
        said.read_exact(&mut [0]).context("unshare --net")?;
        Ok(holder)
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// What runs a program in its namespace, to stand before it.
    fn inside(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.0.id())]
    }

    fn call(&self, words: &[&str]) -> anyhow::Result<()> {
        let [enter, which] = self.inside();
        call(&enter, &[&[which.as_str()], words].concat())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends with its input; what cannot be waited for has ended.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Line {
    /// Makes them.
    pub fn make() -> anyhow::Result<Line> {
        if !rustix::process::geteuid().is_root() {
            bail!("network namespaces can be made by root only");
        }
        let line = Line { holders: [Holder::start()?, Holder::start()?] };
        let devices = [format!("mb{}a", std::process::id()), format!("mb{}b", std::process::id())];
        let [one, other] = [0, 1].map(|end| line.holders[end].id());
        let ends = ["netns", &one, "type", "veth", "peer", "name", &devices[1], "netns", &other];
        call("ip", &[&["link", "add", &devices[0]], &ends[..]].concat())?;
        for (end, (holder, device)) in line.holders.iter().zip(&devices).enumerate() {
            let address = format!("{}/24", ADDRESSES[end]);
            holder.call(&["ip", "address", "add", &address, "dev", device])?;
            holder.call(&["ip", "link", "set", device, "up"])?;
            holder.call(&["ip", "link", "set", "lo", "up"])?;
            holder.call(&[&["tc", "qdisc", "add", "dev", device, "root"], &SHAPE[..]].concat())?;
        }
        Ok(line)
    }

    /// What runs a program in the first (0) or second (1) namespace, to stand before it.
    pub fn inside(&self, end: usize) -> Vec<String> {
        self.holders[end].inside().to_vec()
    }
}

fn call(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), said.trim());
    }
    Ok(())
}
