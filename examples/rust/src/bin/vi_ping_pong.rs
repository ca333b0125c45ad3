//! One message to and fro between two VIs, waited for in the calling thread.
//!
//! Shows: receives posted before they are needed; a region that goes to the VI and comes back with each completion, so that two
//! regions last for all turns.
#![forbid(unsafe_code)]

use musubi_examples::soon;
use musubi_examples::vi::{self, Ending, ViArguments, check};
use musubi_vipl::owned::process::Nic;
use musubi_vipl::owned::{ViOptions, Work};

const NAME: &[u8] = b"example ping-pong";

fn main() -> Ending {
    vi::run("Sends a message to and fro.", 10_000, 64, role)
}

fn role(nic: &Nic, arguments: &ViArguments) -> Ending {
    let ViArguments { is_server, count, bytes, .. } = *arguments;
    let mut vi = nic.vi(ViOptions { message_bytes_max: u32::try_from(bytes)?, ..ViOptions::default() })?;
    vi.receives().post(nic.region(bytes)?)?;
    let mut vi = match is_server {
        true => vi::accept(&mut nic.listen(NAME)?, vi)?,
        false => vi::connect(nic, arguments, NAME, vi)?,
    };
    let (sends, receives) = vi.queues();
    let mut region = nic.region(bytes)?;
    for turn in 0..count {
        if !is_server {
            region.iter_mut().zip(pattern(turn)).for_each(|(byte, value)| *byte = value);
            sends.post(Work::send(region))?;
            region = sends.completed().wait(soon())?.done()?.region;
        }
        let came = receives.completed().wait(soon())?.done()?;
        let is_right = came.bytes == bytes && came.region.iter().copied().eq(pattern(turn).take(bytes));
        check(is_right, || format!("turn {turn}: not what was sent; are --count and --bytes alike at both?"))?;
        region.copy_from_slice(&came.region);
        // Before the answer, so that what follows it finds a receive.
        receives.post(came.region)?;
        if is_server {
            sends.post(Work::send(region))?;
            region = sends.completed().wait(soon())?.done()?.region;
        }
    }
    println!("{count} turns of {bytes} bytes, all as they were sent");
    if !is_server {
        // The server has sent last, so it ends the connection.
        vi.ended().wait(soon())?;
    }
    Ok(())
}

/// What the message of a turn has.
fn pattern(turn: usize) -> impl Iterator<Item = u8> {
    (0_usize..).map(move |place| (turn * 31 + place) as u8)
}
