//! `vervet backup`: copies a database into a new one.

use crate::arguments::BackupArguments;
use crate::bucket_store::expect_path;
use crate::interrupt;
use crate::output::{self, Outcome};
use crate::progress::Bar;
use std::io::{self, IsTerminal};
use std::time::Instant;
use vervet::{Database, Watch};

pub(crate) fn run(arguments: &BackupArguments) -> Outcome {
    let running = interrupt::start();
    let started = Instant::now();
    expect_path(&arguments.to, "name a directory; tools such as `aws s3 sync` copy it to object storage")?;
    let database = Database::open(&arguments.database)?;
    let bar = Bar::new();
    let report = |done, total| bar.built(done, total, "copied");
    let watch = Watch::new("backup").cancelled_by(running.token.as_atomic()).reporting_to(&report);
    let statements = database.backup_watched(&arguments.to, &watch);
    bar.finish();
    let statements = statements?;
    running.finish();
    if io::stderr().is_terminal() {
        eprintln!("{} copied in {}", output::statements(statements), output::time(started.elapsed()));
    }
    Ok(())
}
