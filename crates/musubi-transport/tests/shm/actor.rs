//! A node in a process of its own: the test binary starts itself again.

use std::process::{Child, Command};
use std::sync::Arc;

use musubi_transport::topology::Topology;

use super::{figures, processes};

const ROLE: &str = "MUSUBI_SHM_ROLE";
const SYSTEM: &str = "MUSUBI_SHM_SYSTEM";

/// The other process; killed when dropped.
pub struct Actor(Child);

impl Actor {
    pub fn start(role: &str, system: &Topology) -> Actor {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "actor::play", "--nocapture", "--test-threads=1"]);
        Actor(command.env(ROLE, role).env(SYSTEM, &system.system).spawn().unwrap())
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Kills it at once and takes it off the process table.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    /// Waits until it ends well.
    pub fn end(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn play() {
    let (Ok(role), Ok(system)) = (std::env::var(ROLE), std::env::var(SYSTEM)) else { return };
    // A role whose test has gone ends too.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let system = Arc::new(Topology { system, ..Topology::single_machine() });
    match role.as_str() {
        "echo" => processes::echo(&system),
        "hostile" => processes::scribble(&system),
        "survivor" => processes::survive(&system),
        "flood" => processes::flood(&system),
        role => figures::play(role, &system),
    }
}
