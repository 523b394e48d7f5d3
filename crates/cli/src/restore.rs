//! `vervet restore`: creates a database from a backup.

use crate::arguments::RestoreArguments;
use crate::bucket_store::expect_path;
use crate::interrupt;
use crate::output::{self, Outcome};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::time::Instant;
use vervet::{Database, Environment, Error, ErrorKind};

pub(crate) fn run(arguments: &RestoreArguments) -> Outcome {
    let started = Instant::now();
    expect_path(
        &arguments.backup,
        "backups of clusters are restored by `vervet cluster restore`; copy that of a database to a directory first, \
         for example with `aws s3 sync`",
    )?;
    let is_terminal = io::stderr().is_terminal();
    let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let template = "{bar:24} {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let _running = interrupt::start();
    let mut report = |done, total| {
        if interrupt::requested().load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled: nothing was restored"));
        }
        bar.set_length(total);
        bar.set_position(done);
        Ok(())
    };
    let (backup, database) = (&arguments.backup, &arguments.database);
    let restored = Database::restore(&Environment::real(), backup, database, &mut report);
    bar.finish_and_clear();
    let statements = restored?;
    if is_terminal {
        eprintln!("{} restored in {}", output::statements(statements), output::time(started.elapsed()));
    }
    Ok(())
}
