//! Who is refused: other authorities, expired certificates, other plans, strangers, garbage, silence, floods.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use musubi_linux::clock::now_ns;
use musubi_transport::NodeId;
use musubi_transport::carrier::Describe;
use musubi_transport::keys::{Authority, NodeFiles, Validity};
use musubi_transport::links::Sent;
use musubi_transport::session::{Hello, Identity, Reason, Step};
use musubi_transport::status::AcceptorStatus;
use musubi_transport::tcp::{self, Counters, HANDSHAKES_OF_ADDRESS_MAX};
use musubi_transport::topology::{Network, Place, Topology};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;

use crate::node::{PATIENCE, TestNode, id, linked, run, topology};

/// A directory with an authority and certificates of nodes 1 to `count`, of system "test".
pub fn keys(count: u32, validity: Validity) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::create(directory.path(), "test", Validity::days(1), false).unwrap();
    for node in 1..=count {
        authority.issue(id(node), &files(directory.path(), id(node)), validity, false).unwrap();
    }
    directory
}

pub fn files(directory: &Path, node: NodeId) -> NodeFiles {
    let stem = directory.join(format!("{}-{}", node.domain(), node.node()));
    NodeFiles { certificate: stem.with_extension("crt"), key: stem.with_extension("key") }
}

pub fn encrypted(keys: &TempDir) -> Network {
    Network { tls_on_loopback: true, keys: Some(keys.path().to_str().unwrap().into()), ..Network::default() }
}

/// The same system with other keys, or whatever else is the network's.
fn with_network(topology: &Topology, network: Network) -> Arc<Topology> {
    Arc::new(Topology { network, ..topology.clone() })
}

fn counters(node: &TestNode) -> Counters {
    node.carrier.event_log().counters()
}

/// The same as tools see it.
fn door(node: &TestNode) -> AcceptorStatus {
    let mut door = AcceptorStatus::default();
    node.carrier.describe_acceptor(&mut door);
    door
}

fn says(node: &TestNode, part: &str) -> bool {
    node.carrier.event_log().log().iter().any(|entry| entry.text.contains(part))
}

fn address(topology: &Topology, node: u32) -> String {
    topology.nodes[&id(node)].tcp.clone().unwrap()
}

#[test]
fn certificates_both_ways_carry_and_resume() {
    let keys = keys(2, Validity::days(1));
    let topology = Arc::new(topology(2, encrypted(&keys)));
    let (mut one, mut two) = linked(&topology);
    for number in 0..200_u32 {
        let payload = vec![number as u8; 20_000];
        run(&mut [&mut one, &mut two], "room", |nodes| {
            matches!(nodes[0].send(id(2), 1, number, &payload), Sent::Numbered(_))
        });
        if number % 40 == 20 {
            one.carrier.break_connection(now_ns(), id(2));
        }
    }
    run(&mut [&mut one, &mut two], "all frames", |nodes| nodes[1].seen.frames.len() == 200);
    for (number, (_, header, bytes)) in two.seen.frames.iter().enumerate() {
        assert_eq!(header.tag, number as u32);
        assert!(bytes.iter().all(|&byte| byte == number as u8));
    }
    assert!(one.seen.downs.is_empty() && two.seen.downs.is_empty());
    assert_eq!(counters(&one).tls_failed + counters(&two).tls_failed, 0);
}

#[test]
fn a_burst_is_taken_in_wholly_though_nothing_more_comes() {
    const FRAMES: u32 = 550;
    let keys = keys(2, Validity::days(1));
    let quiet = Network { heartbeat_ms: 600_000, silence_ms: 3_600_000, ..encrypted(&keys) };
    let (mut one, mut two) = linked(&Arc::new(topology(2, quiet)));
    // Fewer bytes than one read takes, more than TLS decrypts at a time.
    (0..FRAMES).for_each(|number| assert!(matches!(one.send(id(2), 1, number, &[7; 30]), Sent::Numbered(_))));
    run(&mut [&mut two], "all frames", |nodes| nodes[0].seen.frames.len() == FRAMES as usize);
}

#[test]
fn another_authority_is_refused() {
    let (ours, theirs) = (keys(2, Validity::days(1)), keys(2, Validity::days(1)));
    let system = topology(2, encrypted(&ours));
    let mut one = TestNode::open(&Arc::new(system.clone()), id(1));
    let mut two = TestNode::open(&with_network(&system, encrypted(&theirs)), id(2));
    two.want(id(1));
    run(&mut [&mut one, &mut two], "refusals", |nodes| nodes.iter().all(|node| counters(node).tls_failed >= 1));
    assert!(one.seen.ups.is_empty() && two.seen.ups.is_empty());
    assert!(says(&two, "another authority"), "{:?}", two.carrier.event_log().log());
    assert!(door(&two).other_authority >= 1 && door(&one).disbelieved >= 1, "{:?} {:?}", door(&one), door(&two));
}

