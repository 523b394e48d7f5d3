//! `SERVICE`: federated queries to other endpoints.
//!
//! # Shape
//! Before planning, each `SERVICE` of a query is sent to its endpoint once, for all its solutions, and is
//! replaced by a table; so a query with services is planned for each run. A variable in place of the endpoint
//! means every endpoint of the list.
//! # Safety
//! Off unless the caller lists endpoints: a query must not make a server send requests into its network. The
//! transport is the caller's ([`crate::ServiceClient`]), so this crate has no HTTP. Endpoints are untrusted:
//! length and nesting depth of a response are limited, since the parsers of results recurse into triple
//! terms.
//! # Not here
//! Semi-join push-down: the endpoint is sent the whole pattern, without values of the local query.

use crate::options::QueryOptions;
use crate::query::service::SERVICE_BYTES_MAX;
use oxrdf::{NamedNode, Term};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use vervet_algebra::{Expression, Node, Query, Service, Slot, Variable};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};

/// The maximum characters of a parser's message in an error about an unreadable response.
const ERROR_CHARACTERS_MAX: usize = 300;

/// Whether a pattern contains a `SERVICE`.
pub(crate) fn is_federated(node: &Node) -> bool {
    if let Node::Service(_) = node {
        return true;
    }
    let mut any = false;
    node.for_each_child(&mut |child| any = any || is_federated(child));
    node.for_each_expression(&mut |expression| {
        expression.for_each_exists(&mut |exists| any = any || is_federated(&exists.pattern));
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
    Error::new(ErrorKind::Input, format!("SERVICE may not query {endpoint}"))
        .with_hint("the operator lists the endpoints that queries may use, such as --service IRI")
}

/// The solutions of an endpoint, with a cell for each variable of the service.
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
    let format = QueryResultsFormat::from_media_type(&answer.media_type).ok_or_else(|| {
        wrong(&format!("answered with {}, which is not a result format", answer.media_type))
    })?;
    let unreadable = |error: &dyn std::fmt::Display| {
        // The message may quote a whole line.
        let text = error.to_string();
        let shown: String = text.chars().take(ERROR_CHARACTERS_MAX).collect();
        let more = if shown.len() < text.len() { " …" } else { "" };
        wrong(&format!("sent an unreadable response: {shown}{more}"))
    };
    match format {
        QueryResultsFormat::Json => vervet_load::check_json(&answer.body),
        QueryResultsFormat::Xml => vervet_load::check_xml(&answer.body),
        // TSV and CSV lines do not nest, and the parser of their terms has a depth limit.
        _ => Ok(()),
    }
    .map_err(|error| unreadable(&error))?;
    let parser = QueryResultsParser::from_format(format);
    let solutions = match parser.for_slice(&answer.body).map_err(|error| unreadable(&error))? {
        SliceQueryResultsParserOutput::Solutions(solutions) => solutions,
        SliceQueryResultsParserOutput::Boolean(_) => return Err(wrong("answered with a boolean")),
    };
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(|error| unreadable(&error))?;
        rows.push(service.variables.iter().map(|(name, _)| solution.get(name.as_str()).cloned()).collect());
    }
    Ok(rows)
}
