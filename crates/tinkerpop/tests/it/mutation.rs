//! Fuzzing with damaged input: for any changed byte and any truncation, a reader returns a value or an error
//! with a position inside the input; the value can be written and read again.

use crate::{folder, samples};
use vervet_testkit::{Random, seed};
use vervet_tinkerpop::graph_file::GraphReader;
use vervet_tinkerpop::graphson::Dialect;
use vervet_tinkerpop::{Format, Limits, ReadError, Request, Response, graphbinary, graphson};

/// Maximum size of a sample for which every bit is flipped; in larger ones, one bit per byte.
const BITS_ALL: usize = 1_500;
/// Size of a sample above which only every seventh position is damaged, from a random one on: larger samples
/// are repetitive.
const PLACES_ALL: usize = 4_000;
/// Multi-byte changes per sample.
const RANDOM_ROUNDS: usize = 200;

fn checked<T>(name: &str, input: &[u8], result: Result<T, ReadError>) -> Option<T> {
    if let Err(error) = &result {
        assert!(error.at() <= input.len() as u64, "{name}: {error} of {} bytes", input.len());
        assert!(!error.message().is_empty() && !error.message().contains('\n'), "{name}: {error}");
    }
    result.ok()
}

/// Writing and reading a value is idempotent.
fn json(name: &str, text: &[u8]) {
    let limits = Limits::default();
    if let Some(value) = checked(name, text, graphson::read(text, limits)) {
        // One of the other dialects per call suffices: there are many calls.
        let others = [Dialect::V2, Dialect::V3_UNTYPED, Dialect::V2_UNTYPED];
        for dialect in [Dialect::V3, others[text.len() % 3]] {
            let mut first = Vec::new();
            if graphson::write(&value, dialect, &mut first).is_err() {
                assert!(first.is_empty(), "{name}");
                continue;
            }
            let again = graphson::read(&first, limits);
            let again = again.unwrap_or_else(|e| panic!("{name}: {e}: {}", String::from_utf8_lossy(&first)));
            if dialect == Dialect::V3 {
                let mut second = Vec::new();
                graphson::write(&again, dialect, &mut second).unwrap();
                assert_eq!(String::from_utf8_lossy(&first), String::from_utf8_lossy(&second), "{name}");
            }
        }
    }
    let request = Request::read(text, Format::GraphSon3, limits);
    checked(name, text, request.map_err(|bad| bad.error));
    checked(name, text, Response::read(text, Format::GraphSon3, limits));
    checked(name, text, graphson::read_traverser(text, limits));
}

fn binary(name: &str, bytes: &[u8]) {
    let limits = Limits::default();
    if let Some(value) = checked(name, bytes, graphbinary::read(bytes, limits)) {
        let mut first = Vec::new();
        graphbinary::write(&value, &mut first).unwrap();
        let again = graphbinary::read(&first, limits).unwrap_or_else(|e| panic!("{name}: {e}: {first:02x?}"));
        let mut second = Vec::new();
        graphbinary::write(&again, &mut second).unwrap();
        assert_eq!(first, second, "{name}");
        // The other format accepts every value of this one within the limits of numbers.
        let mut text = Vec::new();
        if graphson::write(&value, Dialect::V3, &mut text).is_ok() {
            graphson::read(&text, limits)
                .unwrap_or_else(|e| panic!("{name}: {e}: {}", String::from_utf8_lossy(&text)));
        }
    }
    checked(name, bytes, Request::read(bytes, Format::GraphBinary1, limits).map_err(|bad| bad.error));
    checked(name, bytes, Response::read(bytes, Format::GraphBinary1, limits));
    checked(name, bytes, graphbinary::read_traverser(bytes, limits));
}

/// Truncations, flipped bits, and random damage.
fn damage(name: &str, sample: &[u8], random: &mut Random, check: fn(&str, &[u8])) {
    check(name, sample);
    let step = if sample.len() <= PLACES_ALL { 1 } else { 7 };
    let first = usize::try_from(random.below(step)).unwrap();
    let places = || (first..sample.len()).step_by(usize::try_from(step).unwrap());
    for end in places() {
        check(name, &sample[..end]);
    }
    let mut damaged = sample.to_vec();
    for at in places() {
        if sample.len() <= BITS_ALL {
            for bit in 0..8 {
                damaged[at] ^= 1 << bit;
                check(name, &damaged);
                damaged[at] = sample[at];
            }
        } else {
            damaged[at] ^= 1 << random.below(8);
            check(name, &damaged);
            damaged[at] = sample[at];
        }
    }
    for _ in 0..RANDOM_ROUNDS {
        let mut damaged = sample.to_vec();
        for _ in 0..=random.below(4) {
            let at = usize::try_from(random.below(damaged.len() as u64)).unwrap();
            match random.below(4) {
                0 => damaged[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'[', b'9', b'-']),
                1 => drop(damaged.remove(at)),
                2 => damaged.insert(at, sample[at % sample.len()]),
                _ => {
                    // Duplicates a slice.
                    let end = (at + 1 + usize::try_from(random.below(20)).unwrap()).min(damaged.len());
                    let piece = damaged[at..end].to_vec();
                    damaged.splice(at..at, piece);
                }
            }
            if damaged.is_empty() {
                break;
            }
        }
        check(name, &damaged);
    }
}

