//! Nodes that end and begin anew.

use musubi_mcapi::Error;
use musubi_mcapi::over::Running;

use crate::part::Ends;
use crate::{Failure, Part, ensure, have};

pub fn who_leaves_is_told_of_and_comes_back<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    ends_and_comes_back(part, true)
}

pub fn who_dies_is_told_of_when_it_comes_back<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    ends_and_comes_back(part, false)
}

/// The receiving node ends, with a packet unread and a message sent, and begins anew.
fn ends_and_comes_back<R: Running>(part: &mut Part<'_, R>, leaves: bool) -> Result<(), Failure> {
    let mine = part.endpoint(1)?;
    let theirs = part.of(part.partner(), 1)?;
    match part.packets(0)? {
        Ends::Sending(sender) => {
            have!(sender.send(b"never read", part.soon()), "a packet goes out");
            part.meet()?;
            let last = have!(mine.receive(part.soon()), "what was committed before the end comes");
            ensure!(last.to_vec() == b"last words", "as it was sent");
            let lost = loop {
                match sender.send(b"into the void", part.soon()) {
                    Ok(()) => (),
                    Err(error) => break error,
                }
            };
            ensure!(lost == Error::Transmission || lost == Error::ChannelInvalid, "the channel has broken");
            drop(sender);
        }
        Ends::Receiving(receiver) => {
            part.meet()?;
            have!(mine.send(&theirs, 0, b"last words", part.soon()), "a message goes out");
            // As a reset: nothing of the former run is ended by itself.
            core::mem::forget((receiver, mine, theirs));
            part.begin_anew(leaves)?;
            let (mine, theirs) = (part.endpoint(2)?, part.of(part.partner(), 2)?);
            have!(mine.send(&theirs, 0, b"back again", part.soon()), "the new run sends");
            return part.meet();
        }
    }
    let again = part.endpoint(2)?;
    let message = have!(again.receive(part.soon()), "the new run is met");
    ensure!(message.to_vec() == b"back again", "and what it sends comes");
    part.meet()?;
    let stale = mine.send(&theirs, 0, b"to the former run", part.soon());
    ensure!(stale == Err(Error::EndpointInvalid) || stale == Ok(()), "a former name reaches nobody");
    Ok(())
}
