//! `/cluster`: the servers of a cluster, their partitions, and what this server has sent to each.

use crate::context::RequestContext;
use crate::endpoints::api::json_reply;
use crate::endpoints::update;
use crate::http::reply::{Failure, Outcome};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use vervet_cluster::{ChangesStatus, ClusterStatus, ServerStatus, VotersStatus};

/// Servers that do not answer in this time are reported so.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn answer(context: &RequestContext<'_>) -> Outcome {
    let Some(cluster) = context.state.options.cluster.clone() else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "this server is not a part of a cluster"));
    };
    let status = update::work(context.state, context.describe("cluster"), move |_, _| {
        Ok(cluster.status(STATUS_TIMEOUT))
    })
    .await?;
    Ok(json_reply(&described(&status)))
}

fn described(status: &ClusterStatus) -> Value {
    json!({
        "name": status.name,
        "partitions": status.partitions,
        "replicated": status.is_replicated,
        "replicas": status.replicas,
        "statements": status.statements,
        "connections": status.connections,
        "changes": status.changes.as_ref().map(changes),
        "servers": status.servers.iter().map(server).collect::<Vec<_>>(),
    })
}

fn changes(changes: &ChangesStatus) -> Value {
    json!({
        "writer": changes.writer,
        "commit": changes.timestamp.0,
        "behindBytes": changes.behind_bytes,
        "complete": changes.is_complete,
        "error": changes.failure,
        "ended": changes.has_ended,
        "left": changes.has_left,
        "merged": changes.merged,
        "voters": changes.voters.as_ref().map(voters),
    })
}

fn voters(voters: &VotersStatus) -> Value {
    let matched = voters.matched.iter().map(|(name, index)| json!({ "name": name, "entry": index }));
    json!({
        "names": voters.names,
        "leader": voters.leader,
        "term": voters.term,
        "committed": voters.committed,
        "entry": voters.last,
        "entries": matched.collect::<Vec<_>>(),
    })
}

fn server(server: &ServerStatus) -> Value {
    let counts = &server.counts;
    json!({
        "name": server.entry.name,
        "self": server.is_own,
        "address": server.entry.address,
        "http": server.entry.http,
        "partitions": server.entry.partitions,
        "answers": server.answers.is_ok(),
        "microseconds": server.answers.as_ref().ok().map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        "error": server.answers.as_ref().err().map(|error| error.message()),
        "requests": counts.requests,
        "bytesSent": counts.bytes_sent,
        "bytesReceived": counts.bytes_received,
        "failures": counts.failures,
        "protocol": server.protocol.map(|protocol| protocol.number()),
    })
}
