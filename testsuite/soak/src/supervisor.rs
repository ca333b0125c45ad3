//! Starts the system, kills and stops its participants, and draws up the account.
//!
//! How it works: between two kills the system runs for a random time. After a kill the supervisor writes into the
//! record what the dead one had dequeued and not recorded, starts the successor at once, and waits until each of its
//! channels has carried a message; some successors are killed again before that. Every few kills, all pause: the
//! receivers take and free everything, the senders count their blocks, and the account must come out even.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use musubi_core::plan::OnRestart;
use musubi_linux::clock::now_ns;
use rustix::process::Signal;

use crate::Options;
use crate::account::{self, Messages};
use crate::children::{Children, Starter};
use crate::record::{At, END, In, Of, Record, SUPERVISOR};
use crate::report::{self, Live, Outcome, Recovery};
use crate::system::{CHANNELS, PARTICIPANTS, channels};
use crate::timing::{self, Timing};
use crate::witness::{Who, Witness};

/// Longest time that the system runs between two kills, in microseconds.
const RUN_US_MAX: u64 = 500_000;
/// Longest stop.
const STOP_MS_MAX: u64 = 300;
/// One look in this many begins a stop while none lasts.
const STOP_EVERY: u32 = 500;
/// One kill in this many is followed by one of the successor while it starts.
const AGAIN_EVERY: u32 = 6;
/// How far the successor gets before that, in microseconds.
const AGAIN_US_MAX: u64 = 15_000;
/// One kill in this many is followed by an account.
const ACCOUNT_EVERY: u32 = 8;
/// Pause between two looks.
const LOOK: Duration = Duration::from_micros(200);
/// A system that has not recovered after this has failed.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs the proof; gives whether it holds.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}; {CHANNELS} FIFO channels and 1 SMEM channel between {PARTICIPANTS} processes");
    let left_before = report::left_behind("");
    let mut supervisor = Supervisor::start(seed)?;
    let instance = supervisor.instance.clone();
    let outcome = supervisor.prove(options, seed);
    if outcome.is_err() {
        supervisor.show_state();
    }
    drop(supervisor);
    let mut outcome = outcome?;
    outcome.left_behind = report::left_behind(&instance).saturating_sub(left_before);
    report::show(&outcome);
    if let Some(path) = &options.json {
        report::write(&outcome, path)?;
    }
    Ok(outcome.holds())
}

struct Supervisor {
    record: Arc<Record>,
    children: Children,
    witness: Witness,
    random: fastrand::Rng,
    instance: String,
    stop: Option<(u16, Instant)>,
    stops: u32,
    kills: [u32; PARTICIPANTS as usize],
    again: u32,
    in_hand: u64,
    beyond_mark: u64,
    abandoned: u64,
    refused: u64,
    dropped: HashMap<(u16, u32), u32>,
    recovery: Recovery,
    /// How long the last one that was killed took to end.
    exit_us: u32,
    leaked: u64,
    accounts: u32,
    begin: Instant,
}

impl Supervisor {
    fn start(seed: u64) -> anyhow::Result<Supervisor> {
        let record = Record::create()?;
        let instance = format!("soak-{}", std::process::id());
        let witness = Witness::new(&instance)?;
        let starter = Starter { instance: instance.clone(), record: record.path(), seed };
        let record = Arc::new(record);
        let controls = timing::processors()?.into_iter().flat_map(|processor| [(processor, false), (processor, true)]);
        for (processor, urgent) in controls {
            let record = Arc::clone(&record);
            let sleep = move || Timing::new(&record, SUPERVISOR, "a sleep".to_owned())?.control(processor, urgent);
            std::thread::Builder::new().name("control".to_owned()).spawn(sleep).context("starting a control thread")?;
        }
        let mut supervisor = Supervisor {
            children: Children::start(starter)?,
            record,
            witness,
            random: fastrand::Rng::with_seed(seed),
            instance,
            stop: None,
            stops: 0,
            kills: [0; PARTICIPANTS as usize],
            again: 0,
            in_hand: 0,
            beyond_mark: 0,
            abandoned: 0,
            refused: 0,
            dropped: HashMap::new(),
            recovery: Recovery::default(),
            exit_us: 0,
            leaked: 0,
            accounts: 0,
            begin: Instant::now(),
        };
        (0..PARTICIPANTS).try_for_each(|participant| supervisor.wait_recovered(participant).map(|_| ()))?;
        Ok(supervisor)
    }