#[test]
fn damaged_graphson_3() {
    let mut random = Random(seed());
    samples("graphson-v3").iter().for_each(|(name, text)| damage(name, text, &mut random, json));
}

#[test]
fn damaged_graphson_2() {
    let mut random = Random(seed());
    samples("graphson-v2").iter().for_each(|(name, text)| damage(name, text, &mut random, json));
}

#[test]
fn damaged_graphbinary_1() {
    let mut random = Random(seed());
    samples("graphbinary-v1").iter().for_each(|(name, bytes)| damage(name, bytes, &mut random, binary));
}

#[test]
fn damaged_messages() {
    let mut random = Random(seed());
    for (name, text) in samples("graphson-v3") {
        let limits = Limits::default();
        let mut bytes = Vec::new();
        if let Ok(request) = Request::read(&text, Format::GraphSon3, limits) {
            request.write(Format::GraphBinary1, &mut bytes).unwrap();
        } else if let Ok(response) = Response::read(&text, Format::GraphSon3, limits) {
            response.write(Format::GraphBinary1, &mut bytes).unwrap();
        } else {
            continue;
        }
        damage(&name, &bytes, &mut random, |name, bytes| {
            let limits = Limits::default();
            checked(name, bytes, Request::read(bytes, Format::GraphBinary1, limits).map_err(|bad| bad.error));
            checked(name, bytes, Response::read(bytes, Format::GraphBinary1, limits));
            checked(name, bytes, Request::read_frame(bytes, limits).map_err(|bad| bad.error));
        });
    }
}

#[test]
fn damaged_graphs() {
    let Some(folder) = folder("graphs") else { return };
    let mut random = Random(seed());
    for name in ["tinkerpop-sink", "tinkerpop-modern", "tinkerpop-crew"] {
        let text = std::fs::read(folder.join(name).with_extension("json")).unwrap();
        damage(name, &text, &mut random, |name, text| {
            for vertex in GraphReader::new(text) {
                checked(name, text, vertex);
            }
        });
    }
}

/// Wrong lengths: the maximum length, in an input of a few bytes.
#[test]
fn declared_lengths_are_not_trusted() {
    for (name, bytes) in samples("graphbinary-v1") {
        let step = if bytes.len() <= PLACES_ALL { 1 } else { 7 };
        for at in (0..bytes.len().saturating_sub(3)).step_by(step) {
            for length in [i32::MAX, i32::MIN, -1, 0x00ff_ffff] {
                let mut damaged = bytes.clone();
                damaged[at..at + 4].copy_from_slice(&length.to_be_bytes());
                binary(&name, &damaged);
            }
        }
    }
}

/// Deeply nested input.
#[test]
fn nested_input_is_refused() {
    let list = [0x09, 0, 0, 0, 0, 1].repeat(100_000);
    assert!(graphbinary::read(&list, Limits::default()).is_err());
    let tree = [&[0x2b, 0][..], &[0, 0, 0, 1, 0xfe, 1].repeat(100_000)].concat();
    assert!(graphbinary::read(&tree, Limits::default()).is_err());
    let not = [0x1e, 0, 0, 0, 0, 3, b'n', b'o', b't', 0, 0, 0, 1].repeat(100_000);
    assert!(graphbinary::read(&not, Limits::default()).is_err());
    let metrics = [&[0x2c, 0][..], &[0; 24], &[0, 0, 0, 1]].concat().repeat(10_000);
    assert!(graphbinary::read(&metrics, Limits::default()).is_err());
    for piece in [
        "[",
        "{\"a\":",
        "{\"@type\":\"g:List\",\"@value\":[",
        "{\"@value\":[",
        "{\"@value\":{\"@type\":\"g:List\",\"@value\":",
        "{\"@type\":\"g:Tree\",\"@value\":[{\"key\":1,\"value\":",
        "{\"@type\":\"g:Metrics\",\"@value\":{\"metrics\":[",
        "{\"@type\":\"g:P\",\"@value\":{\"predicate\":\"not\",\"value\":",
        "{\"@type\":\"g:Bytecode\",\"@value\":{\"step\":[[\"x\",",
    ] {
        assert!(graphson::read(piece.repeat(50_000).as_bytes(), Limits::default()).is_err(), "{piece}");
    }
    // Types after their values: some levels are read, more are rejected early.
    let behind = |depth: usize, inside: &str| {
        format!("{}{inside}{}", "{\"@value\":[".repeat(depth), "],\"@type\":\"g:List\"}".repeat(depth))
    };
    graphson::read(behind(10, "1").as_bytes(), Limits::default()).unwrap();
    let text = behind(150, "1,".repeat(100_000).trim_end_matches(','));
    let error = graphson::read(text.as_bytes(), Limits::default()).unwrap_err();
    assert_eq!(error.message(), "expected \"@type\" before \"@value\"");
}
