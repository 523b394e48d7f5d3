//! Directories and backups of a cluster in place of a database: what they are, and what to type instead.

use crate::arguments::Command;
use crate::output::Failure;
use std::path::{Path, PathBuf};
use vervet::{Error, ErrorKind};
use vervet_cluster::{BACKUP_FILE, ClusterMap, MAP_FILE};

/// A directory of a cluster.
enum ClusterDirectory {
    /// That of a server.
    Server(PathBuf),
    /// That of all servers, with theirs in it.
    Servers(Vec<PathBuf>),
}

/// Refuses a command for databases on a directory of a cluster, or on a backup of one.
///
/// # Errors
/// [`ErrorKind::Input`], with the command for such a directory.
pub(crate) fn refuse(command: &Command) -> Result<(), Failure> {
    refuse_backup(command)?;
    let Some(path) = database_of(command) else { return Ok(()) };
    let Some(found) = ClusterDirectory::find(path) else { return Ok(()) };
    let is_check = matches!(command, Command::Check(_));
    match &found {
        // `check` verifies it.
        ClusterDirectory::Server(server) if is_check && server == path => Ok(()),
        _ => Err(found.error(path, command).into()),
    }
}

/// Refuses a command for databases on a backup of a cluster.
fn refuse_backup(command: &Command) -> Result<(), Failure> {
    let path = match command {
        // It verifies such a backup.
        Command::Check(_) => None,
        Command::Restore(arguments) => Some(arguments.backup.as_path()),
        _ => database_of(command),
    };
    let Some(path) = path.filter(|path| path.join(BACKUP_FILE).is_file()).map(Path::display) else {
        return Ok(());
    };
    let hint =
        format!("vervet cluster restore {path} DIR makes a cluster from it, with --database a database");
    Err(Error::new(ErrorKind::Input, format!("{path} is a backup of a cluster")).with_hint(hint).into())
}

/// The database that a command names, if it names one.
fn database_of(command: &Command) -> Option<&Path> {
    let path = match command {
        Command::Load(arguments) => &arguments.database,
        Command::Query(arguments) if arguments.data.is_empty() => Path::new(arguments.first.as_ref()?),
        Command::Update(arguments) => &arguments.database,
        Command::Constraint(arguments) => &arguments.database,
        Command::Shell(arguments) => &arguments.database,
        Command::Info(arguments) => arguments.database.as_deref()?,
        Command::Check(arguments) => &arguments.database,
        Command::Export(arguments) => &arguments.database,
        Command::Changes(arguments) => Path::new(&arguments.source),
        Command::Backup(arguments) => &arguments.database,
        Command::Recover(arguments) => &arguments.database,
        Command::Serve(arguments) => arguments.database.as_deref()?,
        Command::Mcp(arguments) => &arguments.database,
        _ => return None,
    };
    Some(path)
}

impl ClusterDirectory {
    fn find(path: &Path) -> Option<Self> {
        let is_server = |path: &Path| path.join(MAP_FILE).is_file();
        if is_server(path) {
            return Some(Self::Server(path.to_owned()));
        }
        // The data of a server are in a directory of its own.
        if let Some(parent) = path.parent().filter(|parent| path.is_dir() && is_server(parent)) {
            return Some(Self::Server(parent.to_owned()));
        }
        let entries = std::fs::read_dir(path).ok()?;
        let mut servers: Vec<PathBuf> = entries.map_while(|entry| Some(entry.ok()?.path())).collect();
        servers.retain(|server| is_server(server));
        servers.sort();
        (!servers.is_empty()).then_some(Self::Servers(servers))
    }

    fn error(&self, path: &Path, command: &Command) -> Error {
        let (what, servers) = match self {
            Self::Server(server) => (server_text(path, server), vec![server.display().to_string()]),
            Self::Servers(servers) => (
                "has the directories of the servers of a cluster".to_owned(),
                servers.iter().map(|server| server.display().to_string()).collect(),
            ),
        };
        let message = format!("{} {what}, and no database of its own", path.display());
        Error::new(ErrorKind::Input, message).with_hint(hint(command, &servers))
    }
}

