//! How connections are made, refused and ended.

use musubi_vipl::ViError;
use musubi_vipl::address::NicNumber;
use musubi_vipl::engine::{AsyncError, Queue, Reliability, ViState};
use musubi_vipl::over::NicNode;

use crate::descriptors::{INTO, OUT, Written};
use crate::{Failure, PATIENCE_NS, Part, ensure, have};

/// Statuses: done; flushed, of a send and of a receive.
const DONE: u32 = 0x1;
const FLUSHED_RECEIVE: u32 = 0x1_0021;
/// Receives that are posted when a connection ends.
const POSTED: usize = 5;
/// How often a VI is connected again.
const TIMES: u32 = 4;

pub fn nobody_listens_and_a_caller_is_rejected<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let vi = part.vi(part.usual(Reliability::Delivery))?;
    let port = part.next_port();
    let local = part.address(part.own(), &port)?;
    let nobody = part.address(NicNumber(part.nics()), &port)?;
    let result = part.nic().request(vi, local.clone(), nobody, part.soon());
    ensure!(result == Err(ViError::NotReachable), "there are no more NICs than the table has");
    let partner = part.address(part.partner(), &port)?;
    let result = part.nic().request(vi, local.clone(), partner, part.soon());
    ensure!(result == Err(ViError::NoMatch), "nobody listens there");
    part.meet()?;
    if part.serves() {
        let (caller, ..) = have!(part.nic().wait_caller(&local, part.soon()), "the partner asks");
        have!(part.nic().reject(caller), "it is rejected");
    } else {
        ensure!(part.ask(&port, vi) == Err(ViError::Rejected), "the partner rejects");
    }
    ensure!(part.state(vi)? == ViState::Idle, "nothing came of it");
    part.destroy(vi)
}

pub fn attributes_must_fit<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mut other = part.usual(Reliability::Delivery);
    if part.serves() {
        other = part.usual(Reliability::Reception);
    }
    let (unlike, alike) = (part.vi(other)?, part.vi(part.usual(Reliability::Delivery))?);
    let port = part.next_port();
    if part.serves() {
        let local = part.address(part.own(), &port)?;
        let (caller, _, theirs) = have!(part.nic().wait_caller(&local, part.soon()), "the partner asks");
        ensure!(theirs.reliability == Reliability::Delivery, "its attributes come with it");
        let result = part.nic().accept(caller, unlike, part.soon());
        ensure!(result == Err(ViError::Reliability), "the levels differ");
        have!(part.nic().accept(caller, alike, part.soon()), "the caller waits still");
    } else {
        let theirs = have!(part.ask(&port, alike), "another VI is found");
        ensure!(theirs.class == 3 && theirs.reliability == Reliability::Delivery, "its attributes come with it");
    }
    ensure!(part.state(alike)? == ViState::Connected, "they are connected");
    part.meet()?;
    for vi in [unlike, alike] {
        have!(part.nic().disconnect(vi), "there is this VI");
        part.destroy(vi)?;
    }
    part.news().map(|_| ())
}

pub fn disconnecting_flushes_in_order_and_the_vi_connects_again<R: NicNode>(
    part: &mut Part<'_, R>,
) -> Result<(), Failure> {
    for level in Reliability::ALL {
        let vi = part.vi(part.usual(level))?;
        for turn in 0..TIMES {
            for place in 0..POSTED {
                part.post(vi, Queue::Receive, place, &Written::message(INTO + place * 64, 64))?;
            }
            part.connect(vi)?;
            // Both directions: one message each way, into the first receive.
            part.put(OUT, &turn.to_le_bytes())?;
            part.post(vi, Queue::Send, POSTED, &Written::message(OUT, 4))?;
            ensure!(part.wait(vi, Queue::Send)?.status == DONE, "a message goes out");
            let came = part.wait(vi, Queue::Receive)?;
            ensure!((came.place, came.bytes) == (0, 4), "the first receive is filled");
            ensure!(part.get(INTO, 4)? == turn.to_le_bytes(), "with what was sent");
            part.news()?;
            part.meet()?;
            let ends = part.serves() == (turn % 2 == 0);
            if !ends {
                part.lost(vi)?;
                let news = part.news()?;
                let told = news.iter().filter(|one| **one == (Some(vi), AsyncError::ConnectionLost)).count();
                ensure!(told == 1, "the end of the connection is told once");
            }
            have!(part.nic().disconnect(vi), "there is this VI");
            for place in 1..POSTED {
                let flushed = part.done(vi, Queue::Receive)?;
                let is_next = flushed.is_some_and(|one| (one.place, one.status) == (place, FLUSHED_RECEIVE));
                ensure!(is_next, "what was posted comes back flushed, in order");
            }
            ensure!(part.done(vi, Queue::Receive)?.is_none(), "and nothing else");
            ensure!(part.state(vi)? == ViState::Idle, "it can be connected again");
            part.meet()?;
        }
        part.destroy(vi)?;
    }
    Ok(())
}

pub fn those_who_ask_each_other_meet<R: NicNode>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    for _ in 0..TIMES {
        let vi = part.vi(part.usual(Reliability::Reception))?;
        let port = part.next_port();
        let (local, remote) = (part.address(part.own(), &port)?, part.address(part.partner(), &port)?);
        have!(part.nic().request_peer(vi, local, remote, PATIENCE_NS), "a peer is asked for");
        let theirs = have!(part.nic().wait_peer(vi, part.soon()), "both ask, so they meet");
        ensure!(theirs.reliability == Reliability::Reception, "the other's attributes come");
        part.meet()?;
        have!(part.nic().disconnect(vi), "there is this VI");
        part.destroy(vi)?;
    }
    part.news().map(|_| ())
}
