//! The first frame of both ends of a connection: magic, protocols, data of the cluster, names.
//!
//! A client offers a range of protocols; the hello of the server has the one on which they agree. Magic and
//! newest protocol keep their place in all versions, everything up to the oldest protocol from
//! [`RANGE_FIRST`] on. So servers without a common protocol refuse each other with a reason.

use crate::frame::prefix;
use crate::protocol::{Protocol, ProtocolRange};
use vervet_model::{Error, ErrorKind};

const MAGIC: [u8; 8] = *b"VRVTPEER";

/// Longest name of a server.
const NAME_BYTES_MAX: usize = 255;

/// The first protocol whose hello has the oldest protocol of the sender.
const RANGE_FIRST: Protocol = Protocol::new(Protocol::LAST_WITHOUT_RANGE.number() + 1);

/// Bytes behind the oldest protocol, which later versions may add. A receiver ignores them.
const EXTENSION_BYTES_MAX: usize = 1024;

const HINT_OF_VERSION: &str =
    "upgrade one version at a time, and all servers of the cluster before the next version";

/// What a server says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Number of the data of the cluster, which must be the same at both ends.
    pub cluster: u64,
    /// The name of this server.
    pub server: String,
    /// The protocols that this server offers and accepts.
    pub protocols: ProtocolRange,
}

/// The contents of a hello.
struct Received {
    protocols: ProtocolRange,
    cluster: u64,
    from: String,
    to: String,
}

/// A client whose hello was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// The name of the client.
    pub(crate) from: String,
    /// The newest protocol of both ends.
    pub(crate) protocol: Protocol,
}

fn refusal(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_hint(hint)
}

fn damaged() -> Error {
    refusal("the hello is damaged".to_owned(), "run the same version of Vervet on all servers")
}

/// Whether an error is the refusal of a server that has protocol 7 alone, for another newest protocol.
/// Servers of later protocols read the range of a hello and do not refuse one with a common protocol.
pub(crate) fn is_refusal_without_range(error: &Error, offered: ProtocolRange) -> bool {
    let known = Protocol::LAST_WITHOUT_RANGE;
    let newest = offered.newest();
    // The text of the program of that version, which does not change any more.
    let text = format!("protocol {newest} of the other end is not protocol {known}");
    newest > known
        && offered.contains(known)
        && error.kind() == ErrorKind::Unavailable
        && error.message() == text
}

