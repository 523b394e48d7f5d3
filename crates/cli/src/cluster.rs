//! `vervet cluster`: makes the directories of a cluster, or starts one on this machine.

use crate::arguments::{
    ClusterArguments, ClusterCommand, ClusterDemoArguments, ClusterInitArguments, ClusterInviteArguments,
};
use crate::cluster_shape::{PARTITIONS_DEFAULT, Shape, folder_beside, print_servers, shape};
use crate::output::{self, Failure, Outcome, Output};
use crate::progress::Bar;
use crate::temporary_folder::TemporaryFolder;
use crate::{cluster_backup, cluster_load, cluster_rebalance, cluster_status, demo, input, interrupt};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vervet::{Database, DatabaseOptions, Environment, Error, ErrorKind, LoadOptions, Source, Watch};
use vervet_cluster::{
    AUTHORITY_KEY_FILE, InitOptions, InviteOptions, Rejoined, check_new, init, init_empty, invite, remove,
    renew_certificate,
};

/// What a new cluster is like, unless the arguments say otherwise.
const SHAPE: Shape = Shape { servers: 4, is_replicated: false, voters: 0 };

/// Time between two looks at the servers of the demonstration.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(arguments: &ClusterArguments) -> Outcome {
    match &arguments.command {
        ClusterCommand::Init(arguments) => make(arguments),
        ClusterCommand::RenewCertificate { directory, authority_key } => {
            renew_certificate(directory, authority_key)?;
            eprintln!("{} has a new certificate, which is used from its next start on", directory.display());
            Ok(())
        }
        ClusterCommand::Rejoin { directory } => take_place(directory),
        ClusterCommand::Invite(arguments) => invite_server(arguments),
        ClusterCommand::Rebalance(arguments) => cluster_rebalance::rebalance(arguments),
        ClusterCommand::Drain { directory, name, dry_run } => {
            cluster_rebalance::drain(directory, name, *dry_run)
        }
        ClusterCommand::Move(arguments) => cluster_rebalance::move_partitions(arguments),
        ClusterCommand::Remove { directory, name } => remove_server(directory, name),
        ClusterCommand::Backup(arguments) => cluster_backup::back_up(arguments),
        ClusterCommand::Restore(arguments) => cluster_backup::restore(arguments),
        ClusterCommand::Load(arguments) => cluster_load::run(arguments),
        ClusterCommand::Status(arguments) => cluster_status::run(arguments),
        ClusterCommand::Demo(arguments) => demonstrate(arguments),
    }
}

fn invite_server(arguments: &ClusterInviteArguments) -> Outcome {
    let ClusterInviteArguments { directory, name, address, http, .. } = arguments;
    let beside = |name: &str| directory.parent().unwrap_or(Path::new("")).join(name);
    let key = arguments.authority_key.clone().unwrap_or_else(|| beside(AUTHORITY_KEY_FILE));
    let to = arguments.to.clone().unwrap_or_else(|| beside(name));
    let options = InviteOptions { name: name.clone(), address: address.clone(), http: http.clone() };
    invite(&Environment::real(), directory, &key, &options, &to)?;
    let mut out = Output::standard();
    writeln!(out, "vervet serve --cluster {}", to.display())?;
    eprintln!(
        "{} is the directory of server {name}: move it to its machine, and start it; it copies its data from other \
         servers, and votes then",
        to.display()
    );
    out.finish()
}

fn remove_server(directory: &Path, name: &str) -> Outcome {
    eprintln!("asking the voters to remove {name}; an interrupted call may still take effect later");
    remove(directory, name)?;
    eprintln!("server {name} is no server of the cluster any more: end it, if it runs");
    Ok(())
}

fn take_place(directory: &Path) -> Outcome {
    let report = |server: &str, bytes: u64| {
        eprintln!("copying {} from server {server}", output::bytes(bytes));
    };
    let Rejoined { server, has_copied, had_log } =
        vervet_cluster::rejoin(directory, &DatabaseOptions::default(), &report)?;
    let data = if has_copied { "has the data of another server" } else { "keeps its data" };
    let log = if had_log { ", and gives up its log" } else { "" };
    eprintln!(
        "server {server} {data}{log}; it takes its place again when it is started: vervet serve --cluster {}",
        directory.display()
    );
    Ok(())
}

fn make(arguments: &ClusterInitArguments) -> Outcome {
    let running = interrupt::start();
    let options = shape(&arguments.shape, &SHAPE)?;
    if options.replicas > 1 && arguments.from.is_none() && arguments.data.is_empty() {
        let what = "servers that have replicas of partitions do not load them together".to_owned();
        let hint = "name a database (--from) or files (--data), or have replicas afterwards: vervet cluster \
                    rebalance DIR --replicas N";
        return Err(Failure::Usage(what, hint.to_owned()));
    }
    check_new(&options, &arguments.directory)?;
    let folder;
    let database = match (&arguments.from, arguments.data.is_empty()) {
        (Some(from), _) => Some(Database::open(from)?),
        (None, false) => {
            folder = folder_beside(&arguments.directory)?;
            Some(load(arguments, folder.path())?)
        }
        (None, true) => None,
    };
    let bar = Bar::new();
    let report = |done, total| bar.built(done, total, "written");
    let watch = Watch::new("cluster").cancelled_by(running.token.as_atomic()).reporting_to(&report);
    let made = match &database {
        Some(database) => init(database, &options, &arguments.directory, &watch),
        None => init_empty(&options, &arguments.directory),
    };
    bar.finish();
    let made = made?;
    running.finish();
    let mut out = Output::standard();
    if database.is_none() {
        for directory in &made {
            writeln!(out, "vervet cluster load {} FILE...", directory.display())?;
        }
        eprintln!("these commands, all at the same time, load the graph; then these start the servers:");
    }
    print_servers(&made, &arguments.directory, out)
}

