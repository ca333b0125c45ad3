//! What a certificate file says: whose it is, until when, and whether the authority vouches for it.
//!
//! How it works: the library that checks certificates at the beginning of a link is asked for two instants at which
//! nothing can be valid; its refusals say when the certificate's validity begins and ends.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::authority::Validity;
use super::{Error, Identity, certificate_identity, files};

/// The last second of the year 9999, after which certificates cannot say a time.
const END_OF_TIME_S: u64 = 253_402_300_799;

/// A certificate, looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// Whose it is; `None` if it is no node's.
    pub identity: Option<Identity>,
    /// When it is valid, if it says so.
    pub validity: Option<Validity>,
    /// Whether the authority signed it and it is valid now.
    pub good: Result<(), String>,
}

/// Looks at the certificate in `certificate`, with the authority's in `authority`.
///
/// # Errors
/// If a file cannot be read or holds no certificate.
pub fn examine(certificate: &Path, authority: &Path) -> Result<Examined, Error> {
    let (certificate, authority) = (read(certificate)?, read(authority)?);
    let begin = match verify(&certificate, &authority, UnixTime::since_unix_epoch(Duration::ZERO)) {
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => Some(not_before),
        _ => None,
    };
    let end = match verify(&certificate, &authority, UnixTime::since_unix_epoch(Duration::from_secs(END_OF_TIME_S))) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(not_after),
        _ => None,
    };
    let validity = begin.zip(end).map(|(from, until)| Validity { from: system_time(from), until: system_time(until) });
    let good = verify(&certificate, &authority, UnixTime::now()).map_err(|error| explained(&error));
    Ok(Examined { identity: certificate_identity(&certificate), validity, good })
}

fn read(path: &Path) -> Result<CertificateDer<'static>, Error> {
    let text = files::read(path)?;
    CertificateDer::from_pem_slice(text.as_bytes())
        .map_err(|_| Error::Content { path: path.into(), what: "holds no certificate" })
}

fn verify(
    certificate: &CertificateDer<'_>,
    authority: &CertificateDer<'_>,
    time: UnixTime,
) -> Result<(), webpki::Error> {
    let anchors = [webpki::anchor_from_trusted_cert(authority)?];
    let certificate = webpki::EndEntityCert::try_from(certificate)?;
    let usage = webpki::KeyUsage::server_auth();
    certificate.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &anchors, &[], time, usage, None, None).map(|_| ())
}

/// In words of people: the library's own are its source's.
fn explained(error: &webpki::Error) -> String {
    use webpki::Error;
    match error {
        Error::CertExpired { .. } => "it has expired".to_owned(),
        Error::CertNotValidYet { .. } => "it is not valid yet; is the clock right?".to_owned(),
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey => "another authority issued it".to_owned(),
        other => other.to_string(),
    }
}

fn system_time(time: UnixTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;
    use crate::keys::{AUTHORITY_CERTIFICATE, Authority, NodeFiles};

    #[test]
    fn a_certificate_tells_whose_it_is_until_when_and_who_signed() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let node = NodeId::new(1, 2).unwrap();
        let files = NodeFiles { certificate: ours.path().join("n.crt"), key: ours.path().join("n.key") };
        let authority = Authority::create(ours.path(), "plant", Validity::days(30), false).unwrap();
        Authority::create(theirs.path(), "plant", Validity::days(30), false).unwrap();
        let day = Duration::from_secs(86_400);
        // Certificates know whole seconds.
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(since_epoch.as_secs());
        let past = Validity { from: now - 2 * day, until: now - day };
        authority.issue(node, &files, past, false).unwrap();
        let expired = examine(&files.certificate, &ours.path().join(AUTHORITY_CERTIFICATE)).unwrap();
        assert_eq!(expired.identity, Some(Identity { system: "plant".into(), node }));
        assert_eq!(expired.validity, Some(past));
        assert_eq!(expired.good, Err("it has expired".into()));
        let future = Validity { from: now + day, until: now + 2 * day };
        authority.issue(node, &files, future, true).unwrap();
        let early = examine(&files.certificate, &ours.path().join(AUTHORITY_CERTIFICATE)).unwrap();
        assert_eq!(early.good, Err("it is not valid yet; is the clock right?".into()));
        authority.issue(node, &files, Validity::days(1), true).unwrap();
        assert_eq!(examine(&files.certificate, &ours.path().join(AUTHORITY_CERTIFICATE)).unwrap().good, Ok(()));
        let foreign = examine(&files.certificate, &theirs.path().join(AUTHORITY_CERTIFICATE)).unwrap();
        assert_eq!(foreign.good, Err("another authority issued it".into()));
    }
}
