//! `vervet shell`: an interactive shell for queries and updates, with history, completion and transactions.

use crate::arguments::{Language, ShellArguments};
use crate::complete::{Assistant, COMMANDS, is_complete};
use crate::output::{self, Failure, Outcome, Output};
use crate::request::{Control, is_update};
use crate::work::Work;
use crate::{gremlin, info, interrupt, query, update};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;
use vervet::gremlin::GremlinOptions;
use vervet::update::UpdateOptions;
use vervet::{Database, DatabaseOptions, Error, ErrorKind, OutputFormat, QueryOptions};
use vervet_sparql::well_known_prefixes;

pub(crate) fn run(arguments: &ShellArguments) -> Outcome {
    let open = DatabaseOptions { durability: arguments.durability, ..DatabaseOptions::default() };
    let database = Database::open_with(&arguments.database, open)?;
    let mut session = Session {
        database,
        work: Work::default(),
        format: None,
        gremlin_format: gremlin::Format::Table,
        timing: true,
        language: arguments.language,
    };
    if io::stdin().is_terminal() {
        session.edit()
    } else {
        session.timing = false;
        session.read(io::stdin().lock())
    }
}

struct Session {
    database: Database,
    work: Work,
    /// The user's choice; `None`: by the query form.
    format: Option<OutputFormat>,
    gremlin_format: gremlin::Format,
    timing: bool,
    language: Language,
}

/// Whether the shell continues.
#[derive(PartialEq, Eq)]
enum Next {
    More,
    Quit,
}

impl Session {
    /// Reads inputs from a terminal.
    fn edit(&mut self) -> Outcome {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .auto_add_history(true)
            .build();
        let mut editor: Editor<Assistant, DefaultHistory> =
            Editor::with_config(config).map_err(line_error)?;
        editor.set_helper(Some(Assistant::new(&self.database)?));
        let history = history_file();
        if let Some(path) = &history {
            // A missing history is not an error.
            let _ = editor.load_history(path);
        }
        self.welcome()?;
        loop {
            match editor.readline(&self.prompt()) {
                Ok(input) => match self.run_input(&input) {
                    Ok(Next::More) => {}
                    Ok(Next::Quit) => break,
                    Err(failure) => output::report(&failure),
                },
                // Ctrl-C clears the line, Ctrl-D ends the shell.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(line_error(error).into()),
            }
        }
        if self.work.abandon() {
            eprintln!("the open transaction was rolled back");
        }
        if let Some(path) = &history
            && let Err(error) = path
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .map_err(ReadlineError::from)
                .and_then(|()| editor.save_history(path))
        {
            output::report(
                &Error::new(ErrorKind::Io, format!("could not save {}: {error}", path.display())).into(),
            );
        }
        Ok(())
    }

    /// `vervet [sync, transaction]> `: the level of durability, and whether a transaction is open.
    fn prompt(&self) -> String {
        let level = self.database.durability().map(output::durability);
        let level = level.into_iter().chain(self.work.describe().map(str::to_owned));
        format!("vervet [{}]> ", level.collect::<Vec<_>>().join(", "))
    }

    /// Reads inputs from a file or pipe; the first error ends the session.
    fn read(&mut self, lines: impl BufRead) -> Outcome {
        let mut input = String::new();
        for line in lines.lines() {
            let line = line.map_err(|error| Error::io("read standard input", &error))?;
            input.push_str(&line);
            if is_complete(&input) {
                if self.run_input(&std::mem::take(&mut input))? == Next::Quit {
                    return self.end();
                }
            } else {
                input.push('\n');
            }
        }
        self.run_input(&input)?;
        self.end()
    }

    /// A script that ends with an open transaction is probably a mistake.
    fn end(&mut self) -> Outcome {
        if !self.work.abandon() {
            return Ok(());
        }
        let message = "the input ended inside of a transaction, which was rolled back";
        Err(Error::new(ErrorKind::Input, message).with_hint("end it with commit or rollback").into())
    }

    fn welcome(&self) -> Outcome {
        let mut out = Output::standard();
        writeln!(
            out,
            "Vervet {}, {}. A query or update ends with ; or an empty line; .help lists commands.",
            env!("CARGO_PKG_VERSION"),
            output::statements(self.database.snapshot().statement_count()),
        )?;
        out.finish()
    }

    fn run_input(&mut self, input: &str) -> Outcome<Next> {
        interrupt::forget();
        let text = input.trim();
        if text.is_empty() {
            return Ok(Next::More);
        }
        if let Some(control) = Control::parse(text) {
            let done = self.work.run(&control, &self.database)?;
            if self.timing {
                writeln!(io::stderr(), "{done}")?;
            }
            return Ok(Next::More);
        }
        if text.starts_with('.') {
            let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            return self.command(command, rest.trim());
        }
        let text = without_semicolon(input);
        if self.is_gremlin(text) {
            return self.gremlin(text).map(|()| Next::More);
        }
        if is_update(text) { self.update(text) } else { self.query(text) }.map(|()| Next::More)
    }

