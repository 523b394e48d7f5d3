//! What a request asks for: a text or bytecode, with its arguments.
//!
//! Options may also stand in the traversal itself (`g.with("evaluationTimeout", 500)`), which drivers send as
//! an
//! `OptionsStrategy`; those win.

use super::answer::{Telling, Trouble};
use super::tier;
use crate::admission::Tier;
use crate::state::State;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use vervet::gremlin::text::{Statement, Terminal, Transaction};
use vervet::gremlin::{Bytecode, GremlinOptions, GremlinScript, Instruction, Map, Materialize, Value};
use vervet::{CancelToken, RowCounter};
use vervet_model::{Error, ErrorKind};

/// Results in a message if nobody says otherwise, as Gremlin Server has it.
const BATCH_DEFAULT: usize = 64;
/// Results in a message at most; a message has a limit in bytes as well.
const BATCH_MAX: usize = 10_000;
/// Bytes of a message, but for its last result.
const MESSAGE_BYTES: usize = 256 << 10;
/// The one source of traversals.
const SOURCE: &str = "g";
/// Languages of texts. Clients say Groovy by default; what is not Gremlin in it is an
/// error of the text.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// What is to be run.
#[derive(Clone, Debug)]
enum Source {
    Text(String),
    Bytecode(Bytecode),
}

/// What a client may wish about how it is run.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    timeout: Option<Duration>,
    batch: Option<usize>,
    materialize: Option<Materialize>,
}

/// See the header of this file.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    source: Source,
    sources: Vec<String>,
    bindings: HashMap<String, Value>,
    wishes: Wishes,
}

/// Longer texts are not read on a thread that talks to connections.
const SHORT_TEXT_BYTES: usize = crate::admission::TEXT_BYTES_MAX;

/// A request that can be run.
pub(super) struct Ready {
    pub(super) script: GremlinScript,
    pub(super) options: GremlinOptions,
    pub(super) telling: Telling,
    /// What `fail()` may say in it.
    pub(super) fails: Vec<String>,
    /// What it may take, whatever its tier.
    timeout: Duration,
    /// See [`crate::admission`].
    pub(super) shape: u64,
    /// How many of its statements have been done for good.
    pub(super) done: usize,
    /// Where its results are counted.
    pub(super) progress: Option<RowCounter>,
}

impl Ready {
    /// Its text, or as much of one as bytecode has.
    pub(super) fn text(&self) -> String {
        let traversals = self.script.statements().iter().filter_map(|statement| match statement {
            Statement::Traversal { bytecode, .. } => Some(bytecode.to_string()),
            Statement::Transaction { action, .. } => Some(format!("g.tx() {action:?}")),
            _ => None,
        });
        traversals.collect::<Vec<_>>().join("; ")
    }

    /// Makes it ready to run now.
    pub(super) fn begin(&mut self, state: &State, tier: Tier, wall: Duration, token: &CancelToken) {
        let is_heavy = tier == Tier::Heavy;
        self.options.cancel = Some(token.clone());
        self.options.timeout = Some(if is_heavy { self.timeout } else { self.timeout.min(wall) });
        self.options.threads = if is_heavy { state.options.limits.threads } else { Some(1) };
        self.options.refuse_heavy = !is_heavy;
        self.telling.deadline = Instant::now().checked_add(self.timeout);
        self.telling.cancel = Some(token.clone());
    }
}

impl Asked {
    /// A text, by the arguments of `eval`.
    ///
    /// # Errors
    /// 499: an argument that is missing, or not of its type.
    pub(super) fn text(mut args: Map) -> Result<Self, Trouble> {
        let text = match take(&mut args, "gremlin") {
            Some(Value::String(text)) => text.to_string(),
            Some(other) => {
                return Err(Trouble::argument(format!(
                    "gremlin is a text, not of the type {}",
                    other.type_name()
                )));
            }
            None => return Err(Trouble::argument("the request has no argument gremlin")),
        };
        if let Some(language) = take(&mut args, "language")
            && !language.as_text().is_some_and(|language| LANGUAGES.contains(&language))
        {
            let languages = LANGUAGES.join(", ");
            return Err(Trouble::argument(format!("the language {language} is none of {languages}")));
        }
        let mut bindings = HashMap::new();
        for (name, value) in map(&mut args, "bindings")?.unwrap_or_default() {
            match name {
                Value::String(name) => drop(bindings.insert(name.to_string(), value)),
                name => {
                    let message =
                        format!("the name of a binding is a text, not of the type {}", name.type_name());
                    return Err(Trouble::argument(message));
                }
            }
        }
        Self::new(Source::Text(text), bindings, args)
    }

    /// Bytecode, by the arguments of `bytecode`.
    ///
    /// # Errors
    /// As [`Asked::text`].
    pub(super) fn bytecode(mut args: Map) -> Result<Self, Trouble> {
        let bytecode = match take(&mut args, "gremlin") {
            Some(Value::Traversal(bytecode)) => bytecode.as_ref().clone(),
            Some(other) => {
                return Err(Trouble::argument(format!(
                    "gremlin is bytecode, not of the type {}",
                    other.type_name()
                )));
            }
            None => return Err(Trouble::argument("the request has no argument gremlin")),
        };
        match args.get(&Value::text("aliases")) {
            Some(Value::Map(aliases)) if aliases.len() == 1 => {}
            _ => return Err(Trouble::argument("bytecode needs the argument aliases, with one entry")),
        }
        Self::new(Source::Bytecode(bytecode), HashMap::new(), args)
    }

