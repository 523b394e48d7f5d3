//! Requests of servers that load together, as bytes.
//!
//! # Shape
//! The number of the load (8 bytes; 0 before the sender has joined), a byte that says which, then numbers of
//! 8 bytes, then the content. A server that has joined another load, or none, refuses it: it was started
//! again.
//!
//! | request | numbers | content | answer |
//! | --- | --- | --- | --- |
//! | piece | round, sender, offset, length of all | a part of a piece | nothing |
//! | get | blob, offset | | length of all, bytes from there |
//! | halves | | halves of statements | nothing |
//! | terms | sender, 1: its last ones, 2: cut, the rest follows | terms | their numbers, 4 bytes each |
//! | stop | sender | the reason | nothing |

use super::state::{Blob, Round, State};
use std::sync::Arc;
use vervet_codec::{Reader, write_u64};
use vervet_model::{Error, ErrorKind, Result};
use vervet_peer::{Handler, Protocol};

/// The most bytes of one request or answer.
pub(crate) const CHUNK_BYTES: usize = 4 << 20;

const PIECE: u8 = 0;
const GET: u8 = 1;
const HALVES: u8 = 2;
const TERMS: u8 = 3;
const STOP: u8 = 4;

/// Of terms: the last one is not whole.
const CUT: u64 = 2;

const DICTIONARY_RECORD: u64 = 100;
const DICTIONARY: u64 = 101;
const CLASSES: u64 = 102;

/// Bytes before those of the request: the number of the load.
const BUILD_BYTES: usize = 8;

/// States the number of the load in a request.
pub(crate) fn set_build(request: &mut [u8], build: u64) {
    if let Some(head) = request.first_chunk_mut::<BUILD_BYTES>() {
        *head = build.to_le_bytes();
    }
}

fn request(kind: u8, numbers: &[u64], content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BUILD_BYTES + 1 + 8 * numbers.len() + content.len());
    bytes.extend([0; BUILD_BYTES]);
    bytes.push(kind);
    numbers.iter().for_each(|number| write_u64(*number, &mut bytes));
    bytes.extend_from_slice(content);
    bytes
}

pub(crate) fn piece((round, from): (Round, usize), (offset, total): (u64, u64), bytes: &[u8]) -> Vec<u8> {
    request(PIECE, &[round as u64, from as u64, offset, total], bytes)
}

pub(crate) fn get(blob: Blob, offset: u64) -> Vec<u8> {
    let blob = match blob {
        Blob::Answer(round) => round as u64,
        Blob::DictionaryRecord => DICTIONARY_RECORD,
        Blob::Dictionary => DICTIONARY,
        Blob::Classes => CLASSES,
    };
    request(GET, &[blob, offset], &[])
}

/// A request with these halves, whose bytes `write` appends.
pub(crate) fn halves(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; BUILD_BYTES];
    bytes.push(HALVES);
    write(&mut bytes);
    bytes
}

pub(crate) fn terms(from: usize, is_last: bool, is_cut: bool, bytes: &[u8]) -> Vec<u8> {
    request(TERMS, &[from as u64, if is_cut { CUT } else { u64::from(is_last) }], bytes)
}

pub(crate) fn stop(from: usize, reason: &str) -> Vec<u8> {
    request(STOP, &[from as u64], reason.as_bytes())
}

/// Answers the requests of the other servers.
pub(crate) struct Requests {
    pub(crate) state: Arc<State>,
    /// The names of all servers, and which one this is.
    pub(crate) names: Vec<String>,
    pub(crate) own: usize,
}

impl Handler for Requests {
    fn answer(&self, request: &[u8], _protocol: Protocol, out: &mut Vec<u8>) -> Result<()> {
        self.take(request, out).map_err(|error| self.state.told(error, &self.names[self.own]))
    }
}

impl Requests {
    fn take(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (build, rest) = request.split_first_chunk::<BUILD_BYTES>().ok_or_else(|| wrong("it is empty"))?;
        let (kind, rest) = rest.split_first().ok_or_else(|| wrong("it is empty"))?;
        // The answer of the first round is what tells the number.
        let is_joining = *kind == GET && numbers(rest).is_ok_and(|([blob, _], _)| blob == Round::Join as u64);
        // A server that has joined may stop before this one knows that it has, too.
        let is_early = *kind == STOP && self.state.build().is_none();
        if !is_early {
            self.check_build(u64::from_le_bytes(*build), is_joining)?;
        }
        match *kind {
            PIECE => {
                let ([round, from, offset, total], content) = numbers(rest)?;
                let (round, from) = (round_of(round)?, self.server(from)?);
                self.state.add_piece((round, from), (offset, total), content)
            }
            GET => {
                let ([blob, offset], _) = numbers(rest)?;
                self.get(blob, offset, out)
            }
            HALVES => self.state.add_halves(rest),
            TERMS => {
                let ([from, flags], content) = numbers(rest)?;
                let (mut found, flags) = (Vec::new(), (flags == 1, flags == CUT));
                self.state.add_terms(self.server(from)?, content, flags, &mut found)?;
                found.iter().for_each(|number: &u32| out.extend_from_slice(&number.to_le_bytes()));
                Ok(())
            }
            STOP => {
                let ([from], reason) = numbers(rest)?;
                let name = &self.names[self.server(from)?];
                self.state.stop_by(name, &String::from_utf8_lossy(reason));
                Ok(())
            }
            _ => Err(wrong("it is of an unknown kind")),
        }
    }

