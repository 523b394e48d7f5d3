//! The log of the program: on standard error, as text or as JSON.
//!
//! Libraries and the server emit events with `tracing`; this file configures the subscriber. Results are
//! never logged.

use crate::arguments::{LogFormat, LogLevel, LogOptions};
use crate::output::{self, Failure, Outcome};
use std::io::{IsTerminal, stderr};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable with the default level.
const LEVEL_VARIABLE: &str = "VERVET_LOG";

/// Starts the log; `default` is the level if neither an option nor the environment sets one.
///
/// # Errors
/// The environment contains an unknown level.
pub(crate) fn begin(options: &LogOptions, default: LogLevel) -> Outcome {
    let level = match (options.log_level, std::env::var(LEVEL_VARIABLE)) {
        (Some(level), _) => Ok(level),
        (None, Ok(text)) if !text.is_empty() => of_environment(&text),
        (None, _) => Ok(default),
    };
    // The log starts in any case: the failure is an event of it.
    let (level, outcome) = match level {
        Ok(level) => (level, Ok(())),
        Err(failure) => (default, Err(failure)),
    };
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let log = fmt().with_writer(stderr).with_max_level(level).with_ansi(stderr().is_terminal() && !is_plain);
    // openraft calls a voter that does not answer an error, at each election. The server itself says what
    // matters: who leads, and why a voter has ended.
    let of_library = if level > LevelFilter::INFO { level } else { LevelFilter::OFF };
    let targets = Targets::new().with_default(level).with_target("openraft", of_library);
    match options.log_format {
        LogFormat::Text => log.finish().with(targets).init(),
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
            log.finish().with(targets).init();
            output::report_as_events();
        }
    }
    outcome
}

fn of_environment(text: &str) -> Outcome<LogLevel> {
    <LogLevel as clap::ValueEnum>::from_str(text, true).map_err(|_| {
        let message = format!("{LEVEL_VARIABLE}={text} is not a log level");
        Failure::Usage(message, "known are off, error, warn, info, debug or trace".to_owned())
    })
}
