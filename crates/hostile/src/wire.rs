//! TinkerPop wire bytes: a value, a traverser, a request or a response, or an error with a position inside
//! the bytes; values make a round trip.

use vervet_tinkerpop::graphson::Dialect;
use vervet_tinkerpop::{Format, Limits, ReadError, Request, Response, graphbinary, graphson};

/// The format of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireFormat {
    /// GraphSON 2 and 3, with and without types.
    GraphSon,
    /// GraphBinary 1.
    GraphBinary,
}

pub(crate) fn check(wire: WireFormat, bytes: &[u8]) {
    let limits = Limits::default();
    let (read, formats): (fn(&[u8], Limits) -> _, _) = match wire {
        WireFormat::GraphSon => (
            graphson::read,
            [Format::GraphSon3, [Format::GraphSon2, Format::GraphSon3Untyped][bytes.len() % 2]],
        ),
        WireFormat::GraphBinary => (graphbinary::read, [Format::GraphBinary1; 2]),
    };
    if let Some(value) = checked(bytes, read(bytes, limits)) {
        check_round_trip(
            "GraphSON 3",
            graphson::read,
            |value, out| graphson::write(value, Dialect::V3, out),
            &value,
        );
        check_round_trip("GraphBinary", graphbinary::read, graphbinary::write, &value);
        // The other dialects lose types, so only readability is checked.
        for dialect in [Dialect::V2, Dialect::V3_UNTYPED, Dialect::V2_UNTYPED] {
            let mut out = Vec::new();
            // These dialects expand bags, possibly beyond the limit of a reader.
            if graphson::write(&value, dialect, &mut out).is_ok() && out.len() <= limits.bytes {
                let text = String::from_utf8_lossy(&out).into_owned();
                if dialect != Dialect::V2 && text.contains("\"@type\"") {
                    continue; // A map with such a key, which an untyped reader takes for a type.
                }
                graphson::read(&out, limits).unwrap_or_else(|error| panic!("{dialect:?}: {error}: {text}"));
            }
        }
    }
    for format in formats {
        if let Some(request) = checked(bytes, Request::read(bytes, format, limits).map_err(|bad| bad.error)) {
            let mut out = Vec::new();
            if request.write(format, &mut out).is_ok() {
                assert!(
                    Request::read(&out, format, limits).is_ok(),
                    "a request that cannot be read: {request:?}"
                );
            }
        }
        if let Some(response) = checked(bytes, Response::read(bytes, format, limits)) {
            let mut out = Vec::new();
            if response.write(format, &mut out).is_ok() {
                assert!(
                    Response::read(&out, format, limits).is_ok(),
                    "a response that cannot be read: {response:?}"
                );
            }
        }
    }
    checked(bytes, graphson::read_traverser(bytes, limits).map(drop));
    checked(bytes, graphbinary::read_traverser(bytes, limits).map(drop));
    let _ = Request::read_frame(bytes, limits);
}

/// An error has a position, and a one-line message.
fn checked<T>(bytes: &[u8], result: Result<T, ReadError>) -> Option<T> {
    if let Err(error) = &result {
        assert!(error.at() <= bytes.len() as u64, "{error} of {} bytes", bytes.len());
        assert!(!error.message().is_empty() && !error.message().contains('\n'), "{error}");
    }
    result.ok()
}

fn check_round_trip<V, W: std::fmt::Debug>(
    format: &str,
    read: fn(&[u8], Limits) -> Result<V, ReadError>,
    write: fn(&V, &mut Vec<u8>) -> Result<(), W>,
    value: &V,
) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if write(value, &mut first).is_err() {
        assert!(first.is_empty(), "{format}: a failed write leaves output");
        return;
    }
    match read(&first, Limits::default()) {
        Ok(value) => {
            write(&value, &mut second).unwrap_or_else(|error| panic!("{format}: {error:?}"));
            assert_eq!(first, second, "{format}: the second output differs");
        }
        // The output may exceed a limit that the input did not.
        Err(error) => {
            assert_eq!(error.kind(), vervet_tinkerpop::ReadErrorKind::TooLarge, "{format}: {error}");
        }
    }
}
