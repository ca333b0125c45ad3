//! A pipeline over packet channels: node 1 measures, node 2 halves the rate, node 3 sums up.
//!
//! `pipeline` runs all three as threads, `pipeline --node N` one of them; with `MUSUBI_SYSTEM` it runs on the machines of
//! that system. Over shared memory a packet lies where its sender put it until its receiver drops it.
#![forbid(unsafe_code)]

use musubi_examples::{run, soon};
use musubi_mcapi::{Endpoint, Error, Node, PacketReceiver, PacketSender};

/// Packets that are measured.
const PACKETS: u32 = 500;
/// Samples of a measured packet.
const SAMPLES: u32 = 512;
/// Where each stage gets its packets.
const INPUT: u32 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&[measure, halve, sum_up])
}

fn measure(node: &Node) -> Result<(), Error> {
    let output = connect(node, 2)?;
    for packet in 0..PACKETS {
        let samples: Vec<u8> = (0..SAMPLES).flat_map(|sample| (packet + sample).to_le_bytes()).collect();
        output.send(&samples, soon())?;
    }
    output.close()?.wait(soon())
}

fn halve(node: &Node) -> Result<(), Error> {
    let (input, output) = (accept(&node.create_endpoint(Some(INPUT))?)?, connect(node, 3)?);
    while let Some(samples) = next(&input)? {
        let means = samples.chunks(2).map(|pair| pair.iter().sum::<u32>() / 2);
        output.send(&means.flat_map(u32::to_le_bytes).collect::<Vec<u8>>(), soon())?;
    }
    input.close()?.wait(soon())?;
    output.close()?.wait(soon())
}

fn sum_up(node: &Node) -> Result<(), Error> {
    let input = accept(&node.create_endpoint(Some(INPUT))?)?;
    let (mut packets, mut sum) = (0, 0u64);
    while let Some(samples) = next(&input)? {
        packets += 1;
        sum += samples.into_iter().map(u64::from).sum::<u64>();
    }
    println!("{packets} packets, their samples add up to {sum}");
    input.close()?.wait(soon())
}

/// The sending end of a channel to the next stage.
fn connect(node: &Node, next: u32) -> Result<PacketSender, Error> {
    let from = node.create_endpoint(None)?;
    let to = node.get_endpoint((0, next), INPUT, soon())?;
    node.connect_packets(&from, &to)?.wait(soon())?;
    PacketSender::open(&from)?.wait(soon())
}

/// The receiving end, once the stage before has connected it.
fn accept(input: &Endpoint) -> Result<PacketReceiver, Error> {
    PacketReceiver::open(input)?.wait(soon())
}

/// The samples of the next packet; none once the stage before has closed the channel and all is read.
fn next(input: &PacketReceiver) -> Result<Option<Vec<u32>>, Error> {
    match input.receive(soon()) {
        Ok(packet) => {
            let bytes = packet.to_vec();
            let words = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok());
            Ok(Some(words.map(u32::from_le_bytes).collect()))
        }
        Err(Error::ChannelInvalid) => Ok(None),
        Err(error) => Err(error),
    }
}
