//! Programs in Rust over the owned interface: two opened NICs, in one process or in two, over shared memory and over TCP.
#![forbid(unsafe_code)]

mod connections;
mod ends;
mod futures;
mod many;
mod memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_transport::topology::{Network, Place, Topology};
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::owned::process::{Nic, Vi};
use musubi_vipl::owned::{Connected, ViOptions};
use musubi_vipl::process::NicSystem;

#[path = "../../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

/// What lies between the two.
#[derive(Clone, Copy, Debug)]
enum Way {
    SharedMemory,
    Tcp,
}

impl Way {
    const ALL: [Way; 2] = [Way::SharedMemory, Way::Tcp];
}

/// NICs "left" and "right" of a system that no other test has.
fn system(way: Way) -> NicSystem {
    system_of(&description(way))
}

/// Name of a system that no other test has, and over TCP the addresses of its NICs: as another process is told.
fn description(way: Way) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("owned-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match way {
        Way::SharedMemory => name,
        Way::Tcp => format!("{name} {} {}", loopback::own_address(), loopback::own_address()),
    }
}

fn system_of(description: &str) -> NicSystem {
    let mut words = description.split(' ').map(str::to_owned);
    let system = words.next().unwrap();
    let mut place = || match words.next() {
        None => Place { shared_memory: Some("here".to_owned()), ..Place::default() },
        address => Place { tcp: address, ..Place::default() },
    };
    let nodes = [0, 1].map(|nic| (NicNumber(nic).node(0).unwrap(), place()));
    let network = Network { insecure: true, ..Network::default() };
    let topology = Topology { system, hash: 1, nodes: nodes.into(), network };
    NicSystem::new([("left".to_owned(), 1), ("right".to_owned(), 1)], topology)
}

/// Both NICs of a system.
fn open(way: Way) -> (Nic, Nic) {
    let system = system(way);
    (Nic::open(&system, "left").unwrap(), Nic::open(&system, "right").unwrap())
}

fn soon() -> Deadline {
    Deadline::after(LONG)
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Connects a VI of each, by a name of its own.
fn connect(client: &Nic, server: &Nic, options: ViOptions) -> (Vi<Connected>, Vi<Connected>) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes();
    let mut listener = server.listen(&name).unwrap();
    let to = client.address("right", &name).unwrap();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let caller = listener.caller().wait(soon()).unwrap();
            assert_eq!(caller.from(), &Address::new(client.number(), b"client").unwrap());
            caller.accept(server.vi(options).unwrap()).wait(soon()).unwrap()
        });
        let here = client.vi(options).unwrap().connect_as(b"client", &to).wait(soon()).unwrap();
        (here, accepting.join().unwrap())
    })
}

/// Two connected VIs and their NICs.
struct Pair {
    left: Nic,
    right: Nic,
    here: Vi<Connected>,
    there: Vi<Connected>,
}

fn pair(way: Way) -> Pair {
    pair_of(way, ViOptions::default())
}

fn pair_of(way: Way, options: ViOptions) -> Pair {
    let (left, right) = open(way);
    let (here, there) = connect(&left, &right, options);
    Pair { left, right, here, there }
}

/// Wakes nobody.
struct Nobody;

impl std::task::Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Polls once, by who is not woken.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let waker = Arc::new(Nobody).into();
    match std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(&waker)) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// Awaits all of them in one task.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().filter(|(_, output)| output.is_none()) {
            if let std::task::Poll::Ready(ready) = future.as_mut().poll(context) {
                *output = Some(ready);
            }
        }
        if futures.iter().all(|(_, output)| output.is_some()) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    futures.into_iter().map(|(_, output)| output.unwrap()).collect()
}
