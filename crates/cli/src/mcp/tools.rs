//! The tools: their descriptions for clients, and their calls.

use super::cells::abbreviated;
use super::database::ServedDatabase;
use super::excerpt::Excerpt;
use super::message::{Fault, INVALID_PARAMS};
use super::schema;
use crate::arguments::{Language, McpArguments};
use crate::output::{Failure, Outcome, count};
use crate::query::{gremlin_value, prefixes, without_semicolon};
use crate::request::{is_gremlin, is_update};
use crate::{gremlin, update};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::{Duration, Instant};
use vervet::gremlin::GremlinOptions;
use vervet::update::UpdateOptions;
use vervet::{CancelToken, Database, Error, ErrorKind, OutputFormat, QueryOptions};
use vervet_tinkerpop::graphson::{self, Dialect};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tool {
    Schema,
    Query,
    Explain,
    Update,
}

pub(crate) struct Tools {
    database: ServedDatabase,
    writes: bool,
    rows_max: u64,
    bytes_max: usize,
    timeout: Duration,
    memory_bytes_max: u64,
    threads: Option<usize>,
}

/// What a call returns: its result, and remarks.
struct Answer {
    text: String,
    remarks: Vec<String>,
}

/// The limits of one call.
struct Limits<'c> {
    started: Instant,
    cancel: &'c CancelToken,
}

impl Tools {
    pub(crate) fn new(arguments: &McpArguments, database: ServedDatabase) -> Self {
        Self {
            database,
            writes: arguments.write,
            rows_max: arguments.max_rows,
            bytes_max: arguments.max_bytes,
            timeout: arguments.timeout,
            memory_bytes_max: arguments.memory,
            threads: arguments.threads.map(usize::from),
        }
    }

    fn offered(&self) -> impl Iterator<Item = Tool> {
        let update = self.writes.then_some(Tool::Update);
        [Tool::Schema, Tool::Query, Tool::Explain].into_iter().chain(update)
    }

    /// The member `tools` of the result of `tools/list`.
    pub(crate) fn list(&self) -> Vec<Value> {
        self.offered().map(|tool| tool.description(self.rows_max)).collect()
    }

    /// The tool that the parameters of `tools/call` name.
    ///
    /// # Errors
    /// There is no such tool.
    pub(crate) fn find(&self, params: &Value) -> Result<Tool, Fault> {
        let name = params["name"].as_str().unwrap_or_default();
        self.offered().find(|tool| tool.name() == name).ok_or_else(|| {
            let hint = match name == Tool::Update.name() {
                true => "; the server was started without --write",
                false => "",
            };
            let name: String = name.chars().take(100).collect();
            Fault::new(INVALID_PARAMS, format!("there is no tool {name:?}{hint}"))
        })
    }

    /// The result of `tools/call`. An error of the call is a result as well, which a model reads and mends.
    pub(crate) fn call(&self, tool: Tool, arguments: &Value, cancel: &CancelToken) -> Value {
        let limits = Limits { started: Instant::now(), cancel };
        let text = |text: String| json!({ "type": "text", "text": text });
        match self.run(tool, arguments, &limits) {
            Ok(answer) => {
                let content: Vec<Value> =
                    std::iter::once(answer.text).chain(answer.remarks).map(text).collect();
                json!({ "content": content, "isError": false })
            }
            Err(failure) => {
                let (message, hint) = match &failure {
                    Failure::Error(error) => (error.message(), error.hint()),
                    Failure::Usage(message, hint) => (message.as_str(), Some(hint.as_str())),
                    Failure::Shown => ("the command has failed", None),
                };
                let mut all = format!("error: {message}");
                if let Some(hint) = hint.filter(|hint| !hint.is_empty()) {
                    all.push_str("\nhint: ");
                    all.push_str(hint);
                }
                json!({ "content": [text(all)], "isError": true })
            }
        }
    }

