//! All requests that once aborted a server, hung it or caused wrong results, repeated concurrently beside
//! light queries.
//!
//! # Shape
//! Each hostile request has a thread that sends it, reads the response and repeats it, at most twenty times a
//! second. Light queries run at a fixed rate on separate connections, first alone and then beside the hostile
//! requests. The response to a hostile request must be correct or report a limit that docs/limits.md names.
//! The server must not abort, and its memory must be constant. The 99th percentile of the light queries is
//! compared with two others: that of light queries alone, and that beside one computing thread for each
//! processor at the priority of a heavy request, which measures the delays by the scheduler of this machine.
//! Percentiles are those of a typical second (the median over the seconds), since a hypervisor that limits
//! the processor time stops the whole machine for 25 ms at a time: in short runs such pauses decide the 99th
//! percentile of the whole phase, and they occur only where the processors are busy.
//! # Source
//! The requests are the reproducers of docs/testing.md, "Findings of the reviews".

use crate::Error;
use crate::client::Connection;
use crate::mix::{self, Hostile, Options, Phase};
use crate::queries::Queries;
use crate::report::Report;
use crate::server_process::ServerProcess;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Maximum 99th percentile of light queries beside the siege, as a multiple of that alone. If the 99th
/// percentile beside computing threads is longer, that is the maximum.
const P99_MAX: f64 = 2.0;

/// Duration of the light queries before the first measurement.
const WARM_UP: Duration = Duration::from_secs(5);

/// Statements of one hub; the count of the product of five of them is 10^20.
const HUB: usize = 10_000;
/// Subjects with one statement each: one more than two batches of rows.
const SUBJECTS: usize = 2_100;
/// Terms of a `VALUES` list that are not in the graph.
const UNKNOWN_TERMS: usize = 60_000;
/// Optional steps in a path that repeats.
const OPTIONAL_STEPS: usize = 900;

/// The statements that the hostile requests query, as Turtle; loaded in addition to the data.
pub(crate) fn statements() -> String {
    let mut text = String::new();
    for number in 0..HUB {
        let _ = writeln!(text, "<urn:siege:hub> <urn:siege:of> {number} .");
    }
    for number in 0..SUBJECTS {
        let _ = writeln!(text, "<urn:siege:s{number}> <urn:siege:p> \"v\" .");
    }
    text
}

/// All hostile requests: name, text, and the expected content of a response with status 200.
fn requests() -> Vec<Hostile> {
    let gremlin = |name: &str, text: &str, expected: Option<&str>| Hostile {
        name: name.to_owned(),
        path: "/gremlin",
        text: format!("{{\"gremlin\": \"{}\"}}", text.replace('"', "\\\"")),
        expected: expected.map(str::to_owned),
    };
    let sparql = |name: &str, text: String, expected: Option<&str>| Hostile {
        name: name.to_owned(),
        path: "/query",
        text,
        expected: expected.map(str::to_owned),
    };
    let double = "repeat(union(identity(),identity()))";
    let path: String = vec!["<urn:siege:p>?"; OPTIONAL_STEPS].join("/");
    let values: String = (0..UNKNOWN_TERMS).fold(String::new(), |mut text, number| {
        let _ = write!(text, "<urn:unknown:{number}> ");
        text
    });
    let mut all = vec![
        gremlin("B1 group of 2^50", &format!("g.inject(1).{double}.times(50).group()"), None),
        gremlin("B1 group of 2^30", &format!("g.inject(1).{double}.times(30).group()"), None),
        gremlin(
            "B1 aggregate",
            &format!("g.inject(1).{double}.times(50).aggregate('x').cap('x').unfold()"),
            None,
        ),
        gremlin(
            "B1 side effect",
            &format!("g.withSideEffect('x',[]).inject(1).{double}.times(50).aggregate('x')"),
            None,
        ),
        gremlin("B1 results", &format!("g.inject(1).{double}.times(40)"), None),
        gremlin("B1 flatMap", "g.inject(1).flatMap(repeat(union(identity(),identity())).times(40))", None),
        gremlin(
            "B2 long path",
            "g.inject(0).repeat(constant(0).as('a')).times(1000000).count()",
            Some("\"data\":[1]"),
        ),
        gremlin("B6 coin", &format!("g.inject(1).{double}.times(62).coin(0.5)"), None),
        gremlin("B6 fold", &format!("g.inject(1).{double}.times(62).constant(1).fold(0,sum)"), None),
        gremlin("B6 sample", &format!("g.inject(1).{double}.times(62).sample(3).count()"), None),
        gremlin("B7 subgraph", "g.E().subgraph('s').cap('s').count()", None),
        gremlin("B7 sacks", "g.withSack(1, Operator.sum).V().both().barrier().count()", None),
        gremlin(
            "B8 number",
            "g.inject('1e-999999999').asNumber().as('n').constant(1).math('n + 1').count()",
            None,
        ),
        gremlin(
            "B10 tail",
            &format!("g.inject(1,2).{double}.times(80).tail(2).count()"),
            Some("\"data\":[2]"),
        ),
        gremlin("B11 label", "g.V().limit(1).count()", Some("\"data\":[1]")),
        gremlin("B14 folds", "g.V().local(out().fold()).count()", None),
        gremlin("endless repeat", "g.V().repeat(both())", None),
        sparql(
            "B3 exists",
            "SELECT ?e (COUNT(*) AS ?n) { ?s <urn:siege:p> ?o BIND(EXISTS { ?s ?q ?z } AS ?e) } GROUP BY ?e"
                .to_owned(),
            Some(&SUBJECTS.to_string()),
        ),
        sparql("B4 path", format!("SELECT * {{ <urn:siege:s1> ({path})* ?y }}"), None),
        sparql("B5 values", format!("SELECT * {{ VALUES ?x {{ {values} }} }} LIMIT 1"), Some("urn:unknown:")),
        sparql(
            "B9 count",
            "SELECT (COUNT(*) AS ?n) { <urn:siege:hub> <urn:siege:of> ?a, ?b, ?c, ?d, ?e }".to_owned(),
            Some("100000000000000000000"),
        ),
        sparql("B12 distinct", "SELECT DISTINCT ?a ?b { ?a <urn:siege:p> ?b } LIMIT 3".to_owned(), None),
        sparql(
            "string doubles",
            format!(
                "SELECT (STRLEN(?t60) AS ?n) {{ BIND(\"xxxxxxxx\" AS ?t0) {} }}",
                (0..60).fold(String::new(), |mut text, n| {
                    let _ = write!(text, "BIND(CONCAT(?t{n}, ?t{n}) AS ?t{}) ", n + 1);
                    text
                })
            ),
            None,
        ),
        sparql(
            "product of all statements",
            "SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?c ?f".to_owned(),
            None,
        ),
    ];
    // The longest result: all statements of the graph.
    all.push(sparql("all statements", "SELECT * { ?s ?p ?o }".to_owned(), None));
    all
}