    fn is_gremlin(&self, text: &str) -> bool {
        self.language == Language::Gremlin || gremlin::is_gremlin(text)
    }

    /// Runs an update in the open transaction, or as a transaction of its own.
    fn update(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let started = Instant::now();
        let mut options = UpdateOptions { query: self.options(&running), documents: None };
        let report = match self.work.open() {
            Some(transaction) => transaction.update_with(text, &mut options)?,
            None => self.database.update_with(text, &mut options)?,
        };
        running.finish();
        if self.timing {
            let summary = update::summary(report);
            writeln!(io::stderr(), "{summary} in {}", output::time(started.elapsed()))?;
        }
        Ok(())
    }

    /// Runs a traversal in the open transaction, or as a transaction of its own.
    fn gremlin(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let mut out = Output::standard();
        let started = Instant::now();
        let options = gremlin_options(&running);
        gremlin::run(&self.database, self.work.open(), text, &options, self.gremlin_format, &mut out)?;
        if self.timing {
            writeln!(io::stderr(), "in {}", output::time(started.elapsed()))?;
        }
        out.finish()
    }

    fn query(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let mut out = Output::standard();
        let started = Instant::now();
        let options = self.options(&running);
        let transaction = self.work.open().map(|open| &*open);
        query::run_on(&self.database, transaction, text, &options, self.format, &mut out)?;
        let elapsed = started.elapsed();
        drop(running);
        if self.timing {
            writeln!(io::stderr(), "in {}", output::time(elapsed))?;
        }
        out.finish()
    }

    fn options(&self, running: &interrupt::Running) -> QueryOptions {
        let mut options = QueryOptions::default().with_cancel(&running.token);
        options.prefixes =
            well_known_prefixes().iter().map(|&(name, iri)| (name.to_owned(), iri.to_owned())).collect();
        options
    }

    /// Sets the format of both languages if both have the name; a Gremlin shell only accepts Gremlin formats.
    fn choose_format(&mut self, name: &str) -> Outcome {
        let sparql: Option<OutputFormat> = name.parse().ok();
        let gremlin = gremlin::Format::from_name(name);
        match self.language {
            Language::Gremlin if gremlin.is_none() => {
                return Err(unknown(name, "known for gremlin are table, graphson, json"));
            }
            Language::Sparql if sparql.is_none() && gremlin.is_none() => {
                let hint =
                    "known are table, tsv, csv, json, xml, nt, turtle; for gremlin table, graphson, json";
                return Err(unknown(name, hint));
            }
            _ => {}
        }
        self.format = sparql.or(self.format);
        self.gremlin_format = gremlin.unwrap_or(self.gremlin_format);
        Ok(())
    }

    fn command(&mut self, command: &str, argument: &str) -> Outcome<Next> {
        let mut out = Output::standard();
        match command {
            ".help" => {
                for (command, meaning) in COMMANDS {
                    writeln!(out, "{command:29}  {meaning}")?;
                }
            }
            ".quit" | ".exit" => return Ok(Next::Quit),
            ".prefixes" => {
                for (prefix, iri) in well_known_prefixes() {
                    writeln!(out, "{:10}  <{iri}>", format!("{prefix}:"))?;
                }
            }
            ".info" => info::Facts::collect(&self.database)?.write_text(false, &mut out)?,
            ".explain" => {
                let running = interrupt::start();
                let text = without_semicolon(argument);
                if self.is_gremlin(text) {
                    let options = gremlin_options(&running);
                    gremlin::explain(&self.database, self.work.open(), text, &options, &mut out)?;
                } else {
                    let plan = self.database.explain(text, &self.options(&running))?;
                    writeln!(out, "{}", plan.trim_end())?;
                }
            }
            ".format" => self.choose_format(without_semicolon(argument))?,
            ".timing" => match argument {
                "on" => self.timing = true,
                "off" => self.timing = false,
                _ => return Err(unknown(argument, "write .timing on or .timing off")),
            },
            _ => return Err(unknown(command, ".help lists the commands")),
        }
        out.finish()?;
        Ok(Next::More)
    }
}

fn gremlin_options(running: &interrupt::Running) -> GremlinOptions {
    GremlinOptions { cancel: Some(running.token.clone()), ..GremlinOptions::default() }
}

fn unknown(word: &str, hint: &str) -> Failure {
    Error::new(ErrorKind::Input, format!("unknown: \"{word}\"")).with_hint(hint).into()
}

/// The query without its terminating `;`; columns and lines of errors stay the same.
fn without_semicolon(text: &str) -> &str {
    let text = text.trim_end();
    text.strip_suffix(';').unwrap_or(text)
}

fn line_error(error: ReadlineError) -> Error {
    Error::new(ErrorKind::Io, format!("could not read the terminal: {error}"))
}

/// The location of program state: `$XDG_STATE_HOME/vervet/history`, or below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("vervet/history"))
}
