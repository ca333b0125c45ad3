//! Descriptors that are closed, and files that are read, without the C library.
//!
//! What you may rely on: [`Descriptor`] is an [`OwnedFd`] but for its end. The end of one that another process gave us
//! (`Descriptor::of_others`) does not wait, whatever it is.
//!
//! How it works: the system calls are made here. The C library's `close` and `read` are names that a program may use for
//! functions of its own, which would then be called in their place; and a thread that is being cancelled (`pthread_cancel`)
//! would end in them, in the middle of us.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

use crate::os::closing::close_elsewhere;

/// Bytes of one read of a file.
const READ_BYTES: usize = 16 * 1024;

/// An open descriptor, closed when it is dropped.
#[derive(Debug)]
pub struct Descriptor {
    fd: ManuallyDrop<OwnedFd>,
    /// Closing it may wait for somebody else.
    of_others: bool,
}

impl Descriptor {
    /// One that another process gave us, or a socket on which it may have sent some that nobody has read.
    pub(crate) fn of_others(fd: OwnedFd) -> Descriptor {
        Descriptor { fd: ManuallyDrop::new(fd), of_others: true }
    }

    /// An event descriptor that nobody has rung yet and that never waits.
    ///
    /// # Errors
    /// If the process or the system has none left.
    pub fn event() -> Result<Descriptor, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Descriptor::from)
    }

    /// One that watches others.
    ///
    /// # Errors
    /// As there.
    pub fn epoll() -> Result<Descriptor, Errno> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Descriptor::from)
    }
}

/// What is in a file, or at least as many bytes of it.
///
/// # Errors
/// If it cannot be opened or read; [`Errno::SPIPE`] for a pipe, a socket or a device, of which one might wait for ever.
pub fn read_file(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = Descriptor::from(open(path, flags, Mode::empty())?);
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(Errno::SPIPE);
    }
    let mut bytes = Vec::new();
    while bytes.len() < bytes_max {
        bytes.reserve(READ_BYTES);
        match rustix::io::read(&file, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => (),
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Descriptor {
        Descriptor { fd: ManuallyDrop::new(fd), of_others: false }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.of_others {
            // SAFETY: it is not used after this, which is its end.
            return close_elsewhere(unsafe { ManuallyDrop::take(&mut self.fd) });
        }
        // SAFETY: it is ours, open, and nobody uses it any more: what borrows it cannot outlive us.
        unsafe { rustix::io::close(self.fd.as_raw_fd()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_far_as_is_wanted_and_not_much_farther() {
        let path = std::env::temp_dir().join(format!("musubi-long-{}", std::process::id()));
        let whole: Vec<u8> = (0..3 * READ_BYTES + 5).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &whole).unwrap();
        let read = |bytes_max| read_file(&path, bytes_max).unwrap();
        let (begin, all) = (read(READ_BYTES), read(usize::MAX));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(all, whole);
        assert_eq!(begin, whole[..READ_BYTES]);
        assert_eq!(read_file(&path, 1), Err(Errno::NOENT));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("musubi-pipe-{}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let of = path.clone();
        std::thread::spawn(move || done.send(read_file(&of, 10)));
        let answer = is_done.recv_timeout(std::time::Duration::from_secs(20));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(answer, Ok(Err(Errno::SPIPE)));
    }
}