/// Runs the siege; returns whether every response is correct or a limit, memory is constant, and the light
/// queries are within [`P99_MAX`].
pub(crate) fn run(
    server: &ServerProcess,
    queries: &Queries,
    options: &Options,
    report: &mut Report,
) -> Result<bool, Error> {
    let requests = requests();
    let first = (options.time / 10).clamp(Duration::from_secs(3), Duration::from_secs(60));
    report.line("## Siege\n");
    report.line(&format!(
        "{} connections with light queries ({} a second), alone for {:.0} s, then for {:.0} s beside {} connections, \
         each of which repeats one hostile request, at most once in 50 ms.\n",
        options.light,
        options.rate,
        first.as_secs_f64(),
        options.time.as_secs_f64(),
        requests.len()
    ));
    // Warm-up: fills the plan cache, and both processes allocate their memory.
    mix::phase(server, queries, &[], WARM_UP, &Options { heavy: 0, ..*options })?;
    let alone = mix::phase(server, queries, &[], first, &Options { heavy: 0, ..*options })?;
    let computing = std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let end = Instant::now() + first;
        (0..processors).for_each(|_| drop(scope.spawn(move || mix::busy_loop(end))));
        mix::phase(server, queries, &[], first, &Options { heavy: 0, ..*options })
    })?;
    let beside = mix::phase(server, queries, &requests, options.time, &Options { heavy: 0, ..*options })?;
    mix::light(&alone, &beside, report);
    mix::heavy(&beside, report);
    let mut passed = mix::memory(&beside, report);
    passed &= mix::wrong([&alone, &beside], report);
    passed &= within_p99_max(&alone, &computing, &beside, report);
    // The server still responds on a new connection.
    passed &= Connection::open(server.address)?.get("/health")?.status == 200;
    Ok(mix::settled(server, report)? && passed)
}

/// Reports the 99th percentiles of the light queries; returns whether those of a typical second are within
/// [`P99_MAX`].
fn within_p99_max(alone: &Phase, computing: &Phase, beside: &Phase, report: &mut Report) -> bool {
    let phases = [alone, computing, beside].map(|phase| &phase.light);
    let typical = phases.map(|light| light.in_typical_second(990));
    let [alone, computing, beside] = typical;
    let passed = beside <= (alone * P99_MAX).max(computing);
    let names = ["alone", "beside one computing thread for each processor", "beside hostile requests"];
    let rows: Vec<Vec<String>> = (names.iter().zip(phases).zip(typical))
        .map(|((name, light), typical)| {
            let [typical, whole, ratio] =
                [typical, light.at(990), typical / alone].map(|number| format!("{number:.2}"));
            vec![(*name).to_owned(), typical, ratio, whole]
        })
        .collect();
    report.table(
        &["light queries", "99 % ms in a typical second", "times alone", "99 % ms in the whole phase"],
        &rows,
    );
    if !passed {
        report.line(&format!(
            "**Above the maximum** of {P99_MAX} times alone, and above that beside computing threads.\n"
        ));
    }
    passed
}
