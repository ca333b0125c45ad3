//! The limit of what goes over TCP: bare sockets with the same bytes, and nothing else in between.
//!
//! How it works: one connection with TCP_NODELAY; `recv` that waits in the kernel, or that is asked again and again
//! without waiting; on one core, the other process may run in between. Raw system calls through rustix.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use musubi_linux::clock::now_ns;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, accept, bind, connect, getsockname, listen, recv, send, socket,
    sockopt,
};

use super::pair::{Pair, Side};
use super::rounds::Item;
use super::sizes::Sizes;

/// Byte offset of the word of the bare pages that tells the port.
const PORT: usize = 3072;
/// Longest wait for the other side to listen.
const LISTEN_MAX: Duration = Duration::from_secs(20);

/// A connected socket.
pub(super) struct Connection {
    socket: OwnedFd,
    /// Whether the other process has to be let run before there can be something.
    one_core: bool,
}

impl Connection {
    /// Connects the two sides; ping listens at `address`.
    pub fn open(pair: &Pair, address: std::net::IpAddr) -> anyhow::Result<Rc<Connection>> {
        let socket = match pair.side {
            Side::Ping => listening(pair, address),
            Side::Pong => connecting(pair, address),
        }
        .context("connecting bare sockets")?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(Rc::new(Connection { socket, one_core: pair.one_core }))
    }

    fn send_all(&self, mut bytes: &[u8]) -> anyhow::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[send(&self.socket, bytes, SendFlags::NOSIGNAL)?..];
        }
        Ok(())
    }

    /// Receives some bytes, waiting in the kernel or not.
    fn some(&self, into: &mut [u8], how: How) -> anyhow::Result<usize> {
        loop {
            let flags = if how == How::Poll { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
            match recv(&self.socket, &mut *into, flags) {
                Ok((0, _)) => bail!("the other side closed the connection"),
                Ok((count, _)) => return Ok(count),
                Err(Errno::AGAIN) if self.one_core => std::thread::yield_now(),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive_exact(&self, into: &mut [u8], how: How) -> anyhow::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            filled += self.some(&mut into[filled..], how)?;
        }
        Ok(())
    }
}

fn listening(pair: &Pair, address: std::net::IpAddr) -> anyhow::Result<OwnedFd> {
    let listener = socket(family(address), SocketType::STREAM, None)?;
    bind(&listener, &SocketAddr::new(address, 0))?;
    listen(&listener, 1)?;
    let bound: SocketAddr = getsockname(&listener)?.try_into()?;
    pair.pages.word(PORT).store(u32::from(bound.port()), Ordering::Release);
    let connection = accept(&listener)?;
    pair.pages.word(PORT).store(0, Ordering::Release);
    Ok(connection)
}

fn connecting(pair: &Pair, address: std::net::IpAddr) -> anyhow::Result<OwnedFd> {
    let began = Instant::now();
    loop {
        let port = pair.pages.word(PORT).load(Ordering::Acquire);
        if port != 0 {
            let connection = socket(family(address), SocketType::STREAM, None)?;
            connect(&connection, &SocketAddr::new(address, port as u16))?;
            return Ok(connection);
        }
        ensure!(began.elapsed() < LISTEN_MAX, "the other side does not listen");
        std::thread::yield_now();
    }
}

fn family(address: std::net::IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// Whether a receiver waits in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Poll,
    Block,
}

impl How {
    pub fn word(self) -> &'static str {
        match self {
            How::Poll => "poll",
            How::Block => "block",
        }
    }
}

/// So many bytes there and back.
pub(super) struct OneWay {
    pub connection: Rc<Connection>,
    pub how: How,
    pub buffer: Vec<u8>,
}

impl Item for OneWay {
    fn name(&self) -> String {
        format!("tcp_oneway_{}_{}", self.how.word(), self.buffer.len())
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        Sizes::network_samples(latency_samples)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut before = now_ns();
        for _ in 0..count {
            if pair.side == Side::Pong {
                self.connection.receive_exact(&mut self.buffer, self.how)?;
            }
            self.connection.send_all(&self.buffer)?;
            if pair.side == Side::Ping {
                self.connection.receive_exact(&mut self.buffer, self.how)?;
                let now = now_ns();
                into.push((now - before) as f64 / 2.0);
                before = now;
            }
        }
        Ok(())
    }
}

/// A stream that is written and read so many bytes at a time; the end of each batch is confirmed.
pub(super) struct Stream {
    pub name: &'static str,
    pub connection: Rc<Connection>,
    pub buffer: Vec<u8>,
    pub sizes: Sizes,
}

impl Item for Stream {
    fn name(&self) -> String {
        format!("{}_{}", self.name, self.buffer.len())
    }

    fn unit(&self) -> &'static str {
        "MB/s"
    }

    fn samples(&self, latency_samples: u32) -> u32 {
        self.sizes.rate_samples(latency_samples)
    }

    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()> {
        let bytes = self.buffer.len();
        let batch = self.sizes.batch(bytes);
        for _ in 0..count {
            let before = now_ns();
            match pair.side {
                Side::Ping => {
                    for _ in 0..batch {
                        self.connection.send_all(&self.buffer)?;
                    }
                    self.connection.receive_exact(&mut [0], How::Block)?;
                }
                Side::Pong => {
                    let mut left = batch * bytes;
                    while left > 0 {
                        let room = bytes.min(left);
                        left -= self.connection.some(&mut self.buffer[..room], How::Block)?;
                    }
                    self.connection.send_all(&[0])?;
                }
            }
            into.push((batch * bytes) as f64 * 1000.0 / (now_ns() - before) as f64);
        }
        Ok(())
    }
}
