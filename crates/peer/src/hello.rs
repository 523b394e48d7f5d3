//! What both ends of a connection say first: magic, protocol, data of the cluster, names.
//!
//! Magic and protocol keep their place in all versions, so that servers of different versions refuse each
//! other with a reason.

use crate::frame::prefix;
use vervet_model::{Error, ErrorKind};

/// Version of everything that servers say to each other: frames, requests, answers.
pub const PROTOCOL: u32 = 7;

const MAGIC: [u8; 8] = *b"VRVTPEER";

/// Longest name of a server.
const NAME_BYTES_MAX: usize = 255;

/// What a server says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Number of the data of the cluster, which must be the same at both ends.
    pub cluster: u64,
    /// The name of this server.
    pub server: String,
}

/// A hello of the other end.
pub(crate) struct Received {
    pub(crate) from: String,
}

fn refusal(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_hint(hint)
}

impl Hello {
    /// The body of a hello to server `to`.
    pub(crate) fn encode(&self, to: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(PROTOCOL.to_le_bytes());
        bytes.extend(self.cluster.to_le_bytes());
        for name in [self.server.as_str(), to] {
            let name = prefix(name, NAME_BYTES_MAX);
            bytes.push(u8::try_from(name.len()).expect("cut to the limit"));
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    /// Checks the hello of the other end. `from`: the name that it must have, if that is known.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with the reason for a refusal.
    pub(crate) fn check(&self, bytes: &[u8], from: Option<&str>) -> Result<Received, Error> {
        let garbled =
            || refusal("the hello is damaged".to_owned(), "run the same version of Vervet everywhere");
        let Some((magic, rest)) = bytes.split_first_chunk::<8>() else { return Err(garbled()) };
        if *magic != MAGIC {
            return Err(refusal("the other end is no server of Vervet".to_owned(), "check the address"));
        }
        let (protocol, rest) = rest.split_first_chunk().ok_or_else(garbled)?;
        let protocol = u32::from_le_bytes(*protocol);
        if protocol != PROTOCOL {
            let message = format!("protocol {protocol} of the other end is not protocol {PROTOCOL}");
            return Err(refusal(message, "run the same version of Vervet on all servers of the cluster"));
        }
        let (cluster, mut rest) = rest.split_first_chunk().ok_or_else(garbled)?;
        let cluster = u64::from_le_bytes(*cluster);
        let mut name = || -> Option<String> {
            let (&length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(length))?;
            rest = after;
            String::from_utf8(name.to_vec()).ok()
        };
        let (sender, receiver) = (name().ok_or_else(garbled)?, name().ok_or_else(garbled)?);
        if !rest.is_empty() {
            return Err(garbled());
        }
        if cluster != self.cluster {
            let message = format!(
                "server {sender:?} has data {cluster:016x} of a cluster, {:?} has {:016x}",
                self.server, self.cluster
            );
            return Err(refusal(message, "give all servers of a cluster the same data and map"));
        }
        if receiver != self.server {
            let message = format!("this is server {:?}, not {receiver:?}", self.server);
            return Err(refusal(message, "correct the addresses in the map of the cluster"));
        }
        match from {
            Some(expected) if expected != sender => {
                let message = format!("server {sender:?} answers at the address of {expected:?}");
                Err(refusal(message, "correct the addresses in the map of the cluster"))
            }
            _ => Ok(Received { from: sender }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_accepted_by_its_receiver_alone() {
        let a = Hello { cluster: 5, server: "a".to_owned() };
        let b = Hello { cluster: 5, server: "b".to_owned() };
        let bytes = a.encode("b");
        assert_eq!(b.check(&bytes, None).map(|received| received.from).ok().as_deref(), Some("a"));
        assert!(b.check(&bytes, Some("a")).is_ok());
        let refused = |hello: &Hello, bytes: &[u8], from| {
            hello.check(bytes, from).map(drop).expect_err("another one").message().to_owned()
        };
        assert!(refused(&b, &bytes, Some("c")).contains("at the address of"));
        assert!(refused(&a, &bytes, None).contains("this is server"));
        assert!(refused(&Hello { cluster: 6, server: "b".to_owned() }, &bytes, None).contains("data"));
        let mut old = bytes.clone();
        old[8] = 0;
        assert!(refused(&b, &old, None).contains("protocol 0"));
        // Of a later version, with other contents behind the protocol.
        assert!(refused(&b, &[&MAGIC[..], &[9, 0, 0, 0]].concat(), None).contains("protocol 9"));
        assert!(refused(&b, b"GET / HTTP/1.1\r\n", None).contains("no server of Vervet"));
        for end in 0..bytes.len() {
            assert!(b.check(&bytes[..end], None).is_err());
        }
        assert!(b.check(&[&bytes[..], &[0]].concat(), None).is_err());
    }
}
