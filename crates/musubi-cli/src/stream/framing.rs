//! What a message means to the receiver of a stream: part of a mark, bytes of the stream, or none of its business.
//!
//! What you may rely on: a stream is what one incarnation of the sender sent between the two marks that name it. Messages
//! of any other incarnation neither continue nor end it, wherever in it the sender died.
//!
//! How it works: a state machine without I/O. Each message comes with whose it is, which the port knows by itself; what
//! the marks say is a claim that must agree with it. The end of a stream whose beginning another receiver took is skipped.

use musubi_linux::Counterpart;

use super::mark::{Kind, MARK_BYTES, Mark, StreamId};

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is part of a mark.
    Skip,
    /// The stream begins with the next message.
    Begin,
    /// Its bytes are the stream's next ones.
    Payload,
    /// The stream is whole.
    End,
}

/// Why a stream cannot be received, or not any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not what `musubi send` sends, or the middle of it.
    NoStream,
    /// Another sender's message came before the end.
    Lost,
}

/// What has come so far.
#[derive(Debug, Default)]
pub struct Framing {
    stream: Option<(Counterpart, StreamId)>,
    /// A mark that has begun: whose, its bytes, and how many of them have come.
    mark: Option<(Counterpart, [u8; MARK_BYTES], usize)>,
}

impl Framing {
    /// Who sends the stream that has begun.
    pub fn sender(&self) -> Option<Counterpart> {
        self.stream.map(|(sender, _)| sender)
    }

    /// Takes a message of so many bytes; `head` are the first of them, all of a message that is part of a mark.
    ///
    /// # Errors
    /// [`Fault`]; nothing more can be received then.
    pub fn take(&mut self, from: Counterpart, bytes: u32, head: &[u8]) -> Result<Step, Fault> {
        if self.sender().is_some_and(|sender| sender != from) {
            return Err(Fault::Lost);
        }
        // A mark that a sender left unfinished before its stream began went with it.
        let mark = self.mark.take().filter(|(of, ..)| *of == from);
        match (mark, bytes) {
            (None, 0) => {
                self.mark = Some((from, [0; MARK_BYTES], 0));
                Ok(Step::Skip)
            }
            (None, _) => {
                if self.stream.is_some() {
                    Ok(Step::Payload)
                } else {
                    Err(Fault::NoStream)
                }
            }
            (Some((_, into, filled)), _) => self.go_on(from, bytes, head, (into, filled)),
        }
    }

