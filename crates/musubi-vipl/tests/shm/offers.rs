//! NICs whose processes trust each other: what is large is fetched from where it lies.

use std::time::{Duration, Instant};

use musubi_vipl::engine::{Dequeue, Queue, Reliability};

use super::{Side, connect, soon, system};

/// Bytes of a message that is offered if nothing else is posted, and where buffers lie.
const LARGE: usize = 60_000;
const BUFFER: usize = 8192;
/// Lives of a connection.
const LIVES: usize = if cfg!(debug_assertions) { 200 } else { 2000 };

#[test]
fn messages_and_writes_of_every_size_arrive_whole() {
    let system = system().trusting(|_| true);
    for reliability in Reliability::ALL {
        let (client, server) = (Side::open(&system), Side::open(&system));
        let (a, b) = connect(&client, &server, reliability);
        for bytes in [8191, 8192, 8193, 65_535, 65_536, 65_537, 131_073, 400_000] {
            let filled: Vec<u8> = (0..bytes).map(|place| (place * 7 + bytes) as u8).collect();
            client.put(BUFFER, &filled);
            server.put(BUFFER, &vec![0; bytes + 1]);
            server.write(0, 0, BUFFER, 500_000);
            server.post(b, Queue::Receive, 0);
            client.write(64, 0, BUFFER, bytes as u32);
            client.post(a, Queue::Send, 64);
            assert_eq!(server.done(b, Queue::Receive), (server.address(0), false), "{bytes}");
            assert_eq!(server.get(24, 4), (bytes as u32).to_le_bytes());
            assert_eq!(server.get(BUFFER, bytes + 1), [filled, vec![0]].concat(), "{bytes}");
            assert_eq!(client.done(a, Queue::Send), (client.address(64), false), "{bytes}");
        }
    }
}

/// The sender's program gets its buffer back and writes it, whenever the receiver comes to fetch it.
#[test]
fn a_message_that_arrives_is_as_it_was_posted_whatever_is_written_after_a_disconnect() {
    let system = system().trusting(|_| true);
    let (client, server) = (Side::open(&system), Side::open(&system));
    for life in 0..LIVES {
        let (a, b) = connect(&client, &server, Reliability::ALL[life % 3]);
        let fill = life as u8 % 250;
        client.put(BUFFER, &[fill; LARGE]);
        server.write(0, 0, BUFFER, LARGE as u32);
        server.post(b, Queue::Receive, 0);
        client.write(64, 0, BUFFER, LARGE as u32);
        let (_, is_error) = std::thread::scope(|scope| {
            let received = scope.spawn(|| server.done(b, Queue::Receive));
            client.post(a, Queue::Send, 64);
            // Before, while and after it is fetched.
            let until = Instant::now() + Duration::from_nanos((life % 100) as u64 * 400);
            while Instant::now() < until {}
            client.nic.disconnect(a).unwrap();
            client.put(BUFFER, &[0xff; LARGE]);
            received.join().unwrap()
        });
        if !is_error {
            assert!(server.get(BUFFER, LARGE).iter().all(|byte| *byte == fill), "life {life}: a mixture");
        }
        while !matches!(client.nic.wait(a, Queue::Send, soon()).unwrap(), Dequeue::Complete { .. }) {}
        server.nic.disconnect(b).unwrap();
        for (side, vi) in [(&client, a), (&server, b)] {
            side.nic.with(|nic| nic.destroy_vi(vi)).unwrap();
        }
    }
}