    fn run(&self, tool: Tool, arguments: &Value, limits: &Limits<'_>) -> Outcome<Answer> {
        let arguments = Arguments::parse(tool, arguments)?;
        let database = self.database.current()?;
        match (tool, arguments.language) {
            (Tool::Schema, _) => {
                let mut out = self.excerpt(u64::MAX, 0);
                let written = schema::write(&database, &self.query_options(&arguments, limits), &mut out);
                self.finish(out, written, Vec::new())
            }
            (Tool::Query, Language::Sparql) => self.query(&database, &arguments, limits),
            (Tool::Explain, Language::Sparql) => self.explain(&database, &arguments, limits),
            (Tool::Update, Language::Sparql) => self.update(&database, &arguments, limits),
            (_, Language::Gremlin) => self.gremlin(tool, &database, &arguments, limits),
        }
    }

    fn query(&self, database: &Database, arguments: &Arguments, limits: &Limits<'_>) -> Outcome<Answer> {
        let text = without_semicolon(&arguments.text);
        let options = self.query_options(arguments, limits);
        let prepared = database.prepare_with(text, &options).map_err(|error| match is_update(text) {
            true => error.with_hint(self.update_hint()),
            false => error,
        })?;
        let format = if prepared.is_graph() { OutputFormat::NTriples } else { OutputFormat::Tsv };
        let has_header = !prepared.is_graph() && !prepared.is_truth_value();
        let mut out = self.excerpt(arguments.rows_max.min(self.rows_max), u64::from(has_header));
        let written = prepared.write_with(&options, format, &mut out);
        let warnings = match &written {
            Ok(written) => prepared.warnings_after(written.rows)?,
            Err(_) => Vec::new(),
        };
        let remarks = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
        let mut answer = self.finish(out, written.map(drop).map_err(Failure::from), remarks)?;
        if has_header {
            answer.text = abbreviated(&answer.text);
        }
        Ok(answer)
    }

    fn explain(&self, database: &Database, arguments: &Arguments, limits: &Limits<'_>) -> Outcome<Answer> {
        let text = without_semicolon(&arguments.text);
        let options = self.query_options(arguments, limits);
        let plan = match arguments.runs {
            true => database.prepare_with(text, &options)?.profile_with(&options)?,
            false => database.explain(text, &options)?,
        };
        let mut out = self.excerpt(u64::MAX, 0);
        let written = out.write_all(plan.as_bytes()).map_err(Failure::from);
        self.finish(out, written, Vec::new())
    }

    fn update(&self, database: &Database, arguments: &Arguments, limits: &Limits<'_>) -> Outcome<Answer> {
        let text = without_semicolon(&arguments.text);
        let query = self.query_options(arguments, limits);
        let mut options = UpdateOptions { query, ..UpdateOptions::default() };
        let report = database.update_with(text, &mut options)?;
        let warnings = match report == Default::default() {
            true => database.update_warnings(text, &options.query)?,
            false => Vec::new(),
        };
        let remarks = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
        Ok(Answer { text: update::summary(report), remarks })
    }

    fn gremlin(
        &self,
        tool: Tool,
        database: &Database,
        arguments: &Arguments,
        limits: &Limits<'_>,
    ) -> Outcome<Answer> {
        let mut options = GremlinOptions {
            timeout: Some(self.timeout),
            memory_limit_bytes: Some(self.memory_bytes_max),
            cancel: Some(limits.cancel.clone()),
            threads: self.threads,
            ..GremlinOptions::default()
        };
        for (name, value) in &arguments.parameters {
            options = options.with_binding(name, gremlin_value(value));
        }
        let text = arguments.text.trim_end().trim_end_matches(';');
        let script = database.gremlin_script(text, &options)?;
        if tool != Tool::Update && script.mutates() {
            let message = "the script can change the graph, which this tool does not";
            return Err(Error::new(ErrorKind::Query, message).with_hint(self.update_hint()).into());
        }
        if tool == Tool::Explain {
            let mut out = self.excerpt(u64::MAX, 0);
            let written = match arguments.runs {
                true => profile(database, text, &options, &mut out),
                false => gremlin::explain(database, None, text, &options, &mut out),
            };
            return self.finish(out, written, Vec::new());
        }
        let mut out = self.excerpt(arguments.rows_max.min(self.rows_max), 0);
        let mut line = Vec::new();
        let mut is_empty = true;
        let written = database.gremlin_each(&script, &options, &mut |value, times| {
            is_empty = false;
            line.clear();
            graphson::write(&value, Dialect::V3_UNTYPED, &mut line)
                .map_err(|error| Error::new(ErrorKind::Unsupported, error.to_string()))?;
            line.push(b'\n');
            // The excerpt ends this loop: `times` may be 2^60.
            for _ in 0..times {
                out.write_all(&line).map_err(|error| Error::io("write the result", &error))?;
            }
            Ok(())
        });
        let mut remarks = Vec::new();
        if written.is_ok() && is_empty {
            let warnings = database.gremlin_warnings(&script)?;
            remarks.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        }
        self.finish(out, written.map_err(Failure::from), remarks)
    }

