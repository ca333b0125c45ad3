//! How the items of a group are made: what is measured, each beside its limit.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::calls::{Call, CallCost};
use super::copy_alone::CopyAlone;
use super::ends::{OpenNic, Way};
use super::latency::Messages;
use super::names::{COUNTED_BYTES, MESSAGES, STREAMS, limit_of};
use super::settings::{Group, Settings};
use super::streams::{Transfer, Transfers};
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
    let (mut limits, results) = match settings.group {
        Group::Memory => memory(pair, settings)?,
        Group::Tcp => network(pair, settings)?,
        Group::Calls => (Items::new(), calls(pair, settings)?),
        Group::Shares | Group::Load | Group::Floods => Default::default(),
    };
    let needed: Vec<Option<String>> = results.iter().map(|result| limit_of(&result.name())).collect();
    limits.retain(|limit| {
        let name = limit.name();
        settings.wants(&name) || needed.iter().flatten().any(|needed| *needed == name)
    });
    Ok((limits, results))
}

fn memory(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let ends = Ends::open(pair, settings, Way::Memory)?;
    let mut results = Items::new();
    for bytes in MESSAGES {
        results.extend(ends.messages(How::Poll, bytes)?);
        results.extend(ends.messages(How::Block, bytes)?);
    }
    for what in [Transfer::Messages, Transfer::Writes, Transfer::Reads] {
        for bytes in STREAMS {
            results.extend(ends.stream(what, bytes, How::Poll)?);
        }
    }
    results.extend(ends.counted()?);
    let mut limits = limits::items();
    limits.push(Box::new(CopyAlone::new()));
    Ok((limits, results))
}

fn network(pair: &Pair, settings: &Settings) -> anyhow::Result<(Items<'static>, Items<'static>)> {
    let connection = Connection::open(pair, Ipv4Addr::LOCALHOST.into())?;
    let ends = Ends::open(pair, settings, Way::Tcp)?;
    let (mut limits, mut results): (Items, Items) = Default::default();
    for how in [How::Poll, How::Block] {
        for bytes in MESSAGES {
            limits.push(Box::new(sockets::OneWay { connection: connection.clone(), how, buffer: vec![7; bytes] }));
            results.extend(ends.messages(how, bytes)?);
        }
    }
    for bytes in STREAMS {
        let (name, connection, sizes) = ("tcp_stream", connection.clone(), Sizes::Fast);
        limits.push(Box::new(sockets::Stream { name, connection, buffer: vec![7; bytes], sizes }));
        results.extend(ends.stream(Transfer::Messages, bytes, How::Block)?);
    }
    Ok((limits, results))
}

fn calls(pair: &Pair, settings: &Settings) -> anyhow::Result<Items<'static>> {
    let nic = OpenNic::open(pair, Way::Memory, How::Poll, "calls")?;
    let wanted = Call::ALL.into_iter().filter(|call| settings.wants(&call.name()));
    wanted.map(|call| -> anyhow::Result<Box<dyn Item>> { Ok(Box::new(CallCost::connect(call, &nic)?)) }).collect()
}

/// The two NICs that the VIs of a group are of.
struct Ends<'a> {
    pair: &'a Pair,
    settings: &'a Settings,
    way: Way,
    polling: Arc<OpenNic>,
    sleeping: Arc<OpenNic>,
}

impl<'a> Ends<'a> {
    fn open(pair: &'a Pair, settings: &'a Settings, way: Way) -> anyhow::Result<Ends<'a>> {
        let open = |how| OpenNic::open(pair, way, how, way.word());
        Ok(Ends { pair, settings, way, polling: open(How::Poll)?, sleeping: open(How::Block)? })
    }

    fn nic(&self, how: How) -> &Arc<OpenNic> {
        match how {
            How::Poll => &self.polling,
            How::Block => &self.sleeping,
        }
    }

    /// Messages there and back, if that figure is wanted.
    fn messages(&self, how: How, bytes: usize) -> anyhow::Result<Option<Box<dyn Item>>> {
        let name = format!("vi_oneway_{}_{}_{bytes}", self.way.word(), how.word());
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        let slow = self.way != Way::Memory || how == How::Block;
        Ok(Some(Box::new(Messages::connect(name, self.nic(how), bytes, slow)?)))
    }

    /// A stream from ping to pong, if that figure is wanted.
    fn stream(&self, what: Transfer, bytes: usize, how: How) -> anyhow::Result<Option<Box<dyn Item>>> {
        let name = Transfers::name(what, self.way.word(), bytes);
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        Ok(Some(Box::new(Transfers::connect(name, self.pair, self.nic(how), (what, bytes), false)?)))
    }

    /// Small messages, by number, if that figure is wanted.
    fn counted(&self) -> anyhow::Result<Option<Box<dyn Item>>> {
        let name = format!("vi_messages_{}_{COUNTED_BYTES}", self.way.word());
        if !self.settings.wants(&name) {
            return Ok(None);
        }
        let what = (Transfer::Messages, COUNTED_BYTES);
        Ok(Some(Box::new(Transfers::connect(name, self.pair, self.nic(How::Poll), what, true)?)))
    }
}
