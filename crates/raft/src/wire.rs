//! Entries, votes and messages as bytes, for the disk and for other servers.
//!
//! # Shape
//! Little-endian. An optional value has a byte before it, 0 or 1. Position: term, server, index (8 bytes
//! each). Vote: term, server, a byte. Entry: position, a byte (0 blank, 1 batch, 2 membership), the content.
//! Membership: number of sets (4), of each its size (4) and servers (8 each), then the number of all servers
//! (4), of each its number (8), the length (4) of what is said of it, and that. Snapshot: the position of its
//! last entry, if any, that of its membership, if any, the membership. In messages the length (4) of each
//! entry is before it.
//! # Cost
//! Decoding copies no batch: it shares the received bytes.

use crate::member::AboutChange;
use crate::types::{Entry, LogId, Membership, SnapshotMeta, Types, Vote};
use bytes::{Buf, BufMut, Bytes};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, VoteRequest, VoteResponse,
};
use openraft::{CommittedLeaderId, EntryPayload, StoredMembership};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that are no such value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

type Decoded<T> = Result<T, Malformed>;

const BLANK: u8 = 0;
const BATCH: u8 = 1;
const MEMBERSHIP: u8 = 2;

/// Most servers, and most sets of them, of a membership.
const SERVERS_MAX: u32 = 64;

/// Most bytes of what is said of a server.
pub(crate) const ABOUT_BYTES_MAX: usize = 4096;

fn number(from: &mut Bytes) -> Decoded<u64> {
    from.try_get_u64_le().map_err(|_| Malformed)
}

fn count(from: &mut Bytes) -> Decoded<u32> {
    from.try_get_u32_le().map_err(|_| Malformed)
}

fn flag(from: &mut Bytes) -> Decoded<bool> {
    match from.try_get_u8().map_err(|_| Malformed)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed),
    }
}

fn end(from: &Bytes) -> Decoded<()> {
    if from.is_empty() { Ok(()) } else { Err(Malformed) }
}

pub(crate) fn write_log_id(id: &LogId, out: &mut Vec<u8>) {
    out.put_u64_le(id.leader_id.term);
    out.put_u64_le(id.leader_id.node_id);
    out.put_u64_le(id.index);
}

pub(crate) fn read_log_id(from: &mut Bytes) -> Decoded<LogId> {
    let (term, node, index) = (number(from)?, number(from)?, number(from)?);
    Ok(LogId::new(CommittedLeaderId::new(term, node), index))
}

pub(crate) fn write_optional_log_id(id: Option<&LogId>, out: &mut Vec<u8>) {
    out.put_u8(u8::from(id.is_some()));
    if let Some(id) = id {
        write_log_id(id, out);
    }
}

pub(crate) fn read_optional_log_id(from: &mut Bytes) -> Decoded<Option<LogId>> {
    if flag(from)? { read_log_id(from).map(Some) } else { Ok(None) }
}

pub(crate) fn write_vote(vote: &Vote, out: &mut Vec<u8>) {
    out.put_u64_le(vote.leader_id.term);
    out.put_u64_le(vote.leader_id.node_id);
    out.put_u8(u8::from(vote.committed));
}

pub(crate) fn read_vote(from: &mut Bytes) -> Decoded<Vote> {
    let (term, node, committed) = (number(from)?, number(from)?, flag(from)?);
    Ok(if committed { Vote::new_committed(term, node) } else { Vote::new(term, node) })
}

fn write_servers<'a>(servers: impl ExactSizeIterator<Item = &'a u64>, out: &mut Vec<u8>) {
    out.put_u32_le(u32::try_from(servers.len()).unwrap_or(u32::MAX));
    servers.for_each(|server| out.put_u64_le(*server));
}

fn read_servers(from: &mut Bytes) -> Decoded<BTreeSet<u64>> {
    let length = Some(count(from)?).filter(|length| *length <= SERVERS_MAX).ok_or(Malformed)?;
    (0..length).map(|_| number(from)).collect()
}

