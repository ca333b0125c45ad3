//! A line between two nodes that changes, holds up, repeats or cuts what it carries.
//!
//! How it works: each connection that comes is carried on to the other side's real address by two threads. What happens to
//! the bytes of one read is chosen by a number; numbers begin with a seed and the count of connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What the threads of a line share.
#[derive(Default)]
struct State {
    carried: AtomicUsize,
    healed: AtomicBool,
}

/// The line; its threads live as long as the test's process.
pub struct Spoiler(Arc<State>);

impl Spoiler {
    /// From `near` to `far`.
    pub fn open(near: &str, far: &str, seed: u64) -> Spoiler {
        let (listener, far, state) = (TcpListener::bind(near).unwrap(), far.to_owned(), Arc::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let count = shared.carried.fetch_add(1, Ordering::SeqCst) as u64;
                // The called side may be restarting.
                let Ok(called) = TcpStream::connect(&far) else { continue };
                for (from, to, way) in [(&caller, &called, 1), (&called, &caller, 2)] {
                    let (from, to, state) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&shared));
                    let numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (count << 8) ^ way);
                    std::thread::spawn(move || carry(from, to, numbers, &state));
                }
            }
        });
        Spoiler(state)
    }

    /// Connections that came.
    pub fn carried(&self) -> usize {
        self.0.carried.load(Ordering::SeqCst)
    }

    /// From now on what new connections say arrives as it is.
    pub fn heal(&self) {
        self.0.healed.store(true, Ordering::SeqCst);
    }
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27) % below as u64) as usize
    }
}

/// Bytes of one read: a few, so that a hello is more than one of them.
const READ_BYTES: usize = 96;

fn carry(mut from: TcpStream, mut to: TcpStream, mut numbers: Numbers, state: &State) {
    let healed = state.healed.load(Ordering::SeqCst);
    // Some connections are spoiled from their first byte, some only when they have carried much.
    let mut untouched = [0, 1, 2, 30, 300][numbers.next(5)];
    let mut bytes = [0; READ_BYTES];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut said = bytes[..count].to_vec();
        if !healed && untouched == 0 && !spoil(&mut said, &mut numbers) {
            break;
        }
        untouched = usize::saturating_sub(untouched, 1);
        if to.write_all(&said).is_err() {
            break;
        }
    }
    // Either may have ended already.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Changes what goes on; false if the connection ends here.
fn spoil(said: &mut Vec<u8>, numbers: &mut Numbers) -> bool {
    let at = numbers.next(said.len());
    match numbers.next(16) {
        0 => said[at] ^= 1 << numbers.next(8),
        1 => said[at] = [0, 1, 0x7f, 0xff][numbers.next(4)],
        2 => said.truncate(at),
        3 => said.extend_from_within(at..),
        4 => {
            said.remove(at);
        }
        5 => said.insert(at, numbers.next(256) as u8),
        6 => said.iter_mut().for_each(|byte| *byte = numbers.next(256) as u8),
        7 => said.reverse(),
        8 => std::thread::sleep(Duration::from_millis(numbers.next(600) as u64)),
        9 => return false,
        _ => {}
    }
    true
}
