//! The first bytes of a connection: who speaks, to whom, and where the two go on.
//!
//! What you may rely on: a hello is [`Hello::BYTES`] long whatever it says; decoding gives nodes within the limits and a
//! name of text, or a reason to refuse. Every reason has a number on the wire (docs/wire.md), is sent if the other
//! side speaks this protocol at all, and can be counted and shown ([`Refusals`]).
//!
//! How it works: who dialed says [`Step::Hello`]; the other answers [`Step::Welcome`] or [`Step::Refusal`]; the first
//! record of the dialer then confirms the welcome.

use alloc::string::String;

use crate::NodeId;
use crate::frame::VERSION;

/// First bytes of every hello.
pub const MAGIC: [u8; 8] = *b"musubi\r\n";
/// Longest name of a system in a hello; of a longer one these first bytes are compared.
pub const NAME_BYTES_MAX: usize = 64;

/// Which of the three a hello is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// From who dialed.
    Hello = 1,
    /// The answer: go on with this session from here.
    Welcome = 2,
    /// The answer: no, for this reason.
    Refusal = 3,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// Not this protocol; this one is not answered.
    Garbage = 1,
    /// Another version of the protocol.
    Version = 2,
    /// Of another system.
    System = 3,
    /// Another description.
    Plan = 4,
    /// Meant for another node.
    Recipient = 5,
    /// No node of the system, or it has no way to here.
    UnknownNode = 6,
    /// The certificate names another node.
    Identity = 7,
    /// More connections than are allowed at a time.
    Busy = 8,
    /// Both dialed at once, and the other connection is kept.
    Crossed = 9,
    /// A newer connection of this node, or its successor, came first.
    Stale = 10,
    /// The session to be resumed has been given up, or its node has restarted.
    SessionUnknown = 11,
    /// This node is leaving.
    Leaving = 12,
    /// No hello within the time for it; this one is not sent.
    TimeOut = 13,
}

impl Reason {
    /// All, in the order of their numbers.
    pub const ALL: [Reason; 13] = {
        use Reason::*;
        [
            Garbage,
            Version,
            System,
            Plan,
            Recipient,
            UnknownNode,
            Identity,
            Busy,
            Crossed,
            Stale,
            SessionUnknown,
            Leaving,
            TimeOut,
        ]
    };

    /// The reason that a peer names.
    pub fn from_wire(number: u8) -> Option<Reason> {
        Reason::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// Counts refusals by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Reason::ALL.len()]);

impl Refusals {
    /// One more.
    pub fn count(&mut self, reason: Reason) {
        self.0[reason as usize - 1] += 1;
    }

    /// How many for this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize - 1]
    }

    /// How many of each.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.into_iter().map(|reason| (reason, self.of(reason)))
    }
}

/// What a node says of itself on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of its system.
    pub system: String,
    /// Hash of its description.
    pub hash: u64,
    /// The node.
    pub node: NodeId,
    /// Tells this run from earlier ones; not 0.
    pub incarnation: u32,
}

/// A hello, welcome or refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which of them.
    pub step: Step,
    /// Of a refusal: why.
    pub reason: Option<Reason>,
    /// The sender.
    pub identity: Identity,
    /// The receiver that the sender means.
    pub to: NodeId,
    /// The session to go on with (or to begin); 0 in a refusal.
    pub session: u64,
    /// The sender has received something in `session`: only who knows that session can go on with it.
    pub touched: bool,
    /// The session between the two that the sender ended last; 0 for none.
    pub ended: u64,
    /// How many connections the sender has dialed, this one included.
    pub attempt: u32,
    /// Number of the last record that the sender has received in `session`.
    pub received: u32,
}

impl Hello {
    /// Bytes of a hello.
    pub const BYTES: usize = 128;

