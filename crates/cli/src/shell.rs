//! `vervet shell`: an interactive shell for queries and updates, with history, completion, colours, a pager
//! and transactions.

use crate::arguments::{Language, ShellArguments};
use crate::gremlin_format::{FORMATS, GremlinFormat};
use crate::line_editor::{COMMANDS, LineEditorHelper, is_complete, is_whole};
use crate::open_transaction::OpenTransaction;
use crate::output::{self, Failure, Outcome, Output};
use crate::query::{FormatChoice, without_semicolon};
use crate::repeated_header::LastHeader;
use crate::request::{TransactionCommand, begins_input, is_gremlin, is_update, plain_command};
use crate::{gremlin, info, interrupt, query, schema, update};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use vervet::gremlin::GremlinOptions;
use vervet::update::UpdateOptions;
use vervet::{Database, DatabaseOptions, Error, ErrorKind, OutputFormat, QueryOptions, TableOptions};
use vervet_sparql::well_known_prefixes;

pub(crate) fn run(arguments: &ShellArguments) -> Outcome {
    let open = DatabaseOptions { durability: arguments.durability, ..DatabaseOptions::default() };
    let database = Database::open_with(&arguments.database, open)?;
    let mut session = Session {
        database,
        work: OpenTransaction::default(),
        format: None,
        gremlin_format: GremlinFormat::Table,
        timing: true,
        language: arguments.language,
        pages: false,
        file: None,
        depth: 0,
    };
    if io::stdin().is_terminal() {
        session.pages = io::stdout().is_terminal();
        session.edit()
    } else {
        session.timing = false;
        session.read(io::stdin().lock())
    }
}

struct Session {
    database: Database,
    work: OpenTransaction,
    /// The user's choice; `None`: by the query form.
    format: Option<OutputFormat>,
    gremlin_format: GremlinFormat,
    timing: bool,
    language: Language,
    /// Whether long results go to a pager.
    pages: bool,
    /// The file of `.output`.
    file: Option<OutputFile>,
    /// Number of `.read` commands that are running.
    depth: usize,
}

/// The file of `.output`, with the formats that its extension names.
struct OutputFile {
    file: File,
    last_header: LastHeader,
    sparql: Option<OutputFormat>,
    gremlin: Option<GremlinFormat>,
}

impl OutputFile {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The extension is not that of a format; [`ErrorKind::Io`].
    fn create(name: &str) -> Outcome<Self> {
        let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let extension = match extension.as_str() {
            "txt" => "table",
            "ttl" => "turtle",
            "srj" => "json",
            "srx" => "xml",
            other => other,
        };
        let (sparql, gremlin) = (extension.parse().ok(), GremlinFormat::from_name(extension));
        if !extension.is_empty() && sparql.is_none() && gremlin.is_none() {
            let message = format!("the extension of {name} does not name a format");
            return Err(Error::new(ErrorKind::Input, message).with_hint(EXTENSIONS).into());
        }
        let file = File::create(name).map_err(|error| Error::io(format!("create {name}"), &error))?;
        Ok(Self { file, last_header: LastHeader::default(), sparql, gremlin })
    }
}

/// The extensions that `.output` knows, for messages.
const EXTENSIONS: &str = "known are .txt (a table), .csv, .tsv, .json, .xml; .ttl, .nt, .nq, .trig, .rdf, .jsonld for graphs; .graphson for \
                          gremlin; without an extension .format applies";

