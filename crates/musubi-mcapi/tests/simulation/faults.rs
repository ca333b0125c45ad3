//! What breaks: connections, ways between nodes, and nodes, which return.

use super::node::{Node, id};
use super::oracle::Verdict;
use super::program::Program;
use super::world::{Event, FAULT_NS, MILLISECOND_NS, World};

impl World {
    /// Something breaks somewhere.
    pub fn fault(&mut self) -> Verdict {
        if self.closing {
            return Ok(());
        }
        let wait = self.random.below(2 * FAULT_NS);
        self.at(self.now_ns + wait, Event::Fault);
        let node = self.random.place(self.plan.nodes);
        let Some(alive) = &self.nodes[node] else { return Ok(()) };
        let used: Vec<(usize, usize)> =
            alive.net.links.iter().filter_map(|(peer, link)| Some((*peer, link.connection?))).collect();
        if used.is_empty() {
            return Ok(());
        }
        let (peer, connection) = used[self.random.place(used.len())];
        match self.random.below(100) {
            0..40 => self.reset(connection),
            40..60 => {
                self.lost(node, peer);
                self.drive(node)
            }
            60..78 => {
                let time_ns = self.random.below(400 * MILLISECOND_NS);
                self.block(node, peer, time_ns)
            }
            78..86 => {
                let time_ns = 400 * MILLISECOND_NS + self.random.below(2_600 * MILLISECOND_NS);
                self.block(node, peer, time_ns)
            }
            86..94 => {
                self.kill(node);
                let time_ns = self.random.below(1_500 * MILLISECOND_NS);
                self.at(self.now_ns + time_ns, Event::Return { node });
                Ok(())
            }
            _ => self.leave(node),
        }
    }

    fn block(&mut self, node: usize, peer: usize, time_ns: u64) -> Verdict {
        self.cuts += 1;
        self.network.block(node, peer, self.now_ns + time_ns);
        Ok(())
    }

    /// Both ends of a connection lose it at once, with all that was under way.
    fn reset(&mut self, connection: usize) -> Verdict {
        self.cuts += 1;
        let ends = [0, 1].map(|side| {
            let end = &mut self.network.connections[connection].ends[side];
            end.open = false;
            (end.node, end.life)
        });
        for side in 0..2 {
            let ((node, life), (peer, _)) = (ends[side], ends[1 - side]);
            let Some(alive) = self.alive(node, life) else { continue };
            if alive.net.link(peer).connection == Some(connection) {
                self.lost(node, peer);
                self.nodes[node].as_mut().into_iter().for_each(|node| node.net.mark(peer));
                self.drive(node)?;
            }
        }
        Ok(())
    }

    /// A node dies at once.
    fn kill(&mut self, node: usize) {
        let Some(dead) = self.nodes[node].take() else { return };
        self.deaths += 1;
        for link in dead.net.links.values() {
            if let Some(connection) = link.connection {
                let side = self.side(node, connection);
                self.close(connection, side);
            }
        }
        self.endpoints.retain(|endpoint, _| endpoint.node() != id(node));
        self.programs[node] = Program::default();
    }

    /// A node leaves in an orderly way, as far as it gets before its successor comes.
    fn leave(&mut self, node: usize) -> Verdict {
        let Some(Node { engine, net, .. }) = self.nodes[node].as_mut() else { return Ok(()) };
        self.deaths += 1;
        engine.end();
        let peers: Vec<usize> = net.links.keys().copied().collect();
        for peer in peers {
            net.link(peer).session.leave();
            net.mark(peer);
        }
        self.endpoints.retain(|endpoint, _| endpoint.node() != id(node));
        self.programs[node] = Program::leaving();
        let time_ns = self.random.below(300 * MILLISECOND_NS);
        self.at(self.now_ns + time_ns, Event::Return { node });
        self.drive(node)
    }

    pub fn revive(&mut self, node: usize) -> Verdict {
        if self.nodes[node].is_some() && !self.programs[node].leaving {
            return Ok(());
        }
        self.kill(node);
        self.lives[node] += 1;
        let life = self.lives[node];
        self.nodes[node] = Some(Node::new(node, life, &self.settings, self.plan.nodes));
        self.begin(node)?;
        let wait = self.random.below(10 * MILLISECOND_NS);
        self.at(self.now_ns + wait, Event::Act { node, life });
        self.drive(node)
    }
}