fn write_membership(membership: &Membership, out: &mut Vec<u8>) {
    let sets = membership.get_joint_config();
    out.put_u32_le(u32::try_from(sets.len()).unwrap_or(u32::MAX));
    sets.iter().for_each(|set| write_servers(set.iter(), out));
    out.put_u32_le(u32::try_from(membership.nodes().count()).unwrap_or(u32::MAX));
    for (server, about) in membership.nodes() {
        out.put_u64_le(*server);
        out.put_u32_le(u32::try_from(about.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(about);
    }
}

fn read_member(from: &mut Bytes) -> Decoded<(u64, Bytes)> {
    let (server, length) = (number(from)?, count(from)? as usize);
    if length > ABOUT_BYTES_MAX.min(from.len()) {
        return Err(Malformed);
    }
    Ok((server, Bytes::copy_from_slice(&from.split_to(length))))
}

fn read_membership(from: &mut Bytes) -> Decoded<Membership> {
    let sets = Some(count(from)?).filter(|sets| *sets <= SERVERS_MAX).ok_or(Malformed)?;
    let sets = (0..sets).map(|_| read_servers(from)).collect::<Decoded<Vec<_>>>()?;
    let servers = Some(count(from)?).filter(|servers| *servers <= SERVERS_MAX).ok_or(Malformed)?;
    let all = (0..servers).map(|_| read_member(from)).collect::<Decoded<BTreeMap<u64, Bytes>>>()?;
    if sets.iter().flatten().any(|voter| !all.contains_key(voter)) {
        return Err(Malformed);
    }
    Ok(Membership::new(sets, all))
}

/// A request to be admitted: the number of the server, and what is said of it.
pub(crate) fn write_join(server: u64, about: &[u8], out: &mut Vec<u8>) {
    out.put_u64_le(server);
    out.extend_from_slice(about);
}

pub(crate) fn read_join(mut from: Bytes) -> Decoded<(u64, Bytes)> {
    let server = number(&mut from)?;
    if from.len() > ABOUT_BYTES_MAX { Err(Malformed) } else { Ok((server, Bytes::copy_from_slice(&from))) }
}

/// A request to replace what is said of servers.
pub(crate) fn write_abouts(changes: &[AboutChange], out: &mut Vec<u8>) {
    out.put_u32_le(u32::try_from(changes.len()).unwrap_or(u32::MAX));
    for AboutChange { server, before, after } in changes {
        for about in [before, after] {
            out.put_u64_le(*server);
            out.put_u32_le(u32::try_from(about.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(about);
        }
    }
}

pub(crate) fn read_abouts(mut from: Bytes) -> Decoded<Vec<AboutChange>> {
    let changes = Some(count(&mut from)?).filter(|changes| *changes <= SERVERS_MAX).ok_or(Malformed)?;
    let change = |_| {
        let ((server, before), (same, after)) = (read_member(&mut from)?, read_member(&mut from)?);
        if same == server { Ok(AboutChange { server, before, after }) } else { Err(Malformed) }
    };
    let changes = (0..changes).map(change).collect::<Decoded<_>>()?;
    end(&from)?;
    Ok(changes)
}

/// What a snapshot with this last entry is called.
pub(crate) fn snapshot_id(last: Option<&LogId>) -> String {
    last.map_or(0, |last| last.index).to_string()
}

pub(crate) fn write_snapshot(meta: &SnapshotMeta, out: &mut Vec<u8>) {
    write_optional_log_id(meta.last_log_id.as_ref(), out);
    write_optional_log_id(meta.last_membership.log_id().as_ref(), out);
    write_membership(meta.last_membership.membership(), out);
}

pub(crate) fn read_snapshot(from: &mut Bytes) -> Decoded<SnapshotMeta> {
    let (last_log_id, membership_id) = (read_optional_log_id(from)?, read_optional_log_id(from)?);
    let last_membership = StoredMembership::new(membership_id, read_membership(from)?);
    Ok(SnapshotMeta { last_log_id, last_membership, snapshot_id: snapshot_id(last_log_id.as_ref()) })
}

/// A snapshot has no data beyond what says that it is there: see `position.rs`.
pub(crate) fn write_install(request: &InstallSnapshotRequest<Types>, out: &mut Vec<u8>) {
    write_vote(&request.vote, out);
    write_snapshot(&request.meta, out);
}

pub(crate) fn read_install(mut from: Bytes) -> Decoded<InstallSnapshotRequest<Types>> {
    let (vote, meta) = (read_vote(&mut from)?, read_snapshot(&mut from)?);
    end(&from)?;
    Ok(InstallSnapshotRequest { vote, meta, offset: 0, data: Vec::new(), done: true })
}

/// The answer to an installation.
pub(crate) fn read_vote_only(mut from: Bytes) -> Decoded<Vote> {
    let vote = read_vote(&mut from)?;
    end(&from)?;
    Ok(vote)
}

pub(crate) fn write_entry(entry: &Entry, out: &mut Vec<u8>) {
    write_log_id(&entry.log_id, out);
    match &entry.payload {
        EntryPayload::Blank => out.put_u8(BLANK),
        EntryPayload::Normal(batch) => {
            out.put_u8(BATCH);
            out.put_slice(batch);
        }
        EntryPayload::Membership(membership) => {
            out.put_u8(MEMBERSHIP);
            write_membership(membership, out);
        }
    }
}

/// The entry that all of `from` is.
pub(crate) fn read_entry(mut from: Bytes) -> Decoded<Entry> {
    let log_id = read_log_id(&mut from)?;
    let payload = match from.try_get_u8().map_err(|_| Malformed)? {
        BLANK => EntryPayload::Blank,
        BATCH => return Ok(Entry { log_id, payload: EntryPayload::Normal(from) }),
        MEMBERSHIP => EntryPayload::Membership(read_membership(&mut from)?),
        _ => return Err(Malformed),
    };
    end(&from)?;
    Ok(Entry { log_id, payload })
}

/// About the number of bytes of an entry.
pub(crate) fn entry_bytes(entry: &Entry) -> usize {
    let content = match &entry.payload {
        EntryPayload::Normal(batch) => batch.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    };
    content + 64
}

pub(crate) fn write_append(request: &AppendEntriesRequest<Types>, out: &mut Vec<u8>) {
    write_vote(&request.vote, out);
    write_optional_log_id(request.prev_log_id.as_ref(), out);
    write_optional_log_id(request.leader_commit.as_ref(), out);
    for entry in &request.entries {
        let at = out.len();
        out.put_u32_le(0);
        write_entry(entry, out);
        let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

pub(crate) fn read_append(mut from: Bytes) -> Decoded<AppendEntriesRequest<Types>> {
    let vote = read_vote(&mut from)?;
    let (prev_log_id, leader_commit) = (read_optional_log_id(&mut from)?, read_optional_log_id(&mut from)?);
    let mut entries: Vec<Entry> = Vec::new();
    let mut next = prev_log_id.map_or(0, |id| id.index.saturating_add(1));
    while !from.is_empty() {
        let length = usize::try_from(count(&mut from)?).ok().filter(|length| *length <= from.len());
        let entry = read_entry(from.split_to(length.ok_or(Malformed)?))?;
        if entry.log_id.index != next {
            return Err(Malformed);
        }
        next = next.saturating_add(1);
        entries.push(entry);
    }
    Ok(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
}

pub(crate) fn write_append_answer(answer: &AppendEntriesResponse<u64>, out: &mut Vec<u8>) {
    match answer {
        AppendEntriesResponse::Success => out.put_u8(0),
        AppendEntriesResponse::PartialSuccess(matching) => {
            out.put_u8(1);
            write_optional_log_id(matching.as_ref(), out);
        }
        AppendEntriesResponse::Conflict => out.put_u8(2),
        AppendEntriesResponse::HigherVote(vote) => {
            out.put_u8(3);
            write_vote(vote, out);
        }
    }
}

pub(crate) fn read_append_answer(mut from: Bytes) -> Decoded<AppendEntriesResponse<u64>> {
    let answer = match from.try_get_u8().map_err(|_| Malformed)? {
        0 => AppendEntriesResponse::Success,
        1 => AppendEntriesResponse::PartialSuccess(read_optional_log_id(&mut from)?),
        2 => AppendEntriesResponse::Conflict,
        3 => AppendEntriesResponse::HigherVote(read_vote(&mut from)?),
        _ => return Err(Malformed),
    };
    end(&from)?;
    Ok(answer)
}

pub(crate) fn write_vote_request(request: &VoteRequest<u64>, out: &mut Vec<u8>) {
    write_vote(&request.vote, out);
    write_optional_log_id(request.last_log_id.as_ref(), out);
}

pub(crate) fn read_vote_request(mut from: Bytes) -> Decoded<VoteRequest<u64>> {
    let request = VoteRequest::new(read_vote(&mut from)?, read_optional_log_id(&mut from)?);
    end(&from)?;
    Ok(request)
}

pub(crate) fn write_vote_answer(answer: &VoteResponse<u64>, out: &mut Vec<u8>) {
    write_vote(&answer.vote, out);
    out.put_u8(u8::from(answer.vote_granted));
    write_optional_log_id(answer.last_log_id.as_ref(), out);
}

pub(crate) fn read_vote_answer(mut from: Bytes) -> Decoded<VoteResponse<u64>> {
    let (vote, vote_granted) = (read_vote(&mut from)?, flag(&mut from)?);
    let last_log_id = read_optional_log_id(&mut from)?;
    end(&from)?;
    Ok(VoteResponse { vote, vote_granted, last_log_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::testing::{blank_ent, log_id, membership_ent};

    /// Every cut and every changed byte is an error or another value, never a panic.
    fn mangle<T>(bytes: &[u8], read: impl Fn(Bytes) -> Decoded<T>) {
        for at in 0..bytes.len() {
            _ = read(Bytes::copy_from_slice(&bytes[..at]));
            let mut changed = bytes.to_vec();
            changed[at] ^= 0xff;
            _ = read(Bytes::from(changed));
        }
    }

    #[test]
    fn messages_are_their_bytes() {
        let batch = Entry { log_id: log_id(2, 1, 6), payload: EntryPayload::Normal(Bytes::from("batch")) };
        let entries =
            vec![blank_ent(1, 2, 4), membership_ent(1, 2, 5, vec![BTreeSet::from([1, 2, 3])]), batch];
        let request = AppendEntriesRequest::<Types> {
            vote: Vote::new_committed(2, 1),
            prev_log_id: Some(log_id(1, 2, 3)),
            entries: entries.clone(),
            leader_commit: Some(log_id(1, 2, 4)),
        };
        let mut out = Vec::new();
        write_append(&request, &mut out);
        let read = read_append(Bytes::from(out.clone())).expect("whole");
        assert_eq!(
            (read.vote, read.prev_log_id, read.leader_commit),
            (request.vote, request.prev_log_id, request.leader_commit)
        );
        assert_eq!(read.entries, entries);
        mangle(&out, read_append);

        let [before, after] = [Bytes::from("a\nhost:1"), Bytes::new()];
        let changes = vec![AboutChange { server: 9, before, after }];
        let mut out = Vec::new();
        write_abouts(&changes, &mut out);
        assert_eq!(read_abouts(Bytes::from(out.clone())), Ok(changes));
        mangle(&out, read_abouts);

        let vote = VoteRequest::new(Vote::new(7, 3), None);
        let mut out = Vec::new();
        write_vote_request(&vote, &mut out);
        assert_eq!(read_vote_request(Bytes::from(out.clone())), Ok(vote));
        mangle(&out, read_vote_request);

        let granted = VoteResponse::new(Vote::new(7, 3), Some(log_id(1, 2, 3)), true);
        let mut out = Vec::new();
        write_vote_answer(&granted, &mut out);
        assert_eq!(read_vote_answer(Bytes::from(out.clone())), Ok(granted));
        mangle(&out, read_vote_answer);

        let membership = Membership::new(vec![BTreeSet::from([1, 2, 3])], None);
        let last = Some(log_id(2, 1, 6));
        let meta = SnapshotMeta {
            last_log_id: last,
            last_membership: StoredMembership::new(Some(log_id(1, 2, 0)), membership),
            snapshot_id: snapshot_id(last.as_ref()),
        };
        let install =
            InstallSnapshotRequest { vote: Vote::new(7, 3), meta, offset: 0, data: Vec::new(), done: true };
        let mut out = Vec::new();
        write_install(&install, &mut out);
        let read = read_install(Bytes::from(out.clone())).expect("whole");
        assert_eq!((read.vote, read.meta, read.done), (install.vote, install.meta, true));
        mangle(&out, read_install);
        mangle(&out, read_vote_only);

        for answer in [
            AppendEntriesResponse::Success,
            AppendEntriesResponse::PartialSuccess(Some(log_id(1, 2, 3))),
            AppendEntriesResponse::Conflict,
            AppendEntriesResponse::HigherVote(Vote::new(9, 9)),
        ] {
            let mut out = Vec::new();
            write_append_answer(&answer, &mut out);
            assert_eq!(read_append_answer(Bytes::from(out.clone())), Ok(answer));
            mangle(&out, read_append_answer);
        }
    }

    #[test]
    fn a_gap_between_entries_is_malformed() {
        let request = AppendEntriesRequest::<Types> {
            vote: Vote::new_committed(2, 1),
            prev_log_id: None,
            entries: vec![blank_ent(1, 2, 0), blank_ent(1, 2, 2)],
            leader_commit: None,
        };
        let mut out = Vec::new();
        write_append(&request, &mut out);
        assert!(read_append(Bytes::from(out)).is_err());
    }
}
