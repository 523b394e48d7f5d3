//! Arguments of a Gremlin request: a text or bytecode, with its options.
//!
//! Options may also be in the traversal itself (`g.with("evaluationTimeout", 500)`), which drivers send as an
//! `OptionsStrategy`; those take precedence.

use super::error::GremlinError;
use super::fingerprint;
use super::response::ResultOptions;
use crate::admission::Tier;
use crate::state::State;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vervet::gremlin::text::{Statement, Terminal, Transaction};
use vervet::gremlin::{Bytecode, GremlinOptions, GremlinScript, Instruction, Map, Materialize, Value};
use vervet::{CancelToken, RowCounter};
use vervet_model::{Error, ErrorKind};

/// The default number of results in a message, as in Gremlin Server.
const BATCH_DEFAULT: usize = 64;
/// The maximum number of results in a message, which also has a limit in bytes.
const BATCH_MAX: usize = 10_000;
/// The maximum bytes of a message, not counting its last result.
const MESSAGE_BYTES: usize = 256 << 10;
/// The only traversal source.
const SOURCE: &str = "g";
/// Languages of scripts. Clients send Groovy by default; anything in it beyond Gremlin is a syntax error.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// The code to run.
#[derive(Clone, Debug)]
enum Source {
    Text(String),
    Bytecode(Bytecode),
}

/// Options of a request.
#[derive(Clone, Copy, Debug, Default)]
struct RequestOptions {
    timeout: Option<Duration>,
    batch: Option<usize>,
    materialize: Option<Materialize>,
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(super) struct GremlinRequest {
    source: Source,
    sources: Vec<String>,
    bindings: HashMap<String, Value>,
    options: RequestOptions,
}

/// Longer texts are not parsed on an I/O thread.
const PARSE_ON_IO_THREAD_BYTES_MAX: usize = crate::admission::TEXT_BYTES_MAX;

/// A parsed request.
pub(super) struct PreparedRequest {
    pub(super) script: GremlinScript,
    pub(super) options: GremlinOptions,
    pub(super) result_options: ResultOptions,
    /// The possible messages of its `fail()` steps.
    pub(super) fails: Vec<String>,
    /// The time limit of the request, which no tier exceeds.
    timeout: Duration,
    /// See [`crate::admission`].
    pub(super) fingerprint: u64,
    /// The number of statements whose effects are final.
    pub(super) done: usize,
    /// Counter of the results.
    pub(super) progress: Option<RowCounter>,
}

impl PreparedRequest {
    /// Its text, or a rendering of its bytecode.
    pub(super) fn text(&self) -> String {
        let traversals = self.script.statements().iter().filter_map(|statement| match statement {
            Statement::Traversal { bytecode, .. } => Some(bytecode.to_string()),
            Statement::Transaction { action, .. } => Some(format!("g.tx() {action:?}")),
            _ => None,
        });
        traversals.collect::<Vec<_>>().join("; ")
    }

    /// Prepares it for a run that begins now.
    pub(super) fn begin(&mut self, state: &State, tier: Tier, wall: Duration, token: &CancelToken) {
        let is_heavy = tier == Tier::Heavy;
        self.options.cancel = Some(token.clone());
        self.options.timeout = Some(if is_heavy { self.timeout } else { self.timeout.min(wall) });
        self.options.threads = if is_heavy { state.options.limits.threads } else { Some(1) };
        self.options.refuse_heavy = !is_heavy;
        self.result_options.deadline = Instant::now().checked_add(self.timeout);
        self.result_options.cancel = Some(token.clone());
    }
}

impl GremlinRequest {
    /// A script request from the arguments of `eval`.
    ///
    /// # Errors
    /// 499: an argument is missing or has the wrong type.
    pub(super) fn text(mut args: Map) -> Result<Self, GremlinError> {
        let text = match take(&mut args, "gremlin") {
            Some(Value::String(text)) => text.to_string(),
            Some(other) => {
                return Err(GremlinError::argument(format!(
                    "gremlin must be a string, not {}",
                    other.type_name()
                )));
            }
            None => return Err(GremlinError::argument("the request has no argument gremlin")),
        };
        if let Some(language) = take(&mut args, "language")
            && !language.as_text().is_some_and(|language| LANGUAGES.contains(&language))
        {
            let languages = LANGUAGES.join(", ");
            return Err(GremlinError::argument(format!("the language {language} is not one of {languages}")));
        }
        let mut bindings = HashMap::new();
        for (name, value) in map(&mut args, "bindings")?.unwrap_or_default() {
            match name {
                Value::String(name) => drop(bindings.insert(name.to_string(), value)),
                name => {
                    let message = format!("the name of a binding must be a string, not {}", name.type_name());
                    return Err(GremlinError::argument(message));
                }
            }
        }
        Self::new(Source::Text(text), bindings, args)
    }

