//! Packet and scalar channels.

use alloc::vec;

use musubi_mcapi::limits::{PACKET_CREDIT, SCALAR_CREDIT};
use musubi_mcapi::over::{Running, ScalarReceiver, ScalarSender};
use musubi_mcapi::{Error, attribute};

use crate::part::Ends;
use crate::{Failure, Part, ensure, have};

/// Packets and scalars of a stream.
const PACKETS: u32 = 200;
const SCALARS: u32 = 1_000;

/// From 4 bytes to more than a lane carries.
fn length_of(number: u32) -> usize {
    4 + number as usize * 61 % 1500
}

pub fn packets_come_in_order_and_credit_stops_the_sender<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    match part.packets(0)? {
        Ends::Sending(sender) => {
            let mut number = 0u32;
            let packet = |number: u32| {
                let mut packet = vec![number as u8; length_of(number)];
                packet[..4].copy_from_slice(&number.to_le_bytes());
                packet
            };
            while have!(sender.try_send(&packet(number)), "it goes or does not") {
                number += 1;
                ensure!(number <= PACKET_CREDIT, "no more than the credit goes");
            }
            ensure!(number > 0, "some go before anybody reads");
            part.meet()?;
            for number in number..PACKETS {
                have!(sender.send(&packet(number), part.soon()), "the others go as the receiver reads");
            }
            part.meet()
        }
        Ends::Receiving(receiver) => {
            part.meet()?;
            for number in 0..PACKETS {
                let packet = have!(receiver.receive(part.soon()), "each packet comes").to_vec();
                ensure!(packet.len() == length_of(number) && packet[..4] == number.to_le_bytes(), "in order and whole");
                ensure!(packet[4..].iter().all(|byte| *byte == number as u8), "with what was put in");
            }
            ensure!(matches!(receiver.try_receive(), Ok(None)), "and no more");
            part.meet()
        }
    }
}

pub fn scalars_keep_order_and_size<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    if part.sends() {
        let theirs = part.of(part.partner(), 0)?;
        let mut connected = have!(part.node().connect_scalars(&mine, &theirs), "a channel is made");
        have!(connected.wait(part.soon()), "both nodes know of it");
        let mut opening = have!(ScalarSender::<u32, R>::open(&mine), "the sending end opens");
        let sender = have!(opening.wait(part.soon()), "both ends are open");
        let mut number = 0;
        while have!(sender.try_send(number), "it goes or does not") {
            number += 1;
            ensure!(number <= SCALAR_CREDIT, "no more than the credit goes");
        }
        part.meet()?;
        for number in number..SCALARS {
            have!(sender.send(number, part.soon()), "the others go as the receiver reads");
        }
        part.meet()
    } else {
        let mut opening = have!(ScalarReceiver::<u32, R>::open(&mine), "the receiving end opens");
        let receiver = have!(opening.wait(part.soon()), "both ends are open");
        part.meet()?;
        for number in 0..SCALARS {
            let word = have!(receiver.receive(part.soon()), "each word comes");
            ensure!(word == number, "in order");
        }
        ensure!(matches!(receiver.available(), Ok(0)), "and no more");
        part.meet()
    }
}

pub fn a_close_comes_after_the_data<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    match part.packets(0)? {
        Ends::Sending(sender) => {
            for number in 0..5 {
                have!(sender.send(&[number], part.soon()), "a packet goes out");
            }
            let mut closing = have!(sender.close(), "the sending end closes");
            part.meet()?;
            have!(closing.wait(part.soon()), "both have closed");
            part.meet()
        }
        Ends::Receiving(receiver) => {
            part.meet()?;
            for number in 0..5 {
                let packet = have!(receiver.receive(part.soon()), "what was sent before the close comes");
                ensure!(packet.to_vec() == [number], "in order");
            }
            ensure!(matches!(receiver.receive(part.soon()), Err(Error::ChannelInvalid)), "then the close");
            let mut closing = have!(receiver.close(), "the receiving end closes");
            have!(closing.wait(part.soon()), "both have closed");
            part.meet()
        }
    }
}

pub fn attributes_are_read_from_afar<R: Running>(part: &mut Part<'_, R>) -> Result<(), Failure> {
    let mine = part.endpoint(0)?;
    let theirs = part.of(part.partner(), 0)?;
    have!(mine.set(attribute::PRIORITY, 1 + u32::from(part.sends())), "an attribute is set");
    part.meet()?;
    let priority = have!(part.node().attribute(&theirs, attribute::PRIORITY, part.soon()), "the other's is read");
    ensure!(priority == 1 + u32::from(!part.sends()), "it is what the other set");
    let other = part.partner();
    have!(part.node().ping((other.domain(), other.node()), 56, part.soon()), "a ping comes back");
    part.meet()
}
