//! A connection that does not belong to a link yet: from its first packet until it is known who speaks.
//!
//! What you may rely on: one ends after [`PENDING_NS_MAX`], or [`LOOKS_MAX`] looks, at the latest; it reads no byte beyond the hello of who dialed.
//!
//! How it works: of a connection that we began: connect, TLS if needed, done (the session says hello). Of one that came in:
//! TLS if needed, hello, checks that need no state of a link, done. TLS begins, and has memory, when a first record has come
//! and the acceptor allows it.

use std::io;
use std::net::SocketAddr;

use super::admission::Ticket;
use super::exchange::Us;
use super::sockets::{self, FirstRecord, Got};
use super::stream::Stream;
use super::tls;
use crate::NodeId;
use crate::keys;
use crate::session::{Greeting, Hello, Reason, Step};
use crate::topology::Way;

/// It is over by then, nanoseconds after its beginning.
pub(super) const PENDING_NS_MAX: u64 = 2_000_000_000;

/// Looks at one: who says a hello of some hundred bytes byte by byte does not cost more than others.
const LOOKS_MAX: u32 = 256;

/// A connection that is not known yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) stream: Stream,
    pub(super) remote: SocketAddr,
    /// Whom we dialed; `None` if the other side did.
    pub(super) dialed: Option<NodeId>,
    pub(super) until_ns: u64,
    /// Of one that came in.
    pub(super) ticket: Option<Ticket>,
    /// It is left alone until its time is over or its place is needed.
    pub(super) ignored: bool,
    stage: Stage,
    looks: u32,
}

#[derive(Debug)]
enum Stage {
    Connecting,
    /// The first record of TLS is awaited.
    Knock,
    Handshake,
    Greeting(Greeting),
}

/// How it goes on.
#[derive(Debug)]
pub(super) enum Progress {
    /// More has to come.
    Waits,
    /// A first record of TLS has come.
    Knocked,
    /// Something that is no TLS has come.
    Garbled,
    /// We reached whom we dialed.
    Reached,
    /// Somebody who dialed has said this, and may speak to the link with that node.
    Greeted(Hello),
    /// The connection has ended or failed.
    Failed(io::Error),
    /// It is refused; if it said who it is, it is told why.
    Refused(Reason, Option<NodeId>),
}

impl Pending {
    /// We begin to connect.
    pub(super) fn dial(remote: SocketAddr, peer: NodeId, now_ns: u64) -> io::Result<Pending> {
        let stream = Stream::plain(sockets::connect(remote)?);
        let until_ns = now_ns + PENDING_NS_MAX;
        Ok(Pending {
            stream,
            remote,
            dialed: Some(peer),
            until_ns,
            ticket: None,
            ignored: false,
            stage: Stage::Connecting,
            looks: 0,
        })
    }

    /// Somebody has connected.
    pub(super) fn receive(stream: Stream, remote: SocketAddr, us: &Us, now_ns: u64) -> io::Result<Pending> {
        let until_ns = now_ns + PENDING_NS_MAX;
        let stage = Stage::Connecting;
        let mut pending =
            Pending { stream, remote, dialed: None, until_ns, ticket: None, ignored: false, stage, looks: 0 };
        pending.secure(us)?;
        Ok(pending)
    }

    /// Whether it waits until it may write, not until something comes.
    pub(super) fn awaits_writable(&self) -> bool {
        matches!(self.stage, Stage::Connecting)
    }

