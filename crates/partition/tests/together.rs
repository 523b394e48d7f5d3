//! Servers that build the partitions of a graph together make the same files as one builder of all
//! statements.

#[path = "../../store/tests/it/common/mod.rs"]
mod common;

use common::{Graph, GraphParameters, Random, options, seed};
use std::path::{Path, PathBuf};
use vervet_dictionary::Dictionary;
use vervet_env::Environment;
use vervet_model::{Direction, Error, ErrorKind, Id, Partitioning, Result, Watch, vocab::RDF_TYPE};
use vervet_partition::{CatalogPiece, PartitionDirectory};
use vervet_store::{
    BuildOptions, BuildPlan, GraphCounts, Halves, NewDictionary, PartBuilder, SetPlan, SetSurvey,
    SortedParts, Survey, write_dictionary,
};

static WATCH: Watch<'static> = Watch::new("test");

fn round_trip<T>(
    write: impl Fn(&mut Vec<u8>),
    read: impl Fn(&[u8]) -> Result<T, vervet_codec::Damaged>,
) -> T {
    let mut bytes = Vec::new();
    write(&mut bytes);
    read(&bytes).expect("what was written")
}

/// Writes the graph to a directory for each of `servers` servers.
fn build_together(
    graph: &Graph,
    options: &BuildOptions,
    (partitioning, servers): (Partitioning, usize),
    build: u64,
    random: &mut Random,
) -> Result<Vec<PathBuf>> {
    let environment = &options.environment;
    let dictionary = Dictionary::open(graph.dictionary.clone().into(), "test").expect("whole");
    let own =
        |server: usize| (0..partitioning.count()).filter(|part| part % servers == server).collect::<Vec<_>>();
    let server_of = |id: Id| partitioning.owner(id) % servers;
    let mut builders: Vec<PartBuilder<'static>> = (0..servers)
        .map(|server| PartBuilder::new(options.clone(), partitioning, own(server), &WATCH))
        .collect();
    let mut waiting: Vec<Halves> = (0..servers).map(|_| Halves::default()).collect();
    let mut bytes = Vec::new();
    for statement in &graph.statements {
        for (direction, id) in Direction::BOTH.into_iter().zip([statement.subject, statement.object]) {
            let server = server_of(id);
            if random.one_in(3) {
                builders[server].add(direction, statement)?;
            } else {
                waiting[server].add(direction, statement);
            }
        }
        if statement.edge.is_bound() {
            waiting[server_of(statement.edge)].add_edge(statement);
        }
        let server = usize::try_from(random.below(8 * servers as u64)).expect("small");
        if let Some(halves) = waiting.get_mut(server) {
            bytes.clear();
            halves.drain(&mut bytes);
            builders[server].add_bytes(&bytes)?;
        }
    }
    for (halves, builder) in waiting.iter_mut().zip(&mut builders) {
        bytes.clear();
        halves.drain(&mut bytes);
        builder.add_bytes(&bytes)?;
    }
    let mut parts: Vec<SortedParts<'static>> =
        builders.into_iter().map(PartBuilder::sort).collect::<Result<_>>()?;
    let type_predicate = dictionary.lookup_iri(RDF_TYPE)?.unwrap_or(Id::UNBOUND);
    let counts = GraphCounts {
        vertices: dictionary.vertex_count(),
        literals: dictionary.literal_count(),
        type_predicate,
        edges: 0,
    };
    let surveys = parts.iter().map(|parts| parts.survey(type_predicate));
    let surveys = surveys.map(|survey| round_trip(|out| survey.write(out), Survey::read)).collect();
    let plan = BuildPlan::new(surveys, counts, partitioning)?;
    for parts in &mut parts {
        parts.apply_plan(round_trip(|out| plan.write(out), BuildPlan::read))?;
    }
    let sets = parts.iter_mut().map(SortedParts::set_survey).collect::<Result<Vec<_>>>()?;
    let sets: Option<Vec<SetSurvey>> = sets.into_iter().collect();
    if let Some(sets) = sets {
        let sets = sets.iter().map(|survey| round_trip(|out| survey.write(out), SetSurvey::read)).collect();
        let plan = SetPlan::new(&plan, sets, &WATCH)?;
        for parts in &mut parts {
            parts.apply_sets(round_trip(|out| plan.write(out), SetPlan::read));
        }
    }
    let classes: Vec<Vec<u8>> = parts.iter().map(SortedParts::own_classes).collect();
    for (server, parts) in parts.iter_mut().enumerate() {
        for (other, classes) in classes.iter().enumerate().filter(|(other, _)| *other != server) {
            parts.set_classes(&own(other), classes)?;
        }
    }
    let directories: Vec<PathBuf> =
        (0..servers).map(|server| PathBuf::from(format!("/server-{server}"))).collect();
    let mut pieces = Vec::new();
    let mut record = None;
    for (parts, directory) in parts.into_iter().zip(&directories) {
        environment.files.create_dir_all(directory).expect("a directory");
        let image = NewDictionary::from(graph.dictionary.clone());
        let dictionary = write_dictionary(image, environment, directory, &WATCH)?;
        let written = parts.write(&dictionary, directory, build)?;
        let piece = CatalogPiece::of(environment, directory, (build, &dictionary), written)?;
        pieces.push(round_trip(|out| piece.write(out), CatalogPiece::read));
        record = Some(dictionary);
    }
    let catalog = PartitionDirectory::catalog_of(pieces, partitioning, build, record.expect("a server"))?;
    for directory in &directories {
        assert!(!PartitionDirectory::is_published(environment, directory));
        PartitionDirectory::store_catalog(environment, directory, &catalog)?;
        PartitionDirectory::publish(environment, directory)?;
    }
    Ok(directories)
}