    /// A bytecode request from the arguments of `bytecode`.
    ///
    /// # Errors
    /// As [`GremlinRequest::text`].
    pub(super) fn bytecode(mut args: Map) -> Result<Self, GremlinError> {
        let bytecode = match take(&mut args, "gremlin") {
            Some(Value::Traversal(bytecode)) => bytecode.as_ref().clone(),
            Some(other) => {
                return Err(GremlinError::argument(format!(
                    "gremlin must be bytecode, not {}",
                    other.type_name()
                )));
            }
            None => return Err(GremlinError::argument("the request has no argument gremlin")),
        };
        match args.get(&Value::text("aliases")) {
            Some(Value::Map(aliases)) if aliases.len() == 1 => {}
            _ => return Err(GremlinError::argument("bytecode needs the argument aliases, with one entry")),
        }
        Self::new(Source::Bytecode(bytecode), HashMap::new(), args)
    }

    fn new(source: Source, bindings: HashMap<String, Value>, mut args: Map) -> Result<Self, GremlinError> {
        let mut sources = vec![SOURCE.to_owned()];
        for (alias, name) in map(&mut args, "aliases")?.unwrap_or_default() {
            let (Some(alias), Some(name)) = (alias.as_text(), name.as_text()) else {
                return Err(GremlinError::argument("aliases must map names to names of sources"));
            };
            if name != SOURCE {
                let message = format!("there is no traversal source {name}");
                return Err(GremlinError::argument(message).hint("there is one graph, and its source is g"));
            }
            if alias != SOURCE {
                sources.push(alias.to_owned());
            }
        }
        let mut options = RequestOptions::default();
        for name in ["evaluationTimeout", "batchSize", "materializeProperties"] {
            if let Some(value) = take(&mut args, name) {
                options.take(name, &value)?;
            }
        }
        Ok(Self { source, sources, bindings, options })
    }

    /// Its text, or a rendering of its bytecode.
    pub(super) fn source_text(&self) -> String {
        match &self.source {
            Source::Text(text) => text.clone(),
            Source::Bytecode(bytecode) => bytecode.to_string(),
        }
    }

    /// Whether it can be parsed on an I/O thread.
    pub(super) fn can_parse_on_io_thread(&self) -> bool {
        match &self.source {
            Source::Text(text) => text.len() <= PARSE_ON_IO_THREAD_BYTES_MAX,
            Source::Bytecode(_) => true,
        }
    }

    /// Parses the request and resolves its options.
    ///
    /// # Errors
    /// A mistake in the text or in its options.
    pub(super) fn prepare(self, state: &State) -> Result<PreparedRequest, GremlinError> {
        let limits = &state.options.limits;
        let mut options = GremlinOptions {
            memory_limit_bytes: Some(limits.memory_bytes),
            sources: self.sources,
            bindings: self.bindings,
            ..GremlinOptions::default()
        };
        let as_traversers = matches!(self.source, Source::Bytecode(_));
        let script = match self.source {
            Source::Text(text) => state.database.gremlin_script(&text, &options)?,
            Source::Bytecode(bytecode) => match transaction(&bytecode)? {
                Some(action) => vec![Statement::Transaction { source: 0, action }].into(),
                None => bytecode.into(),
            },
        };
        // The parser has already substituted them in the script.
        options.bindings = HashMap::new();
        let mut requested = self.options;
        let mut fails = Vec::new();
        let mut last_is_next = false;
        for statement in script.statements() {
            let (Statement::Traversal { bytecode, .. } | Statement::Source { bytecode, .. }) = statement
            else {
                continue;
            };
            requested.take_all(bytecode)?;
            collect_fails(bytecode, &mut fails)?;
            last_is_next = matches!(statement, Statement::Traversal { terminal: Some(Terminal::Next), .. });
        }
        let timeout = requested.timeout.map_or(limits.timeout, |timeout| timeout.min(limits.timeout));
        options.materialize = requested.materialize.unwrap_or_default();
        let result_options = ResultOptions {
            batch: requested.batch.unwrap_or(BATCH_DEFAULT),
            message_bytes: MESSAGE_BYTES,
            as_traversers,
            unrolls: last_is_next && !as_traversers,
            deadline: None,
            cancel: None,
            digest: None,
        };
        let fingerprint = fingerprint::of_script(state, &script);
        Ok(PreparedRequest {
            script,
            options,
            result_options,
            fails,
            timeout,
            fingerprint,
            done: 0,
            progress: None,
        })
    }
}

impl RequestOptions {
    /// Sets an option by name; unknown names are ignored.
    fn take(&mut self, name: &str, value: &Value) -> Result<(), GremlinError> {
        let refuse = |what: &str| Err(GremlinError::argument(format!("{name} must be {what}, not {value}")));
        match name {
            "evaluationTimeout" | "scriptEvaluationTimeout" => match value.as_integer() {
                // As in Gremlin Server: only the limit of the server applies.
                Some(..=0) => self.timeout = None,
                Some(milliseconds) => {
                    self.timeout = Some(Duration::from_millis(milliseconds.unsigned_abs()));
                }
                None => return refuse("a number of milliseconds"),
            },
            "batchSize" => match value.as_integer().and_then(|size| usize::try_from(size).ok()) {
                Some(size) if size > 0 => self.batch = Some(size.min(BATCH_MAX)),
                _ => return refuse("a number of results above 0"),
            },
            "materializeProperties" => match value.as_text() {
                Some("tokens") => self.materialize = Some(Materialize::Tokens),
                Some("all") => self.materialize = Some(Materialize::All),
                _ => return refuse("tokens or all"),
            },
            _ => {}
        }
        Ok(())
    }

