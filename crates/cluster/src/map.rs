//! The map of a cluster: its servers, their addresses and partitions. A file, `cluster.toml`, that each
//! server has; only `server`, the name of the server itself, differs. Where servers join and leave, each
//! writes the file anew (`members.rs`).

use crate::files::{failed, replace_text};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vervet_model::{Error, ErrorKind, Result};
use vervet_raft::VOTERS_MAX;
use xxhash_rust::xxh3::xxh3_64;

/// Name of the file.
pub const MAP_FILE: &str = "cluster.toml";

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The map. See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterMap {
    /// Name of the cluster, as in its certificates.
    pub name: String,
    /// Name of the server that has this file.
    pub server: String,
    /// Where it listens for the others (`host:port`), if not at its address in `servers`.
    #[serde(default)]
    pub bind: Option<String>,
    /// The data of the cluster ([`ClusterMap::data_name`]); `None`, in a map of an earlier version: not
    /// compared.
    #[serde(default)]
    pub data: Option<String>,
    /// Its certificate authority ([`ClusterMap::authority_name`]); `None` as before.
    #[serde(default)]
    pub authority: Option<String>,
    /// The number of the cluster ([`ClusterMap::number`]), once servers have joined or left.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The server that takes changes; `None`: the graph does not change.
    #[serde(default)]
    pub writer: Option<String>,
    /// The servers that have the log of changes, one of which leads and takes changes; none: `writer` says
    /// who does.
    #[serde(default)]
    pub voters: Vec<String>,
    /// Partitions may be at different servers, even if none are at present: how many servers are to have
    /// each. `None`, in a map of an earlier version: as many as have each.
    #[serde(default)]
    pub replicas: Option<usize>,
    /// All servers.
    pub servers: Vec<ServerEntry>,
}

/// A server of the map.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// Its name, as in its certificate: letters, digits, `-`.
    pub name: String,
    /// Where the other servers reach it: `host:port`.
    pub address: String,
    /// Where clients reach it, for people and the console.
    #[serde(default)]
    pub http: Option<String>,
    /// Its number among the voters, once servers have joined or left; `None`: its rank by name, from 1 on.
    #[serde(default)]
    pub number: Option<u16>,
    /// The partitions that it has.
    pub partitions: Vec<usize>,
}

/// Whether a text is `host:port`.
pub(crate) fn is_address(text: &str) -> bool {
    let is_host = |host: &str| !host.is_empty() && !host.contains('/');
    text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok())
}

