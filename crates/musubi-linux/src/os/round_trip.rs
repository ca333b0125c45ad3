//! How long a TCP connection's round trips take, as the kernel estimates it from the acknowledgements it sees.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

const NS_PER_US: u64 = 1000;

/// The kernel's smoothed estimate, in nanoseconds; `None` if this is no TCP socket, or nothing has been acknowledged yet.
pub fn round_trip_ns(socket: impl AsFd) -> Option<u64> {
    // SAFETY: all fields are integers, for which zeros are a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: `info` is ours and `length` bytes long; the kernel writes at most that many, whatever the descriptor is.
    let result = unsafe {
        libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length)
    };
    (result == 0 && info.tcpi_rtt > 0).then(|| u64::from(info.tcpi_rtt) * NS_PER_US)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_in_use_has_one_and_nothing_else_has() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        for _ in 0..3 {
            near.write_all(&[1]).unwrap();
            far.read_exact(&mut [0]).unwrap();
            far.write_all(&[1]).unwrap();
            near.read_exact(&mut [0]).unwrap();
        }
        let time_ns = round_trip_ns(&near).unwrap();
        assert!((1_000..10_000_000_000).contains(&time_ns), "{time_ns}");
        assert_eq!(round_trip_ns(&listener), None, "nothing has been acknowledged");
        assert_eq!(round_trip_ns(std::fs::File::open("/dev/null").unwrap()), None);
    }
}
