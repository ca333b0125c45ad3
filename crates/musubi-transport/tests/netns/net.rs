//! Network namespaces for tests: one a node, joined by a bridge in one more.
//!
//! How it works: `ip` makes them; their names carry the number of the test's process. They go when the value is dropped,
//! also when a test fails; what a killed test has left is swept by the next.

use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// First part of all names.
const PREFIX: &str = "musubi-t";

/// Where node `number` listens in its namespace.
pub fn address(number: u32) -> String {
    format!("10.77.0.{number}:7411")
}

/// Why these tests cannot run here; `None` if they can.
pub fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".into());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("there is no `ip` (Debian package iproute2)".into());
    }
    let probe = own_name();
    let joined = tried(&["netns", "add", &probe]) && tried(&["-n", &probe, "link", "add", "probe", "type", "bridge"]);
    tried(&["netns", "del", &probe]);
    (!joined).then(|| "the kernel has no network namespaces, or no bridges".into())
}

fn own_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn tried(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("it was there before");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
}

/// Namespaces whose test is no more.
fn sweep() {
    let Ok(listed) = Command::new("ip").args(["netns", "list"]).output() else { return };
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    for name in text.lines().filter_map(|line| line.split_whitespace().next()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.trim_start_matches('-').split('-').next());
        if process.is_some_and(|process| !std::path::Path::new("/proc").join(process).exists()) {
            tried(&["netns", "del", name]);
        }
    }
}

/// Namespaces 1 to `count`, and the switch that joins them.
pub struct Net {
    name: String,
    count: u32,
}

impl Net {
    pub fn new(count: u32) -> Net {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(sweep);
        let net = Net { name: own_name(), count };
        run("ip", &["netns", "add", &net.name]);
        run("ip", &["-n", &net.name, "link", "add", "bridge", "type", "bridge"]);
        run("ip", &["-n", &net.name, "link", "set", "bridge", "up"]);
        (1..=count).for_each(|number| net.join(number));
        net
    }

    /// The namespace of a node.
    pub fn namespace(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    fn join(&self, number: u32) {
        let (inside, port) = (self.namespace(number), format!("port{number}"));
        run("ip", &["netns", "add", &inside]);
        let pair = ["-n", &self.name, "link", "add", &port, "type", "veth", "peer", "name", "eth", "netns", &inside];
        run("ip", &pair);
        run("ip", &["-n", &self.name, "link", "set", &port, "master", "bridge", "up"]);
        run("ip", &["-n", &inside, "address", "add", &format!("10.77.0.{number}/24"), "dev", "eth"]);
        run("ip", &["-n", &inside, "link", "set", "lo", "up"]);
        run("ip", &["-n", &inside, "link", "set", "eth", "up"]);
    }

    /// From now on nothing reaches node `number` or comes from it; neither side's kernel is told.
    pub fn cut(&self, number: u32) {
        self.set_port(number, "down");
    }

    /// Takes that back.
    pub fn heal(&self, number: u32) {
        self.set_port(number, "up");
    }

    /// The port is taken out of the bridge: frames go nowhere, while the cable stays in.
    fn set_port(&self, number: u32, state: &str) {
        let port = format!("port{number}");
        match state {
            "down" => run("ip", &["-n", &self.name, "link", "set", &port, "nomaster"]),
            _ => run("ip", &["-n", &self.name, "link", "set", &port, "master", "bridge"]),
        }
    }

    /// What comes to and from node `number` is late by some milliseconds under load and partly lost. Says how.
    pub fn impair(&self, number: u32) -> &'static str {
        let (port, inside) = (format!("port{number}"), self.namespace(number));
        let late = |namespace: &str, device: &str, how: &[&str]| {
            let base = ["netns", "exec", namespace, "tc", "qdisc", "replace", "dev", device, "root"];
            tried(&[&base[..], how].concat())
        };
        let netem = ["netem", "delay", "10ms", "3ms", "loss", "1%"];
        if late(&self.name, &port, &netem) && late(&inside, "eth", &netem) {
            return "10 ms late and 1 % lost, each way";
        }
        let narrow = ["tbf", "rate", "60mbit", "burst", "32kb", "latency", "15ms"];
        assert!(late(&self.name, &port, &narrow) && late(&inside, "eth", &narrow), "neither netem nor tbf");
        "60 Mbit/s, up to 15 ms late, the rest lost (no netem in this kernel)"
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for number in 1..=self.count {
            tried(&["netns", "del", &self.namespace(number)]);
        }
        tried(&["netns", "del", &self.name]);
    }
}
