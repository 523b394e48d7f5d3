//! Arguments of `vervet cluster`.

use crate::arguments::reading::ReadingArguments;
use crate::arguments::units::{seconds, size};
use crate::server_address::server_address;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use vervet_cluster::Until;

const STATUS_HELP: &str = "\
The exit code is 0 if all servers answer, and 1 if one does not, or if the server that is asked is none of a cluster.

Examples:
  vervet cluster status
  vervet cluster status 10.0.0.5:7878
  vervet cluster status https://a.example.org --token-file token
  printf %s \"$PASSWORD\" | vervet cluster status https://a.example.org --user ann
  vervet cluster status --json | jq '.servers[] | select(.answers | not) | .name'";

const LOAD_HELP: &str = "\
The servers do not serve meanwhile. All have the graph at the end, or none has.

Examples, at the same time on two machines:
  vervet cluster load a part-1.nt.zst part-2.nt.zst
  vervet cluster load b part-3.nt.zst";

const INVITE_HELP: &str = "\
Example:
  vervet cluster invite cluster/a d --address host-4:7100 --http host-4:7878
  vervet serve --cluster cluster/d";

const REBALANCE_HELP: &str = "\
To be run after a server has joined or was removed. Servers copy what they are to get first; then all go over to the
new places, and files that are not needed any more go a minute later. A call that is interrupted has changed nothing.

Examples:
  vervet cluster rebalance cluster/a --dry-run
  vervet cluster rebalance cluster/a
  vervet cluster rebalance cluster/a --replicas 3";

const MOVE_HELP: &str = "\
Example:
  vervet cluster move cluster/a --partitions 3,7 --from b --to d";

const BACKUP_HELP: &str = "\
The servers run meanwhile. The next call with the same BACKUP adds what is new since. Give a cluster backups on other
machines than its servers, and run this often: what was committed since the last call is not in the backup.

BACKUP is a directory, or a prefix in object storage with the interface of S3: s3://BUCKET/PREFIX. The credentials are
those of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the region that of AWS_REGION; AWS_ENDPOINT_URL
names a server in place of AWS, and AWS_CA_BUNDLE a file with certificates of its authority. TMPDIR gets a copy of what
is stored.

Examples:
  vervet cluster backup cluster/a /backups/cluster
  vervet cluster backup cluster/a /backups/cluster --full --keep 4
  vervet cluster backup cluster/a s3://backups/cluster
  vervet check /backups/cluster";

const RESTORE_HELP: &str = "\
Examples:
  vervet cluster restore s3://backups/cluster new
  vervet cluster restore /backups/cluster new
  vervet cluster restore /backups/cluster new --until 2026-11-29T12:00:00Z
  vervet cluster restore /backups/cluster new --until 81234 --servers 4 --replicas 1 --writer a
  vervet cluster restore /backups/cluster graph.db --database";

