//! How the items of a group are made: what is measured, each beside its limit.

use std::net::{IpAddr, Ipv4Addr};

use super::ends::Ends;
use super::latency::{Message, Scalar, Wait};
use super::line;
use super::names::{MESSAGES, OTHERWISE_BYTES, PACKETS, limit_of};
use super::rates::{End, Handing, Packets};
use super::settings::{Group, Settings};
use crate::bench::limits;
use crate::bench::pair::Pair;
use crate::bench::rounds::{Item, Items};
use crate::bench::sizes::Sizes;
use crate::bench::sockets::{self, Connection, How};

/// The items of a group: limits and results.
///
/// # Errors
/// The ends could not be made.
pub(super) fn items(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let (mut limits, results) =
        if settings.group == Group::Memory { memory(pair, settings)? } else { network(pair, settings)? };
    let needed: Vec<Option<String>> = results.iter().map(|result| limit_of(&result.name())).collect();
    limits.retain(|limit| {
        let name = limit.name();
        settings.wants(&name) || needed.iter().flatten().any(|needed| *needed == name)
    });
    Ok((limits, results))
}

fn memory(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let ends = Ends::sharing_memory(pair, settings)?;
    let mut results = Items::new();
    for bytes in MESSAGES {
        results.extend(ends.message(How::Poll, bytes)?);
        results.extend(ends.message(How::Block, bytes)?);
    }
    results.extend(ends.scalar()?);
    let how = if settings.one_core { How::Block } else { How::Poll };
    for bytes in PACKETS {
        results.extend(ends.packets(how, bytes, Handing::Copied, Sizes::Fast)?);
    }
    Ok((limits::items(), results))
}

fn network(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let line = settings.group == Group::Line;
    let address: IpAddr = if line { line::ADDRESSES[0].parse()? } else { Ipv4Addr::LOCALHOST.into() };
    let connection = Connection::open(pair, address)?;
    let ends = Ends::over_tcp(pair, settings, true)?;
    let (sizes, name) = if line { (Sizes::Line, "tcp_line") } else { (Sizes::Fast, "tcp_stream") };
    let (mut limits, mut results): (Items, Items) = Default::default();
    let hows: &[How] = if line { &[] } else { &[How::Poll, How::Block] };
    for &how in hows {
        for bytes in MESSAGES {
            limits.push(Box::new(sockets::OneWay { connection: connection.clone(), how, buffer: vec![7; bytes] }));
            results.extend(ends.message(how, bytes)?);
        }
    }
    for bytes in PACKETS {
        limits.push(Box::new(sockets::Stream { name, connection: connection.clone(), buffer: vec![7; bytes], sizes }));
        results.extend(ends.packets(How::Block, bytes, Handing::Burst, sizes)?);
    }
    if !line {
        results.extend(ends.packets(How::Block, OTHERWISE_BYTES, Handing::Single, sizes)?);
        results.extend(ends.packets(How::Block, OTHERWISE_BYTES, Handing::Copied, sizes)?);
    }
    Ok((limits, results))
}

impl Ends<'_> {
    /// How a program waits that wants it so.
    fn wait(&self, how: How) -> Wait {
        if self.settings.one_core && how == How::Poll { Wait::Ask } else { Wait::Call }
    }

    /// Messages there and back, if that figure is wanted.
    pub fn message(&self, how: How, bytes: usize) -> anyhow::Result<Option<Box<dyn Item>>> {
        let name = format!("msg_oneway_{}_{}_{bytes}", self.way, how.word());
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        let slow = self.way != "shm" || how == How::Block;
        let wait = self.wait(how);
        Ok(Some(Box::new(Message::new(name, self.pair_up(how)?, bytes, slow, wait))))
    }

    /// Scalars of 8 bytes there and back, if that figure is wanted.
    pub fn scalar(&self) -> anyhow::Result<Option<Box<dyn Item>>> {
        let name = format!("scl_oneway_{}_poll_8", self.way);
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        let (there, back) = (self.pair_up(How::Poll)?, self.pair_up(How::Poll)?);
        Ok(Some(Box::new(Scalar::open(name, self.side, there, back, self.wait(How::Poll))?)))
    }

    /// Packets from ping to pong, if that figure is wanted. Over shared memory each is copied to the receiver anyway.
    pub fn packets(
        &self,
        how: How,
        bytes: usize,
        handing: Handing,
        sizes: Sizes,
    ) -> anyhow::Result<Option<Box<dyn Item>>> {
        let handed = match handing {
            Handing::Copied if self.way != "shm" => "copied_",
            Handing::Single => "single_",
            Handing::Copied | Handing::Burst => "",
        };
        let name = format!("pkt_rate_{}_{handed}{bytes}", self.way);
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        let (channel, report) = (self.pair_up(how)?, self.pair_up(how)?);
        let end = End::open(self.side, channel)?;
        Ok(Some(Box::new(Packets::new(name, end, report, bytes, handing, sizes))))
    }
}
