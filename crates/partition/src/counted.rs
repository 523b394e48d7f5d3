//! Requests to other servers, which count for the query of the calling thread.

use crate::remote::{Answer, Remote};
use std::sync::Arc;
use vervet_model::{ReadCounts, RemoteReads, Result, ThreadLimits};

/// An answer whose bytes count.
struct CountedAnswer<'a> {
    answer: Box<dyn Answer + 'a>,
    server: &'a str,
    reads: Arc<RemoteReads>,
}

/// Sends a request for so many keys; see [`Remote::send`].
pub(crate) fn send<'a>(remote: &'a dyn Remote, request: &[u8], keys: usize) -> Result<Box<dyn Answer + 'a>> {
    let answer = remote.send(request)?;
    let Some(reads) = ThreadLimits::reads() else { return Ok(answer) };
    if answer.is_kept() {
        reads.add(remote.name(), ReadCounts { kept: 1, ..ReadCounts::default() });
        return Ok(answer);
    }
    let (keys, bytes_sent) = (keys as u64, request.len() as u64);
    reads.add(remote.name(), ReadCounts { requests: 1, keys, bytes_sent, ..ReadCounts::default() });
    Ok(Box::new(CountedAnswer { answer, server: remote.name(), reads }))
}

impl Answer for CountedAnswer<'_> {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        let bytes = self.answer.receive()?;
        let bytes_received = bytes.len() as u64;
        self.reads.add(self.server, ReadCounts { bytes_received, ..ReadCounts::default() });
        Ok(bytes)
    }
}
