//! Channels between the simulated programs: connected by anybody, opened in any order, used, closed, broken, again.
//!
//! How it works: a job has two ends on two nodes and a third node that connects them. At each turn it does the next step.
//! Everything sent carries its place in the channel; what is received must be the next, to the last if the sender closed
//! in peace. Whatever happens, closing must complete.

use musubi_mcapi::engine::{ChannelHandle, ChannelKind, RequestId, Sending};
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::{NoBlock, Payload};

use super::node::Node;
use super::oracle::Verdict;
use super::world::{Event, World};

const TURN_NS: u64 = 3_000_000;
/// A connection that has not come about by then is given up.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Closing must complete by then: ways may be cut for 3 seconds.
const CLOSING_NS: u64 = 8_000_000_000;

/// A run of a node.
type Who = (usize, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connect,
    /// Of the sending (0) or the receiving end (1).
    Open(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Running,
    /// The sender has closed.
    Draining,
    Closing,
}

/// One channel from its making to its end.
#[derive(Debug)]
pub struct Job {
    kind: ChannelKind,
    /// Sender, receiver, and who connects them.
    nodes: [Who; 3],
    ends: [EndpointId; 2],
    handles: [Option<ChannelHandle>; 2],
    steps: Vec<Step>,
    done: usize,
    requests: Vec<(Who, RequestId)>,
    phase: Phase,
    since_ns: u64,
    /// Nothing has gone wrong.
    peaceful: bool,
    sent: u64,
    most: u64,
    received: u64,
    /// Bytes of packets in hand.
    held: Vec<usize>,
}

impl World {
    /// Whether no job has to go on.
    pub fn jobs_done(&self) -> bool {
        self.jobs.iter().all(Option::is_none)
    }

    /// What the jobs are at, in words.
    pub fn jobs_text(&self) -> String {
        self.jobs.iter().flatten().map(|job| format!("\n  {job:?}")).collect()
    }

    /// A job's turn.
    pub fn turn(&mut self, number: usize) -> Verdict {
        let wait = 1 + self.random.below(2 * TURN_NS);
        self.at(self.now_ns + wait, Event::Turn { job: number });
        let Some(mut job) = self.jobs[number].take() else {
            self.jobs[number] = if self.closing { None } else { self.new_job()? };
            return Ok(());
        };
        let goes_on = self.go_on(&mut job);
        if goes_on? {
            self.jobs[number] = Some(job);
        }
        Ok(())
    }

    fn new_job(&mut self) -> Result<Option<Job>, String> {
        let first = self.random.place(self.plan.nodes);
        let mut near = || (first + self.random.place(4) * 7) % self.plan.nodes;
        let nodes = [first, near(), near()].map(|node| (node, self.lives[node]));
        if !nodes.iter().all(|who| self.engine(*who).is_some()) {
            return Ok(None);
        }
        let mut ends = Vec::new();
        for who in &nodes[..2] {
            let Some(Node { engine, net, .. }) = self.engine(*who) else { return Ok(None) };
            match engine.create_endpoint(None, net) {
                Ok(end) => ends.push(end),
                // What could not be closed in peace may have used the node's endpoints up.
                Err(Error::PortInvalid) => return Ok(None),
                Err(error) => return Err(format!("create: {error}")),
            }
        }
        let mut steps = vec![Step::Connect, Step::Open(0), Step::Open(1)];
        let place = self.random.place(3);
        steps.swap(0, place);
        let kind = if self.random.chance(1, 2) { ChannelKind::Packet } else { ChannelKind::Scalar };
        Ok(Some(Job {
            kind,
            nodes,
            ends: [ends[0], ends[1]],
            handles: [None, None],
            steps,
            done: 0,
            requests: Vec::new(),
            phase: Phase::Connecting,
            since_ns: self.now_ns,
            peaceful: true,
            sent: 0,
            most: self.random.below(200),
            received: 0,
            held: Vec::new(),
        }))
    }

    /// A node that is alive and stays.
    fn engine(&mut self, (node, life): Who) -> Option<&mut Node> {
        if self.programs[node].leaving { None } else { self.alive(node, life) }
    }

    /// False when the job has come to its end.
    fn go_on(&mut self, job: &mut Job) -> Result<bool, String> {
        let nodes = job.nodes;
        if nodes[..2].iter().any(|who| self.engine(*who).is_none()) && job.phase != Phase::Closing {
            self.break_off(job);
        }
        self.poll_job(job)?;
        match job.phase {
            Phase::Connecting => self.connecting(job)?,
            Phase::Running => self.running(job)?,
            Phase::Draining => self.draining(job)?,
            Phase::Closing => {}
        }
        for who in nodes {
            if self.engine(who).is_some() {
                self.drive(who.0)?;
            }
        }
        if job.phase != Phase::Closing || !job.requests.is_empty() {
            let late = job.phase == Phase::Closing && self.now_ns > job.since_ns + CLOSING_NS;
            return if late { Err(format!("closing does not complete: {job:?}")) } else { Ok(true) };
        }
        self.delete(job)?;
        Ok(false)
    }

    fn poll_job(&mut self, job: &mut Job) -> Verdict {
        let mut at = 0;
        while let Some((who, request)) = job.requests.get(at).copied() {
            let Some(Node { engine, .. }) = self.engine(who) else {
                job.requests.remove(at);
                continue;
            };
            let outcome = engine.take_outcome(request).map_err(|error| format!("{error} of {who:?} in {job:?}"))?;
            let Some(outcome) = outcome else {
                at += 1;
                continue;
            };
            self.digest.add(u64::from(outcome.is_ok()));
            job.requests.remove(at);
            match outcome {
                Ok(_) => job.done += 1,
                Err(_) if job.phase != Phase::Closing => self.break_off(job),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn connecting(&mut self, job: &mut Job) -> Verdict {
        let Some(step) = job.steps.pop() else {
            if job.done == 3 {
                (job.phase, job.since_ns) = (Phase::Running, self.now_ns);
            } else if self.now_ns > job.since_ns + PATIENCE_NS {
                self.break_off(job);
            }
            return Ok(());
        };
        let (kind, ends) = (job.kind, job.ends);
        let who = job.nodes[match step {
            Step::Connect => 2,
            Step::Open(end) => end,
        }];
        let Some(Node { engine, net, .. }) = self.engine(who) else {
            self.break_off(job);
            return Ok(());
        };
        let request = match step {
            Step::Connect => engine.connect(kind, ends[0], ends[1], net),
            Step::Open(end) => engine.open(kind, end == 1, ends[end], net).map(|(handle, request)| {
                job.handles[end] = Some(handle);
                request
            }),
        };
        match request {
            Ok(request) => job.requests.push((who, request)),
            Err(_) => self.break_off(job),
        }
        Ok(())
    }

    fn running(&mut self, job: &mut Job) -> Verdict {
        let count = self.random.below(8);
        for _ in 0..count {
            if !self.send_next(job)? {
                break;
            }
        }
        let early = self.random.chance(1, 400);
        if job.phase == Phase::Running && (job.sent >= job.most || self.closing) && !early {
            job.phase = Phase::Draining;
            self.close_end(job, 0);
        } else if early && job.phase == Phase::Running {
            self.break_off(job);
        }
        if self.random.chance(2, 3) { self.receive_some(job).map(|_| ()) } else { Ok(()) }
    }

    /// False if it cannot go now.
    fn send_next(&mut self, job: &mut Job) -> Result<bool, String> {
        let Some(handle) = job.handles[0] else { return Ok(false) };
        let (later, length) = (self.random.chance(1, 4), self.random.below(40_000) >> self.random.below(12));
        let (who, kind, end, sent) = (job.nodes[0], job.kind, job.ends[0], job.sent);
        let Some(Node { engine, net, .. }) = self.engine(who) else { return Ok(false) };
        let sending = match kind {
            ChannelKind::Scalar => engine.send_scalar(handle, 8, scalar(end, sent), net),
            ChannelKind::Packet if later => {
                match engine.send_packet_later(handle, packet(sent, length as usize), net) {
                    Ok(request) => Ok(Sending::Confirming(request)),
                    Err(error) => Err(error),
                }
            }
            ChannelKind::Packet if sent % 3 == 2 => {
                let several = [sent, sent + 1, sent + 2].map(|number| packet(number, length as usize).into());
                match engine.send_packets_shared(handle, &several, net) {
                    Ok(0) => Ok(Sending::Blocked),
                    Ok(gone) => {
                        // Their last is counted below.
                        job.sent += gone as u64 - 1;
                        Ok(Sending::Done)
                    }
                    Err(error) => Err(error),
                }
            }
            ChannelKind::Packet if sent % 3 == 1 => {
                engine.send_packet_shared(handle, &packet(sent, length as usize).into(), net)
            }
            ChannelKind::Packet => engine.send_packet(handle, &packet(sent, length as usize), net),
        };
        match sending {
            Ok(Sending::Done) => {}
            Ok(Sending::Confirming(request)) => {
                job.requests.push((who, request));
            }
            Ok(Sending::Blocked) | Err(Error::MemoryLimit | Error::RequestLimit) => return Ok(false),
            Err(Error::Transmission | Error::ChannelInvalid) => {
                self.break_off(job);
                return Ok(false);
            }
            Err(error) => return Err(format!("sending gives {error}: {job:?}")),
        }
        job.sent += 1;
        Ok(true)
    }

    /// Receives what there is; true once the sender has closed and everything has been read.
    fn receive_some(&mut self, job: &mut Job) -> Result<bool, String> {
        let Some(handle) = job.handles[1] else { return Ok(false) };
        let (who, kind) = (job.nodes[1], job.kind);
        let keep = self.random.below(4) as usize;
        loop {
            let expected = job.received;
            let Some(Node { engine, net, .. }) = self.engine(who) else { return Ok(false) };
            let came = match kind {
                ChannelKind::Scalar => match engine.receive_scalar(handle, 8, net) {
                    Ok(value) => Ok(value.map(|value| value == scalar(job.ends[0], expected))),
                    Err(error) => Err(error),
                },
                ChannelKind::Packet => match engine.receive_packet(handle, net) {
                    Ok(Some(payload)) => {
                        job.held.push(payload.len());
                        Ok(Some(is_packet(&payload, expected)))
                    }
                    Ok(None) => Ok(None),
                    Err(error) => Err(error),
                },
            };
            while job.held.len() > keep {
                engine.packet_released(handle, job.held.remove(0), net);
            }
            match came {
                Ok(None) => return Ok(false),
                Ok(Some(true)) if expected < job.sent => {
                    job.received += 1;
                    self.items += 1;
                }
                Ok(Some(_)) => return Err(format!("something else than item {} came: {job:?}", expected)),
                Err(Error::ChannelInvalid) => return Ok(true),
                Err(Error::Transmission) => {
                    self.break_off(job);
                    return Ok(false);
                }
                Err(error) => return Err(format!("receiving gives {error}: {job:?}")),
            }
        }
    }

    fn draining(&mut self, job: &mut Job) -> Verdict {
        if !self.receive_some(job)? {
            return Ok(());
        }
        if job.received != job.sent {
            return Err(format!("the sender closed in peace, but not everything came: {job:?}"));
        }
        self.close_end(job, 1);
        (job.phase, job.since_ns) = (Phase::Closing, self.now_ns);
        self.channels_done += 1;
        Ok(())
    }

    /// Ends the job the hard way: what is pending is cancelled, what is open closed.
    fn break_off(&mut self, job: &mut Job) {
        (job.phase, job.since_ns, job.peaceful) = (Phase::Closing, self.now_ns, false);
        self.channels_broken += 1;
        for (who, request) in job.requests.clone() {
            if let Some(Node { engine, net, .. }) = self.engine(who) {
                // It may have completed, or be something that is not taken back: then it is waited for.
                let _ = engine.cancel(request, net);
            }
        }
        for end in 0..2 {
            self.close_end(job, end);
        }
    }

    fn close_end(&mut self, job: &mut Job, end: usize) {
        let (who, kind) = (job.nodes[end], job.kind);
        let Some(handle) = job.handles[end].take() else { return };
        let Some(Node { engine, net, .. }) = self.engine(who) else { return };
        if let Ok(request) = engine.close(kind, end == 1, handle, net) {
            job.requests.push((who, request));
        }
    }

    fn delete(&mut self, job: &mut Job) -> Verdict {
        for end in 0..2 {
            let Some(Node { engine, net, .. }) = self.engine(job.nodes[end]) else { continue };
            let deleted = engine.delete_endpoint(job.ends[end], net);
            if job.peaceful && deleted.is_err() {
                return Err(format!("after the channel's end {deleted:?}: {job:?}"));
            }
            self.drive(job.nodes[end].0)?;
        }
        Ok(())
    }
}

/// A scalar that tells its channel and place.
fn scalar(sender: EndpointId, place: u64) -> u64 {
    u64::from(sender.bits()) << 32 | place
}

/// A packet that tells its place.
fn packet(place: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![place as u8; 8 + length];
    bytes[..8].copy_from_slice(&place.to_le_bytes());
    bytes
}

fn is_packet(payload: &Payload<NoBlock>, place: u64) -> bool {
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(&mut bytes);
    bytes.len() >= 8 && bytes == packet(place, bytes.len() - 8)
}