    /// # Errors
    /// Unavailable: the sender, or this server, was started again since the load has begun.
    fn check_build(&self, build: u64, is_joining: bool) -> Result<()> {
        let what = match (self.state.build(), build) {
            (None, 0) => return Ok(()),
            (Some(_), 0) if is_joining => return Ok(()),
            (Some(own), build) if own == build => return Ok(()),
            (Some(_), 0) => "it has begun a load already",
            _ => "it was started again",
        };
        let hint = "end the load at all servers, and start it at all of them again";
        Err(Error::new(ErrorKind::Unavailable, what).with_hint(hint))
    }

    fn server(&self, number: u64) -> Result<usize> {
        let number = usize::try_from(number).ok().filter(|number| *number < self.names.len());
        number.ok_or_else(|| wrong("it is of an unknown server"))
    }

    fn get(&self, blob: u64, offset: u64, out: &mut Vec<u8>) -> Result<()> {
        let blob = match blob {
            DICTIONARY_RECORD => Blob::DictionaryRecord,
            DICTIONARY => Blob::Dictionary,
            CLASSES => Blob::Classes,
            round => Blob::Answer(round_of(round)?),
        };
        let bytes = self.state.blob(blob)?;
        let start = usize::try_from(offset).ok().filter(|start| *start <= bytes.len());
        let start = start.ok_or_else(|| wrong("it asks for bytes behind the end"))?;
        let end = bytes.len().min(start + CHUNK_BYTES);
        write_u64(bytes.len() as u64, out);
        out.extend_from_slice(&bytes[start..end]);
        Ok(())
    }
}

fn wrong(what: &'static str) -> Error {
    Error::corrupt("a request of another server", what)
}

fn round_of(number: u64) -> Result<Round> {
    let round = Round::ALL.into_iter().find(|round| *round as u64 == number);
    round.ok_or_else(|| wrong("it is of an unknown round"))
}

/// The numbers at the start of a request, and the rest.
fn numbers<const N: usize>(bytes: &[u8]) -> Result<([u64; N], &[u8])> {
    let (head, rest) = bytes.split_at_checked(8 * N).ok_or_else(|| wrong("it ends early"))?;
    let mut reader = Reader::new(head);
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = reader.u64().map_err(|damaged| wrong(damaged.0))?;
    }
    Ok((numbers, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_env::Bytes;

    fn requests() -> Requests {
        Requests { state: Arc::new(State::new()), names: vec!["a".to_owned(), "b".to_owned()], own: 0 }
    }

    #[test]
    fn pieces_and_answers_come_in_chunks() {
        let requests = requests();
        let answer = |request: &[u8]| {
            let mut out = Vec::new();
            requests.answer(request, Protocol::NEWEST, &mut out).map(|()| out)
        };
        answer(&piece((Round::Survey, 1), (0, 5), b"abc")).expect("the first part");
        assert_eq!(requests.state.missing(Round::Survey, 2), [1]);
        assert!(answer(&piece((Round::Survey, 1), (0, 5), b"abc")).is_err(), "the first part again");
        answer(&piece((Round::Survey, 1), (3, 5), b"de")).expect("the second part");
        assert_eq!(requests.state.collect(Round::Survey, 2).expect("all"), [b"abcde"]);
        let long = vec![7; CHUNK_BYTES + 3];
        requests.state.publish(Blob::Classes, Bytes::from(long));
        let first = answer(&get(Blob::Classes, 0)).expect("published");
        assert_eq!(first.len(), 8 + CHUNK_BYTES);
        assert_eq!(answer(&get(Blob::Classes, CHUNK_BYTES as u64)).expect("published").len(), 8 + 3);
        assert!(answer(&get(Blob::Classes, 1 << 40)).is_err(), "behind the end");
        answer(&stop(1, "no reason")).expect("stopped");
        let error = answer(&get(Blob::Dictionary, 0)).expect_err("stopped");
        assert!(error.message().contains("server b has stopped the load: no reason"), "{error}");
    }

    #[test]
    fn another_load_is_refused() {
        let requests = requests();
        let answer = |build, mut request: Vec<u8>| {
            set_build(&mut request, build);
            requests
                .answer(&request, Protocol::NEWEST, &mut Vec::new())
                .map_err(|error| error.message().to_owned())
        };
        let join = || piece((Round::Join, 1), (0, 1), b"a");
        assert_eq!(answer(7, get(Blob::Classes, 0)), Err("server a: it was started again".to_owned()));
        // Started again before all have begun.
        assert_eq!((answer(0, join()), answer(0, join())), (Ok(()), Ok(())));
        requests.state.set_build(7);
        assert_eq!(answer(0, join()), Err("server a: it has begun a load already".to_owned()));
        assert_eq!(answer(8, stop(1, "late")), Err("server a: it was started again".to_owned()));
        assert_eq!(answer(7, stop(1, "now")), Ok(()));
    }

    #[test]
    fn no_request_panics() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 33
        };
        for _ in 0..3_000 {
            let requests = requests();
            // Nothing waits for what never comes.
            requests.state.stop(Error::internal("stopped"));
            requests.state.set_build(0);
            let mut bytes = vec![0; BUILD_BYTES];
            bytes.extend((0..next() % 60).map(|_| u8::try_from(next() % 6).unwrap_or(0)));
            _ = requests.answer(&bytes, Protocol::NEWEST, &mut Vec::new());
        }
    }
}
