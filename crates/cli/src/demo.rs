//! `vervet demo`: a tour in SPARQL, Gremlin and the typed interface, on the world's air routes.
//!
//! The program embeds the data: a table of airports and one of routes (for their author see
//! demo/ATTRIBUTION.md). They are a property graph, which SPARQL sees as statements.

use crate::arguments::DemoArguments;
use crate::output::{self, Outcome, Output};
use crate::{gremlin, interrupt};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use vervet::gremlin::{GremlinOptions, GremlinResults};
use vervet::update::UpdateOptions;
use vervet::{
    CancelToken, Database, Direction, ErrorKind, Graph, Literal, LoadOptions, OutputFormat, QueryOptions,
    Source,
};
use vervet_server::{BIND_DEFAULT, SavedQueries, Server, ServerOptions};

static NODES: &[u8] = include_bytes!("../demo/air-routes-nodes.csv.zst");
static EDGES: &[u8] = include_bytes!("../demo/air-routes-edges.csv.zst");

/// The tour in the console.
pub(crate) static SAVED_QUERIES: &str = include_str!("../demo/tour.toml");

/// The steps of the tour in the console that need a database that can be changed.
const WRITING_STEPS: [&str; 2] = ["Gremlin writes", "SPARQL sees it"];

/// The tour in the console of a server that only reads.
pub(crate) fn reading_queries() -> String {
    let is_reading = |step: &&str| {
        WRITING_STEPS.iter().all(|name| !step.trim_start().starts_with(&format!("name = \"{name}\"\n")))
    };
    let steps: Vec<&str> = SAVED_QUERIES.split("[[queries]]").filter(is_reading).collect();
    steps.join("[[queries]]").replacen("Eight steps", "Six steps", 1)
}

/// A stop of the tour: a title, and what it runs and shows.
struct Stop {
    title: &'static str,
    input: Input,
}

enum Input {
    Sparql(&'static str),
    Gremlin(&'static str),
    /// A request of SPARQL Update.
    Update(&'static str),
    /// A query, and its plan with measured rows and times.
    Plan(&'static str),
}

const PREFIXES: &str = "\
PREFIX key: <urn:vervet:key:>
PREFIX label: <urn:vervet:label:>
";

const TOUR: [Stop; 9] = [
    Stop {
        title: "SPARQL: which airports have the most routes?",
        input: Input::Sparql(
            "\
SELECT ?code ?city (COUNT(?b) AS ?routes) WHERE {
  ?a a label:airport ; key:code ?code ; key:city ?city ; key:route ?b .
} GROUP BY ?code ?city ORDER BY DESC(?routes) LIMIT 5",
        ),
    },
    Stop {
        title: "Gremlin: the same question to the same data",
        input: Input::Gremlin(
            "\
g.V().hasLabel('airport').
  project('code', 'city', 'routes').by('code').by('city').by(out('route').count()).
  order().by(select('routes'), desc).limit(5)",
        ),
    },
    Stop {
        title: "Edges have properties: the longest routes (~ ?route names the edge)",
        input: Input::Sparql(
            "\
SELECT ?from ?to ?miles WHERE {
  ?a key:route ?b ~ ?route .
  ?route key:dist ?miles .
  ?a key:city ?from .
  ?b key:city ?to .
  FILTER (?from < ?to)
} ORDER BY DESC(?miles) ?from LIMIT 5",
        ),
    },
    Stop {
        title: "How many journeys of two flights are there? Counted from degrees, without listing them",
        input: Input::Sparql(
            "\
SELECT (COUNT(*) AS ?journeys) WHERE {
  ?a key:route ?b .
  ?b key:route ?c .
}",
        ),
    },
    Stop {
        title: "How many round trips over three airports? With the plan, its measured rows and times",
        input: Input::Plan(
            "\
SELECT (COUNT(*) AS ?trips) WHERE {
  ?a key:route ?b .
  ?b key:route ?c .
  ?c key:route ?a .
}",
        ),
    },
    Stop {
        title: "Gremlin writes: a new route from Graz to Auckland",
        input: Input::Gremlin(
            "\
g.V().has('code', 'GRZ').addE('route').to(V().has('code', 'AKL')).property('dist', 11180).
  project('from', 'to', 'miles').by(outV().values('city')).by(inV().values('city')).by('dist')",
        ),
    },
    Stop {
        title: "SPARQL sees it: the longest routes from Graz",
        input: Input::Sparql(
            "\
SELECT ?to ?miles WHERE {
  ?graz key:code \"GRZ\" ; key:route ?b ~ ?route .
  ?route key:dist ?miles .
  ?b key:city ?to .
} ORDER BY DESC(?miles) LIMIT 3",
        ),
    },
    Stop {
        title: "SPARQL writes: airports above 12,000 feet are high",
        input: Input::Update(
            "INSERT { ?a key:high true } WHERE { ?a a label:airport ; key:elev ?feet FILTER (?feet > 12000) }",
        ),
    },
    Stop {
        title: "Gremlin sees it",
        input: Input::Gremlin(
            "\
g.V().has('high', true).order().by('elev', desc).limit(5).
  project('code', 'city', 'feet').by('code').by('city').by('elev')",
        ),
    },
];