impl ClusterMap {
    /// Reads the map in a directory.
    ///
    /// # Errors
    /// Input: there is none, it is not a map, or names no server as its own. Io.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(MAP_FILE);
        let wrong = |what: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Input, format!("{}: {what}", path.display()))
        };
        let text = match std::fs::metadata(&path) {
            Ok(file) if file.len() > FILE_BYTES_MAX => return Err(wrong(&"the file is too long")),
            Ok(_) => std::fs::read_to_string(&path),
            Err(error) => Err(error),
        };
        let text = text.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(
                ErrorKind::Input,
                format!("there is no server of a cluster in {}", directory.display()),
            )
            .with_hint("make its directory with `vervet cluster init`, or check the path"),
            std::io::ErrorKind::InvalidData => wrong(&"it is not a text"),
            _ => Error::io(format_args!("read {}", path.display()), &error),
        })?;
        let map: Self = toml::from_str(&text).map_err(|error| wrong(&error.to_string().trim_end()))?;
        map.check().map_err(|error| error.context(path.display()))?;
        Ok(map)
    }

    /// The map as the text of its file. Its strings have been checked ([`ClusterMap::check`]), so they need
    /// no escapes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text =
            "# The map of a cluster, written by `vervet cluster init`. All servers have the same, \
                        but for `server`.\n"
                .to_owned();
        let mut line = |key: &str, value: &str| text.push_str(&format!("{key} = \"{value}\"\n"));
        line("name", &self.name);
        line("server", &self.server);
        self.bind.iter().for_each(|bind| line("bind", bind));
        self.data.iter().for_each(|data| line("data", data));
        self.authority.iter().for_each(|authority| line("authority", authority));
        self.cluster.iter().for_each(|cluster| line("cluster", cluster));
        self.writer.iter().for_each(|writer| line("writer", writer));
        if !self.voters.is_empty() {
            text.push_str(&format!("voters = {:?}\n", self.voters));
        }
        self.replicas.iter().for_each(|replicas| text.push_str(&format!("replicas = {replicas}\n")));
        for entry in &self.servers {
            text.push_str("\n[[servers]]\n");
            let mut line = |key: &str, value: &str| text.push_str(&format!("{key} = \"{value}\"\n"));
            line("name", &entry.name);
            line("address", &entry.address);
            entry.http.iter().for_each(|http| line("http", http));
            entry.number.iter().for_each(|number| text.push_str(&format!("number = {number}\n")));
            text.push_str(&format!("partitions = {:?}\n", entry.partitions));
        }
        text
    }

    /// Checks names.
    ///
    /// # Errors
    /// Input.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::new(ErrorKind::Input, what));
        let entries = self.servers.iter();
        let strings = entries.flat_map(|entry| entry.http.iter().chain([&entry.address]));
        let strings = strings.chain(&self.bind).chain(&self.data).chain(&self.authority);
        if let Some(text) = strings.chain([&self.name]).find(|text| !is_printable(text)) {
            return wrong(format!("{text:?} has characters that names and addresses do not have"));
        }
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for entry in &self.servers {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if entry.name.is_empty() || entry.name.len() > 63 || !entry.name.chars().all(is_plain) {
                return wrong(format!("`{}` is not a name of a server: letters, digits, `-`", entry.name));
            }
            if entry.number == Some(0) || entry.number.is_some_and(|number| !numbers.insert(number)) {
                return wrong(format!("server {} has no number of its own", entry.name));
            }
            if !names.insert(&entry.name) {
                return wrong(format!("two servers have the name `{}`", entry.name));
            }
            if !is_address(&entry.address) {
                return wrong(format!(
                    "`{}` is not an address (host:port) of server {}",
                    entry.address, entry.name
                ));
            }
        }
        if let Some(writer) = self.writer.as_ref().filter(|writer| !names.contains(writer)) {
            return wrong(format!("no entry of `servers` has the name of the `writer`, `{writer}`"));
        }
        if let Some(voter) = self.voters.iter().find(|voter| !names.contains(voter)) {
            return wrong(format!("no entry of `servers` has the name of a voter, `{voter}`"));
        }
        if self.voters.iter().collect::<BTreeSet<_>>().len() < self.voters.len() {
            return wrong("`voters` names a server twice".to_owned());
        }
        if self.replicas == Some(0) {
            return wrong("`replicas` is at least 1".to_owned());
        }
        if self.voters.len() > VOTERS_MAX {
            return wrong(format!("there are at most {VOTERS_MAX} voters"));
        }
        if let Some(cluster) = self.cluster.as_ref().filter(|text| u64::from_str_radix(text, 16).is_err()) {
            return wrong(format!("`{cluster}` is no number of a cluster"));
        }
        if self.writer.is_some() && !self.voters.is_empty() {
            return wrong("there is a `writer`, or there are `voters`, and not both".to_owned());
        }
        if !names.contains(&self.server) {
            return wrong(format!("no entry of `servers` has the name of this server, `{}`", self.server));
        }
        Ok(())
    }

    /// A number that two maps share only if they give the same partitions to the same servers, have the same
    /// writer, and were made for the same data (`build`): servers with different ones would count statements
    /// twice or never. Where servers have joined or left, all keep the number of before.
    #[must_use]
    pub fn number(&self, build: u64) -> u64 {
        let kept = self.cluster.as_deref().and_then(|text| u64::from_str_radix(text, 16).ok());
        if let Some(number) = kept {
            return number;
        }
        let mut servers: Vec<(&str, Vec<usize>)> =
            self.servers.iter().map(|entry| (entry.name.as_str(), entry.partitions.clone())).collect();
        servers.iter_mut().for_each(|(_, partitions)| partitions.sort_unstable());
        servers.sort_unstable();
        let mut text = format!("{build:016x}");
        if let Some(writer) = &self.writer {
            text.push_str(&format!(" written by {writer}"));
        }
        if !self.voters.is_empty() {
            let mut voters = self.voters.clone();
            voters.sort_unstable();
            text.push_str(&format!(" voters {voters:?}"));
        }
        for (name, partitions) in servers {
            text.push_str(&format!("\n{name} {partitions:?}"));
        }
        xxh3_64(text.as_bytes())
    }

    /// Replaces the file in the directory of the server.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(MAP_FILE);
        replace_text(&path, &self.to_text()).map_err(failed("write", &path))
    }

    /// The build of the data that the map names.
    #[must_use]
    pub fn origin(&self) -> Option<u64> {
        u64::from_str_radix(self.data.as_deref()?, 16).ok()
    }

    /// The name of the data of a build.
    #[must_use]
    pub fn data_name(build: u64) -> String {
        format!("{build:016x}")
    }

    /// The name of a certificate authority: a hash of its certificate, against mistakes alone.
    #[must_use]
    pub fn authority_name(certificate: &[u8]) -> String {
        let text: Vec<u8> = certificate.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        format!("{:016x}", xxh3_64(&text))
    }

    /// Compares the data in the directory with those of the map, if it names them.
    ///
    /// # Errors
    /// Input: they are those of another cluster.
    pub fn check_data(&self, build: u64) -> Result<()> {
        check_belonging("data", &Self::data_name(build), self.data.as_deref())
    }

    /// Compares the certificate authority in the directory with that of the map, if it names one.
    ///
    /// # Errors
    /// Input: it is that of another cluster.
    pub fn check_authority(&self, authority: &[u8]) -> Result<()> {
        check_belonging("authority", &Self::authority_name(authority), self.authority.as_deref())
    }

    /// Whether the server itself takes changes, and no voters do.
    #[must_use]
    pub fn is_writer(&self) -> bool {
        self.writer.as_ref() == Some(&self.server)
    }

    /// The number of a server among the voters.
    #[must_use]
    pub fn number_of(&self, entry: &ServerEntry) -> u64 {
        let rank = || self.servers.iter().filter(|other| other.name < entry.name).count() as u64 + 1;
        entry.number.map_or_else(rank, u64::from)
    }

    /// Whether every server has all partitions, now and later, so that none needs another one to read.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.replicas.is_none() && self.are_all_equal()
    }

    fn are_all_equal(&self) -> bool {
        let of = |entry: &ServerEntry| entry.partitions.iter().copied().collect::<BTreeSet<_>>();
        self.servers.len() > 1 && self.servers.windows(2).all(|two| of(&two[0]) == of(&two[1]))
    }

    /// How many servers have each partition, at least.
    #[must_use]
    pub fn fewest_replicas(&self) -> usize {
        let mut counts = BTreeMap::<usize, usize>::new();
        for partition in self.servers.iter().flat_map(|entry| &entry.partitions) {
            *counts.entry(*partition).or_default() += 1;
        }
        counts.into_values().min().unwrap_or(1)
    }

    /// How many servers are to have each partition.
    #[must_use]
    pub fn replicas_wanted(&self) -> usize {
        self.replicas.unwrap_or_else(|| self.fewest_replicas()).max(1)
    }

    /// All partitions.
    #[must_use]
    pub fn partitions(&self) -> BTreeSet<usize> {
        self.servers.iter().flat_map(|entry| entry.partitions.iter().copied()).collect()
    }

    /// The partitions that no server has but those for which `is_away` holds.
    #[must_use]
    pub fn partitions_without(&self, is_away: impl Fn(&ServerEntry) -> bool) -> BTreeSet<usize> {
        let there = self.servers.iter().filter(|entry| !is_away(entry));
        let there: BTreeSet<usize> = there.flat_map(|entry| entry.partitions.iter().copied()).collect();
        self.partitions().difference(&there).copied().collect()
    }

    /// The entry of the server itself.
    ///
    /// # Errors
    /// As [`ClusterMap::check`].
    pub fn own(&self) -> Result<&ServerEntry> {
        let own = self.servers.iter().find(|entry| entry.name == self.server);
        own.ok_or_else(|| Error::new(ErrorKind::Input, format!("server `{}` is not in the map", self.server)))
    }
}