    /// A result with at most this number of rows, besides `headers` lines.
    fn excerpt(&self, rows_max: u64, headers: u64) -> Excerpt {
        Excerpt::new(rows_max.saturating_add(headers), self.bytes_max)
    }

    /// The answer with what was written. A write that ended because the result was cut is not an error.
    fn finish(&self, out: Excerpt, written: Outcome, mut remarks: Vec<String>) -> Outcome<Answer> {
        if out.is_cut() {
            remarks.push(format!(
                "the result was cut off: a result has at most {} rows (max_rows) and {} bytes; use LIMIT or \
                 limit(), fewer columns, or an aggregate",
                count(self.rows_max),
                count(self.bytes_max as u64)
            ));
        } else {
            written?;
        }
        let text = out.into_text();
        let text = if text.is_empty() { "no results".to_owned() } else { text };
        Ok(Answer { text, remarks })
    }

    fn update_hint(&self) -> &'static str {
        match self.writes {
            true => "use the tool update",
            false => "the server was started without --write, and changes nothing",
        }
    }

    /// The options of a query: SERVICE is off.
    fn query_options(&self, arguments: &Arguments, limits: &Limits<'_>) -> QueryOptions {
        let mut options = QueryOptions::default().with_cancel(limits.cancel).with_timeout(self.timeout);
        options.started = Some(limits.started);
        options.memory_limit_bytes = Some(self.memory_bytes_max);
        options.threads = self.threads;
        options.prefixes = prefixes();
        options.parameters = arguments.parameters.clone();
        options
    }
}

/// Runs a script and writes the measurements of its steps.
fn profile(database: &Database, text: &str, options: &GremlinOptions, out: &mut dyn Write) -> Outcome {
    let script = database.gremlin_script(&format!("{text}.profile()"), options)?;
    for value in database.run_gremlin(&script, options)?.values() {
        if let vervet::gremlin::Value::Metrics(metrics) = value {
            gremlin::write_metrics(metrics, out)?;
        }
    }
    Ok(())
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Query => "query",
            Self::Explain => "explain",
            Self::Update => "update",
        }
    }

    /// The object that describes the tool in `tools/list`.
    fn description(self, rows_max: u64) -> Value {
        let (title, description) = match self {
            Self::Schema => (
                "Schema of the graph",
                "Lists the labels (classes) with their numbers of vertices, and the predicates (properties and \
                 edges) with their numbers of statements, each with an example. Call it before the first query.",
            ),
            Self::Query => (
                "Query in SPARQL or Gremlin",
                "Runs a query that reads. SPARQL: SELECT gives a header and one row per line, columns separated \
                 by tabs, terms in Turtle syntax; ASK gives true or false; CONSTRUCT and DESCRIBE give \
                 N-Triples. Gremlin: one JSON value per line.",
            ),
            Self::Explain => (
                "Plan of a query",
                "Shows how a query would run, with estimated rows; with run, runs it and shows the measured \
                 rows and times of each step instead of its result.",
            ),
            Self::Update => (
                "Change the graph",
                "Runs a SPARQL update (INSERT, DELETE, …) or a Gremlin script that writes, as one transaction: \
                 all of it takes effect, or nothing.",
            ),
        };
        let mut properties = Map::new();
        if self != Self::Schema {
            properties.insert("text".to_owned(), json!({ "type": "string", "description": "The query" }));
            let description = "Default: gremlin if the text begins with g., else sparql";
            let language =
                json!({ "type": "string", "enum": ["sparql", "gremlin"], "description": description });
            properties.insert("language".to_owned(), language);
            let description = "Values of variables of the query (?name in SPARQL, name in Gremlin): a string, a \
                               number, a boolean, or {\"iri\": \"…\"}";
            let parameters = json!({ "type": "object", "description": description });
            properties.insert("parameters".to_owned(), parameters);
        }
        match self {
            Self::Query | Self::Update => {
                let rows = json!({
                    "type": "integer", "minimum": 1, "maximum": rows_max, "default": rows_max,
                    "description": "Maximum number of rows of the result",
                });
                properties.insert("max_rows".to_owned(), rows);
            }
            Self::Explain => {
                let run = json!({ "type": "boolean", "default": false, "description": "Run it and measure" });
                properties.insert("run".to_owned(), run);
            }
            Self::Schema => {}
        }
        let mut input = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if self != Self::Schema {
            input["required"] = json!(["text"]);
        }
        let changes = self == Self::Update;
        json!({
            "name": self.name(),
            "title": title,
            "description": description,
            "inputSchema": input,
            "annotations": {
                "readOnlyHint": !changes, "destructiveHint": changes, "idempotentHint": !changes,
                "openWorldHint": false,
            },
        })
    }
}

