//! A NIC whose program ends in the middle, and begins anew.

use musubi_vipl::over::NicNode;

use crate::stream::{Account, Stream};
use crate::{Failure, Part, ensure};

/// Messages of each level that the first life completes at least, and that the second one sends.
const FIRST: u32 = 60;
const SECOND: u32 = 40;

/// Sends numbered messages at each reliable level, and writes between them, to the partner, who is in [`outlive`]; `hear` is told the level of
/// each message that has completed and how many those were. Until it says no: then this life is over, whatever is under way.
///
/// # Errors
/// If the partner does not take them.
pub fn die<R: NicNode>(part: &mut Part<'_, R>, hear: impl FnMut(usize, u32) -> bool) -> Result<(), Failure> {
    Stream::new(part)?.send(part, hear).map(|_| ())
}

/// The life after [`die`]: hears the partner's account of the former one, of which `completed` messages of each level had
/// completed; sends some more and hears the account of that. Both are given.
///
/// # Errors
/// If anything of it was lost, or the partner does not connect again.
pub fn live_on<R: NicNode>(part: &mut Part<'_, R>, completed: [u32; 2]) -> Result<[Account; 2], Failure> {
    let former = hear(part)?;
    ensure!(former.lost(completed) == 0, "what had completed was received");
    ensure!(former.stray() == 0, "every descriptor of the partner's came back, in its turn");
    let stream = Stream::new(part)?;
    let mut counts = [0; 2];
    let completed = stream.send(part, |level, count| {
        counts[level] = count;
        counts.iter().any(|count| *count < SECOND)
    })?;
    stream.disconnect(part)?;
    stream.destroy(part)?;
    let latter = hear(part)?;
    ensure!(latter.lost(completed) == 0 && latter.stray() == 0, "nor is anything of the second stream lost");
    Ok([former, latter])
}

fn hear<R: NicNode>(part: &mut Part<'_, R>) -> Result<Account, Failure> {
    let account = Account::read(&part.exchange(&[])?);
    account.ok_or(Failure { file: file!(), line: line!(), expected: "the partner's account", found: None })
}

/// The part of who lives on while the partner ends in the middle, in [`die`], and begins anew: an account of each life. The same VIs
/// serve both.
///
/// # Errors
/// If the partner does not come, or what it broke does not come back in order.
pub fn outlive<R: NicNode>(part: &mut Part<'_, R>) -> Result<[Account; 2], Failure> {
    let stream = Stream::new(part)?;
    let former = stream.receive(part)?;
    stream.disconnect(part)?;
    part.leave_meeting()?;
    part.connect_meeting()?;
    part.exchange(&former.bytes())?;
    let latter = stream.receive(part)?;
    stream.disconnect(part)?;
    stream.destroy(part)?;
    part.exchange(&latter.bytes())?;
    for account in [&former, &latter] {
        ensure!(account.stray() == 0, "every descriptor comes back, in its turn");
        ensure!(account.0.iter().all(|one| one.told == 1 && one.flushed > 0), "each loss is told once, and flushes");
    }
    Ok([former, latter])
}

pub fn who_dies_in_the_middle_has_lost_nothing<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    if part.serves() {
        return outlive(part).map(|_| ());
    }
    let mut completed = [0; 2];
    die(part, |level, count| {
        completed[level] = count;
        completed.iter().any(|count| *count < FIRST)
    })?;
    part.begin_anew()?;
    live_on(part, completed).map(|_| ())
}
