//! `vervet cluster status`: the servers of a cluster, as one of them sees them.

use crate::arguments::ClusterStatusArguments;
use crate::output::{self, Failure, Outcome, Output};
use crate::table::Table;
use crate::{http_client, server_address};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

/// Maximum length of a response: a cluster has at most 256 servers.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;

pub(crate) fn run(arguments: &ClusterStatusArguments) -> Outcome {
    let login = http_client::login(arguments.user.as_deref(), arguments.token_file.as_deref())?;
    let urls = server_address::urls(arguments.address.as_deref(), login.is_some());
    let status = http_client::first_answer(&urls, |url| ask(url, login.as_deref()))?;
    let mut out = Output::standard();
    match arguments.json {
        true => writeln!(out, "{}", status.json())?,
        false => status.write_text(&mut out)?,
    }
    out.finish()?;
    if status.silent().is_empty() && !status.has_left() { Ok(()) } else { Err(Failure::Shown) }
}

/// The state of a cluster as the JSON of a server.
pub(crate) struct Status(Value);

/// The state of the cluster that the server at `url` belongs to. `login`: the header `Authorization`.
pub(crate) fn ask(url: &str, login: Option<&str>) -> vervet::Result<Status> {
    let server = url;
    let url = format!("{url}/cluster");
    let mut request = http_client::agent(&url, login.is_some()).get(&url);
    if let Some(login) = login {
        request = request.header("Authorization", login);
    }
    let unreachable = |error: &dyn std::fmt::Display| {
        let hint = "is the server running, and is this its `http` address in cluster.toml? another server of the \
                    cluster can be asked too: vervet cluster status HOST:PORT";
        http_client::failed(&url, error).with_hint(hint)
    };
    let mut answer = request.call().map_err(|error| unreachable(&error))?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string();
    let text = body.map_err(|error| unreachable(&error))?;
    if !status.is_success() {
        let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let error = http_client::failed(&url, &format!("{}: {reason}", status.as_u16()));
        return Err(match status.as_u16() {
            401 | 403 => error.with_hint(http_client::LOGIN_HINT),
            404 => error.with_hint(format!("for a single server: vervet health {server} --ready")),
            _ => error,
        });
    }
    let wrong = |what: &dyn std::fmt::Display| {
        http_client::failed(&url, &format!("the response is not the state of a cluster: {what}"))
            .with_hint("name the `http` address of a server of the cluster, as in cluster.toml")
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if value["servers"].as_array().is_none_or(Vec::is_empty) {
        return Err(wrong(&"it has no servers"));
    }
    Ok(Status(value))
}

impl Status {
    fn servers(&self) -> &[Value] {
        self.0["servers"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the server that was asked was removed from the cluster.
    fn has_left(&self) -> bool {
        self.0["changes"]["left"].as_bool() == Some(true)
    }

    /// The servers that do not answer.
    fn silent(&self) -> Vec<&Value> {
        self.servers().iter().filter(|server| server["answers"].as_bool() != Some(true)).collect()
    }

    /// The JSON of the server, with the number of servers that answer.
    fn json(&self) -> Value {
        let mut value = self.0.clone();
        if let Some(members) = value.as_object_mut() {
            let answering = self.servers().len() - self.silent().len();
            members.insert("answering".to_owned(), answering.into());
        }
        value
    }

    /// A sentence, a table, and the errors.
    pub(crate) fn write_text(&self, out: &mut dyn Write) -> Outcome {
        let silent = self.silent();
        let number = |value: &Value| value.as_u64().map(output::count).unwrap_or_default();
        writeln!(out, "{}{}\n", self.summary(&silent), self.changes())?;
        let mut table = Table::new(&[
            "server",
            "clients",
            ">partitions",
            ">answers",
            ">requests",
            ">bytes sent",
            ">received",
            ">failures",
        ]);
        for server in self.servers() {
            let answers = match (server["self"].as_bool(), server["microseconds"].as_u64()) {
                (Some(true), _) => "asked".to_owned(),
                (_, Some(time)) => output::time(Duration::from_micros(time)),
                (_, None) => "no".to_owned(),
            };
            let partitions = server["partitions"].as_array().map(Vec::len).unwrap_or_default();
            table.row([
                text(server, "name").to_owned(),
                text(server, "http").to_owned(),
                partitions.to_string(),
                answers,
                number(&server["requests"]),
                number(&server["bytesSent"]),
                number(&server["bytesReceived"]),
                number(&server["failures"]),
            ]);
        }
        table.write("", out)?;
        for line in self.protocols().into_iter().chain(self.places()) {
            writeln!(out, "\n{line}")?;
        }
        if !silent.is_empty() {
            writeln!(out)?;
        }
        for server in silent {
            // The message of an error has the name and the address of the server.
            writeln!(out, "{}", text(server, "error"))?;
        }
        Ok(())
    }

    /// The servers of an earlier version than the server that was asked; `None`: there are none.
    fn protocols(&self) -> Option<String> {
        let protocol = |server: &Value| server["protocol"].as_u64();
        let asked = self.servers().iter().find(|server| server["self"].as_bool() == Some(true))?;
        let newest = protocol(asked)?;
        let older = |server: &&Value| protocol(server).is_some_and(|protocol| protocol < newest);
        let older: Vec<String> = self
            .servers()
            .iter()
            .filter(older)
            .map(|server| {
                format!("{} (protocol {})", text(server, "name"), protocol(server).unwrap_or_default())
            })
            .collect();
        let names = older.join(", ");
        (!older.is_empty()).then(|| {
            format!(
                "The upgrade is not complete: server {} has protocol {newest}, an earlier version has {names}.",
                text(asked, "name")
            )
        })
    }

    /// The partitions that are at fewer servers, or at more, than they are to be; `None`: there are none.
    fn places(&self) -> Option<String> {
        let wanted = self.0["replicas"].as_u64()?.min(self.servers().len() as u64);
        let mut counts = BTreeMap::<u64, u64>::new();
        for server in self.servers() {
            let partitions = server["partitions"].as_array().into_iter().flatten().filter_map(Value::as_u64);
            partitions.for_each(|partition| *counts.entry(partition).or_default() += 1);
        }
        let few = counts.values().filter(|count| **count < wanted).count();
        let command = "run vervet cluster rebalance DIR";
        match few {
            0 if counts.values().all(|count| *count == wanted) => None,
            0 => Some(format!("Some partitions are at more than {wanted} servers: {command}.")),
            _ => Some(format!(
                "{few} of {} partitions are at fewer than {wanted} servers: {command}.",
                counts.len()
            )),
        }
    }

    /// Where changes go, and what the server that was asked has of them.
    fn changes(&self) -> String {
        let changes = &self.0["changes"];
        if self.has_left() {
            return String::new();
        }
        let Some(writer) = changes["writer"].as_str() else { return String::new() };
        if writer.is_empty() {
            return " No server takes changes: the voters have no leader; a majority of them must be up."
                .to_owned();
        }
        let asked = self.servers().iter().find(|server| server["self"].as_bool() == Some(true));
        let asked = asked.map_or("", |server| text(server, "name"));
        let commit = changes["commit"].as_u64().map(output::count).unwrap_or_default();
        let what = match (text(changes, "error"), changes["behindBytes"].as_u64().unwrap_or_default()) {
            ("", 0) => format!("server {asked} has all up to commit {commit}"),
            ("", bytes) => {
                format!("server {asked} has commit {commit}, and is {} behind", output::bytes(bytes))
            }
            (error, _) => format!("server {asked} has commit {commit}, and gets no more: {error}"),
        };
        let others = match changes["voters"]["names"].as_array() {
            Some(names) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                format!(", elected by {}", names.join(", "))
            }
            None => String::new(),
        };
        format!(" Changes go to server {writer}{others}; {what}.")
    }

    /// Whether the servers that answer have all partitions.
    fn has_all(&self, silent: &[&Value]) -> bool {
        let partitions = |server: &Value| -> BTreeSet<u64> {
            server["partitions"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
        };
        let name = |server: &Value| text(server, "name").to_owned();
        let away: BTreeSet<String> = silent.iter().map(|server| name(server)).collect();
        let answers = self.servers().iter().filter(|server| !away.contains(&name(server)));
        let there: BTreeSet<u64> = answers.flat_map(&partitions).collect();
        self.servers().iter().flat_map(&partitions).all(|partition| there.contains(&partition))
    }

    /// What works, or what does not and what to type.
    fn summary(&self, silent: &[&Value]) -> String {
        let count = |key: &str| self.0[key].as_u64().map(output::count).unwrap_or_default();
        let (statements, partitions) = (count("statements"), count("partitions"));
        if self.has_left() {
            return "This server was removed from the cluster, and shows what it had, or less: end it, and ask \
                    another one."
                .to_owned();
        }
        if silent.is_empty() {
            let all = match self.servers().len() {
                1 => "The only server answers".to_owned(),
                servers => format!("All {servers} servers answer"),
            };
            return match self.0["replicated"].as_bool() {
                Some(true) => format!("{all}: {statements} statements, all of them at each server."),
                _ => format!("{all}: {statements} statements in {partitions} partitions."),
            };
        }
        let names: Vec<&str> = silent.iter().map(|server| text(server, "name")).collect();
        let (who, them) = match names.as_slice() {
            [one] => (format!("Server {one} does not answer"), "it on its machine"),
            _ => (format!("Servers {} do not answer", names.join(", ")), "each on its machine"),
        };
        let what = match self.0["replicated"].as_bool() {
            Some(true) => "; the others go on with the whole graph",
            _ if self.has_all(silent) => "; the others have all partitions, and go on",
            _ => ", so queries that need their partitions fail",
        };
        format!(
            "{who}{what}: start {them} with vervet serve --cluster DIR \
             (DIR is its directory)."
        )
    }
}

fn text<'v>(server: &'v Value, key: &str) -> &'v str {
    server[key].as_str().unwrap_or_default()
}
