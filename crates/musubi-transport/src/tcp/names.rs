//! Addresses of `host:port`.
//!
//! What you may rely on: [`numeric`] never waits. At most [`ASKED_MAX`] single names are asked for at a time, and of each
//! [`ADDRESSES_MAX`] addresses are given.
//!
//! How it works: numbers are read at once. Names are asked of the system's resolver, which may wait for seconds; so a
//! thread of its own does that where nobody may wait, a few at a time.
//!
//! What it does not do: end a question that the system's resolver never answers; its thread and its place are lost then.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names asked for at a time.
const ASKED_MAX: usize = 4;
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// The address that is written as numbers.
pub(super) fn numeric(place: &str) -> Option<SocketAddr> {
    place.parse().ok()
}

/// All addresses of a place. Waits for the resolver.
pub(super) fn resolve(place: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(place.to_socket_addrs()?.take(ADDRESSES_MAX).collect())
}

/// Asks without waiting.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    asked: Arc<AtomicUsize>,
}

impl Resolver {
    /// Hands the addresses of `place` to `answer` on a thread of its own; false if too many are being asked for.
    pub(super) fn ask(&self, place: String, answer: impl FnOnce(Vec<SocketAddr>) + Send + 'static) -> bool {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= ASKED_MAX {
            self.asked.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let asked = Arc::clone(&self.asked);
        let run = move || {
            musubi_linux::signals::leave_to_program();
            let addresses = resolve(&place).unwrap_or_default();
            asked.fetch_sub(1, Ordering::Relaxed);
            answer(addresses);
        };
        let started = std::thread::Builder::new().name("musubi-resolve".into()).spawn(run).is_ok();
        if !started {
            self.asked.fetch_sub(1, Ordering::Relaxed);
        }
        started
    }
}

/// Hands the addresses of all these places to `answer`, on a thread of its own that asks for one after the other; false if
/// there is no such thread.
pub(super) fn ask_all(
    places: Vec<String>,
    answer: impl FnOnce(Vec<(String, Vec<SocketAddr>)>) + Send + 'static,
) -> bool {
    let run = move || {
        musubi_linux::signals::leave_to_program();
        let found = |place: String| {
            let addresses = resolve(&place).unwrap_or_default();
            (place, addresses)
        };
        answer(places.into_iter().map(found).collect());
    };
    std::thread::Builder::new().name("musubi-resolve".into()).spawn(run).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_need_no_resolver_and_names_come_later() {
        assert_eq!(numeric("127.0.0.1:80"), Some(([127, 0, 0, 1], 80).into()));
        assert!(numeric("[::1]:80").is_some() && numeric("localhost:80").is_none());
        let (sender, receiver) = mpsc::channel();
        assert!(Resolver::default().ask("localhost:80".into(), move |found| sender.send(found).unwrap()));
        let found = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
    }
}
