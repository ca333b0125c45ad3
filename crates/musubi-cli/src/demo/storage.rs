//! Storage: streams a file to control, again and again, and compares control's digest with its own.
//!
//! How it works: the file is read straight into the channel's blocks. An empty message ends a pass; the answer is the
//! digest of what arrived. Asked to finish, it ends the pass early unless it is the first; the digests are then of the
//! part that was sent.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use musubi_core::Error;
use musubi_linux::Participant;
use musubi_linux::clock::now_ns;
use musubi_mdcom::{Block, Bytes, Mdcom, Receiver, Sender, Wait};
use serde::{Deserialize, Serialize};

use super::leash::{Leash, Request};
use super::say;
use super::system::{ANSWERS, Answer, STREAM, attach};

/// Longest wait before looking whether the launcher asks to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long control may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How often progress is told, in nanoseconds.
const TELL_PERIOD_NS: u64 = 50_000_000;
/// Bulk work gives way to telemetry.
pub const BULK_NICENESS: i32 = 10;

/// What storage tells the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum StorageSays {
    /// Bytes sent until an instant.
    Progress(Progress),
    /// The end.
    Ended(StorageEnd),
}

/// Bytes sent until an instant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// The instant, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Bytes since the start.
    pub bytes: u64,
}

/// What storage did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StorageEnd {
    /// Bytes sent.
    pub bytes: u64,
    /// Time from the first byte to the last answer, in nanoseconds.
    pub elapsed_ns: u64,
    /// Passes that were answered, the last perhaps cut short.
    pub passes: u64,
    /// Passes over the whole file.
    pub whole_passes: u64,
    /// Passes whose digest or length differed.
    pub differing: u64,
    /// Digest of the first pass, as text.
    pub digest: String,
}

/// Streams until asked to finish.
pub fn run(instance: &str, file: &Path, leash: &Leash) -> anyhow::Result<()> {
    let _ = rustix::process::setpriority_process(None, BULK_NICENESS);
    let mut source = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let participant = attach("storage", instance)?;
    let mdcom = Mdcom::init(&participant);
    let mut pump = Pump {
        stream: mdcom.sender(STREAM)?,
        answers: mdcom.receiver_of(ANSWERS)?,
        leash,
        begin_ns: now_ns(),
        told_ns: 0,
        end: StorageEnd::default(),
    };
    while pump.wants_another_pass() {
        std::io::Seek::rewind(&mut source).context("going back to the file's start")?;
        pump.pass(&mut source)?;
    }
    pump.tell()?;
    say(&StorageSays::Ended(pump.end))
}

struct Pump<'a> {
    stream: Sender<'a, Participant, Bytes>,
    answers: Receiver<'a, Participant, Answer>,
    leash: &'a Leash,
    begin_ns: u64,
    told_ns: u64,
    end: StorageEnd,
}

type StreamBlock<'s> = Block<'s, musubi_linux::SendingEnd, Bytes>;

impl Pump<'_> {
    fn wants_another_pass(&self) -> bool {
        match self.leash.request() {
            Request::GoOn => true,
            Request::Finish => self.end.whole_passes == 0,
            Request::Stop => false,
        }
    }

    /// One pass over the file.
    fn pass(&mut self, source: &mut File) -> anyhow::Result<()> {
        let mut hasher = blake3::Hasher::new();
        let (mut bytes, mut is_whole) = (0, false);
        while self.wants_another_pass() {
            let mut block = self.block()?;
            let count = source.read(&mut block).context("reading the file")?;
            if count == 0 {
                is_whole = true;
                break;
            }
            hasher.update(&block[..count]);
            block.enqueue(count as u32).map_err(|rejected| rejected.error).context("sending a block")?;
            self.stream.notify();
            bytes += count as u64;
            self.end.bytes += count as u64;
            self.tell_now_and_then()?;
        }
        self.block()?.enqueue(0).map_err(|rejected| rejected.error).context("ending a pass")?;
        self.stream.notify();
        self.compare(bytes, *hasher.finalize().as_bytes())?;
        self.end.whole_passes += u64::from(is_whole);
        Ok(())
    }

    /// A block to fill; waits while control has not given one back.
    fn block(&self) -> anyhow::Result<StreamBlock<'_>> {
        match self.stream.alloc(Wait::For(ANSWER_WAIT)) {
            Ok(block) => Ok(block),
            Err(Error::Timeout) => bail!("control has taken no block for {} s", ANSWER_WAIT.as_secs()),
            Err(error) => Err(error).context("waiting for a block"),
        }
    }

    fn compare(&mut self, bytes: u64, digest: [u8; 32]) -> anyhow::Result<()> {
        let answer = self.answers.recv(Wait::For(ANSWER_WAIT)).context("waiting for control's digest")?;
        let is_equal = answer.digest == digest && answer.bytes == bytes && answer.pass == self.end.passes;
        if self.end.passes == 0 {
            self.end.digest = blake3::Hash::from_bytes(digest).to_hex().to_string();
        }
        self.end.passes += 1;
        self.end.differing += u64::from(!is_equal);
        self.end.elapsed_ns = now_ns() - self.begin_ns;
        Ok(())
    }

    fn tell_now_and_then(&mut self) -> anyhow::Result<()> {
        if now_ns() < self.told_ns + TELL_PERIOD_NS { Ok(()) } else { self.tell() }
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        self.told_ns = now_ns();
        say(&StorageSays::Progress(Progress { at_ns: self.told_ns, bytes: self.end.bytes }))
    }
}

/// Control's side of it: digests what arrives and answers, until asked to stop.
pub fn digest_stream(participant: &Participant, leash: &Leash) -> anyhow::Result<()> {
    let mdcom = Mdcom::init(participant);
    let stream = mdcom.receiver(STREAM)?;
    let answers = mdcom.sender_of::<Answer>(ANSWERS)?;
    let (mut hasher, mut bytes, mut pass) = (blake3::Hasher::new(), 0, 0);
    let mut buffer = vec![0; stream.block_bytes() as usize];
    while leash.request() != Request::Stop {
        let message = match stream.next(Wait::For(LOOK)) {
            Ok(message) => message,
            // Storage is done, or not there yet; control does not need it.
            Err(Error::Timeout | Error::PeerGone) => continue,
            Err(error) => return Err(error).context("receiving the stream"),
        };
        let part = message.read_into(&mut buffer)?;
        hasher.update(part);
        bytes += part.len() as u64;
        if part.is_empty() {
            let digest = *hasher.finalize().as_bytes();
            answers.send(Answer { bytes, pass, digest }, Wait::For(ANSWER_WAIT)).context("answering storage")?;
            hasher.reset();
            (bytes, pass) = (0, pass + 1);
        }
    }
    Ok(())
}
