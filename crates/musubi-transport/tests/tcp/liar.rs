//! A node made by hand that answers every connection in one way, and what it can say.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use musubi_transport::session::{Hello, Identity, Reason, Step};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::node::id;

/// What the liar says once it knows what the other side has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Nothing,
    HangUp,
    Garbage,
    /// The first half of what would be right.
    Half,
    Refuse(Reason),
    OtherSystem,
    OtherHash,
    OtherVersion,
    OtherNode,
    OtherRecipient,
    OtherSession,
    Touched,
    /// The session has been ended.
    Ended,
    /// More has been received than was sent.
    Received,
    /// What was said comes back.
    Echo,
    /// A hello where a welcome belongs, or the other way round.
    OtherStep,
    Twice,
    ThenGarbage,
    ThenZeros,
    /// A record that acknowledges what was never sent.
    ThenAcknowledgement,
    /// A record whose length is larger than any.
    ThenHugeRecord,
    /// A piece with a number far ahead.
    ThenFarPiece,
    ThenGoodbye,
    ThenSilence,
    ThenHangUp,
}

pub const LIES: [Lie; 29] = [
    Lie::Nothing,
    Lie::HangUp,
    Lie::Garbage,
    Lie::Half,
    Lie::Refuse(Reason::Version),
    Lie::Refuse(Reason::Plan),
    Lie::Refuse(Reason::Identity),
    Lie::Refuse(Reason::Crossed),
    Lie::Refuse(Reason::SessionUnknown),
    Lie::OtherSystem,
    Lie::OtherHash,
    Lie::OtherVersion,
    Lie::OtherNode,
    Lie::OtherRecipient,
    Lie::OtherSession,
    Lie::Touched,
    Lie::Ended,
    Lie::Received,
    Lie::Echo,
    Lie::OtherStep,
    Lie::Twice,
    Lie::ThenGarbage,
    Lie::ThenZeros,
    Lie::ThenAcknowledgement,
    Lie::ThenHugeRecord,
    Lie::ThenFarPiece,
    Lie::ThenGoodbye,
    Lie::ThenSilence,
    Lie::ThenHangUp,
];

/// A hello of node 2 for node 1.
pub fn hello(step: Step, session: u64, attempt: u32) -> Hello {
    let identity = Identity { system: "test".into(), hash: 7, node: id(2), incarnation: 5 };
    Hello { step, reason: None, session, attempt, ..Hello::refusal(&identity, id(1), Reason::Busy) }
}