#[test]
fn an_expired_certificate_is_refused() {
    let hour = Duration::from_secs(3600);
    let (from, until) = (SystemTime::now() - 2 * hour, SystemTime::now() - hour);
    let keys = keys(2, Validity { from, until });
    let directory = keys.path();
    let authority = Authority::load(directory, "test").unwrap();
    authority.issue(id(1), &files(directory, id(1)), Validity::days(1), true).unwrap();
    let topology = Arc::new(topology(2, encrypted(&keys)));
    let (mut one, mut two) = (TestNode::open(&topology, id(1)), TestNode::open(&topology, id(2)));
    // In both directions: as who is dialed, and as who dials.
    one.want(id(2));
    run(&mut [&mut one, &mut two], "a refusal", |nodes| says(nodes[0], "expired"));
    one.want_no_more(id(2));
    two.want(id(1));
    let before = counters(&one).accepted;
    run(&mut [&mut one, &mut two], "a refusal", |nodes| counters(nodes[0]).accepted > before + 1);
    assert!(door(&one).expired >= 1 && door(&one).other_authority == 0, "{:?}", door(&one));
    assert!(one.seen.ups.is_empty() && two.seen.ups.is_empty());
}

#[test]
fn another_nodes_certificate_opens_nothing_and_no_link() {
    let keys = keys(3, Validity::days(1));
    let system = topology(3, encrypted(&keys));
    // A node will not begin with the files of another.
    let mut stolen = system.clone();
    let of_three = files(keys.path(), id(3));
    let place = stolen.nodes.get_mut(&id(2)).unwrap();
    place.certificate = Some(of_three.certificate.to_str().unwrap().into());
    place.key = Some(of_three.key.to_str().unwrap().into());
    let refused = TestNode::try_open(&Arc::new(stolen), id(2), 1);
    assert!(matches!(refused, Err(tcp::Error::NotOurCertificate(_, node)) if node == id(2)));
    // Who listens where node 2 should, but is node 3, is refused by who dials.
    let mut moved = system.clone();
    let (two, three) = (address(&system, 2), address(&system, 3));
    moved.nodes.get_mut(&id(2)).unwrap().tcp = Some(three);
    moved.nodes.get_mut(&id(3)).unwrap().tcp = Some(two);
    let mut one = TestNode::open(&Arc::new(system.clone()), id(1));
    let mut three = TestNode::open(&Arc::new(moved), id(3));
    one.want(id(2));
    let refusals = |node: &TestNode| counters(node).refused.of(Reason::Identity);
    run(&mut [&mut one, &mut three], "a refusal", |nodes| refusals(nodes[0]) >= 1);
    // Who has node 3's certificate and says that it is node 2 is refused by who is dialed, and told so.
    let mut liar = dial_with(keys.path(), id(3), &address(&system, 1));
    let identity = Identity { system: "test".into(), hash: 7, node: id(2), incarnation: 5 };
    let hello = Hello { step: Step::Hello, session: 9, attempt: 1, ..Hello::refusal(&identity, id(1), Reason::Busy) };
    liar.write_all(&hello.encode()).unwrap();
    let before = refusals(&one);
    run(&mut [&mut one], "a refusal", |nodes| refusals(nodes[0]) > before);
    let mut answer = [0; Hello::BYTES];
    liar.read_exact(&mut answer).unwrap();
    assert_eq!(Hello::decode(&answer).unwrap().reason, Some(Reason::Identity));
    assert!(one.seen.ups.is_empty());
}

/// A connection with the certificate of `node`, by whoever holds its files.
fn dial_with(
    directory: &Path,
    node: NodeId,
    address: &str,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let name = ServerName::try_from("anybody.invalid").unwrap();
    let connection = rustls::ClientConnection::new(client(directory, node), name).unwrap();
    rustls::StreamOwned::new(connection, dial(address))
}

/// What a client with the certificate of `node` needs; it believes everybody.
pub fn client(directory: &Path, node: NodeId) -> Arc<rustls::ClientConfig> {
    let files = files(directory, node);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(files.certificate).unwrap()];
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(files.key).unwrap())
        .unwrap();
    Arc::new(config)
}

/// Believes every server.
#[derive(Debug)]
struct Gullible;

impl rustls::client::danger::ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

