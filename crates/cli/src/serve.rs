//! `vervet serve`: serves a database over HTTP. This file handles the options; the rest is in
//! `vervet-server`.

use crate::arguments::{LogFormat, ServeArguments};
use crate::gpu;
use crate::output::{self, Failure, Outcome};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vervet::{Database, DatabaseOptions, ErrorKind};
use vervet_cluster::{Cluster, ClusterMap, MAP_FILE};
use vervet_server::{BIND_DEFAULT, SavedQueries, Server, ServerOptions};

/// The version of the program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(arguments: &ServeArguments, log: LogFormat) -> Outcome {
    let mut options = options_of(arguments)?;
    let open = |to_write| DatabaseOptions {
        durability: arguments.durability,
        to_write,
        ..DatabaseOptions::default()
    };
    let database = match (&arguments.cluster, &arguments.database) {
        (Some(directory), _) => {
            let cluster = Arc::new(Cluster::open(directory, &open(false))?);
            let database = cluster.database().clone();
            options.cluster = Some(cluster);
            database
        }
        (None, Some(directory)) => {
            gpu::attach_now(open_database(directory, arguments, open(!options.read_only))?, arguments.device)
        }
        (None, None) => {
            let hint = "name the directory of a database, or --cluster DIR".to_owned();
            return Err(Failure::Usage("there is nothing to serve".to_owned(), hint));
        }
    };
    let statements = database.snapshot().statement_count();
    let rights = match (options.read_only, options.users.len()) {
        (true, _) => "read-only".to_owned(),
        (false, 0) => "unrestricted read and write access".to_owned(),
        (false, users) => format!("{users} users"),
    };
    let writer = database.clone();
    let mut server = Server::bind(database, options)?;
    let again = arguments.clone();
    server.reload_at_hangup(
        move || options_of(&again),
        move |done| match (done, log) {
            (Ok(()), LogFormat::Text) => eprintln!("reloaded"),
            (Ok(()), LogFormat::Json) => tracing::info!("reloaded"),
            (Err(error), LogFormat::Text) => {
                eprintln!("could not reload, keeping the previous configuration: {error}");
                error.hint().into_iter().for_each(|hint| eprintln!("hint: {hint}"));
            }
            (Err(error), LogFormat::Json) => tracing::error!(%error, hint = error.hint(), "could not reload"),
        },
    );
    if arguments.until_input_ends {
        let stopper = server.stopper();
        std::thread::spawn(move || {
            // An error ends it as well.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stopper.stop();
        });
    }
    let scheme = if server.has_tls() { "https" } else { "http" };
    let address = format!("{scheme}://{}/", server.address()?);
    writer.describe_owner(&format!("vervet serve at {address}"));
    drop(writer);
    // Scripts that start the server wait for one of these lines; they are not results.
    match log {
        LogFormat::Text => eprintln!("{} at {address} ({rights})", output::statements(statements)),
        LogFormat::Json => tracing::info!(address, statements, rights, version = VERSION, "started"),
    }
    server.run()?;
    match log {
        LogFormat::Text => eprintln!("ended"),
        LogFormat::Json => tracing::info!("ended"),
    }
    Ok(())
}

/// The database to serve. A server with write access takes ownership of the directory before it answers.
fn open_database(
    directory: &Path,
    arguments: &ServeArguments,
    open: DatabaseOptions,
) -> vervet::Result<Database> {
    let to_write = open.to_write;
    match arguments.create && to_write {
        true => Database::open_or_create_with(directory, open),
        false => Database::open_with(directory, open).map_err(|error| match error.kind() {
            ErrorKind::Input if to_write => error.with_hint(format!(
                "check the path, load data with vervet load {0} FILE…, or create an empty database with vervet serve {0} --create",
                directory.display()
            )),
            _ => error,
        }),
    }
}

/// The current options of command line and configuration file together.
fn options_of(arguments: &ServeArguments) -> vervet::Result<ServerOptions> {
    let mut options = match &arguments.config {
        Some(file) if arguments.bind.is_some() => ServerOptions::from_file(file)?,
        Some(file) => ServerOptions::from_file_or_bind(file, |options| bind_to_map(arguments, options))?,
        None => ServerOptions::default(),
    };
    match (&arguments.bind, &arguments.config) {
        (Some(bind), _) => options.bind_to(bind)?,
        (None, Some(_)) => {}
        (None, None) => {
            options.bind_to(BIND_DEFAULT)?;
            bind_to_map(arguments, &mut options)?;
        }
    }
    options.hosts.extend(arguments.hosts.iter().cloned());
    options.signals = true;
    options.slow_query = arguments.slow_query_ms.map(Duration::from_millis).or(options.slow_query);
    options.read_only |= arguments.read_only;
    if let Some(directory) = &arguments.cluster {
        let map = ClusterMap::read(directory)?;
        // A server that does not take changes itself sends them on.
        options.read_only |= map.writer.is_none() && map.voters.is_empty();
    }
    if let Some(file) = &arguments.queries {
        options.queries = SavedQueries::from_file(file)?;
    }
    options.allow_plain_http |= arguments.allow_plain_http;
    let limits = &mut options.limits;
    if let Some(timeout) = arguments.timeout.filter(|timeout| !timeout.is_zero()) {
        limits.timeout = timeout;
    }
    if let Some(memory) = arguments.memory.filter(|&memory| memory > 0) {
        limits.memory_bytes = memory;
    }
    limits.threads = arguments.threads.map(usize::from).or(limits.threads);
    Ok(options)
}

/// Listens on the `http` address that the map of a cluster has for this server. One with a scheme is a URL
/// for people, such as that of a proxy, and no address to listen on.
fn bind_to_map(arguments: &ServeArguments, options: &mut ServerOptions) -> vervet::Result<()> {
    let Some(directory) = &arguments.cluster else { return Ok(()) };
    let map = ClusterMap::read(directory)?;
    let own = map.own()?;
    let Some(http) = own.http.as_ref().filter(|http| !http.contains("://")) else { return Ok(()) };
    options.bind_to(http).map_err(|error| {
        let path = directory.join(MAP_FILE);
        error
            .context(format!("{}: `http` of server {}", path.display(), own.name))
            .with_hint("correct it (HOST:PORT), or name the address to listen on with --bind HOST:PORT")
    })
}
