//! The authority: who signs certificates of nodes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;

use super::files::{self, AUTHORITY_CERTIFICATE, AUTHORITY_KEY, NodeFiles};
use super::{Error, Identity, identity};
use crate::NodeId;

/// Clocks of machines differ: a certificate is valid from this long before now.
const BACKDATE: Duration = Duration::from_secs(600);
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Not before.
    pub from: SystemTime,
    /// Not after.
    pub until: SystemTime,
}

impl Validity {
    /// From ten minutes ago (clocks differ) for so many days.
    pub fn days(days: u32) -> Validity {
        let now = SystemTime::now();
        Validity { from: now - BACKDATE, until: now + Duration::from_secs(u64::from(days) * DAY_S) }
    }

    fn apply(self, parameters: &mut CertificateParams) -> Result<(), Error> {
        parameters.not_before = certificate_time(self.from)?;
        parameters.not_after = certificate_time(self.until)?;
        if self.until > self.from { Ok(()) } else { Err(Error::Validity) }
    }
}

fn certificate_time(time: SystemTime) -> Result<OffsetDateTime, Error> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| Error::Validity)?;
    let seconds = i64::try_from(since.as_secs()).map_err(|_| Error::Validity)?;
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| Error::Validity)
}

/// An authority with its private key.
#[derive(Debug)]
pub struct Authority {
    system: String,
    directory: PathBuf,
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    /// Makes a new authority for `system` and writes `ca.crt` and `ca.key` into `directory`, which exists.
    ///
    /// # Errors
    /// If one of the files exists and is not to be replaced (`force`), or cannot be written; if the validity is none.
    pub fn create(directory: &Path, system: &str, validity: Validity, force: bool) -> Result<Authority, Error> {
        let (certificate_path, key_path) = (directory.join(AUTHORITY_CERTIFICATE), directory.join(AUTHORITY_KEY));
        files::refuse_existing(&[&certificate_path, &key_path], force)?;
        let key = KeyPair::generate()?;
        let mut parameters = authority_parameters(system);
        validity.apply(&mut parameters)?;
        let certificate = parameters.self_signed(&key)?;
        let (key_text, certificate_text) = (key.serialize_pem(), certificate.pem());
        files::write_pair((&key_path, &key_text), (&certificate_path, &certificate_text), force)?;
        let certificate = certificate.der().clone();
        Ok(Authority { system: system.into(), directory: directory.into(), certificate, key })
    }

    /// The authority for `system` whose files lie in `directory`.
    ///
    /// # Errors
    /// If a file cannot be read, does not hold what its name says, or the two (or the system) do not belong together.
    pub fn load(directory: &Path, system: &str) -> Result<Authority, Error> {
        let (certificate_path, key_path) = (directory.join(AUTHORITY_CERTIFICATE), directory.join(AUTHORITY_KEY));
        let text = files::read(&certificate_path)?;
        let content = |path: &Path, what| Error::Content { path: path.into(), what };
        let certificate = CertificateDer::from_pem_slice(text.as_bytes())
            .map_err(|_| content(&certificate_path, "holds no certificate"))?;
        let key = KeyPair::from_pem(&files::read(&key_path)?).map_err(|_| content(&key_path, "holds no usable key"))?;
        let authority = Authority { system: system.into(), directory: directory.into(), certificate, key };
        authority.check()?;
        Ok(authority)
    }

    /// Makes a key and a certificate for `node`, valid for `validity`, and writes them to `files`.
    ///
    /// # Errors
    /// If one of the files exists and is not to be replaced (`force`), or cannot be written; if the validity is none.
    pub fn issue(&self, node: NodeId, files: &NodeFiles, validity: Validity, force: bool) -> Result<(), Error> {
        let whose = Identity { system: self.system.clone(), node };
        self.issue_to(&whose, files, validity, force)
    }