const NEXT: &str = "\
vervet demo --serve                        the console on this data, with a tour: http://127.0.0.1:7878/
vervet load ./db FILE\u{2026}                     your own data, in a directory (docs/loading.md)
vervet shell ./db                          both languages, interactive
vervet serve ./db                          the same over HTTP, with the console (docs/server.md)";

pub(crate) fn run(arguments: &DemoArguments) -> Outcome {
    let running = interrupt::start();
    let mut out = Output::standard();
    let paint = Paint::new();
    let database = Database::in_memory();
    let started = Instant::now();
    let options = LoadOptions { cancelled: Some(interrupt::requested()), ..LoadOptions::default() };
    let report = database.load(sources(), &options)?;
    let elapsed = started.elapsed();
    writeln!(out, "{}", paint.title("The world's air routes, by Kelvin R. Lawrence (Apache License 2.0)"))?;
    writeln!(
        out,
        "loaded {} statements in {} ({}/s)",
        output::count(report.statements),
        output::time(elapsed),
        output::rate(report.statements, elapsed),
    )?;
    if arguments.serve {
        out.finish()?;
        return serve(database, arguments);
    }
    writeln!(
        out,
        "\n{}\n{}",
        paint.title("Prefixes of the queries in SPARQL:"),
        paint.quiet(PREFIXES.trim_end())
    )?;
    for (number, stop) in (1..).zip(&TOUR) {
        writeln!(out, "\n{}", paint.title(&format!("{number}. {}", stop.title)))?;
        let started = Instant::now();
        let shown = show(&database, &stop.input, &running.token)?;
        let elapsed = started.elapsed();
        let (Input::Sparql(text) | Input::Gremlin(text) | Input::Update(text) | Input::Plan(text)) =
            stop.input;
        writeln!(out, "{}", paint.quiet(text))?;
        match shown {
            Shown::Bytes(bytes) => out.write_all(&bytes)?,
            Shown::Results(results) => gremlin::write_table(&results, &mut out)?,
        }
        writeln!(out, "{}", paint.time(elapsed))?;
    }
    let snapshot = database.snapshot();
    typed(&snapshot.graph(), &paint, TOUR.len() + 1, &mut out)?;
    writeln!(out, "\n{}\n{}", paint.title("Where to go next:"), paint.quiet(NEXT))?;
    out.finish()
}

/// The air routes.
pub(crate) fn sources() -> Vec<Source> {
    vec![Source::bytes("air-routes-nodes.csv.zst", NODES), Source::bytes("air-routes-edges.csv.zst", EDGES)]
}

/// Output of a stop.
enum Shown {
    Bytes(Vec<u8>),
    Results(GremlinResults),
}

fn show(database: &Database, input: &Input, token: &CancelToken) -> vervet::Result<Shown> {
    let options = QueryOptions::default().with_cancel(token);
    let mut bytes = Vec::new();
    match input {
        Input::Sparql(text) => {
            database.write(&format!("{PREFIXES}{text}"), &options, OutputFormat::Table, &mut bytes)?;
        }
        Input::Gremlin(text) => {
            let options = GremlinOptions { cancel: Some(token.clone()), ..GremlinOptions::default() };
            return Ok(Shown::Results(database.gremlin_with(text, &options)?));
        }
        Input::Update(text) => {
            let mut options = UpdateOptions { query: options, documents: None };
            database.update_with(&format!("{PREFIXES}{text}"), &mut options)?;
        }
        Input::Plan(text) => {
            let prepared = database.prepare(&format!("{PREFIXES}{text}"))?;
            prepared.write_with(&options, OutputFormat::Table, &mut bytes)?;
            bytes.extend_from_slice(prepared.explanation(&options, true)?.text.as_bytes());
        }
    }
    Ok(Shown::Bytes(bytes))
}

