//! `vervet cluster load`: loads the files of one server, while the other servers load theirs.

use crate::arguments::ClusterLoadArguments;
use crate::load::{Skipped, reading_options};
use crate::output::{self, Failure, Outcome, Output};
use crate::progress::Bar;
use crate::{input, interrupt};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vervet::{Environment, LoadOptions, Source};
use vervet_cluster::{ClusterLoadOptions, LoadEvent};

/// How long to wait for the other servers, by default.
const WAIT: Duration = Duration::from_secs(600);

/// How long a load that has stopped may take to end.
const STOP_TIME: Duration = Duration::from_secs(5);

/// Ends this process with a message, if it has not ended by then.
fn end_after(time: Duration, message: String) {
    std::thread::spawn(move || {
        std::thread::sleep(time);
        let _ = writeln!(std::io::stderr(), "{message}");
        std::process::exit(1);
    });
}

pub(crate) fn run(arguments: &ClusterLoadArguments) -> Outcome {
    if arguments.files.iter().any(|file| input::is_standard(file)) && arguments.reading.format.is_none() {
        return Err(Failure::Usage(
            "standard input has no file extension to determine its format".to_owned(),
            "add for example --format nt".to_owned(),
        ));
    }
    let running = interrupt::start();
    let bar = Bar::new();
    let waited_for = Mutex::new(String::new());
    let report = |event: LoadEvent<'_>| match event {
        LoadEvent::WaitingFor(servers) => {
            let mut last = waited_for.lock().unwrap_or_else(PoisonError::into_inner);
            if *last != servers {
                servers.clone_into(&mut last);
                bar.say(&format!("waiting for server {servers}"));
            }
        }
        LoadEvent::Step("read") => bar.say("all servers have begun"),
        LoadEvent::Step(_) => {}
        LoadEvent::Built(done, total) => bar.built(done, total, "built"),
    };
    let options = ClusterLoadOptions {
        reading: LoadOptions {
            progress: Some(&bar),
            text_index: arguments.text_index,
            ..reading_options(&arguments.reading, arguments.threads)?
        },
        cancelled: Some(interrupt::requested()),
        memory_bytes: arguments.memory,
        environment: Environment::real(),
        run_bits: None,
        replace: arguments.replace,
        // Input that does not come cannot be interrupted otherwise.
        on_stop: Some(|error| end_after(STOP_TIME, format!("error: {error}"))),
        wait: arguments.wait.unwrap_or(WAIT),
        report: &report,
    };
    let sources: Vec<Source> = arguments.files.iter().map(|file| input::source(file)).collect();
    let mut skipped = Skipped::new(arguments.reading.report.as_deref(), &arguments.directory);
    let started = Instant::now();
    let loaded = vervet_cluster::load(&arguments.directory, sources, &options, &mut skipped);
    bar.finish();
    let report = loaded?;
    running.finish();
    skipped.flush()?;
    let elapsed = started.elapsed();
    let mut out = Output::standard();
    writeln!(
        out,
        "loaded {} from {} in {:.2} s; the cluster has {}, {} of files at this server",
        output::statements(report.share.statements),
        output::bytes(report.share.bytes),
        elapsed.as_secs_f64(),
        output::statements(report.statements),
        output::bytes(report.size_bytes),
    )?;
    let steps: Vec<String> =
        report.steps.iter().map(|(name, time)| format!("{name} {:.2}", time.as_secs_f64())).collect();
    writeln!(
        out,
        "seconds: {}; sent {} to other servers",
        steps.join(", "),
        output::bytes(report.bytes_sent)
    )?;
    for note in report.share.remarks(arguments.reading.both_directions, output::count) {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
    if report.share.skipped > 0 {
        let place = skipped.path.map(|path| format!(", see {}", path.display())).unwrap_or_default();
        writeln!(
            std::io::stderr(),
            "skipped {} malformed {}{place}",
            output::count(report.share.skipped),
            if report.share.skipped == 1 { "statement" } else { "statements" },
        )?;
    }
    writeln!(out, "vervet serve --cluster {}", arguments.directory.display())?;
    out.finish()
}
