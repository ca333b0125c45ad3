//! Streams the file, pass after pass, and compares the Master's digest with its own.
//!
//! What you may rely on: a pass that the Master's restart interrupts begins anew, from the file's begin; no message of
//! the former pass is sent again.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use blake3::Hasher;
use musubi_core::Error;
use musubi_core::mapped;
use musubi_linux::uio::{Participant, ProcessHost};
use musubi_mdcom::{Block, Bytes, Mdcom, Receiver, Sender, Wait};
use zcu102_demo::{ANSWERS, Answer, STREAM, StreamHeader, part};
use zcu102_linux::{ANSWERED, Answered, FILE, Journal};
use zerocopy::IntoBytes;

use crate::{PATIENCE, Seen};

type Attachment = mapped::Participant<'static, ProcessHost>;
type StreamBlock<'s> = Block<'s, mapped::SendingEnd<'static, ProcessHost>, Bytes>;

/// Longest wait for an answer before looking whether the Master has restarted.
const LOOK: Duration = Duration::from_millis(200);

/// What became of a pass.
enum Pass {
    Whole,
    Interrupted,
}

/// The stream and what it has come to.
pub struct Pump<'a> {
    participant: &'a Participant,
    seen: &'a Seen,
    /// Incarnation of the Master for which the present pass was begun.
    master: u32,
    stream: Sender<'a, Attachment, Bytes>,
    answers: Receiver<'a, Attachment, Answer>,
    journal: Journal<Answered>,
    sequence: u64,
    pass: u16,
    whole: u32,
    interrupted: u32,
}

impl<'a> Pump<'a> {
    /// Opens the channels.
    pub fn new(participant: &'a Participant, seen: &'a Seen) -> Result<Pump<'a>> {
        let mdcom = Mdcom::init(&**participant);
        Ok(Pump {
            participant,
            seen,
            master: 0,
            stream: mdcom.sender(STREAM).context("opening the stream")?,
            answers: mdcom.receiver_of(ANSWERS).context("opening the answers")?,
            journal: Journal::open(ANSWERED)?,
            sequence: 0,
            pass: 0,
            whole: 0,
            interrupted: 0,
        })
    }

    /// Passes that were answered.
    pub fn whole_passes(&self) -> u32 {
        self.whole
    }

    /// Passes that the Master's restart ended.
    pub fn interrupted(&self) -> u32 {
        self.interrupted
    }

    /// One pass over the file; `progress` is told the bytes sent and the bytes of the file.
    pub fn pass(&mut self, progress: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        match self.try_pass(progress)? {
            Pass::Whole => self.whole += 1,
            Pass::Interrupted => {
                println!("remote: pass {} was interrupted; the file is streamed anew", self.pass);
                self.interrupted += 1;
            }
        }
        self.pass += 1;
        Ok(())
    }

    fn try_pass(&mut self, mut progress: impl FnMut(u64, u64) -> Result<()>) -> Result<Pass> {
        let mut file = File::open(FILE).with_context(|| format!("opening {FILE}"))?;
        let all_bytes = file.metadata()?.len();
        let (mut hasher, mut bytes) = (Hasher::new(), 0);
        self.master = self.present_master();
        loop {
            let Some(mut block) = self.block()? else { return self.interrupt() };
            let room = &mut block[size_of::<StreamHeader>()..];
            let count = file.read(room).context("reading the file")?;
            hasher.update(&room[..count]);
            let part = match (bytes, count) {
                (_, 0) => part::LAST,
                (0, _) => part::FIRST,
                _ => part::MIDDLE,
            };
            let header =
                StreamHeader { sequence: self.sequence, sender: self.participant.epoch(), pass: self.pass, part };
            block[..size_of::<StreamHeader>()].copy_from_slice(header.as_bytes());
            let length = (size_of::<StreamHeader>() + count) as u32;
            block.enqueue(length).map_err(|rejected| rejected.error).context("sending a block")?;
            self.stream.notify();
            self.sequence += 1;
            bytes += count as u64;
            if part == part::LAST {
                break;
            }
            progress(bytes, all_bytes)?;
        }
        self.compare(bytes, *hasher.finalize().as_bytes())
    }

    /// A block to fill; `None` if the Master has restarted.
    fn block(&self) -> Result<Option<StreamBlock<'_>>> {
        match self.stream.alloc(Wait::For(PATIENCE)) {
            // Who does not have to wait is not told; telemetry tells.
            Ok(_) if self.has_restarted() => Ok(None),
            Ok(block) => Ok(Some(block)),
            Err(Error::PeerGone) => Ok(None),
            Err(Error::Timeout) => bail!("the Master has taken no block for {} s", PATIENCE.as_secs()),
            Err(error) => Err(error).context("waiting for a block"),
        }
    }

    /// The Master has restarted: takes what its former incarnation has answered, and the same news of the answers' channel;
    /// waits for telemetry of the successor, so that the next pass is for that one.
    fn interrupt(&mut self) -> Result<Pass> {
        while let Ok(answer) = self.answers.recv(Wait::Poll) {
            self.record(answer, (0, [0; 32]))?;
        }
        let begin = Instant::now();
        while !self.has_restarted() && begin.elapsed() < PATIENCE {
            std::thread::sleep(LOOK / 20);
        }
        Ok(Pass::Interrupted)
    }

    /// Records an answer; gives whether it is equal to what was sent.
    fn record(&mut self, answer: Answer, (bytes, digest): (u64, [u8; 32])) -> Result<()> {
        let equal = u32::from(answer.digest == digest && answer.bytes == bytes);
        self.journal.add(&Answered { answer, sent_bytes: bytes, equal, reader: self.participant.epoch() })
    }

    fn compare(&mut self, bytes: u64, digest: [u8; 32]) -> Result<Pass> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let answer = match self.answers.recv(Wait::For(LOOK)) {
                Ok(answer) => answer,
                // The news may be of a restart that the stream has told already.
                Err(Error::PeerGone | Error::Timeout) if self.has_restarted() => return self.interrupt(),
                Err(Error::PeerGone | Error::Timeout) => continue,
                Err(error) => return Err(error).context("waiting for an answer"),
            };
            let is_ours = answer.sender == self.participant.epoch() && answer.pass == u32::from(self.pass);
            self.record(answer, (bytes, digest))?;
            // Else it is what became of our predecessor.
            if is_ours && answer.whole == 1 {
                return Ok(Pass::Whole);
            }
        }
        bail!("the Master has not answered for {} s", PATIENCE.as_secs())
    }

    /// Whether the Master is another than when the pass was begun.
    fn has_restarted(&self) -> bool {
        self.present_master() != self.master
    }

    fn present_master(&self) -> u32 {
        self.seen.incarnation.load(Ordering::Relaxed)
    }
}
