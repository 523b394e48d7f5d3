//! The receiving side of a streamed result (`stream`): a channel of chunks as a response body.
//!
//! # Invariants
//! [`ChunkStream`] only ends successfully after [`Chunk::End`], which is sent after everything else has
//! succeeded.

use crate::cancel::CancelOnDrop;
use bytes::Bytes;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// A message of the channel.
pub(crate) enum Chunk {
    Data(Bytes),
    End,
}

/// The error of an incomplete body.
#[derive(Debug)]
pub(crate) struct IncompleteBody;

impl std::fmt::Display for IncompleteBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer broke off")
    }
}

impl std::error::Error for IncompleteBody {}

/// The rest of a result, as a body; dropping it cancels the query.
pub(crate) struct ChunkStream {
    pub(crate) receiver: mpsc::Receiver<Chunk>,
    pub(crate) ended: bool,
    pub(crate) cancel: CancelOnDrop,
}

impl ChunkStream {
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, IncompleteBody>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match ready!(self.receiver.poll_recv(context)) {
            Some(Chunk::Data(bytes)) => Some(Ok(bytes)),
            Some(Chunk::End) => None,
            None => Some(Err(IncompleteBody)),
        };
        self.ended = !matches!(next, Some(Ok(_)));
        if self.ended {
            self.cancel.disarm();
        }
        Poll::Ready(next)
    }
}