    fn prove(&mut self, options: &Options, seed: u64) -> anyhow::Result<Outcome> {
        let live = Live::new(options.kills);
        let longest = options.seconds_max.map_or(Duration::MAX, Duration::from_secs);
        while self.killed() < options.kills && self.begin.elapsed() < longest {
            self.run_for(RUN_US_MAX, true)?;
            let victim = self.random.u16(0..PARTICIPANTS);
            self.kill_and_recover(victim)?;
            if self.random.u32(0..ACCOUNT_EVERY) == 0 {
                live.show(self.killed(), &self.settle()?, &self.recovery, self.leaked);
            }
        }
        self.run_for(RUN_US_MAX, false)?;
        let messages = self.settle()?;
        live.finish();
        self.outcome(messages, seed)
    }

    fn killed(&self) -> u32 {
        self.kills.iter().sum()
    }

    /// Lets the system run for a random time.
    fn run_for(&mut self, longest_us: u64, stops: bool) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_micros(self.random.u64(0..=longest_us));
        while Instant::now() < end {
            self.look_after_stops(stops)?;
            self.children.check()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn kill_and_recover(&mut self, victim: u16) -> anyhow::Result<()> {
        let was_stopped = self.stop.is_some_and(|(stopped, _)| stopped != victim);
        let stops_before = self.stops;
        let mut killed_us = self.kill(victim)?;
        while self.random.u32(0..AGAIN_EVERY) == 0 && self.recent(victim) < 2 {
            std::thread::sleep(Duration::from_micros(self.random.u64(0..=AGAIN_US_MAX)));
            killed_us = self.kill(victim)?;
            self.again += 1;
        }
        let (first_us, all_us) = self.wait_recovered(victim)?;
        let disturbed = was_stopped || self.stops != stops_before;
        let (first_us, all_us) = (first_us.wrapping_sub(killed_us), all_us.wrapping_sub(killed_us));
        self.recovery.note(first_us, all_us, self.exit_us, disturbed);
        for incarnation in 1..self.children.incarnation(victim) {
            self.witness.forget((victim, incarnation));
        }
        Ok(())
    }

    /// Incarnations of a participant that its peers have not been seen to follow yet.
    fn recent(&self, victim: u16) -> u32 {
        let incarnation = self.children.incarnation(victim);
        (1..=incarnation).rev().take_while(|&i| !self.witness.has_seen((victim, i))).count() as u32
    }

    /// Kills one and starts its successor; gives when.
    fn kill(&mut self, victim: u16) -> anyhow::Result<u32> {
        let killed_us = (now_ns() / 1_000) as u32;
        self.children.kill(victim)?;
        self.exit_us = ((now_ns() / 1_000) as u32).wrapping_sub(killed_us);
        self.recovery.note_exit(self.exit_us);
        self.kills[usize::from(victim)] += 1;
        if self.stop.is_some_and(|(stopped, _)| stopped == victim) {
            self.stop = None;
            self.record.of(victim, Of::Stops).count();
        }
        let dead = self.children.who(victim);
        for (channel, fifo) in channels() {
            if fifo.to == victim {
                self.correct(channel, fifo.on_restart, self.children.who(fifo.from), dead)?;
            }
            if fifo.from == victim {
                self.dropped.insert((channel, dead.1), self.witness.dropped(channel, dead));
                self.abandoned += u64::from(self.witness.abandoned(channel, dead));
                self.refused += u64::from(self.witness.refused(channel, dead));
            }
        }
        self.children.succeed(victim)?;
        Ok(killed_us)
    }

    /// Writes down what a dead receiver had dequeued and not recorded: at most one message, and only if it died between
    /// the two.
    fn correct(&mut self, channel: u16, policy: OnRestart, sender: Who, dead: Who) -> anyhow::Result<()> {
        let of_sender = |record: &Record, what| record.of_incarnation(channel, sender.1, what).get();
        let taken = match policy {
            OnRestart::Keep if self.witness.has_seen(dead) => self.witness.taken(channel, sender, dead),
            OnRestart::Keep => Some(self.wait_start(channel, sender)?),
            OnRestart::Drop => {
                // The sender goes on behind its last message; what lies between it has counted.
                let start = self.wait_start(channel, sender)?;
                let void = self.witness.dropped(channel, sender) - of_sender(&self.record, In::Missing);
                Some(start - void)
            }
        };
        let unrecorded = taken.map_or(0, |taken| taken.saturating_sub(of_sender(&self.record, In::Received)));
        let mark = self.record.at(channel, At::Dequeuing);
        let explained = unrecorded.min(mark.get());
        self.in_hand += u64::from(explained);
        self.beyond_mark += u64::from(unrecorded - explained);
        self.record.of_incarnation(channel, sender.1, In::Received).add(explained);
        mark.set(0);
        Ok(())
    }

    /// Where a sender that has noticed its receiver's death begins anew.
    fn wait_start(&mut self, channel: u16, sender: Who) -> anyhow::Result<u32> {
        let begin = Instant::now();
        while begin.elapsed() < RECOVERY_TIME_MAX {
            if let Some(start) = self.witness.start(channel, sender) {
                return Ok(start);
            }
            self.look_after_stops(false)?;
            std::thread::sleep(LOOK);
        }
        bail!("the sender of channel {channel} has not noticed its receiver's death")
    }

    /// Waits until all channels of a participant carry messages; gives when the first and the last did.
    fn wait_recovered(&mut self, participant: u16) -> anyhow::Result<(u32, u32)> {
        let begin = Instant::now();
        while !(self.flows(participant) && self.is_seen(participant)) {
            self.children.check()?;
            self.look_after_stops(true)?;
            if begin.elapsed() > RECOVERY_TIME_MAX {
                bail!("participant {participant} has not recovered");
            }
            std::thread::sleep(LOOK);
        }
        let times = channels().filter_map(|(channel, fifo)| match participant {
            p if p == fifo.from => Some(self.record.at(channel, At::SenderUs).get()),
            p if p == fifo.to => Some(self.record.at(channel, At::ReceiverUs).get()),
            _ => None,
        });
        let now_us = (now_ns() / 1_000) as u32;
        let ages: Vec<u32> = times.map(|time| now_us.wrapping_sub(time)).collect();
        let (oldest, newest) = (ages.iter().max().context("channels")?, ages.iter().min().context("channels")?);
        Ok((now_us.wrapping_sub(*oldest), now_us.wrapping_sub(*newest)))
    }

    /// Whether every channel of a participant has carried a message of or to its present incarnation.
    fn flows(&self, participant: u16) -> bool {
        let incarnation = self.children.incarnation(participant);
        channels().all(|(channel, fifo)| {
            let at = |what| self.record.at(channel, what).get() == incarnation;
            (fifo.from != participant || at(At::Sender)) && (fifo.to != participant || at(At::Receiver))
        })
    }

    fn is_seen(&mut self, participant: u16) -> bool {
        let who = self.children.who(participant);
        if !self.witness.has_seen(who) {
            self.witness.look(|pid| self.children.of_process(pid));
        }
        self.witness.has_seen(who)
    }

    /// Continues who has been stopped long enough; now and then stops one.
    fn look_after_stops(&mut self, may_begin: bool) -> anyhow::Result<()> {
        match self.stop {
            Some((_, until)) if Instant::now() < until => {}
            Some(_) => self.go_on()?,
            None if may_begin && self.random.u32(0..STOP_EVERY) == 0 => {
                let participant = self.random.u16(0..PARTICIPANTS);
                let lasting = Duration::from_millis(self.random.u64(1..=STOP_MS_MAX));
                self.record.of(participant, Of::Stops).count();
                self.children.signal(participant, Signal::STOP)?;
                self.stop = Some((participant, Instant::now() + lasting));
                self.stops += 1;
            }
            None => {}
        }
        Ok(())
    }

    fn go_on(&mut self) -> anyhow::Result<()> {
        if let Some((participant, _)) = self.stop.take() {
            self.children.signal(participant, Signal::CONT)?;
            self.record.of(participant, Of::Stops).count();
        }
        Ok(())
    }

    /// Has all pause, counts the blocks and draws up the account.
    fn settle(&mut self) -> anyhow::Result<Messages> {
        self.go_on()?;
        let phase = self.record.phase().get() + 1;
        self.record.phase().set(phase);
        let begin = Instant::now();
        while !(0..CHANNELS).all(|channel| self.record.at(channel, At::Checked).get() == phase) {
            self.children.check()?;
            if begin.elapsed() > RECOVERY_TIME_MAX {
                bail!("the system did not come to rest");
            }
            std::thread::sleep(LOOK);
        }
        for (channel, fifo) in channels() {
            let leaked = fifo.blocks - self.record.at(channel, At::Free).get();
            if leaked > 0 {
                eprintln!("channel {}: {leaked} blocks missing after {} kills", fifo.name, self.killed());
            }
            self.leaked += u64::from(leaked);
        }
        let messages = account::of(&self.record, self, self.in_hand);
        self.accounts += 1;
        self.record.phase().set(phase + 1);
        Ok(messages)
    }

    fn outcome(&mut self, messages: Messages, seed: u64) -> anyhow::Result<Outcome> {
        self.record.phase().set(END);
        let statuses = self.children.wait(RECOVERY_TIME_MAX)?;
        let failed_exits = statuses.iter().filter(|status| !status.success()).count() as u64;
        for (channel, fifo) in channels() {
            let sender = self.children.who(fifo.from);
            self.abandoned += u64::from(self.witness.abandoned(channel, sender));
            self.refused += u64::from(self.witness.refused(channel, sender));
        }
        Ok(Outcome {
            seed,
            seconds: self.begin.elapsed().as_secs_f64(),
            kills: self.killed(),
            kills_by_participant: self.kills.to_vec(),
            kills_while_starting: self.again,
            stops: self.stops,
            accounts: self.accounts,
            messages,
            both_dead: 0,
            dequeued_beyond_mark: self.beyond_mark,
            returns_refused: self.refused,
            blocks_abandoned: self.abandoned,
            blocks_leaked: self.leaked,
            calls: account::calls(&self.record),
            lock: account::lock(&self.record),
            recovery: self.recovery.figures(),
            failed_exits,
            left_behind: 0,
        })
    }

    /// Says where the system stands, for a run that failed.
    fn show_state(&self) {
        for (channel, fifo) in channels() {
            let sender = self.children.who(fifo.from);
            let of = |what| self.record.of_incarnation(channel, sender.1, what).get();
            let at = |what| self.record.at(channel, what).get();
            eprintln!(
                "{}: sender {sender:?} committed {} received {} missing {}; last sender seen {} receiver {} of {:?}; \
                 paused {} drained {} checked {} free {}",
                fifo.name,
                of(In::Committed),
                of(In::Received),
                of(In::Missing),
                at(At::Sender),
                at(At::Receiver),
                self.children.who(fifo.to),
                at(At::Paused),
                at(At::Drained),
                at(At::Checked),
                at(At::Free),
            );
        }
    }
}

impl account::Sections for Supervisor {
    fn dropped(&self, channel: u16, incarnation: u32) -> u32 {
        let from = channels().nth(channel.into()).map_or(0, |(_, fifo)| fifo.from);
        let dead = self.dropped.get(&(channel, incarnation)).copied();
        dead.unwrap_or_else(|| self.witness.dropped(channel, (from, incarnation)))
    }

    fn incarnation(&self, participant: u16) -> u32 {
        self.children.incarnation(participant)
    }
}