#[derive(Args, Debug)]
pub(crate) struct ClusterArguments {
    #[command(subcommand)]
    pub command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ClusterCommand {
    /// Cut a graph into partitions, and make the directory of each server
    Init(ClusterInitArguments),
    /// Give a server a new certificate, with the key of the authority that `init` made
    RenewCertificate {
        /// Directory of the server
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// File with the key of the authority
        #[arg(long, value_name = "FILE")]
        authority_key: PathBuf,
    },
    /// Make a server that has lost its disk ready again: it copies the data of another server, and takes its
    /// place among the voters when it is started
    Rejoin {
        /// Directory of the server, which does not run; it has its map and its certificates
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Make the directory of a server that joins a cluster whose servers all vote; it joins when it is
    /// started, with a copy of its share of the partitions
    Invite(ClusterInviteArguments),
    /// Move partitions until all servers have about as many, while the cluster goes on
    #[command(after_help = REBALANCE_HELP)]
    Rebalance(ClusterRebalanceArguments),
    /// Copy the partitions of a server to others, so that it can be removed
    Drain {
        /// Directory of any server of the cluster, for its map and certificates; it may run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The server whose partitions others get
        #[arg(value_name = "NAME")]
        name: String,
        /// Only say what would be copied
        #[arg(long)]
        dry_run: bool,
    },
    /// Move some partitions to a server
    #[command(after_help = MOVE_HELP)]
    Move(ClusterMoveArguments),
    /// Remove a server from a cluster whose servers all vote: it votes no more, and the others forget it
    Remove {
        /// Directory of any server of the cluster, for its map and certificates; it may run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The server to be removed
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Back up a cluster that runs, where every server has the whole graph and voters take changes
    Backup(ClusterBackupArguments),
    /// Make a new cluster, or a database, from a backup of a cluster, as of its end or an earlier commit
    Restore(ClusterRestoreArguments),
    /// Load files into a new cluster: run it in the directory of every server at the same time, each with its
    /// own files
    Load(ClusterLoadArguments),
    /// Show the servers of a cluster; exit code 1 if one does not answer
    Status(ClusterStatusArguments),
    /// Start several servers on this machine, with the air routes or other data; Ctrl-C ends all
    Demo(ClusterDemoArguments),
}

#[derive(Args, Debug)]
pub(crate) struct ClusterRebalanceArguments {
    /// Directory of any server of the cluster, for its map and certificates; it may run
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// How many servers have each partition from now on; without it as many as before
    #[arg(long, value_name = "N")]
    pub replicas: Option<u16>,
    /// Only say what would be moved
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ClusterMoveArguments {
    /// Directory of any server of the cluster, for its map and certificates; it may run
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The partitions, separated by commas
    #[arg(long, value_name = "NUMBERS", required = true, value_delimiter = ',')]
    pub partitions: Vec<usize>,
    /// The server that gets them
    #[arg(long, value_name = "NAME")]
    pub to: String,
    /// The server that lacks them afterwards; without it all servers keep theirs
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Only say what would be moved
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ClusterInitArguments {
    /// New directory; each server gets a directory in it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The database whose graph the cluster gets (without it and --data: none; load it with `vervet cluster
    /// load`)
    #[arg(long, value_name = "DB", conflicts_with = "data")]
    pub from: Option<PathBuf>,
    /// Files to load here in place of a database
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Maximum memory of their load for terms and statements, such as 512M or 4G
    #[arg(long, value_name = "SIZE", requires = "data", value_parser = size)]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub shape: ClusterShapeArguments,
}

/// The servers of a new cluster.
#[derive(Args, Debug)]
pub(crate) struct ClusterShapeArguments {
    /// The server that takes changes, such as a; the others show them (default: the graph does not change)
    #[arg(long, value_name = "NAME")]
    pub writer: Option<String>,
    /// How many servers have each partition, such as 2: others answer for one that is away. As many as there
    /// are servers: each has the whole graph (default: 1; of a restore: as many as servers)
    #[arg(long, value_name = "N")]
    pub replicas: Option<u16>,
    /// Number of servers that have the log of changes, such as 3: they elect the one that takes changes, and
    /// any minority of them may be lost (default: 0; of a restore: as in the cluster that was backed up)
    #[arg(long, value_name = "N", conflicts_with = "writer", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub voters: Option<u8>,
    /// Number of servers (default: 4; of a restore: as in the cluster that was backed up)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub servers: Option<u16>,
    /// Number of partitions, a power of two (default: 16, more than servers, so that they can be moved later;
    /// 1 where each server has the whole graph)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub partitions: Option<u16>,
    /// Host of the servers, for the map; edit cluster.toml where they have different ones
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port of the first server for the others; the next servers have the next ports
    #[arg(long, value_name = "PORT", default_value_t = 7900)]
    pub port: u16,
}

#[derive(Args, Debug)]
#[command(after_help = INVITE_HELP)]
pub(crate) struct ClusterInviteArguments {
    /// Directory of any server of the cluster; it may run
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Name of the new server
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where the other servers reach it
    #[arg(long, value_name = "HOST:PORT")]
    pub address: String,
    /// Where clients reach it
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// File with the key of the authority that `init` made (default: authority-key.pem beside DIR)
    #[arg(long, value_name = "FILE")]
    pub authority_key: Option<PathBuf>,
    /// Directory to make (default: NAME beside DIR)
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = BACKUP_HELP)]
pub(crate) struct ClusterBackupArguments {
    /// Directory of any server of the cluster, with its map and certificates; the server in it may run
    #[arg(value_name = "SERVER")]
    pub server: PathBuf,
    /// Directory of the backup, or s3://BUCKET/PREFIX: new, empty, or that of earlier calls
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    /// Copy the data again, even if the changes since the last call are enough: a restore then has fewer
    /// changes to apply
    #[arg(long)]
    pub full: bool,
    /// Keep the newest N copies of the data with the changes behind them, and remove older ones (default:
    /// all)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub keep: Option<u16>,
}

#[derive(Args, Debug)]
#[command(after_help = RESTORE_HELP)]
pub(crate) struct ClusterRestoreArguments {
    /// Directory of the backup, or s3://BUCKET/PREFIX
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    /// New directory, in which each server gets a directory; with --database, that of the database
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// End with this commit, or with the last call of `vervet cluster backup` that began at this time or
    /// before, such as 2026-11-29T12:00:00Z; backup.toml lists them (default: the last one)
    #[arg(long, value_name = "COMMIT or TIME", value_parser = until)]
    pub until: Option<Until>,
    /// Make a database in place of a cluster
    #[arg(long, conflicts_with_all = ["writer", "voters", "servers", "replicas", "partitions", "host", "port"])]
    pub database: bool,
    #[command(flatten)]
    pub shape: ClusterShapeArguments,
}

fn until(text: &str) -> Result<Until, String> {
    text.parse()
        .map_err(|_| "neither the number of a commit nor a time such as 2026-11-29T12:00:00Z".to_owned())
}

#[derive(Args, Debug)]
#[command(after_help = LOAD_HELP)]
pub(crate) struct ClusterLoadArguments {
    /// Directory of the server
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Files or folders that this server reads; none: it only takes its part of what the others read
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArguments,
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Maximum memory for statements, half of it for those of the files and half for those of the partitions;
    /// beyond it, they are sorted on disk (default: 4G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Wait for the other servers to begin up to this time (default: 600)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wait: Option<Duration>,
    /// Replace the data that the servers have; the first server by name decides
    #[arg(long)]
    pub replace: bool,
    /// Build a word index of texts, for full-text search; the first server by name decides
    #[arg(long)]
    pub text_index: bool,
}

#[derive(Args, Debug)]
#[command(after_help = STATUS_HELP)]
pub(crate) struct ClusterStatusArguments {
    /// Address of any of its servers (default: 127.0.0.1:7878); http:// and https:// may be left out
    #[arg(value_name = "HOST:PORT or URL", value_parser = server_address)]
    pub address: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// User of a server with users; the password is the first line of standard input, or typed
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub user: Option<String>,
    /// File whose first line is a token of a server with users; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ClusterDemoArguments {
    /// Number of servers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub servers: u16,
    /// Files to load instead of the air routes
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Do not open the console in a browser
    #[arg(long)]
    pub no_browser: bool,
}