impl Received {
    /// Reads a hello to a server that accepts the protocols `accepted`.
    fn read(bytes: &[u8], accepted: ProtocolRange) -> Result<Self, Error> {
        let Some((magic, rest)) = bytes.split_first_chunk::<8>() else { return Err(damaged()) };
        if *magic != MAGIC {
            return Err(refusal("the other end is no server of Vervet".to_owned(), "check the address"));
        }
        let (newest, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let newest = Protocol::new(u32::from_le_bytes(*newest));
        let has_range = newest >= RANGE_FIRST;
        let disjoint = |offered: ProtocolRange| {
            let message = format!("the other end has {offered}, this server has {accepted}");
            refusal(message, HINT_OF_VERSION)
        };
        if !has_range && !accepted.contains(newest) {
            return Err(disjoint(ProtocolRange::only(newest)));
        }
        let (cluster, mut rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let cluster = u64::from_le_bytes(*cluster);
        let mut name = || -> Option<String> {
            let (&length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(length))?;
            rest = after;
            String::from_utf8(name.to_vec()).ok()
        };
        let (from, to) = (name().ok_or_else(damaged)?, name().ok_or_else(damaged)?);
        let (oldest, extension_bytes_max) = match has_range {
            true => {
                let (oldest, after) = rest.split_first_chunk().ok_or_else(damaged)?;
                rest = after;
                (Protocol::new(u32::from_le_bytes(*oldest)), EXTENSION_BYTES_MAX)
            }
            false => (newest, 0),
        };
        if rest.len() > extension_bytes_max {
            return Err(damaged());
        }
        let protocols = ProtocolRange::new(oldest, newest).ok_or_else(|| {
            let message = format!("the hello has protocol {oldest} as the oldest and {newest} as the newest");
            refusal(message, HINT_OF_VERSION)
        })?;
        if accepted.agree(protocols).is_none() {
            return Err(disjoint(protocols));
        }
        Ok(Self { protocols, cluster, from, to })
    }
}

impl Hello {
    /// Of server `server`, with the protocols of this program.
    #[must_use]
    pub fn new(cluster: u64, server: &str) -> Self {
        Self { cluster, server: server.to_owned(), protocols: ProtocolRange::SUPPORTED }
    }

    /// The body of a hello to server `to` with these protocols: those that a client offers, or the one on
    /// which a server agrees.
    pub(crate) fn encode(&self, to: &str, protocols: ProtocolRange) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(protocols.newest().number().to_le_bytes());
        bytes.extend(self.cluster.to_le_bytes());
        for name in [self.server.as_str(), to] {
            let name = prefix(name, NAME_BYTES_MAX);
            bytes.push(u8::try_from(name.len()).expect("cut to the limit"));
            bytes.extend(name.as_bytes());
        }
        if protocols.newest() >= RANGE_FIRST {
            bytes.extend(protocols.oldest().number().to_le_bytes());
        }
        bytes
    }

    /// Checks the hello of a client.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with the reason for a refusal.
    pub(crate) fn accept(&self, bytes: &[u8]) -> Result<Accepted, Error> {
        let received = Received::read(bytes, self.protocols)?;
        self.check_cluster(&received)?;
        let protocol = self.protocols.agree(received.protocols).ok_or_else(damaged)?;
        Ok(Accepted { from: received.from, protocol })
    }

    /// Checks the hello with which server `from` has answered an offer: the protocol on which it agrees.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with the reason for which the server cannot be used.
    pub(crate) fn confirm(
        &self,
        bytes: &[u8],
        from: &str,
        offered: ProtocolRange,
    ) -> Result<Protocol, Error> {
        let received = Received::read(bytes, offered)?;
        self.check_cluster(&received)?;
        if received.from != from {
            let message = format!("server {:?} answers at the address of {from:?}", received.from);
            return Err(refusal(message, "correct the addresses in the map of the cluster"));
        }
        let protocol = received.protocols.newest();
        if received.protocols != ProtocolRange::only(protocol) || !offered.contains(protocol) {
            let message = format!("it answers {offered} with {}", received.protocols);
            return Err(refusal(message, HINT_OF_VERSION));
        }
        Ok(protocol)
    }

    fn check_cluster(&self, received: &Received) -> Result<(), Error> {
        let Received { cluster, from, to, .. } = received;
        if *cluster != self.cluster {
            let message = format!(
                "server {from:?} has data {cluster:016x} of a cluster, {:?} has {:016x}",
                self.server, self.cluster
            );
            return Err(refusal(message, "give all servers of a cluster the same data and map"));
        }
        if *to != self.server {
            let message = format!("this is server {:?}, not {to:?}", self.server);
            return Err(refusal(message, "correct the addresses in the map of the cluster"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(oldest: u32, newest: u32) -> ProtocolRange {
        ProtocolRange::new(Protocol::new(oldest), Protocol::new(newest)).expect("a range")
    }

    fn hello(server: &str, protocols: ProtocolRange) -> Hello {
        Hello { protocols, ..Hello::new(5, server) }
    }

    /// The hello of a server of protocol 7, byte for byte.
    fn hello_of_7(from: &str, to: &str) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &7_u32.to_le_bytes(), &5_u64.to_le_bytes()].concat();
        for name in [from, to] {
            bytes.push(u8::try_from(name.len()).expect("a short name"));
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    #[track_caller]
    fn refused(hello: &Hello, bytes: &[u8], part: &str) {
        let error = hello.accept(bytes).expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains(part) && error.hint().is_some(), "{error}");
    }

    #[test]
    fn a_hello_is_accepted_by_its_receiver_alone() {
        let (a, b) = (Hello::new(5, "a"), Hello::new(5, "b"));
        let bytes = a.encode("b", a.protocols);
        let accepted = b.accept(&bytes).expect("it is the receiver");
        assert_eq!((accepted.from.as_str(), accepted.protocol), ("a", Protocol::NEWEST));
        refused(&a, &bytes, "this is server");
        refused(&Hello::new(6, "b"), &bytes, "data");
        refused(&b, b"GET / HTTP/1.1\r\n", "no server of Vervet");
        for end in 0..bytes.len() {
            assert!(b.accept(&bytes[..end]).is_err());
        }
        let answer = b.encode("a", ProtocolRange::only(Protocol::NEWEST));
        assert_eq!(a.confirm(&answer, "b", a.protocols).ok(), Some(Protocol::NEWEST));
        let error = a.confirm(&answer, "c", a.protocols).expect_err("another server");
        assert!(error.message().contains("at the address of"), "{error}");
    }

    #[test]
    fn the_hello_of_protocol_7_has_no_range() {
        let (a, b) = (Hello::new(5, "a"), Hello::new(5, "b"));
        let seven = Protocol::new(7);
        assert_eq!(a.encode("b", ProtocolRange::only(seven)), hello_of_7("a", "b"));
        let accepted = b.accept(&hello_of_7("a", "b")).expect("the protocol before");
        assert_eq!(accepted.protocol, seven);
        // The answer is one that a client of protocol 7 accepts.
        assert_eq!(b.encode("a", ProtocolRange::only(accepted.protocol)), hello_of_7("b", "a"));
        assert_eq!(a.confirm(&hello_of_7("b", "a"), "b", a.protocols).ok(), Some(seven));
        refused(&b, &[&hello_of_7("a", "b")[..], &[0]].concat(), "damaged");
    }

    #[test]
    fn ranges_meet_at_the_newest_protocol_of_both() {
        let b = hello("b", range(8, 9));
        for (offered, agreed) in [(range(7, 8), 8), (range(8, 9), 9), (range(9, 10), 9), (range(8, 12), 9)] {
            let a = hello("a", offered);
            let accepted = b.accept(&a.encode("b", offered)).expect("a common protocol");
            assert_eq!(accepted.protocol, Protocol::new(agreed));
            let answer = b.encode("a", ProtocolRange::only(accepted.protocol));
            assert_eq!(a.confirm(&answer, "b", offered).ok(), Some(accepted.protocol));
        }
    }

    #[test]
    fn ranges_that_do_not_meet_are_refused() {
        let b = hello("b", range(8, 9));
        let offer = |protocols| hello("a", protocols).encode("b", protocols);
        refused(&b, &offer(range(10, 12)), "has protocols 10 to 12, this server has protocols 8 to 9");
        refused(&b, &offer(range(u32::MAX, u32::MAX)), "protocol 4294967295");
        refused(&b, &hello_of_7("a", "b"), "has protocol 7,");
        // Of an earlier version, with other contents behind the protocol.
        refused(&b, &[&MAGIC[..], &[0; 4]].concat(), "has protocol 0,");
        let mut reversed = offer(range(8, 9));
        let end = reversed.len() - 4;
        reversed[end..].copy_from_slice(&10_u32.to_le_bytes());
        refused(&b, &reversed, "protocol 10 as the oldest and 9 as the newest");
    }

    #[test]
    fn later_versions_may_extend_a_hello() {
        let (a, b) = (hello("a", range(8, 9)), hello("b", range(7, 8)));
        let extended = |bytes: usize| [a.encode("b", a.protocols), vec![0xff; bytes]].concat();
        for bytes in [0, 1, EXTENSION_BYTES_MAX] {
            let accepted = b.accept(&extended(bytes)).expect("a hello with an extension");
            assert_eq!(accepted.protocol, Protocol::new(8));
        }
        refused(&b, &extended(EXTENSION_BYTES_MAX + 1), "damaged");
    }

    #[test]
    fn an_answer_has_one_protocol_that_was_offered() {
        let (a, b) = (Hello::new(5, "a"), Hello::new(5, "b"));
        for (offered, answered) in [
            (range(7, 8), range(7, 8)),
            (range(7, 8), range(9, 9)),
            (range(7, 8), range(8, 9)),
            (range(7, 7), range(8, 8)),
            (range(8, 8), range(7, 7)),
        ] {
            let error = a.confirm(&b.encode("a", answered), "b", offered).expect_err("no such answer");
            assert!(error.message().contains("protocol"), "{error}");
        }
    }

    #[test]
    fn only_a_server_of_protocol_7_makes_a_client_offer_less() {
        let refusal = |message: &str| Error::new(ErrorKind::Unavailable, message);
        let error = refusal("protocol 8 of the other end is not protocol 7");
        assert!(is_refusal_without_range(&error, range(7, 8)));
        assert!(!is_refusal_without_range(&error, range(8, 8)));
        assert!(!is_refusal_without_range(&error, range(7, 7)));
        for other in ["protocol 9 of the other end is not protocol 7", "there are 4 connections already", ""]
        {
            assert!(!is_refusal_without_range(&refusal(other), range(7, 8)));
        }
        let kind = Error::new(ErrorKind::Internal, error.message());
        assert!(!is_refusal_without_range(&kind, range(7, 8)));
        // Refusals of this version never do.
        let next = Protocol::NEWEST.number() + 1;
        let b = hello("b", range(next, next));
        let a = Hello::new(5, "a");
        let error = b.accept(&a.encode("b", a.protocols)).expect_err("no common protocol");
        assert!(!is_refusal_without_range(&error, a.protocols));
    }

    #[test]
    fn no_bytes_panic() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        let (a, b) = (Hello::new(5, "a"), Hello::new(5, "b"));
        for case in 0..20_000 {
            let mut bytes = a.encode("b", range(random.u32(0..10), random.u32(10..12)));
            for _ in 0..random.usize(..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            if random.bool() {
                bytes.truncate(random.usize(..=bytes.len()));
            } else {
                bytes.extend((0..random.usize(..8)).map(|_| random.u8(..)));
            }
            if let Ok(accepted) = b.accept(&bytes) {
                assert!(b.protocols.contains(accepted.protocol), "seed {seed}, case {case}: {bytes:?}");
            }
            if let Ok(protocol) = b.confirm(&bytes, "a", b.protocols) {
                assert!(b.protocols.contains(protocol), "seed {seed}, case {case}: {bytes:?}");
            }
        }
    }
}