    /// The same for a node of a part of the system, which has a name of its own: its NICs.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn issue_to(&self, whose: &Identity, files: &NodeFiles, validity: Validity, force: bool) -> Result<(), Error> {
        files::refuse_existing(&[&files.certificate, &files.key], force)?;
        let (certificate, key) = self.signed(whose, validity)?;
        let (key_text, certificate_text) = (key.serialize_pem(), certificate.pem());
        files::write_pair((&files.key, &key_text), (&files.certificate, &certificate_text), force)
    }

    fn signed(&self, whose: &Identity, validity: Validity) -> Result<(rcgen::Certificate, KeyPair), Error> {
        let key = KeyPair::generate()?;
        let mut parameters = node_parameters(&whose.system, whose.node)?;
        validity.apply(&mut parameters)?;
        let issuer = Issuer::new(authority_parameters(&self.system), &self.key);
        Ok((parameters.signed_by(&key, &issuer)?, key))
    }

    /// Signs something and looks whether the certificate on disk vouches for it.
    fn check(&self) -> Result<(), Error> {
        let stranger = || Error::NotOfOneAuthority(self.directory.join(AUTHORITY_CERTIFICATE));
        let node = NodeId::from_index(0).expect("there is a first node");
        let (sample, _) = self.signed(&Identity { system: self.system.clone(), node }, Validity::days(1))?;
        let anchor = webpki::anchor_from_trusted_cert(&self.certificate).map_err(|_| stranger())?;
        let sample = webpki::EndEntityCert::try_from(sample.der()).map_err(|_| stranger())?;
        let usage = webpki::KeyUsage::server_auth();
        sample
            .verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &[anchor], &[], UnixTime::now(), usage, None, None)
            .map(|_| ())
            .map_err(|_| stranger())
    }
}

/// What is the same for an authority's certificate each time: signatures name the issuer by it.
fn authority_parameters(system: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("Musubi authority of {system}"));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    parameters
}

fn node_parameters(system: &str, node: NodeId) -> Result<CertificateParams, Error> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("node {node} of {system}"));
    parameters.subject_alt_names = vec![SanType::URI(identity(system, node).try_into()?)];
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::keys::certificate_identity;

    fn files(directory: &Path) -> NodeFiles {
        NodeFiles { certificate: directory.join("a.crt"), key: directory.join("a.key") }
    }

    #[test]
    fn a_certificate_names_its_node_and_keys_are_private() {
        let directory = tempfile::tempdir().unwrap();
        let node = NodeId::new(3, 77).unwrap();
        Authority::create(directory.path(), "plant", Validity::days(30), false).unwrap();
        let authority = Authority::load(directory.path(), "plant").unwrap();
        let files = files(directory.path());
        authority.issue(node, &files, Validity::days(30), false).unwrap();
        let certificate = CertificateDer::from_pem_file(&files.certificate).unwrap();
        assert_eq!(certificate_identity(&certificate), Some(Identity { system: "plant".into(), node }));
        for key in [&files.key, &directory.path().join(AUTHORITY_KEY)] {
            assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn nothing_is_replaced_unless_forced() {
        let directory = tempfile::tempdir().unwrap();
        let node = NodeId::new(0, 1).unwrap();
        let authority = Authority::create(directory.path(), "plant", Validity::days(1), false).unwrap();
        let files = files(directory.path());
        authority.issue(node, &files, Validity::days(1), false).unwrap();
        let key = std::fs::read(&files.key).unwrap();
        std::fs::remove_file(&files.certificate).unwrap();
        assert!(matches!(authority.issue(node, &files, Validity::days(1), false), Err(Error::Exists(_))));
        assert!(!files.certificate.exists());
        assert_eq!(std::fs::read(&files.key).unwrap(), key);
        assert!(Authority::create(directory.path(), "plant", Validity::days(1), false).is_err());
        authority.issue(node, &files, Validity::days(1), true).unwrap();
        assert_ne!(std::fs::read(&files.key).unwrap(), key);
        assert_eq!(std::fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn another_systems_or_a_strange_key_is_no_authority() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Authority::create(one.path(), "plant", Validity::days(1), false).unwrap();
        Authority::create(other.path(), "plant", Validity::days(1), false).unwrap();
        assert!(matches!(Authority::load(one.path(), "mill"), Err(Error::NotOfOneAuthority(_))));
        std::fs::copy(other.path().join(AUTHORITY_KEY), one.path().join(AUTHORITY_KEY)).unwrap();
        assert!(matches!(Authority::load(one.path(), "plant"), Err(Error::NotOfOneAuthority(_))));
    }

    #[test]
    fn a_time_that_ends_as_it_begins_or_before_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for none in [Duration::from_secs(1), Duration::ZERO] {
            let validity = Validity { from: now, until: now - none };
            assert!(matches!(Authority::create(directory.path(), "plant", validity, false), Err(Error::Validity)));
            assert!(!directory.path().join(AUTHORITY_KEY).exists());
        }
    }
}
