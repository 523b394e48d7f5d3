//! Metrics of the other servers of a cluster, which are read at each scrape without a request to them.

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
        for (name, help, count) in COUNTERS {
            let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
            for peer in &peers {
                let labels = [("server", peer.name.as_str())];
                ConstCounter::new(count(peer)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