/// Loads the data of a new cluster into a database in `folder`.
fn load(arguments: &ClusterInitArguments, folder: &Path) -> vervet::Result<Database> {
    let to_write = DatabaseOptions { to_write: true, ..DatabaseOptions::default() };
    let database = Database::open_or_create_with(folder.join("db"), to_write)?;
    let sources: Vec<Source> = arguments.data.iter().map(|file| input::source(file)).collect();
    let bar = Bar::new();
    let options = LoadOptions {
        progress: Some(&bar),
        cancelled: Some(interrupt::requested()),
        ..LoadOptions::default()
    };
    let loaded = database.load_with_report(sources, &options, arguments.memory, &mut std::io::stderr());
    bar.finish();
    loaded?;
    Ok(database)
}

/// A server of the demonstration, which ends with this value.
struct Server {
    name: String,
    /// What starts it again in a terminal.
    command: String,
    process: Child,
    has_ended: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It only reads: there is nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn demonstrate(arguments: &ClusterDemoArguments) -> Outcome {
    let running = interrupt::start();
    let count = usize::from(arguments.servers);
    let folder =
        TemporaryFolder::new().map_err(|error| Error::io("make the folder of the demonstration", &error))?;
    let database = Database::in_memory();
    let sources: Vec<Source> = match arguments.data.is_empty() {
        true => demo::sources(),
        false => arguments.data.iter().map(|file| input::source(file)).collect(),
    };
    let bar = Bar::new();
    let options = LoadOptions {
        progress: Some(&bar),
        cancelled: Some(interrupt::requested()),
        ..LoadOptions::default()
    };
    let loaded = database.load(sources, &options);
    bar.finish();
    loaded?;
    let mut options =
        InitOptions::on_host(count, PARTITIONS_DEFAULT.max(count.next_power_of_two()), "127.0.0.1", (0, 0));
    options.name = "demo".to_owned();
    // Held until all are chosen, so that no two are equal.
    let ports =
        (0..2 * count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<Vec<_>>>()?;
    for (server, ports) in options.servers.iter_mut().zip(ports.chunks(2)) {
        server.address = ports[0].local_addr()?.to_string();
        server.http = Some(ports[1].local_addr()?.to_string());
    }
    drop(ports);
    let watch = Watch::new("demo").cancelled_by(running.token.as_atomic());
    let directories = init(&database, &options, &folder.path().join("servers"), &watch)?;
    drop(database);
    let queries = folder.path().join("tour.toml");
    std::fs::write(&queries, demo::reading_queries())?;
    let mut servers = Vec::new();
    for (server, directory) in options.servers.iter().zip(&directories) {
        servers.push(start(&server.name, directory, arguments.data.is_empty().then_some(&queries))?);
    }
    let first = format!("http://{}", options.servers[0].http.as_deref().unwrap_or_default());
    let mut out = Output::standard();
    cluster_status::ask(&first, None)?.write_text(&mut out)?;
    writeln!(out)?;
    for server in &servers {
        writeln!(out, "server {} is process {}", server.name, server.process.id())?;
    }
    writeln!(out, "\nthe console of each server has the whole graph: {first}/ (Ctrl-C ends all)")?;
    out.flush()?;
    if !arguments.no_browser {
        open_browser(&format!("{first}/"));
    }
    while !running.token.is_cancelled() {
        std::thread::sleep(LOOK_INTERVAL);
        if running.token.is_cancelled() {
            // Ctrl-C in a terminal ends the servers as well.
            break;
        }
        for server in &mut servers {
            if let Some(status) = server.process.try_wait()?.filter(|_| !server.has_ended) {
                server.has_ended = true;
                eprintln!(
                    "server {} has ended ({status}); queries that need its partitions fail until it is started again: {}",
                    server.name, server.command
                );
            }
        }
    }
    // Ctrl-C is how a demonstration ends.
    running.finish();
    Ok(())
}

/// Starts a server, and waits until it listens.
fn start(name: &str, directory: &Path, queries: Option<&PathBuf>) -> vervet::Result<Server> {
    let failed = |error: std::io::Error| Error::io(format!("start server {name}"), &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut typed = format!("{} serve --cluster {}", program.display(), directory.display());
    let mut command = Command::new(program);
    // Its input ends with this process, however that ends.
    command.args(["serve", "--until-input-ends", "--cluster"]).arg(directory);
    if let Some(queries) = queries {
        command.arg("--queries").arg(queries);
        typed.push_str(&format!(" --queries {}", queries.display()));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let process = command.spawn().map_err(failed)?;
    let mut server = Server { name: name.to_owned(), command: typed, process, has_ended: false };
    let output = server.process.stderr.take();
    let mut lines = BufReader::new(output.ok_or_else(|| Error::internal("a process without output"))?);
    let mut line = String::new();
    lines.read_line(&mut line).map_err(failed)?;
    if !line.contains(" at http") {
        let mut rest = String::new();
        let _ = std::io::Read::read_to_string(&mut lines, &mut rest);
        let what = format!("server {name} did not start: {}{rest}", line);
        return Err(Error::new(ErrorKind::Unavailable, what.trim_end().replace('\n', "; ")));
    }
    // Later lines are for the terminal of this process.
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            eprintln!("{line}");
        }
    });
    Ok(server)
}

/// Opens an address in the browser of the user, if there is one.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // Without one the address has been printed.
    drop(quiet);
}
