//! Arguments of `vervet changes`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use vervet::{FeedFormat, FeedPosition};

const CHANGES_HELP: &str = "\
A position such as 17-5f0c83a1d2e4b697 is in each line, and at the end on standard error. 0 is before the first commit.
An export of a server has one in its header Vervet-Position.

Examples:
  vervet changes ./db --after 17
  vervet changes localhost:7878 --after 17-5f0c83a1d2e4b697 --format rdf-patch
  vervet changes localhost:7878 --follow | while read -r commit; do echo \"$commit\"; done";

#[derive(Args, Debug)]
#[command(after_help = CHANGES_HELP)]
pub(crate) struct ChangesArguments {
    /// Directory of a database, or address of a server; http:// and https:// may be left out
    #[arg(value_name = "DB or HOST:PORT or URL")]
    pub source: String,
    /// Begin after this commit (default: the newest one)
    #[arg(long, value_name = "POSITION")]
    pub after: Option<FeedPosition>,
    /// Format of the changes
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub format: ChangesFormat,
    /// Of a server: go on with commits as they come, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// User of a server with users; the password is the first line of standard input, or typed
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub user: Option<String>,
    /// File whose first line is a token of a server with users; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChangesFormat {
    /// One JSON object for each commit, on a line of its own
    Json,
    /// RDF Patch, one transaction for each commit
    RdfPatch,
}

impl ChangesFormat {
    pub(crate) fn of_feed(self) -> FeedFormat {
        match self {
            Self::Json => FeedFormat::JsonLines,
            Self::RdfPatch => FeedFormat::RdfPatch,
        }
    }

    /// Its name in requests to a server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::RdfPatch => "rdf-patch",
        }
    }
}
