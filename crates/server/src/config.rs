//! The configuration file, in TOML. docs/server.md shows one with all entries.
//!
//! Unknown names are errors: a misspelt limit must not mean no limit.

use crate::options::{REQUESTS_MAX, Role, ServerOptions, Tls, User};
use crate::saved_queries::SavedQueries;
use crate::security::origin;
use crate::toml_error::toml_error;
use serde::Deserialize;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// The maximum of a time limit: beyond it, sums of times could overflow the clock.
const SECONDS_MAX: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    bind: Option<String>,
    read_only: Option<bool>,
    allow_plain_http: Option<bool>,
    cors: Option<Vec<String>>,
    #[serde(default)]
    hosts: Vec<String>,
    anonymous: Option<Anonymous>,
    slow_query_ms: Option<u64>,
    queries: Option<PathBuf>,
    #[serde(default)]
    limits: LimitsTable,
    tls: Option<TlsTable>,
    #[serde(default)]
    users: Vec<User>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Anonymous {
    None,
    Read,
    Write,
    Admin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsTable {
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    timeout_seconds: Option<f64>,
    memory_bytes: Option<u64>,
    threads: Option<usize>,
    text_bytes: Option<usize>,
    document_bytes: Option<usize>,
    bodies_bytes: Option<usize>,
    export_timeout_seconds: Option<f64>,
    head_bytes: Option<usize>,
    headers: Option<usize>,
    head_timeout_seconds: Option<f64>,
    login_timeout_seconds: Option<f64>,
    body_timeout_seconds: Option<f64>,
    write_timeout_seconds: Option<f64>,
    connections: Option<usize>,
    connections_per_address: Option<usize>,
    requests: Option<usize>,
    heavy_requests: Option<usize>,
    queue: Option<usize>,
    queue_timeout_seconds: Option<f64>,
    sessions: Option<usize>,
    change_streams: Option<usize>,
    session_timeout_seconds: Option<f64>,
    idle_timeout_seconds: Option<f64>,
    shutdown_timeout_seconds: Option<f64>,
}

impl ServerOptions {
    /// The options of a configuration file, with defaults for missing entries. Paths in it are relative to
    /// its folder.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the position of the mistake; [`ErrorKind::Io`].
    pub fn from_file(path: &Path) -> Result<Self> {
        Self::from_file_or_bind(path, |_| Ok(()))
    }

    /// As [`ServerOptions::from_file`]; `bind` sets the address of a file without the entry `bind`.
    ///
    /// # Errors
    /// As [`ServerOptions::from_file`]; errors of `bind`.
    pub fn from_file_or_bind(path: &Path, bind: impl FnOnce(&mut Self) -> Result<()>) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io(format!("read {}", path.display()), &error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let parsed = Self::from_toml(&text, folder).map_err(|error| error.context(path.display()));
        let (mut options, has_bind) = parsed?;
        if !has_bind {
            bind(&mut options)?;
        }
        Ok(options)
    }

    /// Makes the server listen on `HOST:PORT`, and trust that host name.
    ///
    /// # Errors
    /// As [`resolve`].
    pub fn bind_to(&mut self, bind: &str) -> Result<()> {
        self.bind = resolve(bind)?;
        let name = bind.rsplit_once(':').map_or(bind, |(name, _)| name);
        // Addresses are trusted anyway.
        if origin::check_options(&[], &[name.to_owned()]).is_ok() {
            self.hosts.push(name.to_owned());
        }
        Ok(())
    }

    /// The options of a text, and whether it has an address.
    fn from_toml(text: &str, folder: &Path) -> Result<(Self, bool)> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
        let mut options = Self::default();
        if let Some(bind) = &file.bind {
            options.bind_to(bind)?;
        }
        options.read_only = file.read_only.unwrap_or(options.read_only);
        options.allow_plain_http = file.allow_plain_http.unwrap_or(options.allow_plain_http);
        options.slow_query = file.slow_query_ms.map(Duration::from_millis).or(options.slow_query);
        options.cors = file.cors.unwrap_or(options.cors);
        options.hosts.extend(file.hosts);
        origin::check_options(&options.cors, &options.hosts)?;
        options.anonymous = match file.anonymous {
            None | Some(Anonymous::None) => None,
            Some(Anonymous::Read) => Some(Role::Read),
            Some(Anonymous::Write) => Some(Role::Write),
            Some(Anonymous::Admin) => Some(Role::Admin),
        };
        options.tls = file.tls.map(|tls| Tls { cert: folder.join(tls.cert), key: folder.join(tls.key) });
        if options.anonymous.is_some() && file.users.is_empty() {
            let message = "`anonymous` has no effect without users: access is unrestricted then";
            return Err(Error::new(ErrorKind::Input, message).with_hint("add [[users]], or use read_only"));
        }
        if let Some(queries) = file.queries {
            options.queries = SavedQueries::from_file(&folder.join(queries))?;
        }
        options.users = file.users;
        file.limits.apply(&mut options)?;
        Ok((options, file.bind.is_some()))
    }
}

