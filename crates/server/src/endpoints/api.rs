//! The API of the console: names for completion, plans, saved queries, database information. All answers
//! are JSON.

use crate::context::RequestContext;
use crate::endpoints::query;
use crate::endpoints::update;
use crate::http::reply::{Failure, Outcome, empty, full, not_allowed};
use crate::http::request::{Parameters, TEXT_BYTES, read_body, text};
use crate::operations::running::RegistryEntry;
use crate::options::Role;
use crate::state::State;
use crate::worker_threads;
use hyper::body::Incoming;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use vervet::{Direction, Durability, Id, Result};
use vervet_snapshot::{EntryFilter, GraphFilter, Snapshot};
use vervet_sparql::well_known_prefixes;

/// The maximum number of names in one answer, and the default of `limit`.
const NAMES_MAX: usize = 1000;
const NAMES_DEFAULT: usize = 100;

/// The maximum number of classes that are read: longer lists are useless for completion.
const CLASSES_MAX: usize = 10_000;

/// Handles a request.
pub(crate) async fn answer(context: &mut RequestContext<'_>, body: Incoming) -> Outcome {
    let parts = context.parts;
    let reads = parts.method == Method::GET || parts.method == Method::HEAD;
    let parameters = Parameters::of_query(parts);
    match parts.uri.path() {
        "/api/info" | "/api/names" | "/api/saved-queries" if !reads => Err(not_allowed("GET, HEAD, OPTIONS")),
        "/api/plan" if parts.method != Method::POST => Err(not_allowed("POST, OPTIONS")),
        "/api/info" => {
            context.allow(Role::Read).await?;
            let info =
                update::work(context.state, context.describe("info"), |state, _| Ok(info(state)?)).await?;
            Ok(json_reply(&info))
        }
        "/api/names" => {
            context.allow(Role::Read).await?;
            let completion = CompletionQuery::parse(&parameters)?;
            let names = update::work(context.state, context.describe("names"), move |state, _| {
                Ok(names(state, &completion)?)
            })
            .await?;
            Ok(json_reply(&json!({ "names": names })))
        }
        "/api/saved-queries" => {
            context.allow(Role::Read).await?;
            Ok(json_reply(&json!(context.state.options.queries)))
        }
        "/api/plan" => {
            context.allow(Role::Read).await?;
            plan(context, &parameters, body).await
        }
        "/api/queries" if reads => {
            context.allow(Role::Read).await?;
            let viewer = Viewer::of(context).await?;
            Ok(json_reply(&context.state.registry.list(|entry| viewer.may_see(entry))))
        }
        "/api/queries" => Err(not_allowed("GET, HEAD, OPTIONS")),
        path => match path.strip_prefix("/api/queries/") {
            Some(number) => stop(context, number).await,
            None => Err(Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address")),
        },
    }
}

/// The caller of the API, which determines the requests that it may see and stop.
struct Viewer {
    is_admin: bool,
    user: Option<Arc<str>>,
}

impl Viewer {
    async fn of(context: &RequestContext<'_>) -> Outcome<Self> {
        let role = context.state.users.role(&context.parts.headers, context.caller).await?;
        Ok(Self { is_admin: role >= Some(Role::Admin), user: context.user() })
    }

    /// Admins see all requests, users their own. Only admins see those of anonymous users.
    fn may_see(&self, entry: &RegistryEntry) -> bool {
        self.is_admin || self.user.is_some() && self.user == entry.description.user
    }
}

/// Stops a running request.
async fn stop(context: &RequestContext<'_>, number: &str) -> Outcome {
    if context.parts.method != Method::DELETE {
        return Err(not_allowed("DELETE, OPTIONS"));
    }
    context.allow(Role::Read).await?;
    // Stopping changes no data, but pages of other sites may not do it either.
    context.site.allow_write()?;
    let viewer = Viewer::of(context).await?;
    let found =
        number.parse().is_ok_and(|number| context.state.registry.stop(number, |entry| viewer.may_see(entry)));
    if !found {
        let message = format!("no request {number} is running that you may see");
        return Err(Failure::new(StatusCode::NOT_FOUND, message).hint("GET /api/queries lists them"));
    }
    tracing::info!(number, user = viewer.user.as_deref().unwrap_or_default(), "request stopped");
    Ok(empty(StatusCode::NO_CONTENT))
}

pub(crate) fn json_reply(value: &Value) -> crate::http::reply::Reply {
    full(StatusCode::OK, "application/json", value.to_string())
}

/// A limit on the work of counting vertices: some 20 ms.
const VERTEX_STEPS_MAX: u64 = 2_000_000;

fn info(state: &State) -> Result<Value> {
    let database = &state.database;
    let snapshot = database.snapshot();
    let view = snapshot.as_snapshot();
    // The console polls: the count is left out where it would take long, or ask other servers, which may be
    // silent.
    let vertices = match snapshot.vertex_count_steps()? {
        _ if state.options.cluster.is_some() => None,
        steps if steps <= VERTEX_STEPS_MAX => Some(snapshot.vertex_count()?),
        _ => None,
    };
    let bytes: u64 = database.component_sizes()?.iter().map(|part| part.size_bytes).sum();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "read_only": state.options.refuses_changes(),
        "durability": database.durability().map(durability),
        "statements": view.statement_count(),
        "vertices": vertices,
        "literals": view.literal_count(),
        "edges": view.edge_count(),
        "graphs": view.graphs().len(),
        "predicates": view.predicates().len(),
        "bytes": bytes,
        "timeout_seconds": state.options.limits.timeout.as_secs_f64(),
    }))
}

fn durability(level: Durability) -> String {
    match level {
        Durability::Sync => "sync".to_owned(),
        Durability::Interval(time) => format!("interval {}", time.as_secs_f64()),
        _ => "none".to_owned(),
    }
}

