//! Whole conversations between nodes, frame by frame, as the files in conversations/ hold them.
//!
//! What you may rely on: a frame that is said at another time, with another field, once more or not at all, a request that
//! ends otherwise, a thread that is not told of a change, or a link that is asked for or let go at another time shows as a
//! difference. So what docs/wire.md says of frames in words stands here in numbers.
//!
//! How it works: each step of a [`Story`] is written down, then what every node said until all were silent (fields that are
//! 0 are left out), then what has moved. After a wanted change run these tests alone with `MUSUBI_BLESS=1`, and read the
//! difference.

use std::fmt::Write as _;
use std::path::Path;
use std::string::{String, ToString as _};

use super::*;
use crate::engine::ChannelHandle;
use crate::engine::ChannelKind;
use crate::limits::{MESSAGE_CREDIT, PACKET_CREDIT};

/// What was done and said so far.
struct Story {
    world: World,
    text: String,
    /// Of each node at the last step: its changes, and the links that it wanted.
    before: Vec<(u64, BTreeSet<NodeId>)>,
}

impl Story {
    /// Of so many nodes, all linked.
    fn of(count: usize) -> Story {
        Story::in_world(World::linked(count, false))
    }

    fn in_world(world: World) -> Story {
        let mut story = Story { world, text: String::new(), before: Vec::new() };
        story.before = story.standing();
        story
    }

    fn standing(&self) -> Vec<(u64, BTreeSet<NodeId>)> {
        let engines = self.world.engines.iter().zip(&self.world.outs);
        engines.map(|(engine, outs)| (engine.changes(), outs.wanted.clone())).collect()
    }

    /// One step: `act` is done at a node, then everything that follows is carried.
    fn at<R>(&mut self, at: usize, what: &str, act: impl FnOnce(&mut Engine<TestBlock>, &mut Outs) -> R) -> R {
        writeln!(self.text, "{at} {what}").unwrap();
        let result = self.world.on(at, act);
        self.carry();
        result
    }

    /// The same of something that gives an error or a request.
    fn ask<E: core::fmt::Debug>(
        &mut self,
        at: usize,
        what: &str,
        act: impl FnOnce(&mut Engine<TestBlock>, &mut Outs) -> Result<RequestId, E>,
    ) -> RequestId {
        self.at(at, what, act).unwrap()
    }

    /// A step that is done to the world: links that go and come, time.
    fn so(&mut self, what: &str, act: impl FnOnce(&mut World)) {
        writeln!(self.text, "{what}").unwrap();
        act(&mut self.world);
        self.carry();
    }

    /// Long enough for everything that is due.
    fn time_passes(&mut self) {
        self.so("time passes", |world| {
            world.now_ns += 2_000_000;
            let now_ns = world.now_ns;
            (0..world.engines.len()).for_each(|at| _ = world.on(at, |engine, links| engine.tick(now_ns, links)));
        });
    }

    /// Carries frames until nobody says anything, and writes down what moved.
    fn carry(&mut self) {
        let count = self.world.engines.len();
        loop {
            let mut any = false;
            for from in 0..count {
                for to in (0..count).filter(|to| *to != from) {
                    any |= self.carry_one(from, to);
                }
            }
            if !any {
                break;
            }
        }
        let after = self.standing();
        for (at, (before, now)) in self.before.iter().zip(&after).enumerate() {
            if now.0 != before.0 {
                writeln!(self.text, "    {at} changes {:+}", now.0.wrapping_sub(before.0) as i64).unwrap();
            }
            for node in now.1.symmetric_difference(&before.1) {
                let wants = if now.1.contains(node) { "wants" } else { "no longer wants" };
                writeln!(self.text, "    {at} {wants} {node}").unwrap();
            }
        }
        self.before = after;
    }

    fn carry_one(&mut self, from: usize, to: usize) -> bool {
        if let Some((header, bytes, _)) = self.world.wire(from, to).frames.front() {
            let line = said(header, bytes);
            writeln!(self.text, "    {from} > {to} {line}").unwrap();
        }
        self.world.deliver(from, to)
    }

    /// Writes down what came of a request.
    fn outcome(&mut self, at: usize, request: RequestId) {
        let line = match self.world.outcome(at, request) {
            None => "still waits".to_string(),
            Some(Err(error)) => std::format!("fails: {error:?}"),
            Some(Ok(Outcome::Message(message))) => {
                std::format!("gives {:?} of {} at {}", bytes(&message.payload), message.from, message.priority)
            }
            Some(Ok(Outcome::Packet(payload))) => std::format!("gives {:?}", bytes(&payload)),
            Some(Ok(Outcome::Picture(picture))) => std::format!("gives a picture of {} bytes", picture.len()),
            Some(Ok(outcome)) => std::format!("gives {outcome:?}"),
        };
        writeln!(self.text, "    {at} request {:#x} {line}", request.0).unwrap();
    }

    fn note(&mut self, what: impl core::fmt::Display) {
        writeln!(self.text, "    {what}").unwrap();
    }

    /// Compares it with the file of this name.
    fn is(mut self, name: &str) {
        for (at, engine) in self.world.engines.iter().enumerate() {
            writeln!(self.text, "{at} counts {}", without_zeros(&engine.counters())).unwrap();
            for of in 0..self.world.engines.len() {
                let counters = engine.peer_counters(node(of)).map(|counters| without_zeros(&counters));
                writeln!(self.text, "    of {of} {}", counters.unwrap_or_default()).unwrap();
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/tests/conversations");
        let path = folder.join(std::format!("{name}.txt"));
        if std::env::var_os("MUSUBI_BLESS").is_some() {
            std::fs::write(&path, &self.text).expect("the committed file can be written");
        }
        let committed = std::fs::read_to_string(&path).expect("a committed file");
        for (number, (old, new)) in committed.lines().zip(self.text.lines()).enumerate() {
            assert!(old == new, "{}:{}: committed\n{old}\nnow\n{new}", path.display(), number + 1);
        }
        assert!(committed == self.text, "{} has other lines at its end; now\n{}", path.display(), self.text);
    }
}

/// The fields of something that only counts, without those that are 0.
fn without_zeros(counters: &impl core::fmt::Debug) -> String {
    let text = std::format!("{counters:?}");
    let fields = text.split_once('{').map_or("", |(_, fields)| fields.trim_end_matches('}'));
    fields.split(',').map(str::trim).filter(|field| !field.ends_with(": 0")).collect::<Vec<_>>().join(", ")
}

/// A frame, without what is 0.
fn said(header: &Header, bytes: &[u8]) -> String {
    let kind = Kind::of(header.kind).expect("a kind that exists");
    let mut line = std::format!("{kind:?}");
    let fields = [
        ("class", u32::from(header.class.class())),
        ("status", header.status.into()),
        ("flags", header.flags.into()),
        ("from", header.from),
        ("to", header.to),
        ("tag", header.tag),
        ("value", header.value),
    ];
    for (name, value) in fields.into_iter().filter(|(_, value)| *value != 0) {
        write!(line, " {name} {value:#x}").unwrap();
    }
    match bytes {
        [] => {}
        short if short.len() <= 64 => write!(line, " {short:?}").unwrap(),
        long => {
            let sum = long.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            write!(line, " {} bytes {sum:#x}", long.len()).unwrap();
        }
    }
    line
}

mod channels;
mod endpoints;
mod links;
mod messages;