    /// A refusal of whatever `to` said.
    pub fn refusal(identity: &Identity, to: NodeId, reason: Reason) -> Hello {
        let identity = identity.clone();
        let step = Step::Refusal;
        Hello {
            step,
            reason: Some(reason),
            identity,
            to,
            session: 0,
            touched: false,
            ended: 0,
            attempt: 0,
            received: 0,
        }
    }

    /// The bytes for the wire.
    pub fn encode(&self) -> [u8; Hello::BYTES] {
        let mut bytes = [0; Hello::BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let name = compared(&self.identity.system);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(
            10,
            &[self.step as u8, self.reason.map_or(0, |reason| reason as u8), self.touched.into(), name.len() as u8],
        );
        put(14, &(self.identity.node.index() as u16).to_le_bytes());
        put(16, &(self.to.index() as u16).to_le_bytes());
        put(20, &self.identity.incarnation.to_le_bytes());
        put(24, &self.identity.hash.to_le_bytes());
        put(32, &self.session.to_le_bytes());
        put(40, &self.ended.to_le_bytes());
        put(48, &self.attempt.to_le_bytes());
        put(52, &self.received.to_le_bytes());
        put(64, name);
        bytes
    }

    /// What these bytes say.
    ///
    /// # Errors
    /// [`Reason::Garbage`], [`Reason::Version`]: the caller counts them, and answers the latter.
    pub fn decode(bytes: &[u8; Hello::BYTES]) -> Result<Hello, Reason> {
        fn number<const N: usize>(bytes: &[u8; Hello::BYTES], at: usize) -> [u8; N] {
            core::array::from_fn(|place| bytes[at + place])
        }
        if bytes[..8] != MAGIC {
            return Err(Reason::Garbage);
        }
        if u16::from_le_bytes(number(bytes, 8)) != VERSION {
            return Err(Reason::Version);
        }
        let step = [Step::Hello, Step::Welcome, Step::Refusal].into_iter().find(|step| *step as u8 == bytes[10]);
        let node = |at| NodeId::from_index(usize::from(u16::from_le_bytes(number(bytes, at))));
        let name = bytes[64..].get(..usize::from(bytes[13])).and_then(|name| core::str::from_utf8(name).ok());
        let (Some(step), Some(from), Some(to), Some(name)) = (step, node(14), node(16), name) else {
            return Err(Reason::Garbage);
        };
        let incarnation = u32::from_le_bytes(number(bytes, 20));
        let hash = u64::from_le_bytes(number(bytes, 24));
        Ok(Hello {
            step,
            reason: Reason::from_wire(bytes[11]),
            identity: Identity { system: String::from(name), hash, node: from, incarnation },
            to,
            session: u64::from_le_bytes(number(bytes, 32)),
            touched: bytes[12] & 1 != 0,
            ended: u64::from_le_bytes(number(bytes, 40)),
            attempt: u32::from_le_bytes(number(bytes, 48)),
            received: u32::from_le_bytes(number(bytes, 52)),
        })
    }

    /// Whether the sender is of our system and description, and means us.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, us: &Identity) -> Result<(), Reason> {
        if compared(&self.identity.system) != compared(&us.system) {
            return Err(Reason::System);
        }
        if self.identity.hash != us.hash {
            return Err(Reason::Plan);
        }
        if self.to != us.node {
            return Err(Reason::Recipient);
        }
        if self.identity.node == us.node {
            return Err(Reason::UnknownNode);
        }
        Ok(())
    }
}

/// The part of a system's name that a hello has room for.
fn compared(system: &str) -> &[u8] {
    let mut end = system.len().min(NAME_BYTES_MAX);
    while !system.is_char_boundary(end) {
        end -= 1;
    }
    &system.as_bytes()[..end]
}

/// Gathers the hello of a connection that somebody else began.
#[derive(Clone, Debug)]
pub struct Greeting {
    bytes: [u8; Hello::BYTES],
    filled: usize,
}

impl Default for Greeting {
    fn default() -> Self {
        Greeting::new()
    }
}

