//! The Master's bulk work: digests the file that Linux streams, and checks that no message is missing or comes again.
//!
//! What you may rely on: [`Digester::step`] takes one message at most, in pieces of [`PIECE_BYTES`], and lets its caller
//! do something urgent between two pieces. It believes nothing that a message says but its length.

use core::sync::atomic::Ordering;

use blake3::Hasher;
use musubi_core::Error;
use musubi_core::channel::Attachment;
use musubi_mdcom::zerocopy::{FromZeros, IntoBytes};
use musubi_mdcom::{Bytes, Mdcom, Message, OpenError, Receiver, Sender, Wait};

use crate::control::Wishes;
use crate::{ANSWERS, Answer, STREAM, StreamHeader, part};

/// How much is digested at once.
pub const PIECE_BYTES: usize = 1024;
/// Messages that must be queued when a crash was asked for, so that it leaves stale ones behind.
const STALE_MIN: u32 = 4;
/// Bytes of the file in a message before a crash that was asked for.
const CRASH_AFTER_BYTES: u32 = 4 * PIECE_BYTES as u32;

/// The digester.
pub struct Digester<'a, A: Attachment> {
    stream: Receiver<'a, A, Bytes>,
    answers: Sender<'a, A, Answer>,
    wishes: &'a Wishes,
    crash: fn() -> !,
    hasher: Hasher,
    /// What is known of the present sender; `sender` is 0 before the first message.
    account: Answer,
    /// Whether the present pass was seen from its begin.
    is_whole: bool,
    piece: [u8; PIECE_BYTES],
}

impl<'a, A: Attachment> Digester<'a, A> {
    /// Opens the channels. `incarnation` is the participant's epoch; `crash` ends this incarnation.
    ///
    /// # Errors
    /// What the port says of the channels.
    pub fn new(
        attachment: &'a A,
        incarnation: u32,
        wishes: &'a Wishes,
        crash: fn() -> !,
    ) -> Result<Self, OpenError<A::Error>> {
        let mdcom = Mdcom::init(attachment);
        Ok(Digester {
            stream: mdcom.receiver(STREAM)?,
            answers: mdcom.sender_of(ANSWERS)?,
            wishes,
            crash,
            hasher: Hasher::new(),
            account: Answer { incarnation, ..Answer::default() },
            is_whole: false,
            piece: [0; PIECE_BYTES],
        })
    }

    /// Waits for a message as long as `wait` says, and digests it; `between` is called between two pieces.
    pub fn step(&mut self, wait: Wait, between: &mut impl FnMut()) {
        let crash = self.wishes.crash.load(Ordering::Relaxed).then_some(self.crash);
        if crash.is_some() && self.stream.sense().queued < STALE_MIN {
            return between();
        }
        let message = match self.stream.next(wait) {
            Ok(message) => message,
            // Nothing has come, or Linux has gone: the loop does not need it.
            Err(_) => return,
        };
        let mut header = StreamHeader::new_zeroed();
        if message.copy_to(0, header.as_mut_bytes()) != size_of::<StreamHeader>() {
            return;
        }
        let former = enter(&mut self.account, &header);
        if header.part == part::FIRST {
            self.hasher.reset();
            (self.is_whole, self.account.bytes) = (true, 0);
        }
        self.account.stale += u64::from(!self.is_whole);
        let crash = crash.filter(|_| header.part == part::MIDDLE);
        self.account.bytes += digest(&message, &mut self.hasher, &mut self.piece, crash, between);
        message.free();
        if let Some(former) = former {
            self.answer(former);
        }
        if header.part == part::LAST && self.is_whole {
            self.account.digest = *self.hasher.finalize().as_bytes();
            self.answer(Answer { pass: u32::from(header.pass), whole: 1, ..self.account });
        }
    }

    /// Sends an answer if there is room; there is, unless Linux has not looked for many passes.
    fn answer(&self, answer: Answer) {
        if self.answers.send(answer, Wait::Poll) == Err(Error::PeerGone) {
            let _ = self.answers.send(answer, Wait::Poll);
        }
    }
}

/// Takes a message into the account; gives the account of the former sender if this is the first of another.
fn enter(account: &mut Answer, header: &StreamHeader) -> Option<Answer> {
    let mut former = None;
    if header.sender != account.sender {
        former = (account.sender != 0).then_some(Answer { whole: 0, digest: [0; 32], ..*account });
        let incarnation = account.incarnation;
        let first_sequence = header.sequence;
        *account = Answer { incarnation, sender: header.sender, first_sequence, ..Answer::default() };
    }
    let expected = account.first_sequence + account.messages + u64::from(account.gaps) - u64::from(account.repeated);
    match header.sequence.checked_sub(expected) {
        Some(missing) => account.gaps = account.gaps.saturating_add(u32::try_from(missing).unwrap_or(u32::MAX)),
        None => account.repeated = account.repeated.saturating_add(1),
    }
    account.messages += 1;
    former
}

/// Digests what follows the header; gives how many bytes that were.
fn digest<E: musubi_core::channel::ReceivingEnd>(
    message: &Message<'_, E, Bytes>,
    hasher: &mut Hasher,
    piece: &mut [u8; PIECE_BYTES],
    crash: Option<fn() -> !>,
    between: &mut impl FnMut(),
) -> u64 {
    let begin = size_of::<StreamHeader>() as u32;
    let mut at = begin;
    while at < message.len() {
        let count = message.copy_to(at, piece);
        hasher.update(&piece[..count]);
        at += count as u32;
        if let Some(crash) = crash
            && at - begin >= CRASH_AFTER_BYTES
        {
            crash();
        }
        between();
    }
    u64::from(at - begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::vec::Vec;

    fn account(messages: &[(u32, u64)]) -> (Answer, Vec<Answer>) {
        let mut account = Answer { incarnation: 2, ..Answer::default() };
        let header = |&(sender, sequence)| StreamHeader { sequence, sender, pass: 0, part: part::MIDDLE };
        let former = messages.iter().filter_map(|message| enter(&mut account, &header(message))).collect();
        (account, former)
    }

    #[test]
    fn missing_and_repeated_messages_are_found() {
        let (all, former) = account(&[(7, 4), (7, 5), (7, 6)]);
        assert_eq!((all.first_sequence, all.messages, all.gaps, all.repeated), (4, 3, 0, 0));
        assert!(former.is_empty());
        let (missing, _) = account(&[(7, 4), (7, 7), (7, 8)]);
        assert_eq!((missing.messages, missing.gaps, missing.repeated), (3, 2, 0));
        let (repeated, _) = account(&[(7, 4), (7, 4), (7, 5), (7, 6)]);
        assert_eq!((repeated.messages, repeated.gaps, repeated.repeated), (4, 0, 1));
    }

    #[test]
    fn another_sender_closes_the_account_of_the_former() {
        let (present, former) = account(&[(7, 4), (7, 5), (9, 0)]);
        assert_eq!((present.sender, present.first_sequence, present.messages), (9, 0, 1));
        assert_eq!(former.len(), 1);
        assert_eq!((former[0].sender, former[0].messages, former[0].whole, former[0].incarnation), (7, 2, 0, 2));
    }
}
