//! Two nodes for the targets of links: who they are, and a link that takes what it is given.

use musubi_mcapi::engine::frame::KINDS;
use musubi_transport::NodeId;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, NoBlock, Sent};
use musubi_transport::session::{Hello, Identity, Session, Step};
use musubi_transport::topology::Network;

/// Node 0 or 1.
pub fn identity(side: usize) -> Identity {
    let node = NodeId::from_index(side).expect("0 or 1");
    Identity { system: "fuzz".into(), hash: 7, node, incarnation: 1 }
}

/// The session of one of them with the other; its pieces and window are small, so that little input goes far.
pub fn session(side: usize) -> Session {
    let network = Network { piece_bytes: 300, window_bytes: 20_000, ..Network::default() };
    Session::new(&identity(side), identity(1 - side).node, &network, &KINDS)
}

/// A right hello or welcome from one of them to the other.
pub fn hello(side: usize, step: Step) -> Hello {
    let (identity, to) = (identity(side), identity(1 - side).node);
    Hello { step, reason: None, identity, to, session: 9, touched: false, ended: 0, attempt: 1, received: 0 }
}

/// A link with node 1 that numbers what it takes, and is full at every seventh frame.
#[derive(Debug, Default)]
pub struct Peer {
    frames: u64,
    calls: u64,
}

impl Peer {
    /// Another link.
    pub fn begin(&mut self) {
        self.frames = 0;
    }
}

impl Links for Peer {
    type Block = NoBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        assert_eq!((peer.index(), header.length as usize), (1, payload.len()));
        assert!(payload.len() <= KINDS.shape(header.kind).expect("a kind").payload_max as usize);
        self.calls += 1;
        if self.calls.is_multiple_of(7) {
            return Sent::Full;
        }
        self.frames += 1;
        Sent::Numbered(self.frames)
    }

    fn want(&mut self, _: NodeId, _: bool) {}

    fn knows(&self, peer: NodeId) -> bool {
        peer.index() < 2
    }
}
