//! Metrics of a cluster, of its other servers and of its changes, which are read at each scrape without a
//! request to another server.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;
use vervet_cluster::{Cluster, PeerStatus};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct PeerCollector(Arc<Cluster>);

/// A counter of a peer.
type Count = fn(&PeerStatus) -> u64;

const COUNTERS: [(&str, &str, Count); 4] = [
    ("vervet_peer_requests", "Requests to another server of the cluster.", |peer| peer.counts.requests),
    ("vervet_peer_bytes_sent", "Bytes sent to it.", |peer| peer.counts.bytes_sent),
    ("vervet_peer_bytes_received", "Bytes received from it.", |peer| peer.counts.bytes_received),
    ("vervet_peer_failures", "Requests that failed because of it or the network.", |peer| {
        peer.counts.failures
    }),
];

impl PeerCollector {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        Self(Arc::clone(cluster))
    }
}

impl Collector for PeerCollector {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        let peers = self.0.peers();
        let help = "1: another server of the cluster answers pings; 0: it does not.";
        let mut family = out.encode_descriptor("vervet_peer_reachable", help, None, MetricType::Gauge)?;
        for peer in &peers {
            let labels = [("server", peer.name.as_str())];
            ConstGauge::new(i64::from(peer.unreachable.is_none())).encode(family.encode_family(&labels)?)?;
        }
        let help = "Protocol on which this server and another server of the cluster agree.";
        let mut family = out.encode_descriptor("vervet_peer_protocol", help, None, MetricType::Gauge)?;
        for peer in &peers {
            let Some(protocol) = peer.protocol else { continue };
            let labels = [("server", peer.name.as_str())];
            ConstGauge::new(i64::from(protocol.number())).encode(family.encode_family(&labels)?)?;
        }
        for (name, help, count) in COUNTERS {
            let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
            for peer in &peers {
                let labels = [("server", peer.name.as_str())];
                ConstCounter::new(count(peer)).encode(family.encode_family(&labels)?)?;
            }
        }
        let Some(changes) = self.0.changes() else { return Ok(()) };
        let is_following = changes.failure.is_none() && !changes.has_ended;
        let mut gauges = vec![
            ("vervet_changes_commit", "The last commit that this server shows.", changes.timestamp.0),
            (
                "vervet_changes_behind_bytes",
                "Bytes of the log of the writer that this server has not applied.",
                changes.behind_bytes,
            ),
            (
                "vervet_changes_following",
                "1: this server writes, or its last request for changes succeeded; 0: it failed.",
                u64::from(is_following),
            ),
        ];
        if let Some(merged) = changes.merged {
            let help = "Position in the log up to which changes are merged into the data.";
            gauges.push(("vervet_changes_merged", help, merged));
        }
        if let Some(voters) = changes.voters {
            let leads = self.0.takes_changes();
            let count = u64::try_from(voters.names.len()).unwrap_or(u64::MAX);
            gauges.extend([
                ("vervet_voters", "Number of servers that have the log of changes and a vote.", count),
                ("vervet_voters_leader", "1: this server takes changes.", u64::from(leads)),
                ("vervet_voters_leader_known", "1: a leader is known.", u64::from(voters.leader.is_some())),
                ("vervet_voters_term", "Term of the voters; it grows with each election.", voters.term),
                (
                    "vervet_voters_committed",
                    "Position of the last entry known to be committed.",
                    voters.committed,
                ),
            ]);
        }
        for (name, help, value) in gauges {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}
