//! What the tests of nodes share: the options of a node of a small system.

use std::sync::Arc;

use musubi_core::layout::LinkShape;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::node::Options;

pub const SHAPE: LinkShape = LinkShape { slots: 16, blocks: 2, block_bytes: 4096 };
pub const HASH: u64 = 0x1234_5678_9abc;

/// A node of a system that only the calling process and those it tells have.
pub fn options(test: &str, number: u16) -> Options {
    Options {
        system: format!("{test}-{}", std::process::id()),
        hash: HASH,
        node: number,
        nodes: 100,
        incarnation: 7,
        shape: SHAPE,
        frames: 1,
        epoll: Arc::new(Descriptor::epoll().unwrap()),
        token: 1 << 56,
    }
}
