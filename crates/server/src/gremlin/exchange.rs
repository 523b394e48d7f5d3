//! Requests and responses between two servers of a cluster, of which one executes a transaction for a client
//! of the other.
//!
//! # Shape
//! A request is a POST to [`FORWARDED_PATH`], which a server sends on for the client (`forwarding`). Headers
//! have the transaction and the action. Its body has the message of the client, after the messages
//! of the transaction that the sender has executed itself. The body of the response has messages for the
//! client, and headers say what has become of the transaction.
//!
//! ```text
//! a message of a request     1 byte: 1 a text, 2 a digest follows, 4 of results with an order;
//!                            digest: count 8, sum 16, ordered 16 bytes; length 4; the message
//! a message of a response    length 4; the message
//! ```
//! All numbers are little endian.
//! # Not here
//! The two sides: `remote` sends requests, `forwarded` answers them.

use super::digest::Digest;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::Bytes;

/// The path of these requests. Servers of earlier versions have nothing there.
pub(crate) const FORWARDED_PATH: &str = "/gremlin/forwarded";

/// The transaction: 32 hexadecimal digits that its sender has drawn.
pub(super) const TRANSACTION: HeaderName = HeaderName::from_static("vervet-transaction");

/// The action of a request.
pub(super) const ACTION: HeaderName = HeaderName::from_static("vervet-action");

/// The address of the client, as responses name it.
pub(super) const CLIENT: HeaderName = HeaderName::from_static("vervet-client");

/// What has become of the transaction.
pub(super) const PROGRESS: HeaderName = HeaderName::from_static("vervet-progress");

/// The status of the response to the client.
pub(super) const CODE: HeaderName = HeaderName::from_static("vervet-code");

/// A server executes as many messages again at most when a transaction moves to it, …
pub(super) const REPEATED_MAX: usize = 512;

/// … which have so many bytes.
pub(super) const REPEATED_BYTES_MAX: usize = 256 << 10;

/// Bytes of the name of a transaction.
const NAME_BYTES: usize = 32;

const IS_TEXT: u8 = 1;
const HAS_DIGEST: u8 = 2;
const HAS_ORDER: u8 = 4;

/// What the sender of a request wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Begin a transaction, and run a message in it.
    Begin,
    /// Run a message that is a transaction of its own.
    Single,
    /// Run a further message in a transaction.
    Run,
    /// Send further messages of the response.
    Continue,
    /// Roll back.
    Close,
}

/// What has become of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// It is open, and the response is complete.
    Open,
    /// It has ended, and the response is complete.
    Closed,
    /// There are further messages of the response.
    Unfinished,
    /// It is not, or no more, at this server, which has not run the message.
    Lost,
    /// What it has read differs from what the client was told. It was rolled back.
    Changed,
    /// The request was refused. If it was begun, it was rolled back.
    Refused,
}

