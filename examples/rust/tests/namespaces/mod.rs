//! The two hosts that examples/nodes.toml speaks of, as network namespaces of this machine. For the tests of the examples in
//! Rust and in C.

use std::process::Command;

/// Two network namespaces with a cable between them; gone with the value.
pub struct Namespaces([String; 2]);

impl Namespaces {
    /// `None` where this user may not make any.
    pub fn new() -> Option<Namespaces> {
        let name = |end: &str| format!("musubi-{}-{end}", std::process::id());
        let spaces = Namespaces([name("near"), name("far")]);
        let [near, far] = &spaces.0;
        let steps = [
            format!("netns add {near}"),
            format!("netns add {far}"),
            format!("link add cable netns {near} type veth peer name cable netns {far}"),
            format!("-n {near} address add 10.77.0.1/24 dev cable"),
            format!("-n {far} address add 10.77.0.2/24 dev cable"),
            format!("-n {near} link set cable up"),
            format!("-n {far} link set cable up"),
            format!("-n {near} link set lo up"),
            format!("-n {far} link set lo up"),
        ];
        steps.iter().all(|step| ip(step)).then_some(spaces)
    }

    /// Where this node is: the first two on the near side, the others on the far one.
    pub fn of_node(&self, node: u32) -> &str {
        &self.0[usize::from(node > 2)]
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.0.iter().for_each(|space| {
            ip(&format!("netns delete {space}"));
        });
    }
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    output.is_ok_and(|output| output.status.success())
}
