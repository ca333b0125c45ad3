//! What a peer told us and we could not take, or we it: asked for once more, over another connection.
//!
//! What you may rely on: what was lost because our process or the kernel had no room (descriptors, memory) costs neither the
//! link nor a message. The peer is called again within [`PAUSE_NS`], and from then on at least as often as any busy
//! participant, until a connection has brought everything.
//!
//! How it works: whoever is linked tells all there is on each new connection, before READY. So a connection on which
//! something was lost is only marked; it goes when READY comes on another one on which nothing was.
//!
//! What it does not do: excuse a peer. More descriptors than belong to any message are its fault, and cut it off.

use crate::os::clock::now_ns;
use crate::process::rendezvous::connection::Stage;
use crate::process::rendezvous::dial::Dial;
use crate::process::rendezvous::registry::{Registry, Shared};

/// How long after the loss the peer is called, in nanoseconds: what there was no room for now seldom finds room at once.
const PAUSE_NS: u64 = 100_000_000;

impl Registry {
    /// Something was lost on a connection, by no fault of the peer. A handshake is broken off, and its caller tries again.
    pub(crate) fn missed(&mut self, shared: &Shared, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.stage {
            Stage::Linked(participant, _) => {
                connection.incomplete = true;
                self.dials.entry(participant).or_insert_with(|| Dial::at(now_ns() + PAUSE_NS));
                shared.wake_attendant();
            }
            _ => self.hung_up(shared, id),
        }
    }

    /// A peer has told all on this connection: those on which something was lost are not needed any more. If this is one,
    /// the peer is called once more.
    pub(crate) fn told_all(&mut self, shared: &Shared, id: u32, (participant, epoch): (u16, u32)) {
        for other in self.incomplete_connections(participant, epoch) {
            if other != id {
                self.hung_up(shared, other);
            }
        }
        self.dials.remove(&participant);
        if self.connections.get(&id).is_some_and(|connection| connection.incomplete) {
            self.missed(shared, id);
        }
    }

    /// Whether a peer has to be asked for something that was lost.
    pub(crate) fn is_incomplete(&self, participant: u16) -> bool {
        let of_peer = |stage| matches!(stage, Stage::Linked(number, _) if number == participant);
        self.connections.values().any(|connection| connection.incomplete && of_peer(connection.stage))
    }

    fn incomplete_connections(&self, participant: u16, epoch: u32) -> Vec<u32> {
        let of_peer = |stage| stage == Stage::Linked(participant, epoch);
        let of_peer = self.connections.iter().filter(|(_, connection)| of_peer(connection.stage));
        of_peer.filter(|(_, connection)| connection.incomplete).map(|(id, _)| *id).collect()
    }
}
