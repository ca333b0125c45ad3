//! The NICs of a system's running processes, and what each says of itself; as JSON its fields are stable (docs/status.md).
//!
//! What you may rely on: what a process says is taken as its word; one that does not answer in time is shown as silent, if it is of
//! this machine, and holds up no other.
//!
//! How it works: the command is a node of the NICs' system meanwhile, as `musubi node` is of MCAPI's, and asks each process for its
//! picture ([`musubi_vipl::nic::NicPicture`]): by shared memory those that the kernel lists, by TCP those that have no other way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use musubi_config::Description;
use musubi_linux::{Deadline, DeadlineExt};
use musubi_transport::notifier::WakeCounts;
use musubi_transport::runtime::Options;
use musubi_transport::topology::Topology;
use musubi_transport::{NodeId, Priority};
use musubi_vipl::nic::{ClassCounts, ClassPicture, NicPicture};
use musubi_vipl::process::{NicSystem, ProcessNode};
use serde::Serialize;

use crate::node::tool::{Claim, Way, first_free};
use crate::output;

/// Longest wait for the answers of one look.
const ANSWER_WAIT: Duration = Duration::from_millis(500);

/// A NIC of one process.
#[derive(Clone, Debug, Serialize)]
pub struct Nic {
    pub name: String,
    pub number: u16,
    pub process: u16,
    pub state: NicState,
    pub vis: Option<Vis>,
    pub completion_queues: Option<u64>,
    pub connections: Option<u64>,
    pub lost: Option<u64>,
    pub refused: Option<u64>,
    pub woken: Option<u64>,
    pub classes: Vec<Class>,
}

/// Whether a process answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NicState {
    /// It did.
    Running,
    /// It is there and did not.
    Silent,
}

/// VIs by state.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Vis {
    pub count: u64,
    pub connected: u64,
    pub pending: u64,
    pub in_error: u64,
}

/// A class of one process's NIC.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    pub class: u8,
    pub vis: u64,
    pub posted: u64,
    pub completed: u64,
    pub flushed: u64,
    pub rule: Option<Notifications>,
    pub policies: Option<Notifications>,
    pub budgets: Option<Budgets>,
    pub held: u64,
    pub held_ns: u64,
    pub uncredited: u64,
    pub uncredited_bytes: u64,
    pub beyond: u64,
    pub handled: u64,
    pub handled_ns: u64,
}

/// What became of wake-ups.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Notifications {
    pub asked: u64,
    pub raised: u64,
    pub suppressed: u64,
    pub deferred: u64,
    pub longest_deferral_ns: u64,
}

/// How completions kept their budgets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Budgets {
    pub taken: u64,
    pub over_budget: u64,
    pub longest_ns: u64,
}

/// Who asks.
pub struct NicSurvey {
    /// Of the NICs, by number.
    names: Vec<String>,
    topology: Arc<Topology>,
    tools: Vec<(Way, ProcessNode, Claim)>,
}

impl NicSurvey {
    /// Of the NICs of a description: without any, the one that programs have then.
    pub fn new(description: &Description) -> NicSurvey {
        let nics = description.nics();
        let (names, topology) = if nics.entries.is_empty() {
            let NicSystem { directory, topology } = NicSystem::on_one_machine(&nics.topology.system);
            (directory.nics.iter().map(|entry| entry.name.clone()).collect(), topology)
        } else {
            (nics.entries.iter().map(|entry| entry.name.clone()).collect(), Arc::new(nics.topology.clone()))
        };
        NicSurvey { names, topology, tools: Vec::new() }
    }

    /// Asks all that can be asked, and waits for their answers. Ways that cannot be used are said.
    ///
    /// # Errors
    /// The processes of this machine cannot be listed.
    pub fn look(&mut self) -> anyhow::Result<Vec<Nic>> {
        let present = musubi_linux::node::present(&self.topology.system).context("listing the NICs of this machine")?;
        let is_slot = |node: &NodeId| node.slot().is_some_and(|(nic, _)| usize::from(nic) < self.names.len());
        let here: Vec<NodeId> =
            present.into_iter().filter_map(|index| NodeId::from_index(usize::from(index))).filter(is_slot).collect();
        let by_network = |node: &NodeId| Way::to(&self.topology, *node) == [Way::Tcp];
        let there: Vec<NodeId> = self.topology.named().into_iter().filter(by_network).collect();
        let mut seen: BTreeMap<NodeId, Option<NicPicture>> = here.iter().map(|node| (*node, None)).collect();
        for (way, nodes) in [(Way::Shm, here), (Way::Tcp, there)] {
            if !nodes.is_empty() {
                seen.extend(self.ask(way, &nodes));
            }
        }
        Ok(seen.into_iter().filter_map(|(node, picture)| self.nic(node, picture)).collect())
    }

