//! The requests of one query that read data of other servers where they are.

use crate::lock;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

/// Counts of one query by server, shared by its threads.
#[derive(Debug, Default)]
pub struct RemoteReads(Mutex<BTreeMap<String, ReadCounts>>);

/// Requests to one server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadCounts {
    /// Requests.
    pub requests: u64,
    /// Keys that they ask for.
    pub keys: u64,
    /// Bytes of the requests, before encryption.
    pub bytes_sent: u64,
    /// Bytes of the answers, before encryption.
    pub bytes_received: u64,
    /// Requests that were not sent, since their answers were kept from before.
    pub kept: u64,
}

impl ReadCounts {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.keys += other.keys;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.kept += other.kept;
    }

    fn describe(self) -> String {
        let Self { requests, keys, bytes_sent, bytes_received, kept } = self;
        let sent =
            format!("{requests} requests, {keys} keys, {bytes_sent} bytes sent, {bytes_received} received");
        if kept == 0 { sent } else { format!("{sent}, {kept} kept answers") }
    }
}

impl RemoteReads {
    /// Adds to the counts of a server.
    pub fn add(&self, server: &str, counts: ReadCounts) {
        let mut all = lock(&self.0);
        match all.get_mut(server) {
            Some(known) => known.add(counts),
            None => drop(all.insert(server.to_owned(), counts)),
        }
    }

    /// The counts so far, by the name of the server, which begin again at zero.
    pub fn take(&self) -> Vec<(String, ReadCounts)> {
        std::mem::take(&mut *lock(&self.0)).into_iter().collect()
    }
}

/// The sum of the counts of all servers.
#[must_use]
pub fn sum_of_reads(reads: &[(String, ReadCounts)]) -> ReadCounts {
    let mut sum = ReadCounts::default();
    reads.iter().for_each(|(_, counts)| sum.add(*counts));
    sum
}

/// The sum, and the counts of each server, as a line; `None`: there were no reads.
#[must_use]
pub fn describe_reads(reads: &[(String, ReadCounts)]) -> Option<String> {
    let mut line = format!("reads in place: {}", sum_of_reads(reads).describe());
    for (server, counts) in reads {
        // Writing to a string cannot fail.
        let _ = write!(line, "; server {server}: {}", counts.describe());
    }
    (!reads.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_sum_and_each_server() {
        let reads = RemoteReads::default();
        let one = ReadCounts { requests: 1, keys: 2, bytes_sent: 30, bytes_received: 40, kept: 0 };
        for server in ["c", "b", "c"] {
            reads.add(server, one);
        }
        reads.add("b", ReadCounts { kept: 5, ..ReadCounts::default() });
        assert_eq!(
            describe_reads(&reads.take()).as_deref(),
            Some(
                "reads in place: 3 requests, 6 keys, 90 bytes sent, 120 received, 5 kept answers; server b: 1 requests, \
                 2 keys, 30 bytes sent, 40 received, 5 kept answers; server c: 2 requests, 4 keys, 60 bytes sent, \
                 80 received"
            )
        );
        assert_eq!(describe_reads(&reads.take()), None);
    }
}
