//! Bytes of one connection, plain or through TLS.
//!
//! What you may rely on: nothing waits. What [`Stream::write`] has taken goes out in order, the rest of it by
//! [`Stream::flush`]; while something is left ([`Stream::is_behind`]) nothing more is taken.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use musubi_linux::descriptor::Descriptor;
use rustls::Connection;

use super::sockets::{self, Got, SLICES_MAX};
use super::tls;
use crate::keys;

/// Bytes of one read from a socket under TLS.
const READ_BYTES: usize = 64 * 1024;

/// A connection.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Descriptor,
    tls: Option<Box<Layer>>,
}

#[derive(Debug)]
struct Layer {
    connection: Connection,
    /// Bytes read from the socket.
    incoming: Box<[u8; READ_BYTES]>,
    /// Those of them that the connection has not taken yet.
    unread: Range<usize>,
    /// Records not yet written, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    /// The other side has ended its direction.
    ended: bool,
    /// The socket is not read for now.
    aside: bool,
}

impl Stream {
    /// A connection as it is.
    pub(super) fn plain(socket: Descriptor) -> Stream {
        Stream { socket, tls: None }
    }

    /// From here on through TLS; the handshake is still to be made.
    pub(super) fn encrypt(&mut self, connection: Connection) {
        let (incoming, outgoing) = (Box::new([0; READ_BYTES]), Vec::new());
        let layer = Layer { connection, incoming, unread: 0..0, outgoing, written: 0, ended: false, aside: false };
        self.tls = Some(Box::new(layer));
    }

    /// For the two addresses, and for epoll.
    pub(super) fn socket(&self) -> &Descriptor {
        &self.socket
    }

    /// Goes on with the handshake; true when it is over. An error is to be told to the other side by [`Stream::flush`].
    pub(super) fn handshake(&mut self) -> io::Result<bool> {
        let Stream { socket, tls: Some(layer) } = self else { return Ok(true) };
        layer.write(socket)?;
        while layer.connection.is_handshaking() {
            match layer.read(socket)? {
                Got::Bytes(_) => layer.write(socket)?,
                Got::Nothing => return Ok(false),
                Got::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(true)
    }

    /// Whom the other side's certificate names; `None` on a plain connection too.
    pub(super) fn identity(&self) -> Option<keys::Identity> {
        tls::identity_of(&self.tls.as_ref()?.connection)
    }

    /// Whether TLS is used.
    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads what is there. Of a connection under TLS, call until it gives nothing: what has been read from the socket
    /// already makes no descriptor ready.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        match &mut self.tls {
            None => sockets::receive(&self.socket, into),
            Some(layer) => layer.decrypted(&self.socket, into),
        }
    }

    /// Whether [`Stream::read`] and [`Stream::read_parts`] may read from the socket, or only give what TLS has at hand.
    pub(super) fn look_at_socket(&mut self, look: bool) {
        if let Some(layer) = &mut self.tls {
            layer.aside = !look;
        }
    }

    /// Reads what is there into several places, each filled before the next. Under TLS only into the first that is not empty.
    pub(super) fn read_parts(&mut self, parts: [&mut [u8]; 3]) -> io::Result<Got> {
        match &mut self.tls {
            None => sockets::receive_parts(&self.socket, &mut parts.map(IoSliceMut::new)),
            Some(layer) => match parts.into_iter().find(|part| !part.is_empty()) {
                Some(part) => layer.decrypted(&self.socket, part),
                None => Ok(Got::Nothing),
            },
        }
    }

    /// Writes as much as is taken now.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => sockets::send(&self.socket, slices),
            Some(layer) => layer.encrypt(&self.socket, slices),
        }
    }

    /// The same of many parts.
    pub(super) fn write_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        for (place, part) in slices.iter_mut().zip(parts) {
            *place = IoSlice::new(part);
            count += 1;
        }
        self.write(&slices[..count])
    }

    /// Whether something that was taken is not yet with the kernel.
    pub(super) fn is_behind(&self) -> bool {
        self.tls.as_ref().is_some_and(|layer| layer.is_behind())
    }

    /// Goes on with that.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(layer) => layer.write(&self.socket),
        }
    }

    /// Tells somebody who does not speak TLS that it is used here, and ends the connection.
    pub(super) fn refuse_tls(&mut self) {
        // An alert: fatal, unexpected message.
        const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];
        // It fits into the buffer of a connection on which nothing has been said; if not, nobody waits for it.
        let _ = sockets::send(&self.socket, &[IoSlice::new(&ALERT)]);
        sockets::end(&self.socket);
    }

    /// Says that nothing more will be written, as far as that can be said now.
    pub(super) fn end(&mut self) {
        if let Some(layer) = &mut self.tls {
            layer.connection.send_close_notify();
            // The connection is given up anyway.
            let _ = layer.write(&self.socket);
        }
        sockets::end(&self.socket);
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Layer {
    fn is_behind(&self) -> bool {
        self.written < self.outgoing.len() || self.connection.wants_write()
    }

    /// Takes what has been decrypted; reads from the socket only if nothing has.
    fn decrypted(&mut self, socket: &Descriptor, into: &mut [u8]) -> io::Result<Got> {
        loop {
            match self.connection.reader().read(into) {
                Ok(0) => return Ok(Got::End),
                Ok(bytes) => return Ok(Got::Bytes(bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match self.read(socket)? {
                Got::Bytes(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// Hands the connection what it takes of the bytes at hand; reads from the socket only if there are none.
    fn read(&mut self, socket: &Descriptor) -> io::Result<Got> {
        if self.unread.is_empty() && self.aside {
            return Ok(Got::Nothing);
        }
        if self.unread.is_empty() && !self.ended {
            match sockets::receive(socket, &mut self.incoming[..])? {
                Got::Bytes(bytes) => self.unread = 0..bytes,
                Got::Nothing => return Ok(Got::Nothing),
                Got::End => self.ended = true,
            }
        }
        if self.unread.is_empty() && self.ended {
            return Ok(Got::End);
        }
        let taken = self.connection.read_tls(&mut &self.incoming[self.unread.clone()])?;
        self.unread.start += taken;
        if let Err(error) = self.connection.process_new_packets() {
            // The alert that says so goes out if it can.
            let _ = self.write(socket);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(Got::Bytes(taken))
    }

    fn encrypt(&mut self, socket: &Descriptor, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(socket)?;
        if self.is_behind() {
            return Ok(0);
        }
        let taken = self.connection.writer().write_vectored(parts)?;
        self.write(socket)?;
        Ok(taken)
    }

    /// Writes records until the kernel takes no more.
    fn write(&mut self, socket: &Descriptor) -> io::Result<()> {
        loop {
            if self.written == self.outgoing.len() {
                self.outgoing.clear();
                self.written = 0;
                while self.connection.wants_write() {
                    self.connection.write_tls(&mut self.outgoing)?;
                }
                if self.outgoing.is_empty() {
                    return Ok(());
                }
            }
            let bytes = sockets::send(socket, &[IoSlice::new(&self.outgoing[self.written..])])?;
            self.written += bytes;
            if bytes == 0 {
                return Ok(());
            }
        }
    }
}
