//! `SERVICE`: solutions of other endpoints.
//!
//! # Shape
//! Before a query is planned, each `SERVICE` in it is asked, once, for all its solutions, and becomes a
//! table; so a plan with services is made anew for each run. A variable in place of the endpoint means every
//! endpoint of the list.
//! # Safety
//! Off unless the caller lists endpoints: a query must not be a way to make a server talk to its network. How
//! to talk is the caller's business too ([`ServiceClient`]), so this crate knows no HTTP. An endpoint is
//! trusted with nothing: how long an answer is and how deep it is nested has limits, since the parsers of
//! results follow triple terms by recursion.
//! # Not here
//! Sending values along: an endpoint is asked for everything that the pattern has.

use crate::QueryOptions;
use oxrdf::{NamedNode, Term};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use vervet_algebra::{Expression, Node, Query, Service, Slot, Variable};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};

/// The most bytes of one answer of an endpoint.
pub const SERVICE_BYTES_MAX: usize = 256 << 20;

/// Of what a parser says of an answer that cannot be read.
const ERROR_CHARACTERS_MAX: usize = 300;

/// Asks endpoints.
pub trait ServiceClient: Debug + Send + Sync {
    /// Sends `query` to `endpoint` as the SPARQL Protocol says, and gives back what it answers: at most
    /// [`SERVICE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The endpoint does not answer in time, or not with results.
    fn ask(&self, endpoint: &str, query: &str, timeout: Option<Duration>) -> Result<ServiceAnswer>;
}

/// What an endpoint has answered.
#[derive(Clone, Debug)]
pub struct ServiceAnswer {
    /// Its media type, such as `application/sparql-results+json`.
    pub media_type: String,
    /// The document.
    pub body: Vec<u8>,
}

/// The endpoints that queries may ask, and how.
#[derive(Clone, Debug)]
pub struct Services {
    /// Their IRIs, to the letter.
    pub endpoints: Vec<String>,
    /// Who asks them.
    pub client: Arc<dyn ServiceClient>,
}

/// Whether a pattern has a `SERVICE` in it.
pub(crate) fn asks(node: &Node) -> bool {
    if let Node::Service(_) = node {
        return true;
    }
    let mut any = false;
    node.for_each_child(&mut |child| any = any || asks(child));
    node.for_each_expression(&mut |expression| {
        expression.for_each_exists(&mut |exists| any = any || asks(&exists.pattern));
    });
    any
}

/// The query with tables in place of services.
pub(crate) fn resolved(query: &Query, options: &QueryOptions, control: &Control<'_>) -> Result<Query> {
    let mut query = query.clone();
    resolve(&mut query.root, options, control)?;
    Ok(query)
}

/// Replaces services by tables of their solutions. All requests share the deadline of `control`.
pub(crate) fn resolve(node: &mut Node, options: &QueryOptions, control: &Control<'_>) -> Result<()> {
    if let Node::Service(service) = node {
        *node = table(service, options, control)?;
        return Ok(());
    }
    let mut result = Ok(());
    let mut visit = |child: &mut Node| {
        if result.is_ok() {
            result = resolve(child, options, control);
        }
    };
    node.for_each_child_mut(&mut visit);
    node.for_each_expression_mut(&mut |expression: &mut Expression| {
        expression.for_each_exists_mut(&mut |exists| visit(&mut exists.pattern));
    });
    result
}

fn table(service: &Service, options: &QueryOptions, control: &Control<'_>) -> Result<Node> {
    let mut variables: Vec<Variable> = service.variables.iter().map(|(_, variable)| *variable).collect();
    let mut rows = Vec::new();
    match &service.endpoint {
        Slot::Constant(Term::NamedNode(endpoint)) => {
            match ask(service, endpoint.as_str(), options, control) {
                Ok(found) => rows = found,
                Err(_) if service.silent => return Ok(Node::unit()),
                Err(error) => return Err(error),
            }
        }
        Slot::Constant(other) => {
            return Err(Error::new(ErrorKind::Query, format!("{other} is not the IRI of an endpoint")));
        }
        Slot::Variable(variable) => {
            let at = variables.iter().position(|other| other == variable);
            if at.is_none() {
                variables.push(*variable);
            }
            for endpoint in options.services.iter().flat_map(|services| &services.endpoints) {
                let name: Term = NamedNode::new_unchecked(endpoint.as_str()).into();
                let found = match ask(service, endpoint, options, control) {
                    Err(_) if service.silent => vec![vec![None; service.variables.len()]],
                    found => found?,
                };
                for mut row in found {
                    match at {
                        None => row.push(Some(name.clone())),
                        Some(at) if row[at].as_ref().is_none_or(|value| *value == name) => {
                            row[at] = Some(name.clone());
                        }
                        Some(_) => continue,
                    }
                    rows.push(row);
                }
            }
            if options.services.is_none() && !service.silent {
                return Err(refused("any endpoint"));
            }
        }
    }
    Ok(Node::Values { variables, rows })
}

fn refused(endpoint: &str) -> Error {
    Error::new(ErrorKind::Input, format!("SERVICE may not ask {endpoint}")).with_hint(
        "endpoints that queries may ask are listed by who runs the database, such as --service IRI",
    )
}

/// The solutions that an endpoint has, with a cell for each variable of the service.
fn ask(
    service: &Service,
    endpoint: &str,
    options: &QueryOptions,
    control: &Control<'_>,
) -> Result<Vec<Vec<Option<Term>>>> {
    let Some(services) =
        options.services.as_ref().filter(|one| one.endpoints.iter().any(|of| of == endpoint))
    else {
        return Err(refused(&format!("<{endpoint}>")));
    };
    let wrong = |what: &str| Error::new(ErrorKind::Input, format!("the endpoint <{endpoint}> {what}"));
    control.check()?;
    let answer = services.client.ask(endpoint, &service.text, control.time_left())?;
    if answer.body.len() > SERVICE_BYTES_MAX {
        return Err(wrong(&format!("answered with more than {SERVICE_BYTES_MAX} bytes")));
    }
    let format = QueryResultsFormat::from_media_type(&answer.media_type)
        .ok_or_else(|| wrong(&format!("answered with {}, which are no results", answer.media_type)))?;
    let unreadable = |error: &dyn std::fmt::Display| {
        // It may quote all of a line.
        let text = error.to_string();
        let shown: String = text.chars().take(ERROR_CHARACTERS_MAX).collect();
        let more = if shown.len() < text.len() { " …" } else { "" };
        wrong(&format!("answered what cannot be read: {shown}{more}"))
    };
    match format {
        QueryResultsFormat::Json => vervet_load::check_json(&answer.body),
        QueryResultsFormat::Xml => vervet_load::check_xml(&answer.body),
        // A line has no depth, and the parser of its terms has a limit.
        _ => Ok(()),
    }
    .map_err(|error| unreadable(&error))?;
    let parser = QueryResultsParser::from_format(format);
    let solutions = match parser.for_slice(&answer.body).map_err(|error| unreadable(&error))? {
        SliceQueryResultsParserOutput::Solutions(solutions) => solutions,
        SliceQueryResultsParserOutput::Boolean(_) => return Err(wrong("answered with yes or no")),
    };
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(|error| unreadable(&error))?;
        rows.push(service.variables.iter().map(|(name, _)| solution.get(name.as_str()).cloned()).collect());
    }
    Ok(rows)
}
