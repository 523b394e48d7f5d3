//! Asking several parts of a graph together.

use crate::bytes;
use crate::call::{Call, PartSegment, Reply, another_kind, answer};
use crate::counted;
use vervet_model::{Result, ThreadLimits};

/// The answers of parts, in this order. Requests to other servers are sent first, then the parts of this
/// process answer, then the answers of the others are awaited: their work overlaps.
pub(crate) fn gather(calls: &[(&PartSegment, Call<'_>)]) -> Result<Vec<Reply>> {
    let mut awaited = Vec::new();
    for (index, (part, call)) in calls.iter().enumerate() {
        if let PartSegment::Remote(remote, predicate, direction) = part {
            // The caller may check its limits only after many calls, each of which takes a round trip.
            ThreadLimits::check()?;
            let mut request = Vec::new();
            bytes::write_call(*predicate, *direction, call, &mut request);
            awaited.push((index, counted::send(&**remote, &request, call.key_count())?));
        }
    }
    let mut replies: Vec<Option<Reply>> = Vec::with_capacity(calls.len());
    for (part, call) in calls {
        replies.push(match part {
            PartSegment::Local(segment) => Some(answer(&**segment, call)?),
            PartSegment::Remote(..) => None,
        });
    }
    for (index, answer) in awaited {
        let bytes = answer.receive()?;
        let (part, call) = &calls[index];
        let reply = bytes::read_reply(&bytes, call);
        replies[index] = Some(reply.map_err(|error| match part {
            PartSegment::Remote(remote, ..) => error.context(format_args!("server {}", remote.name())),
            PartSegment::Local(_) => error,
        })?);
    }
    Ok(replies.into_iter().flatten().collect())
}

/// [`gather`] for one part.
pub(crate) fn ask(part: &PartSegment, call: Call<'_>) -> Result<Reply> {
    let replies = gather(&[(part, call)])?;
    replies.into_iter().next().ok_or_else(another_kind)
}
