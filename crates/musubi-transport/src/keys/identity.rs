//! Whose certificate it is: `musubi://SYSTEM/DOMAIN/NODE`.
//!
//! What you may rely on: a certificate names one node or none: one with two identities, or one written in another way than
//! [`identity`] writes it, names nobody.
//!
//! What it does not do: believe a certificate.

use std::fmt::Write;

use rustls::pki_types::CertificateDer;

use crate::NodeId;

/// Beginning of every identity.
const SCHEME: &str = "musubi://";

/// A node of a system, as a certificate names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the system, as in the description.
    pub system: String,
    /// The node.
    pub node: NodeId,
}

/// The alternative name that a node's certificate has. Bytes of the system's name that have a meaning in a URI, or none,
/// are written as `%XX`.
pub fn identity(system: &str, node: NodeId) -> String {
    let mut uri = String::from(SCHEME);
    for byte in system.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => uri.push(char::from(byte)),
            _ => write!(uri, "%{byte:02X}").expect("a string takes everything"),
        }
    }
    write!(uri, "/{}/{}", node.domain(), node.node()).expect("a string takes everything");
    uri
}

/// The one identity that a certificate (DER) names; `None` if it has none, several, or cannot be read. Says nothing of
/// whether the certificate is to be believed.
pub fn certificate_identity(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut names = parsed.valid_uri_names().filter(|name| name.starts_with(SCHEME));
    let (first, more) = (names.next()?, names.next());
    if more.is_none() { parse(first) } else { None }
}

fn parse(uri: &str) -> Option<Identity> {
    let mut parts = uri.strip_prefix(SCHEME)?.split('/');
    let (system, domain, node) = (parts.next()?, parts.next()?, parts.next()?);
    let node = NodeId::new(number(domain)?, number(node)?)?;
    let system = unescaped(system)?;
    let whole = parts.next().is_none() && identity(&system, node) == uri;
    whole.then_some(Identity { system, node })
}

fn number(digits: &str) -> Option<u32> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn unescaped(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_comes_back_from_its_name() {
        let node = NodeId::new(3, 77).unwrap();
        for system in ["plant", "line 7/left", "工場", "%41", ""] {
            let parsed = parse(&identity(system, node)).unwrap();
            assert_eq!(parsed, Identity { system: system.into(), node });
        }
        assert_eq!(identity("line 7", node), "musubi://line%207/3/77");
    }

    #[test]
    fn what_is_written_otherwise_is_no_identity() {
        let wrong = [
            "musubi://plant/3",
            "musubi://plant/3/77/",
            "musubi://plant/03/77",
            "musubi://plant/+3/77",
            "musubi://plant/32/0",
            "musubi://plant/0/1024",
            "musubi://%7/3/77",
            "musubi://%é/3/77",
            "musubi://%70lant/3/77",
            "https://plant/3/77",
        ];
        for uri in wrong {
            assert_eq!(parse(uri), None, "{uri}");
        }
    }
}
