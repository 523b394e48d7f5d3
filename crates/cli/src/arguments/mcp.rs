//! `vervet mcp`: options.

use super::units::{seconds, size};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const MCP_EXAMPLES: &str = "\
The client starts this command and writes requests to its standard input; the command ends with that input.
Tools: schema, query, explain; with --write also update. docs/mcp.md has the configuration of clients.

Examples:
  vervet mcp ./db
  vervet mcp ./db --write --max-rows 1000";

#[derive(Args, Debug)]
#[command(after_help = MCP_EXAMPLES)]
pub(crate) struct McpArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Offer the tool update. This process then is the only one that writes to the database
    #[arg(long)]
    pub write: bool,
    /// Maximum number of rows of a result; the rest is cut off
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_rows: u64,
    /// Maximum size of a result, such as 100K; the rest is cut off
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = result_size)]
    pub max_bytes: usize,
    /// Timeout of a call in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
    /// Maximum memory for tables of a call, such as 512M
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub memory: u64,
    /// Maximum threads of a heavy query (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=vervet::THREADS_MAX as i64))]
    pub threads: Option<u16>,
}

/// The smallest and the largest `--max-bytes`. A call holds its result in memory, and then as JSON.
const RESULT_BYTES: std::ops::RangeInclusive<u64> = 1024..=64 << 20;

fn result_size(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    match usize::try_from(bytes) {
        Ok(bytes_max) if RESULT_BYTES.contains(&bytes) => Ok(bytes_max),
        _ => Err("must be between 1K and 64M".to_owned()),
    }
}
