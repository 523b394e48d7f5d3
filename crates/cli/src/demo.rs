//! `vervet demo`: queries on the world's air routes, in SPARQL and through the typed interface.
//!
//! The program embeds the data: a table of airports and one of routes (for their author see
//! demo/ATTRIBUTION.md). They are a property graph; the queries show how SPARQL sees it.

use crate::interrupt;
use crate::output::{self, Outcome, Output};
use crate::table::Table;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use vervet::{
    Database, Direction, Edge, Graph, LoadOptions, OutputFormat, QueryOptions, Result, Source, Term, Vertex,
};

static NODES: &[u8] = include_bytes!("../demo/air-routes-nodes.csv.zst");
static EDGES: &[u8] = include_bytes!("../demo/air-routes-edges.csv.zst");

/// A question and the query that answers it.
struct Question {
    title: &'static str,
    query: &'static str,
}

const PREFIXES: &str = "\
PREFIX key: <urn:vervet:key:>
PREFIX label: <urn:vervet:label:>
";

const QUESTIONS: [Question; 6] = [
    Question {
        title: "Which routes are the longest? A route is an edge with a property: ~ ?route names the edge",
        query: "\
SELECT ?from ?to ?miles WHERE {
  ?a key:route ?b ~ ?route .
  ?route key:dist ?miles .
  ?a key:city ?from .
  ?b key:city ?to .
  FILTER (?from < ?to)
} ORDER BY DESC(?miles) ?from LIMIT 6",
    },
    Question {
        title: "Which airports have the most routes?",
        query: "\
SELECT ?code ?city (COUNT(?b) AS ?routes) WHERE {
  ?a a label:airport ; key:code ?code ; key:city ?city ; key:route ?b .
} GROUP BY ?code ?city ORDER BY DESC(?routes) LIMIT 6",
    },
    Question {
        title: "Which countries have the most airports, and how high is the highest (feet)?",
        query: "\
SELECT ?country (COUNT(?a) AS ?airports) (MAX(?elevation) AS ?highest) WHERE {
  ?c a label:country ; key:desc ?country ; key:contains ?a .
  ?a key:elev ?elevation .
} GROUP BY ?country ORDER BY DESC(?airports) LIMIT 6",
    },
    Question {
        title: "From Graz to Auckland with two changes: which ways are the shortest?",
        query: "\
SELECT ?first ?second (?d1 + ?d2 + ?d3 AS ?miles) WHERE {
  ?graz key:code \"GRZ\" .
  ?auckland key:code \"AKL\" .
  ?graz key:route ?x ~ ?r1 . ?r1 key:dist ?d1 .
  ?x key:route ?y ~ ?r2 . ?r2 key:dist ?d2 .
  ?y key:route ?auckland ~ ?r3 . ?r3 key:dist ?d3 .
  ?x key:city ?first .
  ?y key:city ?second .
} ORDER BY ?miles LIMIT 5",
    },
    Question {
        title: "How many journeys of two flights are there? Counted from degrees, without listing them",
        query: "\
SELECT (COUNT(*) AS ?journeys) WHERE {
  ?a key:route ?b .
  ?b key:route ?c .
}",
    },
    Question {
        title: "How many round trips over three airports? A cycle, joined by intersecting neighbours",
        query: "\
SELECT (COUNT(*) AS ?trips) WHERE {
  ?a key:route ?b .
  ?b key:route ?c .
  ?c key:route ?a .
}",
    },
];

pub(crate) fn run() -> Outcome {
    let running = interrupt::start();
    let mut out = Output::standard();
    let paint = Paint::new();
    let database = Database::in_memory();
    let sources = vec![
        Source::bytes("air-routes-nodes.csv.zst", NODES),
        Source::bytes("air-routes-edges.csv.zst", EDGES),
    ];
    let started = Instant::now();
    let options = LoadOptions { cancelled: Some(interrupt::requested()), ..LoadOptions::default() };
    let report = database.load(sources, &options)?;
    let elapsed = started.elapsed();
    writeln!(out, "{}", paint.title("The world's air routes, by Kelvin R. Lawrence (Apache License 2.0)"))?;
    writeln!(
        out,
        "loaded {} statements in {} ({}/s)",
        output::count(report.statements),
        output::time(elapsed),
        output::rate(report.statements, elapsed),
    )?;

    writeln!(
        out,
        "\n{}\n{}",
        paint.title("In SPARQL, with these prefixes:"),
        paint.quiet(PREFIXES.trim_end())
    )?;
    let options = QueryOptions::default().with_cancel(&running.token);
    for (number, question) in (1..).zip(&QUESTIONS) {
        writeln!(out, "\n{}", paint.title(&format!("{number}. {}", question.title)))?;
        writeln!(out, "{}", paint.quiet(question.query))?;
        let text = format!("{PREFIXES}{}", question.query);
        let started = Instant::now();
        let mut table = Vec::new();
        database.write(&text, &options, OutputFormat::Table, &mut table)?;
        let elapsed = started.elapsed();
        out.write_all(&table)?;
        writeln!(out, "{}", paint.time(elapsed))?;
    }

    let snapshot = database.snapshot();
    typed(&snapshot.graph(), &paint, QUESTIONS.len() + 1, &mut out)?;
    writeln!(
        out,
        "\n{}\n  vervet load ./db FILE…    and then    vervet shell ./db",
        paint.title("Your own data:")
    )?;
    out.finish()
}