/// Serves the data until Ctrl-C.
fn serve(database: Database, arguments: &DemoArguments) -> Outcome {
    let mut options = ServerOptions::default();
    options.bind_to(arguments.bind.as_deref().unwrap_or(BIND_DEFAULT))?;
    options.signals = true;
    options.queries = SavedQueries::from_toml(SAVED_QUERIES)?;
    let is_open = options.bind.iter().any(|address| !address.ip().is_loopback());
    let server = Server::bind(database, options).map_err(|error| match error.kind() {
        ErrorKind::Input if is_open => error.with_hint(
            "the demo has neither TLS nor users, so it serves addresses of this machine only; \
             vervet serve DB --config FILE serves others, with both (docs/server.md)",
        ),
        _ => error,
    })?;
    eprintln!(
        "the console, with a tour, is at http://{}/ (Ctrl-C ends it; changes are lost)",
        server.address()?
    );
    server.run()?;
    Ok(())
}

/// The typed interface: the number of vertices reachable from one.
fn typed(graph: &Graph<'_>, paint: &Paint, number: usize, out: &mut Output) -> Outcome {
    let title =
        format!("{number}. The typed interface for Rust: the airports that can be reached from Vienna");
    writeln!(out, "\n{}", paint.title(&title))?;
    writeln!(
        out,
        "{}",
        paint.quiet(
            "let vienna = graph.vertices_with_property(\"code\", &Literal::from(\"VIE\"))?[0];\n\
             graph.reach(vienna, \"route\", Direction::Out)?.len()"
        )
    )?;
    let started = Instant::now();
    let vienna = graph.vertices_with_property("code", &Literal::from("VIE"))?;
    let Some(&vienna) = vienna.first() else { return Ok(()) };
    let reached = graph.reach(vienna, "route", Direction::Out)?.len();
    writeln!(out, "{}\n{}", output::count(reached as u64), paint.time(started.elapsed()))?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use vervet_server::{QueryLanguage, ResultView};

    /// The steps of the tour in the console return results, have each view and language, and can be repeated.
    #[test]
    fn the_saved_queries_have_results() {
        let database = Database::in_memory();
        database.load(sources(), &LoadOptions::default()).unwrap();
        let tour = SavedQueries::from_toml(SAVED_QUERIES).unwrap();
        for _ in 0..2 {
            for step in &tour.queries {
                let rows = match step.language {
                    QueryLanguage::Gremlin => {
                        usize::try_from(database.gremlin(&step.text).unwrap().len()).unwrap()
                    }
                    _ => {
                        let mut table = Vec::new();
                        let options = QueryOptions::default();
                        database.write(&step.text, &options, OutputFormat::Tsv, &mut table).unwrap();
                        table.iter().filter(|&&byte| byte == b'\n').count() - 1
                    }
                };
                assert!((1..1000).contains(&rows), "{}: {rows} rows", step.name);
                assert!(step.note.is_some(), "{}", step.name);
            }
        }
        for view in [ResultView::Table, ResultView::Picture, ResultView::Profile] {
            assert!(tour.queries.iter().any(|step| step.view == Some(view)));
        }
        let written = "g.V().has('code', 'GRZ').outE('route').where(inV().has('code', 'AKL')).count()";
        let count = database.gremlin(written).unwrap();
        assert_eq!(count.values().map(ToString::to_string).collect::<Vec<_>>(), ["1L"]);
    }

    #[test]
    fn the_tour_of_a_reading_server_writes_nothing() {
        let text = reading_queries();
        assert_eq!([SAVED_QUERIES, &text].map(|text| text.matches("[[queries]]").count()), [8, 6]);
        assert!(text.contains("Six steps") && !text.contains("mergeE") && !text.contains("the new one"));
        let file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        assert_eq!(SavedQueries::from_file(file.path()).expect("a tour").queries.len(), 6);
    }
}