/// Compares the files of servers with those of one builder.
fn compare(
    graph: &Graph,
    options: &BuildOptions,
    of: (Partitioning, usize),
    random: &mut Random,
    context: &str,
) {
    let environment = &options.environment;
    let whole = Path::new("/whole");
    let builder = graph.builder(options.clone()).expect("a good graph");
    let directory = PartitionDirectory::write(builder, graph.dictionary.clone(), of.0, environment, whole)
        .expect("a good graph");
    let servers = build_together(graph, options, of, directory.build(), random).expect("a good graph");
    for (server, path) in servers.iter().enumerate() {
        let own: Vec<usize> = (0..of.0.count()).filter(|part| part % of.1 == server).collect();
        for name in directory.file_names(&own) {
            let read = |path: &Path| environment.files.read(&path.join(&name)).expect("a file");
            let (ours, theirs) = (read(path), read(whole));
            let differs = ours.iter().zip(&theirs).position(|(one, other)| one != other);
            assert!(
                ours == theirs,
                "{context}: {name}: {} and {} bytes, different from {differs:?} on",
                ours.len(),
                theirs.len()
            );
        }
        PartitionDirectory::open(environment, path).expect("whole").verify_files(&own).expect("whole");
    }
}

fn plain_options(environment: &Environment, random: &mut Random) -> BuildOptions {
    let is_spilled = random.one_in(3);
    BuildOptions {
        orders: Vec::new(),
        memory_bytes: if is_spilled { 512 } else { 1 << 30 },
        temp_dir: is_spilled.then(|| PathBuf::from("/")),
        threads: if random.one_in(2) { 1 } else { 3 },
        ..options(environment)
    }
}

#[test]
fn servers_together_make_the_files_of_one() {
    let seed = seed();
    for case in 0..120 {
        let mut random = Random(seed + case);
        let mut shape = GraphParameters::random(&mut random);
        if case % 4 == 0 {
            // Split predicates, and sets of types beside vertices without.
            (shape.vertices, shape.statements) = (3_000, 9_000);
        }
        let graph = Graph::random(shape, &mut random);
        let servers = usize::try_from(1 + random.below(4)).expect("small");
        let count = servers.next_power_of_two() << random.below(3);
        let runs = u32::try_from(random.below(5)).expect("small");
        let partitioning =
            Partitioning::new(count).and_then(|one| one.with_runs(runs)).expect("a power of two");
        let environment = Environment::simulated(seed + case);
        let options = plain_options(&environment, &mut random);
        let context = format!("seed {}: {shape:?}, {count} partitions at {servers} servers", seed + case);
        compare(&graph, &options, (partitioning, servers), &mut random, &context);
    }
}

#[test]
fn larger_graphs_as_well() {
    let seed = seed();
    let mut random = Random(seed);
    let graph = Graph::network(20_000, &mut random);
    let partitioning = Partitioning::new(8).and_then(|one| one.with_runs(6)).expect("a power of two");
    let environment = Environment::simulated(seed);
    let options = plain_options(&environment, &mut random);
    compare(&graph, &options, (partitioning, 3), &mut random, &format!("seed {seed}"));
}

/// Errors of one builder are errors here, with the same message.
#[test]
fn bad_statements_are_refused() {
    let mut random = Random(7);
    let shape = GraphParameters {
        vertices: 50,
        statements: 300,
        predicates: 4,
        types: 2,
        edges: true,
        named_graphs: true,
    };
    let graph = Graph::random(shape, &mut random);
    let edge = *graph.statements.iter().find(|statement| statement.edge.is_bound()).expect("an edge");
    let plain = *graph.statements.iter().find(|statement| !statement.edge.is_bound()).expect("no edge");
    let changes: [(&str, vervet_store::Statement); 3] = [
        ("two statements", vervet_store::Statement { object: graph.vertices[3], ..edge }),
        ("does not exist", vervet_store::Statement { subject: Id::edge(9_999), ..plain }),
        ("cannot be the object", vervet_store::Statement { object: Id::vertex(1 << 30), ..plain }),
    ];
    for (message, statement) in changes {
        let mut graph = graph.clone();
        graph.statements.push(statement);
        let environment = Environment::simulated(1);
        let options = BuildOptions { orders: Vec::new(), ..options(&environment) };
        let partitioning = Partitioning::new(4).expect("a power of two");
        let error = build_together(&graph, &options, (partitioning, 2), 1, &mut random).expect_err(message);
        assert!(error.message().contains(message), "{error}");
    }
    let mut builder = PartBuilder::new(
        options(&Environment::simulated(1)),
        Partitioning::new(2).expect("a power of two"),
        vec![0],
        &WATCH,
    );
    let mut halves = Halves::default();
    halves.add(Direction::Out, &vervet_store::Statement { subject: Id::vertex(1), ..plain });
    let mut bytes = Vec::new();
    halves.drain(&mut bytes);
    let error: Error = builder.add_bytes(&bytes).expect_err("it is the subject of the other server");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