macro_rules! names {
    ($type:ident: $($variant:ident $name:literal),*) => {
        impl $type {
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub(super) fn of(value: Option<&HeaderValue>) -> Option<Self> {
                match value?.to_str().ok()? { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

names!(Action: Begin "begin", Single "single", Run "run", Continue "continue", Close "close");
names!(Progress: Open "open", Closed "closed", Unfinished "unfinished", Lost "lost", Changed "changed",
       Refused "refused");

/// The transaction and the action of a request.
pub(super) fn read_headers(headers: &HeaderMap) -> Option<(String, Action)> {
    let name = headers.get(TRANSACTION)?.to_str().ok()?;
    let is_name = name.len() == NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| name.to_owned()).zip(Action::of(headers.get(ACTION)))
}

/// A message of a client on its way to the server that executes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ForwardedMessage {
    pub(super) bytes: Bytes,
    pub(super) is_text: bool,
    /// Of a message that the sender has executed: its results, and whether their order counts.
    pub(super) results: Option<(Digest, bool)>,
}

impl ForwardedMessage {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut flags = if self.is_text { IS_TEXT } else { 0 };
        let mut digest = Vec::new();
        if let Some((results, has_order)) = &self.results {
            flags |= HAS_DIGEST | if *has_order { HAS_ORDER } else { 0 };
            digest.extend_from_slice(&results.count.to_le_bytes());
            digest.extend_from_slice(&results.sum.to_le_bytes());
            digest.extend_from_slice(&results.ordered.to_le_bytes());
        }
        out.push(flags);
        out.extend_from_slice(&digest);
        write_message(&self.bytes, out);
    }

    /// All messages of a request, of which the last one has no results; `None`: damaged.
    pub(super) fn read_all(body: &Bytes) -> Option<(Vec<Self>, Self)> {
        let mut rest = &body[..];
        let mut repeated = Vec::new();
        loop {
            let (flags, after) = rest.split_first()?;
            rest = after;
            if flags & !(IS_TEXT | HAS_DIGEST | HAS_ORDER) != 0 {
                return None;
            }
            let results = match flags & HAS_DIGEST {
                0 => None,
                _ => {
                    let (count, after) = rest.split_first_chunk::<8>()?;
                    let (sum, after) = after.split_first_chunk::<16>()?;
                    let (ordered, after) = after.split_first_chunk::<16>()?;
                    rest = after;
                    let digest = Digest {
                        count: u64::from_le_bytes(*count),
                        sum: u128::from_le_bytes(*sum),
                        ordered: u128::from_le_bytes(*ordered),
                    };
                    Some((digest, flags & HAS_ORDER != 0))
                }
            };
            let bytes = body.slice_ref(read_message(&mut rest)?);
            let message = Self { bytes, is_text: flags & IS_TEXT != 0, results };
            match message.results {
                None => return rest.is_empty().then_some((repeated, message)),
                Some(_) if repeated.len() >= REPEATED_MAX => return None,
                Some(_) => repeated.push(message),
            }
        }
    }
}

/// Appends a message of a response.
pub(super) fn write_message(message: &[u8], out: &mut Vec<u8>) {
    // Bodies are far below 4 GiB.
    out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(message);
}

fn read_message<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (message, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(message)
}

/// The messages of a response; `None`: damaged.
pub(super) fn read_messages(mut body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    while !body.is_empty() {
        messages.push(read_message(&mut body)?.to_vec());
    }
    Some(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &'static [u8], results: Option<(Digest, bool)>) -> ForwardedMessage {
        ForwardedMessage { bytes: Bytes::from_static(bytes), is_text: bytes.len().is_multiple_of(2), results }
    }

    #[test]
    fn damaged_requests_are_refused() {
        let digest = Digest { count: 3, sum: u128::MAX, ordered: 7 };
        let repeated = [message(b"ab", Some((digest, true))), message(b"", Some((digest, false)))];
        let last = message(b"abc", None);
        let mut bytes = Vec::new();
        repeated.iter().chain([&last]).for_each(|message| message.write(&mut bytes));
        let whole = ForwardedMessage::read_all(&Bytes::from(bytes.clone()));
        assert_eq!(whole, Some((repeated.to_vec(), last)));
        for end in 0..bytes.len() {
            assert_eq!(ForwardedMessage::read_all(&Bytes::from(bytes[..end].to_vec())), None, "{end}");
        }
        for at in 0..bytes.len() {
            for changed in [0x80, 0x01, 0x02, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= changed;
                // It does not panic.
                _ = ForwardedMessage::read_all(&Bytes::from(bytes));
            }
        }
        bytes.push(0);
        assert_eq!(ForwardedMessage::read_all(&Bytes::from(bytes)), None);
        let mut many = Vec::new();
        (0..=REPEATED_MAX).for_each(|_| repeated[1].write(&mut many));
        message(b"", None).write(&mut many);
        assert_eq!(ForwardedMessage::read_all(&Bytes::from(many)), None);
    }

    #[test]
    fn responses_have_messages() {
        let mut bytes = Vec::new();
        write_message(b"one", &mut bytes);
        write_message(b"", &mut bytes);
        assert_eq!(read_messages(&bytes), Some(vec![b"one".to_vec(), Vec::new()]));
        for end in [1, 3, 6, 8, 10] {
            assert_eq!(read_messages(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read_messages(&[255; 9]), None);
    }

    #[test]
    fn headers_name_a_transaction_and_an_action() {
        let headers = |name: &str, action: &str| {
            let value = |text: &str| HeaderValue::try_from(text).expect("a header");
            [(TRANSACTION, value(name)), (ACTION, value(action))].into_iter().collect::<HeaderMap>()
        };
        let name = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(read_headers(&headers(name, "run")), Some((name.to_owned(), Action::Run)));
        for (name, action) in [(name, "walk"), (&name[1..], "run"), ("", "run")] {
            assert_eq!(read_headers(&headers(name, action)), None, "{name} {action}");
        }
        assert_eq!(read_headers(&HeaderMap::new()), None);
    }
}