impl LimitsTable {
    fn apply(self, options: &mut ServerOptions) -> Result<()> {
        let limits = &mut options.limits;
        for (name, value, limit) in [
            ("timeout_seconds", self.timeout_seconds, &mut limits.timeout),
            ("export_timeout_seconds", self.export_timeout_seconds, &mut limits.export_timeout),
            ("head_timeout_seconds", self.head_timeout_seconds, &mut limits.head_timeout),
            ("login_timeout_seconds", self.login_timeout_seconds, &mut limits.login_timeout),
            ("body_timeout_seconds", self.body_timeout_seconds, &mut limits.body_timeout),
            ("write_timeout_seconds", self.write_timeout_seconds, &mut limits.write_timeout),
            ("queue_timeout_seconds", self.queue_timeout_seconds, &mut limits.queue_timeout),
            ("session_timeout_seconds", self.session_timeout_seconds, &mut limits.session_timeout),
            ("idle_timeout_seconds", self.idle_timeout_seconds, &mut limits.idle_timeout),
            ("shutdown_timeout_seconds", self.shutdown_timeout_seconds, &mut limits.shutdown_timeout),
        ] {
            match value {
                None => {}
                Some(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => {
                    *limit = Duration::from_secs_f64(seconds);
                }
                Some(seconds) => return Err(out_of_range(name, &seconds)),
            }
        }
        for (name, value, limit) in [
            ("text_bytes", self.text_bytes, &mut limits.text_bytes),
            ("document_bytes", self.document_bytes, &mut limits.document_bytes),
            ("bodies_bytes", self.bodies_bytes, &mut limits.bodies_bytes),
            ("connections", self.connections, &mut limits.connections),
            ("connections_per_address", self.connections_per_address, &mut limits.connections_per_address),
            ("queue", self.queue, &mut limits.queue),
        ] {
            match value {
                None => {}
                Some(0) => return Err(out_of_range(name, &0)),
                Some(value) => *limit = value,
            }
        }
        // The system must be able to allocate threads, permits and buffers of these numbers.
        for (name, value, limit, range) in [
            ("requests", self.requests, &mut limits.requests, 1..=REQUESTS_MAX),
            ("sessions", self.sessions, &mut limits.sessions, 1..=100_000),
            ("change_streams", self.change_streams, &mut limits.change_streams, 1..=100_000),
            ("heavy_requests", self.heavy_requests, &mut limits.heavy_requests, 1..=10_000),
            ("head_bytes", self.head_bytes, &mut limits.head_bytes, 8192..=1 << 24),
            ("headers", self.headers, &mut limits.headers, 1..=10_000),
        ] {
            match value {
                None => {}
                Some(value) if range.contains(&value) => *limit = value,
                Some(value) => return Err(out_of_range(name, &value)),
            }
        }
        match self.threads {
            Some(0) => return Err(out_of_range("threads", &0)),
            threads => limits.threads = threads.or(limits.threads),
        }
        match self.memory_bytes {
            Some(0) => return Err(out_of_range("memory_bytes", &0)),
            bytes => limits.memory_bytes = bytes.unwrap_or(limits.memory_bytes),
        }
        Ok(())
    }
}

fn out_of_range(name: &str, value: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Input, format!("limits.{name} = {value} is out of its range"))
}

/// The addresses of `HOST:PORT`.
///
/// # Errors
/// [`ErrorKind::Input`]: no address.
pub fn resolve(bind: &str) -> Result<Vec<SocketAddr>> {
    let wrong = |what: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Input, format!("{bind} is not an address to listen on: {what}"))
            .with_hint("such as 127.0.0.1:7878, [::1]:7878 or localhost:7878")
    };
    let addresses: Vec<SocketAddr> = bind.to_socket_addrs().map_err(|error| wrong(&error))?.collect();
    if addresses.is_empty() { Err(wrong(&"the name has no address")) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_all_options() {
        let text = r#"
            bind = "127.0.0.1:0"
            read_only = true
            anonymous = "read"
            cors = ["https://app.example.org"]
            [limits]
            timeout_seconds = 2.5
            heavy_requests = 3
            [tls]
            cert = "cert.pem"
            key = "/etc/key.pem"
            [[users]]
            name = "ann"
            token_sha256 = "00"
            role = "write"
        "#;
        let (options, has_bind) = ServerOptions::from_toml(text, Path::new("/conf")).unwrap();
        assert!(has_bind && !ServerOptions::from_toml("", Path::new("")).unwrap().1);
        assert_eq!(options.bind, [SocketAddr::from(([127, 0, 0, 1], 0))]);
        assert!(options.read_only);
        assert_eq!(options.anonymous, Some(Role::Read));
        assert_eq!(options.limits.timeout, Duration::from_millis(2500));
        assert_eq!(options.limits.heavy_requests, 3);
        let tls = options.tls.unwrap();
        assert_eq!((tls.cert, tls.key), ("/conf/cert.pem".into(), "/etc/key.pem".into()));
        assert_eq!(options.users[0].role, Role::Write);
    }

    #[test]
    fn errors_have_positions() {
        for (text, part) in [
            ("[limits]\ntimout_seconds = 1", "timout_seconds"),
            ("[limits]\ntimeout_seconds = 0", "timeout_seconds"),
            ("[limits]\nrequests = 100000", "requests"),
            ("bind = \"nowhere\"", "nowhere"),
            ("anonymous = \"read\"", "anonymous"),
            ("anonymous = \"all\"", "all"),
            ("[[users]]\nname = \"a\"\nrole = \"king\"", "king"),
            ("x", "line 1"),
            ("[limits]\n\n  requests = true", "line 3, column 14: "),
        ] {
            let error = ServerOptions::from_toml(text, Path::new("")).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
        }
        // A message has no text of the file, which may be secret.
        let text = "[[users]]\nname = \"ann\"\ntoken_sha256 = \"5ec4e7\" role = \"read\"";
        let error = ServerOptions::from_toml(text, Path::new("")).unwrap_err();
        assert!(error.message().contains("line 3") && !error.message().contains("5ec4e7"), "{error}");
    }
}