/// The maximum depth of files that `.read` each other.
const READ_DEPTH_MAX: usize = 16;

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
        let mut editor: Editor<LineEditorHelper, DefaultHistory> =
            Editor::with_config(config).map_err(line_error)?;
        let only_gremlin = self.language == Language::Gremlin;
        let colours = output::colours(&io::stdout());
        editor.set_helper(Some(LineEditorHelper::new(&self.database, only_gremlin, colours)?));
        let history = history_file();
        if let Some(path) = &history {
            // A missing history is not an error.
            let _ = editor.load_history(path);
        }
        self.welcome()?;
        loop {
            match editor.readline(&self.prompt()) {
                // Pasted text may hold several inputs.
                Ok(input) => match self.read_inputs(input.as_bytes()) {
                    Ok(Next::More) => {}
                    Ok(Next::Quit) => break,
                    // The rest of the result was not wanted.
                    Err(_) if output::reader_closed() => {}
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

    /// Reads inputs from a pipe; the first error ends the session.
    fn read(&mut self, lines: impl BufRead) -> Outcome {
        self.read_inputs(lines)?;
        self.end()
    }

    /// Runs the inputs of a script or of pasted text, up to the first error. A blank line ends an input only
    /// if it is whole and the next line begins another one.
    fn read_inputs(&mut self, lines: impl BufRead) -> Outcome<Next> {
        let mut input = String::new();
        let mut may_end = false;
        for line in lines.lines() {
            let line = line.map_err(|error| Error::io("read the script", &error))?;
            if line.trim().is_empty() {
                input.push('\n');
                may_end = is_whole(&input);
                continue;
            }
            if may_end && begins_input(&line) && self.run_input(&std::mem::take(&mut input))? == Next::Quit {
                return Ok(Next::Quit);
            }
            // A comment may stand before the next input.
            may_end &= line.trim_start().starts_with('#');
            if input.trim().is_empty() {
                input.clear();
            }
            input.push_str(&line);
            if is_complete(&input) {
                may_end = false;
                if self.run_input(&std::mem::take(&mut input))? == Next::Quit {
                    return Ok(Next::Quit);
                }
            } else {
                input.push('\n');
            }
        }
        self.run_input(&input)
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
            "Vervet {}, {}. A query or update ends with ; or an empty line; help lists commands, exit leaves.",
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
        if let Some(control) = TransactionCommand::parse(text) {
            let done = self.work.run(&control, &self.database)?;
            if self.timing {
                writeln!(io::stderr(), "{done}")?;
            }
            return Ok(Next::More);
        }
        if let Some(command) = plain_command(text) {
            return self.command(command, "");
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
        self.language == Language::Gremlin || is_gremlin(text)
    }

    /// Runs an update in the open transaction, or as a transaction of its own.
    fn update(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let started = Instant::now();
        let mut options = UpdateOptions { query: Self::options(text, &running), documents: None };
        let report = match self.work.open() {
            Some(transaction) => transaction.update_with(text, &mut options)?,
            None => self.database.update_with(text, &mut options)?,
        };
        running.finish();
        if self.work.open().is_none() {
            update::warn_if_unchanged(&self.database, text, &options.query, report)?;
        }
        if self.timing {
            let summary = update::summary(report);
            writeln!(io::stderr(), "{summary} in {}", output::time(started.elapsed()))?;
        }
        Ok(())
    }

    /// Runs a traversal in the open transaction, or as a transaction of its own.
    fn gremlin(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let mut out = self.results()?;
        let started = Instant::now();
        let options = gremlin_options(&running);
        let format = self.file.as_ref().and_then(|file| file.gremlin).unwrap_or(self.gremlin_format);
        gremlin::run(&self.database, self.work.open(), text, &options, format, &mut out)?;
        if self.timing {
            writeln!(io::stderr(), "in {}", output::time(started.elapsed()))?;
        }
        out.finish()
    }

    fn query(&mut self, text: &str) -> Outcome {
        let running = interrupt::start();
        let mut out = self.results()?;
        let started = Instant::now();
        let mut options = Self::options(text, &running);
        if out.width().is_none() {
            options.table.width = TableOptions::default().width;
        }
        let format = match (self.file.as_ref().and_then(|file| file.sparql), self.format) {
            (Some(format), _) => FormatChoice::Required(format),
            (None, Some(format)) => FormatChoice::Preferred(format),
            (None, None) => FormatChoice::Default,
        };
        let transaction = self.work.open().map(|open| &*open);
        query::run_on(&self.database, transaction, text, &options, format, &mut out)?;
        let elapsed = started.elapsed();
        drop(running);
        if self.timing {
            writeln!(io::stderr(), "in {}", output::time(elapsed))?;
        }
        out.finish()
    }

    fn options(text: &str, running: &interrupt::Running) -> QueryOptions {
        let mut options = QueryOptions::default().with_cancel(&running.token);
        options.prefixes = query::prefixes();
        options.table = query::table_options(text);
        options
    }

    /// Where results go: the file of `.output`, a pager, or standard output.
    fn results(&self) -> Outcome<Output> {
        if let Some(file) = &self.file {
            return Ok(Output::appended(file.file.try_clone()?, LastHeader::clone(&file.last_header)));
        }
        Ok(match output::screen() {
            Some((_, lines)) if self.pages => Output::paged(lines),
            _ => Output::standard(),
        })
    }

    /// `.output FILE`, or back to the terminal.
    fn choose_output(&mut self, name: &str) -> Outcome {
        self.file = match name {
            "" | "stdout" => None,
            name => Some(OutputFile::create(name)?),
        };
        Ok(())
    }

    /// `.read FILE`
    fn read_file(&mut self, name: &str) -> Outcome<Next> {
        if name.is_empty() {
            return Err(unknown("", "write .read FILE"));
        }
        if self.depth >= READ_DEPTH_MAX {
            let message = format!("more than {READ_DEPTH_MAX} files read each other");
            return Err(Error::new(ErrorKind::Input, message).into());
        }
        let file = File::open(name).map_err(|error| Error::io(format!("open {name}"), &error))?;
        self.depth += 1;
        let outcome = self.read_inputs(BufReader::new(file));
        self.depth -= 1;
        outcome
    }

    /// Sets the format of both languages if both have the name; a Gremlin shell only accepts Gremlin formats.
    fn choose_format(&mut self, name: &str) -> Outcome {
        let sparql: Option<OutputFormat> = name.parse().ok();
        let gremlin = GremlinFormat::from_name(name);
        match self.language {
            Language::Gremlin if gremlin.is_none() => {
                return Err(unknown(name, "known for gremlin are table, tsv, csv, graphson, json"));
            }
            Language::Sparql if sparql.is_none() && gremlin.is_none() => {
                return Err(unknown(name, FORMATS));
            }
            _ => {}
        }
        self.format = sparql.or(self.format);
        self.gremlin_format = gremlin.unwrap_or(self.gremlin_format);
        if let Some(file) = &mut self.file {
            (file.sparql, file.gremlin) = (None, None);
        }
        Ok(())
    }

    fn command(&mut self, command: &str, argument: &str) -> Outcome<Next> {
        match command {
            ".read" => return self.read_file(without_semicolon(argument)),
            ".output" => return self.choose_output(without_semicolon(argument)).map(|()| Next::More),
            _ => {}
        }
        let mut out = self.results()?;
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
            ".schema" => schema::write(&self.database, &mut out)?,
            ".info" => info::Facts::collect(&self.database)?.write_text(false, &mut out)?,
            ".explain" => {
                let running = interrupt::start();
                let text = without_semicolon(argument);
                if self.is_gremlin(text) {
                    let options = gremlin_options(&running);
                    gremlin::explain(&self.database, self.work.open(), text, &options, &mut out)?;
                } else {
                    let plan = self.database.explain(text, &Self::options(text, &running))?;
                    writeln!(out, "{}", plan.trim_end())?;
                }
            }
            ".format" => self.choose_format(without_semicolon(argument))?,
            ".pager" => match argument {
                "on" => self.pages = true,
                "off" => self.pages = false,
                _ => return Err(unknown(argument, "write .pager on or .pager off")),
            },
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

fn line_error(error: ReadlineError) -> Error {
    Error::new(ErrorKind::Io, format!("could not read the terminal: {error}"))
}

/// The location of program state: `$XDG_STATE_HOME/vervet/history`, or below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("vervet/history"))
}