    /// The pictures of those that answer.
    fn ask(&mut self, way: Way, nodes: &[NodeId]) -> Vec<(NodeId, Option<NicPicture>)> {
        let Some(tool) = self.tool(way) else { return Vec::new() };
        let asked = tool.with(|nic, links| nodes.iter().for_each(|node| nic.ask_picture(*node, links)));
        let (mut answers, until) = (Vec::new(), Deadline::after(ANSWER_WAIT));
        // Without all of them once the time is over: what has come by then counts.
        let _ = asked.and_then(|()| {
            tool.wait_for(until, |nic, _| {
                answers.extend(nodes.iter().filter_map(|node| Some((*node, Some(nic.take_picture(*node)?)))));
                (answers.len() == nodes.len()).then_some(())
            })
        });
        answers
    }

    /// The node that asks in this way.
    fn tool(&mut self, way: Way) -> Option<&ProcessNode> {
        if !self.tools.iter().any(|(of, ..)| *of == way) {
            let by = |me| ProcessNode::start(Arc::clone(&self.topology), me, Options::default());
            match first_free(&self.topology, way, by) {
                Ok((node, claim)) => self.tools.push((way, node, claim)),
                Err(error) => {
                    output::note(&format!("note: NICs are not asked by {}: {error:#}", way.word()));
                    return None;
                }
            }
        }
        self.tools.iter().find(|(of, ..)| *of == way).map(|(_, node, _)| node)
    }

    fn nic(&self, node: NodeId, picture: Option<NicPicture>) -> Option<Nic> {
        let (number, process) = node.slot()?;
        let name = self.names.get(usize::from(number))?;
        let said = |of: fn(&NicPicture) -> u64| picture.as_ref().map(of);
        Some(Nic {
            name: name.clone(),
            number,
            process,
            state: if picture.is_some() { NicState::Running } else { NicState::Silent },
            vis: picture.as_ref().map(|picture| Vis {
                count: picture.vis,
                connected: picture.connected,
                pending: picture.pending,
                in_error: picture.in_error,
            }),
            completion_queues: said(|picture| picture.queues),
            connections: said(|picture| picture.connections),
            lost: said(|picture| picture.lost),
            refused: said(|picture| picture.refused),
            woken: said(|picture| picture.woken),
            classes: picture
                .iter()
                .flat_map(|picture| &picture.classes)
                .filter_map(|of| self.class(node, of))
                .collect(),
        })
    }

    fn class(&self, node: NodeId, picture: &ClassPicture) -> Option<Class> {
        let class = Priority::new(u8::try_from(picture.class).ok()?)?;
        let is_filtered = |rule: &musubi_transport::topology::ClassRule| rule.class == class && !rule.filter.is_each();
        let has_rule = self.topology.rules_of(node).iter().any(is_filtered);
        let ClassPicture { vis, by_rule, counts, .. } = *picture;
        let WakeCounts { frames, raised, deferred, longest_deferral_ns } = by_rule;
        let ClassCounts { posted, completed, flushed, held, held_ns, handled, handled_ns, .. } = counts;
        let ClassCounts { uncredited, uncredited_bytes, beyond, .. } = counts;
        let own = [counts.raised, counts.deferred, counts.longest_deferral_ns];
        Some(Class {
            class: class.class(),
            vis,
            posted,
            completed,
            flushed,
            rule: has_rule.then(|| notifications(frames, [raised, deferred, longest_deferral_ns])),
            policies: (counts.asked > 0).then(|| notifications(counts.asked, own)),
            budgets: (counts.timed > 0).then_some(Budgets {
                taken: counts.timed,
                over_budget: counts.over_budget,
                longest_ns: counts.longest_ns,
            }),
            held,
            held_ns,
            uncredited,
            uncredited_bytes,
            beyond,
            handled,
            handled_ns,
        })
    }
}

/// Counts are what a process says: of no use, perhaps, but never a reason to fail.
fn notifications(asked: u64, [raised, deferred, longest_deferral_ns]: [u64; 3]) -> Notifications {
    let suppressed = asked.saturating_sub(raised.saturating_add(deferred));
    Notifications { asked, raised, suppressed, deferred, longest_deferral_ns }
}