/// The arguments of a call.
struct Arguments {
    text: String,
    language: Language,
    parameters: Vec<(String, Term)>,
    rows_max: u64,
    runs: bool,
}

impl Arguments {
    /// # Errors
    /// An argument that the tool does not have; a value of a wrong type; no text.
    fn parse(tool: Tool, arguments: &Value) -> Outcome<Self> {
        let mut parsed = Self {
            text: String::new(),
            language: Language::Sparql,
            parameters: Vec::new(),
            rows_max: u64::MAX,
            runs: false,
        };
        let none = Map::new();
        let members = match arguments {
            Value::Object(members) => members,
            Value::Null => &none,
            _ => return Err(wrong("arguments must be an object")),
        };
        let mut language = None;
        for (name, value) in members {
            match (name.as_str(), value) {
                ("text", Value::String(text)) if tool != Tool::Schema => parsed.text.clone_from(text),
                ("language", Value::String(name)) if tool != Tool::Schema => {
                    language = Some(match name.as_str() {
                        "sparql" => Language::Sparql,
                        "gremlin" => Language::Gremlin,
                        _ => return Err(wrong("language must be sparql or gremlin")),
                    });
                }
                ("parameters", Value::Object(values)) if tool != Tool::Schema => {
                    for (name, value) in values {
                        let name = name.strip_prefix(['?', '$']).unwrap_or(name);
                        let term = term(value).ok_or_else(|| {
                            wrong("a parameter must be a string, a number, a boolean or {\"iri\": \"…\"}")
                        })?;
                        parsed.parameters.push((name.to_owned(), term));
                    }
                }
                ("max_rows", rows) if matches!(tool, Tool::Query | Tool::Update) => {
                    parsed.rows_max = rows
                        .as_u64()
                        .filter(|&rows| rows > 0)
                        .ok_or_else(|| wrong("max_rows must be a positive integer"))?;
                }
                ("run", Value::Bool(runs)) if tool == Tool::Explain => parsed.runs = *runs,
                ("text" | "language" | "parameters" | "run", _) if tool != Tool::Schema => {
                    return Err(wrong(format!("{name} has the wrong type")));
                }
                _ => {
                    let name: String = name.chars().take(100).collect();
                    return Err(wrong(format!("the tool has no argument {name:?}")));
                }
            }
        }
        if parsed.text.is_empty() && tool != Tool::Schema {
            return Err(wrong("text must be a query"));
        }
        parsed.language = language.unwrap_or(match is_gremlin(&parsed.text) {
            true => Language::Gremlin,
            false => Language::Sparql,
        });
        Ok(parsed)
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    Error::new(ErrorKind::Input, message.into()).into()
}

/// The term of a JSON value.
fn term(value: &Value) -> Option<Term> {
    Some(match value {
        Value::String(text) => Literal::from(text.as_str()).into(),
        Value::Bool(value) => Literal::from(*value).into(),
        Value::Number(number) if number.is_f64() => Literal::from(number.as_f64()?).into(),
        Value::Number(number) => Literal::new_typed_literal(number.to_string(), xsd::INTEGER).into(),
        Value::Object(members) if members.len() == 1 => {
            NamedNode::new(members.get("iri")?.as_str()?).ok()?.into()
        }
        _ => return None,
    })
}