impl Greeting {
    /// Nothing has come yet.
    pub const fn new() -> Greeting {
        Greeting { bytes: [0; Hello::BYTES], filled: 0 }
    }

    /// How many bytes are still to be read: never read more.
    pub fn missing(&self) -> usize {
        Hello::BYTES - self.filled
    }

    /// Takes bytes; gives the hello when it is whole.
    ///
    /// # Errors
    /// [`Reason::Garbage`] as soon as it cannot become a hello or is followed by something; [`Reason::Version`].
    pub fn input(&mut self, bytes: &[u8]) -> Result<Option<Hello>, Reason> {
        let place = self.bytes[self.filled..].get_mut(..bytes.len()).ok_or(Reason::Garbage)?;
        place.copy_from_slice(bytes);
        self.filled += bytes.len();
        let magic = self.filled.min(MAGIC.len());
        if self.bytes[..magic] != MAGIC[..magic] {
            return Err(Reason::Garbage);
        }
        if self.filled < Hello::BYTES { Ok(None) } else { Hello::decode(&self.bytes).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let node = NodeId::new(3, 77).unwrap();
        let identity = Identity { system: String::from("line-7"), hash: 0x1122_3344_5566_7788, node, incarnation: 9 };
        let (step, to) = (Step::Hello, NodeId::new(31, 1023).unwrap());
        Hello { step, reason: None, identity, to, session: 5, touched: true, ended: 4, attempt: 2, received: 1 }
    }

    #[test]
    fn what_is_said_is_understood() {
        for (step, reason) in [(Step::Hello, None), (Step::Welcome, None), (Step::Refusal, Some(Reason::Stale))] {
            let said = Hello { step, reason, ..hello() };
            assert_eq!(Hello::decode(&said.encode()), Ok(said));
        }
    }

    #[test]
    fn each_difference_has_its_reason() {
        let us = Identity { node: hello().to, incarnation: 1, ..hello().identity };
        assert_eq!(hello().check(&us), Ok(()));
        assert_eq!(hello().check(&Identity { system: String::from("line-8"), ..us.clone() }), Err(Reason::System));
        assert_eq!(hello().check(&Identity { hash: 1, ..us.clone() }), Err(Reason::Plan));
        assert_eq!(hello().check(&Identity { node: hello().identity.node, ..us.clone() }), Err(Reason::Recipient));
        let ourselves = Hello { to: us.node, identity: us.clone(), ..hello() };
        assert_eq!(ourselves.check(&us), Err(Reason::UnknownNode));
    }

    #[test]
    fn garbage_is_refused_at_its_first_byte() {
        assert_eq!(Greeting::new().input(b"GET / HTTP/1.1\r\n"), Err(Reason::Garbage));
        assert_eq!(Greeting::new().input(&[0; 129]), Err(Reason::Garbage));
        let mut other = hello().encode();
        other[8] ^= 2;
        assert_eq!(Greeting::new().input(&other), Err(Reason::Version));
    }

    #[test]
    fn a_hello_may_come_byte_by_byte() {
        let mut greeting = Greeting::new();
        let bytes = hello().encode();
        for byte in &bytes[..127] {
            assert_eq!(greeting.input(&[*byte]), Ok(None));
        }
        assert_eq!(greeting.input(&bytes[127..]), Ok(Some(hello())));
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        let system = "ü".repeat(40);
        let said = Hello { identity: Identity { system, ..hello().identity }, ..hello() };
        let heard = Hello::decode(&said.encode()).unwrap();
        assert_eq!(heard.identity.system, "ü".repeat(32));
        assert_eq!(heard.check(&Identity { node: heard.to, ..said.identity }), Ok(()));
    }

    #[test]
    fn numbers_of_reasons_are_places() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_wire(reason as u8), Some(reason));
        }
        assert_eq!((Reason::from_wire(0), Reason::from_wire(14)), (None, None));
    }
}
