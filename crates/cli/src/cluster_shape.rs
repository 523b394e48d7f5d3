//! The shape of a new cluster, from arguments that several commands share, and the commands that start its
//! servers.

use crate::arguments::ClusterShapeArguments;
use crate::output::{Failure, Outcome, Output};
use crate::temporary_folder::TemporaryFolder;
use std::io::Write;
use std::path::{Path, PathBuf};
use vervet::Error;
use vervet_cluster::{AUTHORITY_KEY_FILE, InitOptions};

/// The first port for clients: the one of a single server.
const HTTP_PORT: u16 = 7878;

/// Partitions of servers that each have some of them: more than servers, so that they can be moved later.
pub(crate) const PARTITIONS_DEFAULT: usize = 16;

/// What a new cluster has, as far as the arguments do not say.
pub(crate) struct Shape {
    pub(crate) servers: u16,
    /// Each server has the whole graph.
    pub(crate) is_replicated: bool,
    pub(crate) voters: u8,
}

/// The options of a new cluster.
pub(crate) fn shape(arguments: &ClusterShapeArguments, default: &Shape) -> Outcome<InitOptions> {
    let count = arguments.servers.unwrap_or(default.servers);
    let last = u32::from(arguments.port) + u32::from(count) - 1;
    let http_last = u32::from(HTTP_PORT) + u32::from(count) - 1;
    if last > u32::from(u16::MAX) || u32::from(arguments.port) <= http_last && last >= u32::from(HTTP_PORT) {
        let what = format!(
            "the ports {} to {last} are no ports, or those for clients from {HTTP_PORT} on",
            arguments.port
        );
        return Err(Failure::Usage(what, "choose another --port".to_owned()));
    }
    let servers = usize::from(count);
    let replicas = arguments.replicas.unwrap_or(if default.is_replicated { count } else { 1 });
    let is_replicated = servers > 1 && replicas == count;
    let partitions = if is_replicated { 1 } else { PARTITIONS_DEFAULT };
    let partitions = arguments.partitions.map_or(partitions, usize::from);
    let mut options = InitOptions::on_host(servers, partitions, &arguments.host, (arguments.port, HTTP_PORT));
    options.writer.clone_from(&arguments.writer);
    options.replicas = usize::from(replicas);
    let voters = match (arguments.voters, &arguments.writer) {
        (Some(voters), _) => usize::from(voters),
        (None, Some(_)) => 0,
        (None, None) => usize::from(default.voters).min(servers),
    };
    if voters > servers {
        let what = format!("{voters} of {servers} servers cannot vote");
        return Err(Failure::Usage(what, "choose fewer --voters, or more --servers".to_owned()));
    }
    options.voters = options.servers[..voters].iter().map(|server| server.name.clone()).collect();
    Ok(options)
}

/// Prints the commands that start new servers.
pub(crate) fn print_servers(made: &[PathBuf], directory: &Path, mut out: Output) -> Outcome {
    for directory in made {
        writeln!(out, "vervet serve --cluster {}", directory.display())?;
    }
    eprintln!(
        "each directory is that of one server: move it to its machine, correct the addresses in cluster.toml, and start it\n\
         {} gives a server a new certificate (vervet cluster renew-certificate): no server needs it, and any program with \
         it can read the graph; keep it apart, in secret",
        directory.join(AUTHORITY_KEY_FILE).display()
    );
    out.finish()
}

/// A temporary folder on the file system of the new directory, which has room for the graph.
pub(crate) fn folder_beside(directory: &Path) -> vervet::Result<TemporaryFolder> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let made = std::fs::create_dir_all(parent).and_then(|()| TemporaryFolder::new_in(parent));
    made.map_err(|error| Error::io(format_args!("make a folder in {}", parent.display()), &error))
}