enum CompletionKind {
    Prefix,
    Class,
    Predicate,
}

/// The names to complete.
struct CompletionQuery {
    kind: CompletionKind,
    /// Lower case.
    contains: String,
    limit: usize,
}

impl CompletionQuery {
    fn parse(parameters: &Parameters) -> Outcome<Self> {
        let kind = match parameters.one("kind")? {
            Some("prefix") => CompletionKind::Prefix,
            Some("class") => CompletionKind::Class,
            Some("predicate") => CompletionKind::Predicate,
            _ => return Err(Failure::bad("kind must be one of prefix, class, predicate")),
        };
        let limit = match parameters.one("limit")? {
            None => NAMES_DEFAULT,
            Some(limit) => limit.parse().map_err(|_| Failure::bad("limit is not a number"))?,
        };
        let contains = parameters.one("contains")?.unwrap_or_default().to_lowercase();
        Ok(Self { kind, contains, limit: limit.min(NAMES_MAX) })
    }

    fn matches(&self, name: &str) -> bool {
        self.contains.is_empty() || name.to_lowercase().contains(&self.contains)
    }
}

fn names(state: &State, completion: &CompletionQuery) -> Result<Vec<Value>> {
    let snapshot = state.database.snapshot();
    let view = snapshot.as_snapshot();
    let counted = match completion.kind {
        CompletionKind::Prefix => {
            let fit = |(prefix, iri): &&(&str, &str)| {
                completion.matches(&format!("{prefix}:")) || completion.matches(iri)
            };
            let found = well_known_prefixes().iter().filter(fit).take(completion.limit);
            return Ok(found.map(|(prefix, iri)| json!({ "prefix": prefix, "iri": iri })).collect());
        }
        CompletionKind::Predicate => view.predicates().to_vec(),
        CompletionKind::Class => classes(view)?,
    };
    let mut found = Vec::new();
    let mut scratch = String::new();
    for (id, count) in counted {
        let mut term = None;
        view.read_term(id, &mut scratch, &mut |parts| term = Some(parts.to_term()))?;
        let Some(vervet::Term::NamedNode(name)) = term else { continue };
        let label = prefixed_name(name.as_str());
        if completion.matches(name.as_str())
            || label.as_deref().is_some_and(|label| completion.matches(label))
        {
            found.push((name.into_string(), label, count));
        }
    }
    found.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    found.truncate(completion.limit);
    Ok(found
        .into_iter()
        .map(|(iri, label, count)| match label {
            Some(label) => json!({ "iri": iri, "label": label, "count": count }),
            None => json!({ "iri": iri, "count": count }),
        })
        .collect())
}

/// Classes with the number of their members.
fn classes(view: &dyn Snapshot) -> Result<Vec<(Id, u64)>> {
    let Some(types) = view.type_predicate() else { return Ok(Vec::new()) };
    let Some(segment) = view.segment(types, Direction::In)? else { return Ok(Vec::new()) };
    let mut ids = Vec::new();
    let mut from = Some(Id::UNBOUND);
    while let Some(start) = from
        && ids.len() < CLASSES_MAX
    {
        from = segment.keys(start, CLASSES_MAX - ids.len(), &mut ids)?;
    }
    let mut degrees = Vec::with_capacity(ids.len());
    segment.degrees(&ids, EntryFilter { graph: GraphFilter::Any, parallel: false }, &mut degrees)?;
    Ok(ids.into_iter().zip(degrees).filter(|(_, count)| *count > 0).collect())
}

/// The prefixed name with a well-known prefix, if SPARQL syntax allows it.
fn prefixed_name(iri: &str) -> Option<String> {
    well_known_prefixes().iter().find_map(|(prefix, namespace)| {
        let name = iri.strip_prefix(namespace)?;
        let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        (plain && !name.starts_with('-')).then(|| format!("{prefix}:{name}"))
    })
}

/// The plan of a query, with the measurements of its steps if it is to run.
async fn plan(context: &mut RequestContext<'_>, parameters: &Parameters, body: Incoming) -> Outcome {
    let state = context.state;
    let run = match parameters.one("run")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Failure::bad("run must be true or false")),
    };
    let query = text(&read_body(context, body, TEXT_BYTES).await?)?;
    let mut options = query::options(state, parameters)?;
    options.dataset = parameters.dataset("default-graph-uri", "named-graph-uri")?;
    let mut running = state.acquire_permit(context.describe(&query)).await?;
    options.progress = Some(running.entry.progress.clone());
    if run {
        // Runs as heavy whatever its estimate: profiling a query casts doubt on the estimate.
        state.acquire_heavy_permit(&mut running).await?;
    }
    let mut guard = running.guard();
    let work_state = std::sync::Arc::clone(state);
    let explain = move || {
        let options = options.with_cancel(&running.token);
        let prepared = work_state.database.prepare_with(&query, &options)?;
        prepared.explanation(&options, run)
    };
    let explained = if run {
        // The receiver may be gone.
        worker_threads::heavy(&state.threads, move |sender| drop(sender.send(explain()))).await?
    } else {
        worker_threads::light(&state.threads, move |sender| drop(sender.send(explain()))).await?
    };
    guard.disarm();
    let explained = explained?;
    let steps: Vec<Value> = explained
        .steps
        .iter()
        .map(|step| {
            json!({
                "id": step.id,
                "parent": step.parent,
                "operator": step.operator,
                "detail": step.detail,
                "estimated_rows": step.estimated_rows,
                "rows": step.rows,
                "nanoseconds": step.nanoseconds,
                "threads": step.threads,
            })
        })
        .collect();
    Ok(json_reply(&json!({ "text": explained.text, "steps": steps })))
}