    /// Takes the next bytes of a mark.
    fn go_on(
        &mut self,
        from: Counterpart,
        bytes: u32,
        head: &[u8],
        (mut mark, filled): ([u8; MARK_BYTES], usize),
    ) -> Result<Step, Fault> {
        let end = filled + bytes as usize;
        let room = mark.get_mut(filled..end).filter(|room| !room.is_empty()).ok_or(Fault::NoStream)?;
        room.copy_from_slice(head.get(..bytes as usize).ok_or(Fault::NoStream)?);
        if end < MARK_BYTES {
            self.mark = Some((from, mark, end));
            return Ok(Step::Skip);
        }
        let mark = Mark::from_bytes(mark).filter(|mark| mark.stream.epoch == from.epoch).ok_or(Fault::NoStream)?;
        match (mark.kind, self.stream) {
            (Kind::Begin, None) => {
                self.stream = Some((from, mark.stream));
                Ok(Step::Begin)
            }
            (Kind::End, Some((_, stream))) if stream == mark.stream => Ok(Step::End),
            (Kind::End, None) => Ok(Step::Skip),
            _ => Err(Fault::NoStream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(epoch: u32) -> Counterpart {
        Counterpart { participant: 1, epoch, serial: 1 }
    }

    /// A whole stream of a sender, as messages of at most `block` bytes.
    fn stream(epoch: u32, block: usize, payload: &[u8]) -> Vec<Vec<u8>> {
        let id = StreamId { epoch, number: 1 };
        let mark = |kind| {
            let bytes = Mark { kind, stream: id }.to_bytes();
            std::iter::once(Vec::new()).chain(bytes.chunks(block).map(<[u8]>::to_vec).collect::<Vec<_>>())
        };
        mark(Kind::Begin).chain(payload.chunks(block).map(<[u8]>::to_vec)).chain(mark(Kind::End)).collect()
    }

    /// Takes messages until the end or a fault; gives the payload too.
    fn receive(messages: impl IntoIterator<Item = (Counterpart, Vec<u8>)>) -> (Option<Result<(), Fault>>, Vec<u8>) {
        let (mut framing, mut payload) = (Framing::default(), Vec::new());
        for (from, message) in messages {
            match framing.take(from, message.len() as u32, &message[..message.len().min(MARK_BYTES)]) {
                Ok(Step::Payload) => payload.extend(message),
                Ok(Step::Skip | Step::Begin) => {}
                Ok(Step::End) => return (Some(Ok(())), payload),
                Err(fault) => return (Some(Err(fault)), payload),
            }
        }
        (None, payload)
    }

    fn of(epoch: u32, messages: Vec<Vec<u8>>) -> impl Iterator<Item = (Counterpart, Vec<u8>)> {
        messages.into_iter().map(move |message| (sender(epoch), message))
    }

    #[test]
    fn a_stream_is_received_whatever_the_size_of_blocks() {
        for block in [1, 2, 3, 16, 17, 100] {
            for bytes in [0, 1, 5, 99] {
                let payload: Vec<u8> = (0..bytes).collect();
                let (done, got) = receive(of(7, stream(7, block, &payload)));
                assert_eq!((done, got), (Some(Ok(())), payload), "blocks of {block}");
            }
        }
    }

    /// The sender dies at each step, and its successor's whole stream follows: either the successor's stream arrives
    /// whole, or the loss is seen. Never is a part of one taken for the other, and never is a part taken for a whole.
    #[test]
    fn no_mark_of_a_successor_ends_a_stream() {
        for block in [1, 3, 16, 64] {
            let (first, second) = (stream(7, block, b"first stream"), stream(8, block, b"second"));
            // Without its last message: with it the first stream is whole.
            for died_after in 0..first.len() {
                let messages = of(7, first[..died_after].to_vec()).chain(of(8, second.clone()));
                let begun = died_after > MARK_BYTES.div_ceil(block);
                let (done, got) = receive(messages);
                if begun {
                    assert_eq!(done, Some(Err(Fault::Lost)), "{died_after} of blocks of {block}");
                    assert!(b"first stream".starts_with(&got[..]));
                } else {
                    assert_eq!((done, &got[..]), (Some(Ok(())), &b"second"[..]), "{died_after} of blocks of {block}");
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_stream_that_another_received_is_skipped() {
        for block in [1, 16] {
            let whole = stream(7, block, b"");
            let rest = whole[whole.len() / 2..].to_vec();
            let (done, got) = receive(of(7, rest).chain(of(8, stream(8, block, b"next"))));
            assert_eq!((done, &got[..]), (Some(Ok(())), &b"next"[..]));
        }
    }

    #[test]
    fn messages_of_programs_are_no_stream() {
        assert_eq!(receive(of(1, vec![b"hello".to_vec()])).0, Some(Err(Fault::NoStream)));
        assert_eq!(
            receive(of(1, vec![vec![], b"hello".to_vec(), b"hello, hello".to_vec()])).0,
            Some(Err(Fault::NoStream))
        );
        assert_eq!(receive(of(1, vec![vec![], vec![]])).0, Some(Err(Fault::NoStream)));
        // A mark that claims to be another incarnation's.
        assert_eq!(receive(of(2, stream(1, 16, b"x"))).0, Some(Err(Fault::NoStream)));
        // A second beginning.
        let mut messages = stream(1, 16, b"x");
        messages.truncate(3);
        messages.extend(stream(1, 16, b"x"));
        assert_eq!(receive(of(1, messages)).0, Some(Err(Fault::NoStream)));
    }

    /// Whatever messages come, of whomever: no panic, and a stream ends only by its own sender's mark.
    #[test]
    fn rubbish_of_many_seeds_ends_nothing() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..2_000 {
            let begin = stream(7, 16, b"")[..2].to_vec();
            let rubbish: Vec<_> = (0..20)
                .map(|_| match random(4) {
                    0 => (sender(8), vec![]),
                    1 => (sender(7), stream(8, 16, b"")[random(4) as usize].clone()),
                    2 => (sender(7), vec![random(256) as u8; random(40) as usize]),
                    _ => (sender(7), vec![]),
                })
                .collect();
            assert_ne!(receive(of(7, begin).chain(rubbish)).0, Some(Ok(())));
        }
    }
}
