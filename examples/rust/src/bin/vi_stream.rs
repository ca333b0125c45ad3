//! A stream with many posted descriptors, awaited: the client's sends, and the server's credits, at the same time.
//!
//! Shows: futures of both queues of a VI in one task, under any executor; credits, as a message that finds no receive breaks a
//! reliable connection; immediate words; regions that go round.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use musubi_examples::PATIENCE;
use musubi_examples::vi::{self, Ending, ViArguments, check};
use musubi_vipl::owned::process::{Nic, OwnRegion, ReceiveQueue, SendQueue};
use musubi_vipl::owned::{ViFailure, ViOptions, Work};

/// Receives that are posted, and messages that may be under way. A credit is half of them.
const POSTED: usize = 32;
const CREDIT: usize = POSTED / 2;
/// Receives for credits: more than can be under way.
const CREDIT_RECEIVES: usize = 4;
const NAME: &[u8] = b"example stream";

fn main() -> Ending {
    vi::run("Sends a stream with many posted descriptors.", 10_000, 4096, role)
}

fn role(nic: &Nic, arguments: &ViArguments) -> Ending {
    let ViArguments { is_server, count, bytes, .. } = *arguments;
    let mut vi = nic.vi(ViOptions { message_bytes_max: u32::try_from(bytes)?, ..ViOptions::default() })?;
    let (receives, length) = if is_server { (POSTED, bytes) } else { (CREDIT_RECEIVES, 1) };
    for _ in 0..receives {
        vi.receives().post(nic.region(length)?)?;
    }
    let mut vi = match is_server {
        true => vi::accept(&mut nic.listen(NAME)?, vi)?,
        false => vi::connect(nic, arguments, NAME, vi)?,
    };
    let (sends, receives) = vi.queues();
    let sum = pollster::block_on(async {
        match is_server {
            true => serve(nic, sends, receives, arguments).await,
            false => ask(nic, sends, receives, arguments).await,
        }
    })?;
    println!("{count} messages of {bytes} bytes, checksum {sum:08x}");
    if !is_server {
        pollster::block_on(vi.ended().within(PATIENCE))?;
    }
    Ok(())
}

type Sum = Result<u32, Box<dyn std::error::Error>>;

/// Takes all messages; gives a credit for each [`CREDIT`] receives that are posted again, and the checksum at the end.
async fn serve(nic: &Nic, sends: &mut SendQueue, receives: &mut ReceiveQueue, arguments: &ViArguments) -> Sum {
    let mut sum = 0;
    for number in 0..arguments.count {
        let came = receives.completed().within(PATIENCE).await?.done()?;
        let is_next = came.immediate == Some(number as u32) && came.bytes == arguments.bytes;
        check(is_next, || {
            format!("message {number}: number or length is wrong; are --count and --bytes alike at both?")
        })?;
        sum = sum_of(sum, &came.region);
        receives.post(came.region)?;
        if (number + 1) % CREDIT == 0 {
            say(nic, sends, number as u32 + 1).await?;
        }
    }
    say(nic, sends, sum).await?;
    Ok(sum)
}

/// Sends a word without a message.
async fn say(nic: &Nic, sends: &mut SendQueue, word: u32) -> Result<(), ViFailure> {
    sends.post(Work::send(nic.region(1)?).part(0..0).immediate(word))?;
    sends.completed().within(PATIENCE).await?.done().map(|_| ())
}

/// Takes a word of the server.
async fn hear(receives: &mut ReceiveQueue) -> Result<u32, Box<dyn std::error::Error>> {
    let came = receives.completed().within(PATIENCE).await?.done()?;
    let word = came.immediate.ok_or("a message without a word")?;
    receives.post(came.region)?;
    Ok(word)
}

async fn ask(nic: &Nic, sends: &mut SendQueue, receives: &mut ReceiveQueue, arguments: &ViArguments) -> Sum {
    let regions: Result<VecDeque<OwnRegion>, _> = (0..POSTED).map(|_| nic.region(arguments.bytes)).collect();
    let (mut free, mut sum, mut received) = (regions?, 0, 0);
    for number in 0..arguments.count {
        while number - received >= POSTED {
            received = hear(receives).await? as usize;
        }
        let mut region = match free.pop_front() {
            Some(region) => region,
            None => sends.completed().within(PATIENCE).await?.done()?.region,
        };
        region.iter_mut().enumerate().for_each(|(place, byte)| *byte = (number * 7 + place * place) as u8);
        sum = sum_of(sum, &region);
        sends.post(Work::send(region).immediate(number as u32))?;
    }
    for _ in 0..arguments.count.min(POSTED) - free.len().min(arguments.count) {
        sends.completed().within(PATIENCE).await?.done()?;
    }
    while received + CREDIT <= arguments.count {
        received += CREDIT;
        check(hear(receives).await? as usize == received, || "a credit is missing".to_owned())?;
    }
    let theirs = hear(receives).await?;
    check(theirs == sum, || format!("the server's checksum is {theirs:08x}, not {sum:08x}"))?;
    Ok(sum)
}

fn sum_of(sum: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(sum, |sum, byte| sum.rotate_left(5).wrapping_add(u32::from(*byte)))
}