fn server_text(path: &Path, server: &Path) -> String {
    let name = ClusterMap::read(server).map(|map| format!("server {} of cluster {}", map.server, map.name));
    let name = name.unwrap_or_else(|_| "a server of a cluster".to_owned());
    if path == server { format!("is the directory of {name}") } else { format!("has the data of {name}") }
}

/// What to type instead of the command.
fn hint(command: &Command, servers: &[String]) -> String {
    let serve = format!("vervet serve --cluster {}", servers.first().map_or("DIR", String::as_str));
    let others = if servers.len() > 1 { ", and each other one likewise" } else { "" };
    let writer = writer_of(servers);
    match command {
        Command::Serve(_) => format!("start this server with {serve}{others}"),
        Command::Check(_) => {
            let checks: Vec<String> = servers.iter().map(|server| format!("vervet check {server}")).collect();
            format!("check the directory of each server: {}", checks.join("; "))
        }
        Command::Info(_) => format!(
            "start all servers ({serve}{others}), then: vervet cluster status; the console of each server has the \
             numbers of the graph"
        ),
        Command::Query(_) | Command::Shell(_) | Command::Export(_) | Command::Mcp(_) => format!(
            "start all servers ({serve}{others}), then ask any of them over HTTP: \
             curl localhost:7878/query --data-urlencode 'query=SELECT * {{ ?s ?p ?o }} LIMIT 10'"
        ),
        Command::Changes(_) => format!(
            "start all servers ({serve}{others}), then ask any of them: vervet changes localhost:7878"
        ),
        Command::Recover(_) => {
            let checks: Vec<String> = servers.iter().map(|server| format!("vervet check {server}")).collect();
            format!("check the directory of each server, with its log of changes: {}", checks.join("; "))
        }
        Command::Load(_) if writer.is_some() => format!(
            "a cluster is loaded as a whole: vervet cluster load; further statements go to the server that takes \
             changes: start all servers ({serve}{others}), then POST them to its /store"
        ),
        Command::Backup(_) if has_voters(servers) => {
            let server = servers.first().map_or("DIR", String::as_str);
            format!("back up the cluster while it runs: vervet cluster backup {server} BACKUP")
        }
        Command::Backup(_) if writer.is_some() => format!(
            "start all servers ({serve}{others}), then export the graph: curl localhost:7878/store > graph.nq"
        ),
        _ => match writer {
            Some((writer, http)) => format!(
                "server {writer} takes the changes of this cluster: start all servers ({serve}{others}), then send \
                 them over HTTP: curl {http}/update --data-urlencode 'update=INSERT DATA {{ … }}'"
            ),
            None if has_voters(servers) => format!(
                "the server that the voters elect takes the changes of this cluster: start all servers \
                 ({serve}{others}), then send them to any of them over HTTP: curl \
                 localhost:7878/store?default -H 'Content-Type: application/n-triples' --data-binary @FILE"
            ),
            None => format!(
                "no server of this cluster takes changes: name one (writer = \"NAME\" in each cluster.toml), or use \
                 the database that it was made from, and make the cluster again with vervet cluster init; start \
                 this one with {serve}{others}"
            ),
        },
    }
}

/// Whether voters take changes.
fn has_voters(servers: &[String]) -> bool {
    let map = servers.first().map(|server| ClusterMap::read(Path::new(server)));
    map.is_some_and(|map| map.is_ok_and(|map| !map.voters.is_empty()))
}

/// The name of the server that takes changes, and its address for clients.
fn writer_of(servers: &[String]) -> Option<(String, String)> {
    let map = ClusterMap::read(Path::new(servers.first()?)).ok()?;
    let writer = map.writer?;
    let entry = map.servers.into_iter().find(|entry| entry.name == writer);
    let http = entry.and_then(|entry| entry.http).unwrap_or_else(|| "localhost:7878".to_owned());
    Some((writer, http))
}
