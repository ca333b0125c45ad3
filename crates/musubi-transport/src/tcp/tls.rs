//! TLS 1.3 with certificates on both sides.
//!
//! What you may rely on: a connection that stands has shown, both ways, a certificate that the system's authority signed,
//! that is valid now, and that names one node; [`identity_of`] says which, and the caller compares. Names of hosts play
//! no part. Nothing is resumed from an earlier handshake, so an expired certificate does not live on.
//!
//! How it works: `rustls` with `ring`. The client's side checks the chain as for a server, without a name; the server's side
//! demands and checks a client's certificate.
//!
//! What it does not do: read certificates again while the node runs. A renewed one counts from the next start.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};

use super::Error;
use crate::NodeId;
use crate::keys::{self, AUTHORITY_CERTIFICATE, NodeFiles};
use crate::topology::{Network, Topology};

/// Largest amount of plain bytes that a connection takes before they are written as records.
const PENDING_BYTES_MAX: usize = 256 * 1024;

/// Whether a connection between these addresses must use TLS.
pub(super) fn needed(network: &Network, local: IpAddr, remote: IpAddr) -> bool {
    let loopback = |address: IpAddr| address.to_canonical().is_loopback();
    if loopback(local) && loopback(remote) { network.tls_on_loopback } else { !network.insecure }
}

/// A node's certificate and whom it believes.
#[derive(Debug)]
pub(super) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files of `me`; `None` if the description names none.
    pub(super) fn load(topology: &Topology, me: NodeId) -> Result<Option<Tls>, Error> {
        let (Some(files), Some(directory)) = (NodeFiles::of(topology, me), &topology.network.keys) else {
            return Ok(None);
        };
        let authority = certificates(&Path::new(directory).join(AUTHORITY_CERTIFICATE))?;
        let chain = certificates(&files.certificate)?;
        let named = chain.first().and_then(keys::certificate_identity);
        if named != Some(keys::Identity { system: topology.system.clone(), node: me }) {
            return Err(Error::NotOurCertificate(files.certificate, me));
        }
        let key = || PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem_error(&files.key, error));
        let mut roots = RootCertStore::empty();
        authority.into_iter().try_for_each(|certificate| roots.add(certificate))?;
        let roots = Arc::new(roots);
        let client = client(Arc::clone(&roots), chain.clone(), key()?)?;
        Ok(Some(Tls { client, server: server(roots, chain, key()?)? }))
    }

    /// The side that dialed.
    pub(super) fn dialing(&self) -> Result<Connection, rustls::Error> {
        let name = ServerName::try_from(NO_HOST).expect("it is written as names are");
        let mut connection = ClientConnection::new(Arc::clone(&self.client), name)?;
        connection.set_buffer_limit(Some(PENDING_BYTES_MAX));
        Ok(Connection::Client(connection))
    }

    /// The side that was dialed.
    pub(super) fn answering(&self) -> Result<Connection, rustls::Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.server))?;
        connection.set_buffer_limit(Some(PENDING_BYTES_MAX));
        Ok(Connection::Server(connection))
    }
}

/// `rustls` wants a host's name; it is neither sent nor compared.
const NO_HOST: &str = "node.musubi.invalid";

/// Why a handshake failed, as far as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The certificate is of another authority.
    OtherAuthority,
    /// It has expired, or is not valid yet.
    Expired,
    /// There is none.
    NoCertificate,
    /// The other side does not believe ours.
    Disbelieved,
    /// Anything else.
    Other,
}

/// Whether an error of a stream is one of TLS, and what it means for people.
pub(super) fn explained(error: &io::Error) -> Option<(Fault, String)> {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error};
    let (fault, text) = match error.get_ref()?.downcast_ref::<Error>()? {
        Error::InvalidCertificate(Certificate::BadSignature | Certificate::UnknownIssuer) => {
            (Fault::OtherAuthority, "its certificate is of another authority")
        }
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            (Fault::Expired, "its certificate has expired")
        }
        Error::InvalidCertificate(Certificate::NotValidYet | Certificate::NotValidYetContext { .. }) => {
            (Fault::Expired, "its certificate is not valid yet; do the clocks agree?")
        }
        Error::NoCertificatesPresented => (Fault::NoCertificate, "it has no certificate"),
        Error::InvalidMessage(_) => (Fault::Other, "it does not speak TLS"),
        Error::AlertReceived(Alert::CertificateExpired) => {
            (Fault::Disbelieved, "it says that our certificate has expired")
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError | Alert::BadCertificate) => {
            (Fault::Disbelieved, "it does not believe our certificate")
        }
        other => return Some((Fault::Other, format!("TLS: {other}"))),
    };
    Some((fault, text.into()))
}

/// Whose certificate the other side has shown, once the handshake is over.
pub(super) fn identity_of(connection: &Connection) -> Option<keys::Identity> {
    keys::certificate_identity(connection.peer_certificates()?.first()?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(keys::Error::Content { path: path.into(), what: "holds no certificate" }.into())
        }
        read => read.map_err(|error| pem_error(path, error)),
    }
}

fn pem_error(path: &Path, error: rustls::pki_types::pem::Error) -> Error {
    let path = path.to_path_buf();
    match error {
        rustls::pki_types::pem::Error::Io(source) => keys::Error::File { path, source }.into(),
        _ => keys::Error::Content { path, what: "is not a PEM file of what it should hold" }.into(),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn client(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ClientConfig>, Error> {
    let signatures = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider()).build()?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Chain { roots, signatures }))
        .with_client_auth_cert(chain, key)?;
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn server(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// Believes a server's certificate by its chain and time alone; which node it names is compared after the handshake.
#[derive(Debug)]
struct Chain {
    roots: Arc<RootCertStore>,
    signatures: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Chain {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.signatures.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_or_an_insecure_network_goes_without() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let (here, there) = (address("127.0.0.1"), address("10.1.2.3"));
        let secure = Network::default();
        assert!(!needed(&secure, here, address("127.9.9.9")) && !needed(&secure, address("::1"), address("::1")));
        assert!(!needed(&secure, here, address("::ffff:127.0.0.1")));
        assert!(needed(&secure, there, here) && needed(&secure, here, there) && needed(&secure, there, there));
        let forced = Network { tls_on_loopback: true, ..Network::default() };
        assert!(needed(&forced, here, here));
        let insecure = Network { insecure: true, ..Network::default() };
        assert!(!needed(&insecure, there, there) && !needed(&insecure, here, here));
    }
}
