//! A server with one completion queue for many VIs; a client that awaits many VIs in one task.
//!
//! Shows: completions that say whose they are, and come with the memory; many futures at once without an executor's help.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use musubi_examples::vi::{self, Ending, ViArguments, check};
use musubi_examples::{PATIENCE, soon};
use musubi_vipl::owned::process::{Nic, OwnRegion, Vi};
use musubi_vipl::owned::{CompletionKind, Connected, ViOptions, Work};

/// VIs of the client.
const VIS: usize = 16;
/// Bytes of an answer.
const ANSWER_BYTES: usize = 4;
const NAME: &[u8] = b"example server";

fn main() -> Ending {
    vi::run("Serves many VIs with one completion queue.", 500, 256, |nic, arguments| {
        check(arguments.bytes >= ANSWER_BYTES, || format!("--bytes must be {ANSWER_BYTES} or more"))?;
        match arguments.is_server {
            true => serve(nic, arguments),
            false => pollster::block_on(ask(nic, arguments)),
        }
    })
}

fn options(arguments: &ViArguments) -> Result<ViOptions, std::num::TryFromIntError> {
    Ok(ViOptions { message_bytes_max: u32::try_from(arguments.bytes)?, ..ViOptions::default() })
}

fn serve(nic: &Nic, arguments: &ViArguments) -> Ending {
    let mut queue = nic.completion_queue()?;
    let mut listener = nic.listen(NAME)?;
    let mut vis = BTreeMap::new();
    while vis.len() < VIS {
        let mut vi = nic.vi_telling(options(arguments)?, Some(&queue), Some(&queue))?;
        vi.receives().post(nic.region(arguments.bytes)?)?;
        let vi = vi::accept(&mut listener, vi)?;
        vis.insert(vi.number(), (vi, Some(nic.region(ANSWER_BYTES)?)));
    }
    let (mut questions, mut answered) = (0, 0);
    while answered < arguments.count * VIS {
        let came = queue.completed().wait(soon())?.done()?;
        let (vi, answer) = vis.get_mut(&came.vi).ok_or("a completion of a VI that is none of ours")?;
        if came.kind == CompletionKind::Sent {
            *answer = Some(came.region);
            answered += 1;
            continue;
        }
        questions += 1;
        // A client asks anew when it has the answer; that this one has completed may be told a little later.
        let mut region = match answer.take() {
            Some(region) => region,
            None => nic.region(ANSWER_BYTES)?,
        };
        region.copy_from_slice(&sum_of(&came.region[..came.bytes]).to_le_bytes());
        vi.receives().post(came.region)?;
        vi.sends().post(Work::send(region))?;
    }
    println!("{questions} questions of {VIS} VIs answered");
    Ok(())
}

async fn ask(nic: &Nic, arguments: &ViArguments) -> Ending {
    let mut conversations: Vec<Pin<Box<dyn Future<Output = Ending>>>> = Vec::new();
    for number in 0..VIS {
        let mut vi = nic.vi(options(arguments)?)?;
        vi.receives().post(nic.region(ANSWER_BYTES)?)?;
        let vi = vi::connect(nic, arguments, NAME, vi)?;
        conversations.push(Box::pin(converse(nic.region(arguments.bytes)?, vi, number, arguments.count)));
    }
    all(conversations).await?;
    println!("{} questions of {VIS} VIs, all answered right", arguments.count * VIS);
    Ok(())
}

/// Asks with one VI, until all questions are answered and the server has ended the connection.
async fn converse(mut region: OwnRegion, mut vi: Vi<Connected>, number: usize, count: usize) -> Ending {
    for turn in 0..count {
        let bytes = 1 + (turn * 13 + number) % region.len();
        region.iter_mut().enumerate().for_each(|(place, byte)| *byte = (turn + number * place) as u8);
        let expected = sum_of(&region[..bytes]);
        let (sends, receives) = vi.queues();
        sends.post(Work::send(region).part(0..bytes))?;
        let answer = receives.completed().within(PATIENCE).await?.done()?;
        let is_right = answer.region[..] == expected.to_le_bytes();
        check(is_right, || format!("VI {number}, question {turn}: not the right answer"))?;
        receives.post(answer.region)?;
        region = sends.completed().within(PATIENCE).await?.done()?.region;
    }
    vi.ended().within(PATIENCE).await?;
    Ok(())
}

/// Awaits all of them in this task; the first failure counts.
async fn all(mut conversations: Vec<Pin<Box<dyn Future<Output = Ending>>>>) -> Ending {
    poll_fn(|context| {
        let mut place = 0;
        while let Some(conversation) = conversations.get_mut(place) {
            match conversation.as_mut().poll(context) {
                Poll::Pending => place += 1,
                Poll::Ready(Ok(())) => drop(conversations.swap_remove(place)),
                Poll::Ready(failed) => return Poll::Ready(failed),
            }
        }
        if conversations.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

fn sum_of(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(*byte)).sum()
}