    /// Goes on as far as it can.
    pub(super) fn step(&mut self, us: &Us) -> Progress {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return Progress::Refused(Reason::TimeOut, None);
        }
        loop {
            let next = match &mut self.stage {
                Stage::Connecting => match sockets::connected(self.stream.socket()) {
                    Ok(()) => self.secure(us).map_err(Progress::Failed),
                    Err(error) => Err(Progress::Failed(error)),
                },
                Stage::Knock => Err(match sockets::first_record(self.stream.socket()) {
                    Ok(FirstRecord::Whole) => Progress::Knocked,
                    Ok(FirstRecord::NoTls) => Progress::Garbled,
                    Ok(FirstRecord::Missing) => Progress::Waits,
                    Ok(FirstRecord::End) => Progress::Failed(io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => Progress::Failed(error),
                }),
                Stage::Handshake => match self.stream.handshake() {
                    Ok(true) => self.secured(us),
                    Ok(false) => Err(Progress::Waits),
                    Err(error) => Err(Progress::Failed(error)),
                },
                Stage::Greeting(_) if self.dialed.is_some() => Err(Progress::Reached),
                Stage::Greeting(greeting) => Err(listen(greeting, &mut self.stream, us)),
            };
            if let Err(progress) = next {
                return progress;
            }
        }
    }

    /// The connection stands: with TLS or without, as the addresses say.
    fn secure(&mut self, us: &Us) -> io::Result<()> {
        let (local, remote) = sockets::addresses(self.stream.socket())?;
        if !tls::needed(&us.topology.network, local.ip(), remote.ip()) {
            self.stage = Stage::Greeting(Greeting::new());
            return Ok(());
        }
        let Some(tls) = &us.tls else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS is needed, and this node has no certificate"));
        };
        if self.dialed.is_none() {
            self.stage = Stage::Knock;
            return Ok(());
        }
        self.stream.encrypt(tls.dialing().map_err(io::Error::other)?);
        self.stage = Stage::Handshake;
        Ok(())
    }

    /// Begins the handshake of one that came in and has knocked.
    pub(super) fn shake_hands(&mut self, us: &Us) -> io::Result<()> {
        if let Some(tls) = &us.tls {
            self.stream.encrypt(tls.answering().map_err(io::Error::other)?);
        }
        self.stage = Stage::Handshake;
        Ok(())
    }

    /// The certificates are believed. Who was dialed must have the right one before anything is said.
    fn secured(&mut self, us: &Us) -> Result<(), Progress> {
        let named = self.stream.identity();
        if self.dialed.is_some_and(|node| named != Some(us.certified(node))) {
            return Err(Progress::Refused(Reason::Identity, None));
        }
        self.stage = Stage::Greeting(Greeting::new());
        Ok(())
    }
}

/// Gathers the hello of who dialed, and checks what needs no state of a link.
fn listen(greeting: &mut Greeting, stream: &mut Stream, us: &Us) -> Progress {
    loop {
        let mut bytes = [0; Hello::BYTES];
        let room = &mut bytes[..greeting.missing()];
        let got = match stream.read(room) {
            Ok(Got::Bytes(got)) => got,
            Ok(Got::Nothing) => return Progress::Waits,
            Ok(Got::End) => return Progress::Failed(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return Progress::Failed(error),
        };
        match greeting.input(&bytes[..got]) {
            Ok(None) => {}
            Ok(Some(hello)) => return judged(hello, stream.is_encrypted().then(|| stream.identity()), us),
            Err(reason) => return Progress::Refused(reason, None),
        }
    }
}

/// `certified`: under TLS, whom the certificate names.
fn judged(hello: Hello, certified: Option<Option<keys::Identity>>, us: &Us) -> Progress {
    let from = hello.identity.node;
    let refused = |reason| Progress::Refused(reason, Some(from));
    if hello.step != Step::Hello {
        return Progress::Refused(Reason::Garbage, None);
    }
    // Before anything else: who has another node's certificate is told nothing about this one.
    if certified.is_some_and(|named| named != Some(us.certified(from))) {
        return refused(Reason::Identity);
    }
    if let Err(reason) = hello.check(&us.identity) {
        return refused(reason);
    }
    match us.topology.way(us.identity.node, from) {
        Some(Way::Tcp(_)) => Progress::Greeted(hello),
        _ => refused(Reason::UnknownNode),
    }
}