    fn new(source: Source, bindings: HashMap<String, Value>, mut args: Map) -> Result<Self, Trouble> {
        let mut sources = vec![SOURCE.to_owned()];
        for (alias, name) in map(&mut args, "aliases")?.unwrap_or_default() {
            let (Some(alias), Some(name)) = (alias.as_text(), name.as_text()) else {
                return Err(Trouble::argument("aliases are names of sources by names"));
            };
            if name != SOURCE {
                let message = format!("there is no traversal source {name}");
                return Err(Trouble::argument(message).hint("there is one graph, and its source is g"));
            }
            if alias != SOURCE {
                sources.push(alias.to_owned());
            }
        }
        let mut wishes = Wishes::default();
        for name in ["evaluationTimeout", "batchSize", "materializeProperties"] {
            if let Some(value) = take(&mut args, name) {
                wishes.take(name, &value)?;
            }
        }
        Ok(Self { source, sources, bindings, wishes })
    }

    /// Its text, or that of its bytecode.
    pub(super) fn source_text(&self) -> String {
        match &self.source {
            Source::Text(text) => text.clone(),
            Source::Bytecode(bytecode) => bytecode.to_string(),
        }
    }

    /// Whether it can be read on a thread that talks to connections.
    pub(super) fn is_read_at_once(&self) -> bool {
        match &self.source {
            Source::Text(text) => text.len() <= SHORT_TEXT_BYTES,
            Source::Bytecode(_) => true,
        }
    }

    /// Reads the text, and has all that it takes to run it.
    ///
    /// # Errors
    /// A mistake in the text, or in its options.
    pub(super) fn ready(self, state: &State) -> Result<Ready, Trouble> {
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
        // They are in the script.
        options.bindings = HashMap::new();
        let mut wishes = self.wishes;
        let mut fails = Vec::new();
        let mut last_is_next = false;
        for statement in script.statements() {
            let (Statement::Traversal { bytecode, .. } | Statement::Source { bytecode, .. }) = statement
            else {
                continue;
            };
            wishes.take_all(bytecode)?;
            collect_fails(bytecode, &mut fails)?;
            last_is_next = matches!(statement, Statement::Traversal { terminal: Some(Terminal::Next), .. });
        }
        let timeout = wishes.timeout.map_or(limits.timeout, |wished| wished.min(limits.timeout));
        options.materialize = wishes.materialize.unwrap_or_default();
        let telling = Telling {
            batch: wishes.batch.unwrap_or(BATCH_DEFAULT),
            message_bytes: MESSAGE_BYTES,
            as_traversers,
            unrolls: last_is_next && !as_traversers,
            deadline: None,
            cancel: None,
        };
        let shape = tier::shape(state, &script);
        Ok(Ready { script, options, telling, fails, timeout, shape, done: 0, progress: None })
    }
}

impl Wishes {
    /// Takes an option by its name; those with other names say nothing here.
    fn take(&mut self, name: &str, value: &Value) -> Result<(), Trouble> {
        let refuse = |what: &str| Err(Trouble::argument(format!("{name} is {what}, not {value}")));
        match name {
            "evaluationTimeout" | "scriptEvaluationTimeout" => match value.as_integer() {
                // As Gremlin Server has it: no limit but the server's.
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

    /// Takes what a traversal says of itself.
    fn take_all(&mut self, bytecode: &Bytecode) -> Result<(), Trouble> {
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

/// Moves an argument out; null is as none.
fn take(args: &mut Map, name: &str) -> Option<Value> {
    args.swap_remove(&Value::text(name)).filter(|value| !matches!(value, Value::Null))
}

/// Moves an argument out that is a map.
fn map(args: &mut Map, name: &str) -> Result<Option<Map>, Trouble> {
    match take(args, name) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map.as_ref().clone())),
        Some(other) => {
            Err(Trouble::argument(format!("{name} is a map, not of the type {}", other.type_name())))
        }
    }
}

/// What `g.tx()` is told in bytecode: a source instruction, and no step.
fn transaction(bytecode: &Bytecode) -> Result<Option<Transaction>, Trouble> {
    let [Instruction { name, arguments, .. }] = bytecode.source.as_slice() else { return Ok(None) };
    if &**name != "tx" || !bytecode.steps.is_empty() {
        return Ok(None);
    }
    match arguments.first().and_then(Value::as_text) {
        Some("begin") => Ok(Some(Transaction::Begin)),
        Some("commit") => Ok(Some(Transaction::Commit)),
        Some("rollback") => Ok(Some(Transaction::Rollback)),
        _ => Err(Trouble::argument("tx is begin, commit or rollback")),
    }
}

/// What `fail()` may say in a traversal and those in it. The depth of both texts and messages has a limit.
///
/// # Errors
/// There is a lambda in it.
fn collect_fails(bytecode: &Bytecode, fails: &mut Vec<String>) -> Result<(), Trouble> {
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
                    return Err(error.with_hint("say it with steps; lambdas do not run here").into());
                }
                _ => {}
            }
        }
    }
    Ok(())
}