    /// Sets the options in the traversal itself.
    fn take_all(&mut self, bytecode: &Bytecode) -> Result<(), GremlinError> {
        for instruction in &bytecode.source {
            match (&*instruction.name, instruction.arguments.as_slice()) {
                ("with", [Value::String(name), value]) => self.take(name, value)?,
                ("withStrategies", strategies) => {
                    for strategy in strategies {
                        let Value::Strategy(strategy) = strategy else { continue };
                        if strategy.name.rsplit('.').next() == Some("OptionsStrategy") {
                            for (name, value) in &strategy.options {
                                self.take(name, value)?;
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Moves an argument out; null counts as missing.
fn take(args: &mut Map, name: &str) -> Option<Value> {
    args.swap_remove(&Value::text(name)).filter(|value| !matches!(value, Value::Null))
}

/// Moves a map argument out.
fn map(args: &mut Map, name: &str) -> Result<Option<Map>, GremlinError> {
    match take(args, name) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map.as_ref().clone())),
        Some(other) => {
            Err(GremlinError::argument(format!("{name} must be a map, not {}", other.type_name())))
        }
    }
}

/// A transaction command (`g.tx()`) in bytecode: a source instruction without steps.
fn transaction(bytecode: &Bytecode) -> Result<Option<Transaction>, GremlinError> {
    let [Instruction { name, arguments, .. }] = bytecode.source.as_slice() else { return Ok(None) };
    if &**name != "tx" || !bytecode.steps.is_empty() {
        return Ok(None);
    }
    match arguments.first().and_then(Value::as_text) {
        Some("begin") => Ok(Some(Transaction::Begin)),
        Some("commit") => Ok(Some(Transaction::Commit)),
        Some("rollback") => Ok(Some(Transaction::Rollback)),
        _ => Err(GremlinError::argument("tx must be begin, commit or rollback")),
    }
}

/// Collects the messages of `fail()` in a traversal and its nested ones. Texts and messages limit the depth.
///
/// # Errors
/// A lambda in the traversal.
fn collect_fails(bytecode: &Bytecode, fails: &mut Vec<String>) -> Result<(), GremlinError> {
    for instruction in &bytecode.steps {
        if &*instruction.name == "fail" {
            let message = instruction.arguments.first().and_then(Value::as_text);
            fails.push(message.unwrap_or("fail() Step Triggered").to_owned());
        }
        for argument in &instruction.arguments {
            match argument {
                Value::Traversal(nested) => collect_fails(nested, fails)?,
                Value::Lambda(lambda) => {
                    let message = format!("{}() has a lambda in {}", instruction.name, lambda.language);
                    let error = Error::new(ErrorKind::Unsupported, message);
                    return Err(error.with_hint("use steps; lambdas are not supported").into());
                }
                _ => {}
            }
        }
    }
    Ok(())
}