fn check_belonging(what: &str, found: &str, expected: Option<&str>) -> Result<()> {
    let Some(expected) = expected.filter(|expected| *expected != found) else { return Ok(()) };
    let what = format!("the {what} of this server is {found}, that of its {MAP_FILE} is {expected}");
    Err(Error::new(ErrorKind::Input, what)
        .with_hint("give each server the files that were made for it with the cluster"))
}

/// Whether it is printable ASCII without quotes and backslashes.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ClusterMap {
        let server = |name: &str, partitions| ServerEntry {
            name: name.to_owned(),
            address: "127.0.0.1:7100".to_owned(),
            http: None,
            number: None,
            partitions,
        };
        let servers = vec![server("a", vec![0, 2]), server("b", vec![1, 3])];
        ClusterMap {
            name: "c".to_owned(),
            server: "b".to_owned(),
            bind: None,
            data: Some("00ff".to_owned()),
            authority: None,
            cluster: None,
            writer: Some("a".to_owned()),
            voters: Vec::new(),
            replicas: None,
            servers,
        }
    }

    #[test]
    fn a_map_is_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join(MAP_FILE), map().to_text()).expect("written");
        assert_eq!(ClusterMap::read(directory.path()).expect("a map"), map());
        assert_eq!(map().own().expect("in the map").partitions, [1, 3]);
        let mut copies = map();
        assert!(!copies.is_replicated());
        copies.servers[0].partitions = vec![3, 0, 1, 2];
        copies.servers[1].partitions = vec![0, 1, 2, 3];
        assert!(copies.is_replicated());
        let without = |map: &ClusterMap, name: &str| map.partitions_without(|entry| entry.name == name);
        assert_eq!((map().fewest_replicas(), copies.fewest_replicas()), (1, 2));
        copies.replicas = Some(2);
        assert!(!copies.is_replicated(), "they may move");
        std::fs::write(directory.path().join(MAP_FILE), copies.to_text()).expect("written");
        assert_eq!(ClusterMap::read(directory.path()).expect("a map"), copies);
        assert_eq!(without(&map(), "a"), BTreeSet::from([0, 2]));
        assert_eq!(without(&copies, "a"), BTreeSet::new());
    }

    #[test]
    fn mistakes_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let read = |text: &str| {
            std::fs::write(directory.path().join(MAP_FILE), text).expect("written");
            ClusterMap::read(directory.path()).expect_err("wrong").message().to_owned()
        };
        let text = map().to_text();
        for (from, to, expected) in [
            ("server = \"b\"", "server = \"d\"", "`d`"),
            ("name = \"a\"", "name = \"b\"", "two servers"),
            ("127.0.0.1:7100", "127.0.0.1", "not an address"),
            ("name = \"a\"", "name = \"a b\"", "not a name"),
            ("partitions", "parts", "unknown field"),
        ] {
            let message = read(&text.replacen(from, to, 1));
            assert!(message.contains(expected), "{to}: {message}");
        }
        std::fs::remove_file(directory.path().join(MAP_FILE)).expect("removed");
        let error = ClusterMap::read(directory.path()).expect_err("no map");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
}