fn record(word: u8, class: u8, length: u32, number: u32, received: u32) -> Vec<u8> {
    let mut bytes = vec![word, class, 0, 0];
    [length, number, received].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

/// The lie in bytes: `right` is what an honest node would say.
fn bytes_of(lie: Lie, right: &Hello, said: &[u8]) -> Vec<u8> {
    let with = |change: &dyn Fn(&mut Hello)| {
        let mut hello = right.clone();
        change(&mut hello);
        hello.encode().to_vec()
    };
    let then = |more: Vec<u8>| [right.encode().to_vec(), more].concat();
    match lie {
        Lie::Nothing | Lie::HangUp => Vec::new(),
        Lie::Garbage => b"what do you mean, and who are you to ask?".repeat(4),
        Lie::Half => right.encode()[..Hello::BYTES / 2].to_vec(),
        Lie::Refuse(reason) => Hello::refusal(&right.identity, id(1), reason).encode().to_vec(),
        Lie::OtherSystem => with(&|hello| hello.identity.system = "rest".into()),
        Lie::OtherHash => with(&|hello| hello.identity.hash = 8),
        Lie::OtherVersion => {
            let mut bytes = with(&|_| {});
            bytes[8] = 99;
            bytes
        }
        Lie::OtherNode => with(&|hello| hello.identity.node = id(3)),
        Lie::OtherRecipient => with(&|hello| hello.to = id(3)),
        Lie::OtherSession => with(&|hello| hello.session ^= 1 << 40),
        Lie::Touched => with(&|hello| hello.touched = true),
        Lie::Ended => with(&|hello| hello.ended = hello.session),
        Lie::Received => with(&|hello| hello.received = 1_000_000),
        Lie::Echo => said.to_vec(),
        Lie::OtherStep => with(&|hello| {
            hello.step = if hello.step == Step::Hello { Step::Welcome } else { Step::Hello };
        }),
        Lie::Twice => then(right.encode().to_vec()),
        Lie::ThenGarbage => then((0..5000_u32).map(|at| (at * 37 % 251) as u8).collect()),
        Lie::ThenZeros => then(vec![0; 5000]),
        Lie::ThenAcknowledgement => then(record(3, 0, 0, 0, 77)),
        Lie::ThenHugeRecord => then(record(1, 1, u32::MAX, 1, 0)),
        Lie::ThenFarPiece => then([record(1, 1, 24, 1 << 31, 0), vec![0; 24]].concat()),
        Lie::ThenGoodbye => then(record(4, 0, 0, 0, 0)),
        Lie::ThenSilence | Lie::ThenHangUp => then(Vec::new()),
    }
}

/// Says the lie, and hangs up or hears the other side out.
fn lie_to(mut stream: impl Read + Write, lie: Lie, step: Step) {
    let mut said = vec![0; Hello::BYTES];
    let session = match step {
        Step::Hello => 9,
        // Something else may come, or nothing; then there is nothing to answer.
        _ => match stream.read_exact(&mut said) {
            Ok(()) => u64::from_le_bytes(said[32..40].try_into().unwrap()),
            Err(_) => return,
        },
    };
    if stream.write_all(&bytes_of(lie, &hello(step, session, 1), &said)).is_err() || stream.flush().is_err() {
        return;
    }
    if !matches!(lie, Lie::HangUp | Lie::ThenHangUp) {
        while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
    }
}

/// How long the liar stays on a connection on which nothing comes.
const STAYS: Duration = Duration::from_millis(700);

/// Answers whoever connects, until it is dropped.
pub struct Liar {
    ended: Arc<AtomicBool>,
    met: Arc<AtomicUsize>,
    address: String,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    /// Through TLS, or plainly.
    pub fn listen(address: &str, lie: Lie, tls: Option<Arc<rustls::ServerConfig>>) -> Liar {
        let listener = TcpListener::bind(address).unwrap();
        let (ended, met) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&met));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let tls = tls.clone();
                std::thread::spawn(move || answer(stream.unwrap(), lie, tls));
            }
        });
        Liar { ended, met, address: address.to_owned(), thread: Some(thread) }
    }

    /// Connections that came.
    pub fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it looks.
        let _ = TcpStream::connect(&self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn answer(stream: TcpStream, lie: Lie, tls: Option<Arc<rustls::ServerConfig>>) {
    stream.set_read_timeout(Some(STAYS)).unwrap();
    match tls {
        None => lie_to(stream, lie, Step::Welcome),
        Some(config) => {
            let connection = rustls::ServerConnection::new(config).unwrap();
            lie_to(rustls::StreamOwned::new(connection, stream), lie, Step::Welcome);
        }
    }
}

/// Calls somebody, on a thread of its own.
pub fn call(address: &str, lie: Lie, tls: Option<Arc<rustls::ClientConfig>>) {
    let Ok(stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(STAYS)).unwrap();
    std::thread::spawn(move || match tls {
        None => lie_to(stream, lie, Step::Hello),
        Some(config) => {
            let connection = rustls::ClientConnection::new(config, "anybody.invalid".try_into().unwrap()).unwrap();
            lie_to(rustls::StreamOwned::new(connection, stream), lie, Step::Hello);
        }
    });
}

/// What a server with the certificate of `node` needs; it asks nobody for one.
pub fn server(keys: &Path, node: u32) -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(keys.join(format!("0-{node}.crt"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(keys.join(format!("0-{node}.key"))).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}