fn dial(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn another_plan_is_refused_and_told_why() {
    let system = topology(2, Network::default());
    let mut one = TestNode::open(&Arc::new(system.clone()), id(1));
    let mut two = TestNode::open(&Arc::new(Topology { hash: 8, ..system }), id(2));
    two.want(id(1));
    run(&mut [&mut one, &mut two], "a refusal", |nodes| !nodes[1].seen.absents.is_empty());
    assert!(counters(&one).refused.of(Reason::Plan) >= 1);
    assert!(says(&one, "another description") && says(&two, "another description"));
    assert!(one.seen.ups.is_empty() && two.seen.ups.is_empty());
}

#[test]
fn strangers_are_refused() {
    let system = topology(2, Network::default());
    let mut one = TestNode::open(&Arc::new(system.clone()), id(1));
    let mut larger = system;
    larger.nodes.insert(id(3), Place { tcp: Some(crate::node::own_address()), ..Place::default() });
    let mut three = TestNode::open(&Arc::new(larger), id(3));
    three.want(id(1));
    let refusals = |node: &TestNode| counters(node).refused.of(Reason::UnknownNode);
    run(&mut [&mut one, &mut three], "a refusal", |nodes| refusals(nodes[0]) >= 1 && !nodes[1].seen.absents.is_empty());
    assert!(one.seen.ups.is_empty() && three.seen.ups.is_empty());
}

#[test]
fn tls_on_one_side_only_is_refused_by_both() {
    let keys = keys(2, Validity::days(1));
    let system = topology(2, encrypted(&keys));
    let mut one = TestNode::open(&Arc::new(system.clone()), id(1));
    let mut two = TestNode::open(&with_network(&system, Network::default()), id(2));
    two.want(id(1));
    run(&mut [&mut one, &mut two], "a refusal", |nodes| counters(nodes[0]).tls_failed >= 1);
    one.want(id(2));
    run(&mut [&mut one, &mut two], "a refusal", |nodes| counters(nodes[1]).refused.of(Reason::Garbage) >= 1);
    assert!(one.seen.ups.is_empty() && two.seen.ups.is_empty());
}

#[test]
fn without_keys_only_loopback_is_listened_at() {
    let mut system = topology(1, Network::default());
    system.nodes.get_mut(&id(1)).unwrap().tcp = Some("0.0.0.0:0".into());
    assert!(matches!(TestNode::try_open(&Arc::new(system.clone()), id(1), 1), Err(tcp::Error::NoKeys(_))));
    let insecure = Network { insecure: true, ..Network::default() };
    assert!(TestNode::try_open(&with_network(&system, insecure), id(1), 1).is_ok());
    let mut nowhere = system;
    nowhere.nodes.get_mut(&id(1)).unwrap().tcp = Some("no-such-host.invalid:1".into());
    assert!(matches!(TestNode::try_open(&Arc::new(nowhere), id(1), 1), Err(tcp::Error::Address(..))));
}

#[test]
fn who_says_nothing_is_refused_when_its_time_is_over() {
    let topology = Arc::new(topology(1, Network::default()));
    let mut one = TestNode::open(&topology, id(1));
    let silent = dial(&address(&topology, 1));
    run(&mut [&mut one], "the refusal", |nodes| counters(nodes[0]).refused.of(Reason::TimeOut) >= 1);
    assert_eq!(counters(&one).refused.of(Reason::Busy), 0);
    drop(silent);
}

#[test]
fn silence_and_floods_are_bounded_and_a_link_goes_on() {
    let topology = Arc::new(topology(2, Network::default()));
    let (mut one, mut two) = linked(&topology);
    let place = address(&topology, 1);
    let silent: Vec<TcpStream> = (0..2 * HANDSHAKES_OF_ADDRESS_MAX).map(|_| dial(&place)).collect();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flood = std::thread::spawn({
        let (stop, place) = (Arc::clone(&stop), place.clone());
        move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Its end, however it comes, is what is wanted.
                let _ = TcpStream::connect(&place).and_then(|mut stream| stream.write_all(b"GET / HTTP/1.1\r\n\r\n"));
            }
        }
    });
    let (begin, mut sent) = (Instant::now(), 0);
    run(&mut [&mut one, &mut two], "the flood to be counted", |nodes| {
        let _ = nodes[0].send(id(2), 1, 0, b"still here");
        sent += 1;
        let counters = counters(nodes[0]);
        let refused = |reason| counters.refused.of(reason);
        // Those who say nothing share the flood's address, and its places: most are put out before their time is over.
        refused(Reason::TimeOut) + refused(Reason::Busy) >= 1
            && counters.throttled >= 1
            && refused(Reason::Garbage) + counters.hung_up >= 1
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    flood.join().unwrap();
    let counted = counters(&one);
    let elapsed_ns = begin.elapsed().as_nanos() as u64;
    let allowed = tcp::ACCEPTS_BURST + elapsed_ns / tcp::ACCEPT_NS + 2;
    assert!(counted.accepted <= allowed, "{} of {allowed}", counted.accepted);
    run(&mut [&mut one, &mut two], "the frames", |nodes| nodes[1].seen.frames.len() == sent);
    assert!(one.seen.downs.is_empty() && two.seen.downs.is_empty());
    drop(silent);
    // And a newcomer still gets in.
    drop(two);
    let mut two = TestNode::try_open(&topology, id(2), 2).unwrap();
    two.want(id(1));
    run(&mut [&mut one, &mut two], "the newcomer", |nodes| !nodes[1].seen.ups.is_empty());
}