/// The typed interface: one vertex, its edges, and all reachable vertices.
fn typed(graph: &Graph<'_>, paint: &Paint, first: usize, out: &mut Output) -> Outcome {
    writeln!(out, "\n{}", paint.title("The same graph through the typed interface:"))?;
    let code = vervet::Literal::from("VIE");

    writeln!(
        out,
        "\n{}",
        paint.title(&format!("{first}. Vienna: its properties, and the longest of its routes"))
    )?;
    writeln!(
        out,
        "{}",
        paint.quiet(
            "let vienna = graph.vertices_with_property(\"code\", &code)?[0];\n\
             graph.properties(vienna)?;\n\
             graph.edges(vienna, \"route\", Direction::Out)?;    // each with graph.property(edge, \"dist\")?"
        )
    )?;
    let started = Instant::now();
    let Some(&vienna) = graph.vertices_with_property("code", &code)?.first() else { return Ok(()) };
    let properties = graph.properties(vienna)?;
    let routes = longest(graph, vienna)?;
    let elapsed = started.elapsed();
    let mut table = Table::new(&["key", "value"]);
    for (key, value) in &properties {
        table.row([key.clone(), text(value)]);
    }
    table.write("", out)?;
    writeln!(out)?;
    let mut table = Table::new(&["to", ">miles"]);
    for (miles, edge) in routes.iter().take(5) {
        table.row([city(graph, edge.target)?, output::count(*miles)]);
    }
    table.write("", out)?;
    writeln!(out, "{}", paint.time(elapsed))?;

    writeln!(
        out,
        "\n{}",
        paint.title(&format!("{}. How many airports are how many flights away?", first + 1))
    )?;
    writeln!(
        out,
        "{}",
        paint.quiet("graph.neighbours(airport, \"route\", Direction::Out)?    // breadth first from Vienna")
    )?;
    let started = Instant::now();
    let rounds = distances(graph, vienna)?;
    let elapsed = started.elapsed();
    let mut table = Table::new(&[">flights", ">airports", "for example"]);
    for (flights, (airports, example)) in (1..).zip(rounds) {
        table.row([flights.to_string(), output::count(airports as u64), city(graph, example)?]);
    }
    table.write("", out)?;
    writeln!(out, "{}", paint.time(elapsed))?;

    writeln!(
        out,
        "\n{}",
        paint.title(&format!("{}. All that can be reached from Vienna, in one call", first + 2))
    )?;
    writeln!(out, "{}", paint.quiet("graph.reach(vienna, \"route\", Direction::Out)?.len()"))?;
    let started = Instant::now();
    let reached = graph.reach(vienna, "route", Direction::Out)?.len();
    let elapsed = started.elapsed();
    writeln!(out, "{reached}\n{}", paint.time(elapsed))?;
    Ok(())
}

/// The routes of an airport with their lengths in miles, longest first.
fn longest(graph: &Graph<'_>, airport: Vertex) -> Result<Vec<(u64, Edge)>> {
    let mut routes = Vec::new();
    for edge in graph.edges(airport, "route", Direction::Out)? {
        let miles = graph.property(edge, "dist")?.and_then(|miles| text(&miles).parse().ok());
        routes.push((miles.unwrap_or(0), edge));
    }
    routes.sort_by_key(|(miles, edge)| (std::cmp::Reverse(*miles), edge.target));
    Ok(routes)
}

/// For each number of flights, the number of airports first reached and one of them.
fn distances(graph: &Graph<'_>, start: Vertex) -> Result<Vec<(usize, Vertex)>> {
    let mut seen = std::collections::HashSet::from([start]);
    let mut frontier = vec![start];
    let mut rounds = Vec::new();
    loop {
        let mut next = Vec::new();
        for &airport in &frontier {
            let neighbours = graph.neighbours(airport, "route", Direction::Out)?;
            next.extend(neighbours.into_iter().filter(|&neighbour| seen.insert(neighbour)));
        }
        let Some(&example) = next.first() else { return Ok(rounds) };
        rounds.push((next.len(), example));
        frontier = next;
    }
}

fn city(graph: &Graph<'_>, vertex: Vertex) -> Result<String> {
    Ok(graph.property(vertex, "city")?.map_or_else(String::new, |term| text(&term)))
}

fn text(term: &Term) -> String {
    match term {
        // The canonical form of a double, 4.8E1, is hard to read.
        Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::DOUBLE => literal
            .value()
            .parse::<f64>()
            .map_or_else(|_| literal.value().to_owned(), |value| format!("{value:.4}")),
        Term::Literal(literal) => literal.value().to_owned(),
        other => other.to_string(),
    }
}

/// Colours, where the terminal supports them.
struct Paint {
    colours: bool,
}

impl Paint {
    fn new() -> Self {
        Self { colours: std::io::stdout().is_terminal() && output::colours(&std::io::stdout()) }
    }

    fn title(&self, text: &str) -> String {
        self.paint("\x1b[1m", text)
    }

    /// Text of an input, as opposed to a result.
    fn quiet(&self, text: &str) -> String {
        let lines = text.lines().map(|line| format!("    {line}"));
        self.paint("\x1b[36m", &lines.collect::<Vec<_>>().join("\n"))
    }

    fn time(&self, elapsed: Duration) -> String {
        self.paint("\x1b[2m", &format!("in {}", output::time(elapsed)))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("{code}{text}\x1b[0m") } else { text.to_owned() }
    }
}
