//! Algorithms as methods of a snapshot and as Gremlin steps agree, in transactions too, and obey their
//! limits.

use std::collections::BTreeMap;
use std::time::Duration;
use vervet::algorithms::{AlgorithmOptions, Follow, PageRank, PathSearch, PeerPressure};
use vervet::gremlin::Value;
use vervet::{CancelToken, Database, ErrorKind, Result, Vertex};

/// Two triangles joined by one edge, and an isolated vertex.
const GRAPH: &str = r#"g.
    addV("v").property(T.id, 1).as("1").addV("v").property(T.id, 2).as("2").addV("v").property(T.id, 3).as("3").
    addV("v").property(T.id, 14).as("14").addV("v").property(T.id, 15).as("15").addV("v").property(T.id, 16).as("16").
    addV("v").property(T.id, 7).
    addE("e").from("2").to("1").property("far", 1).addE("e").from("3").to("1").property("far", 1).
    addE("e").from("3").to("2").property("far", 1).addE("e").from("15").to("14").property("far", 1).
    addE("e").from("16").to("14").property("far", 1).addE("e").from("16").to("15").property("far", 5).
    addE("bridge").from("14").to("3").property("far", 2)"#;

fn by_name<T>(database: &Database, found: Vec<(Vertex, T)>) -> Result<BTreeMap<String, T>> {
    let snapshot = database.snapshot();
    let name = |vertex| snapshot.graph().external_id(vertex);
    found.into_iter().map(|(vertex, value)| Ok((name(vertex)?, value))).collect()
}

/// The results of a traversal of pairs.
fn pairs(database: &Database, text: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for value in database.gremlin(text)?.into_values()? {
        let Value::Map(map) = value else { continue };
        let of = |key: &str| map.get(&Value::text(key)).cloned().unwrap_or_default();
        all.insert(of("id").to_string().trim_end_matches('L').to_owned(), of("value"));
    }
    Ok(all)
}

#[test]
fn calls_and_steps_agree() -> Result<()> {
    let database = Database::in_memory();
    database.gremlin(GRAPH)?;
    let snapshot = database.snapshot();
    let options = AlgorithmOptions::default();
    let step = |step: &str, key: &str| {
        pairs(&database, &format!("g.V().{step}.project('id', 'value').by(T.id).by('{key}')"))
    };
    let ranks = by_name(&database, snapshot.page_rank(&PageRank::default(), &options)?)?;
    let steps = step("pageRank()", "gremlin.pageRankVertexProgram.pageRank")?;
    assert_eq!(ranks.len(), 7);
    for (name, rank) in &ranks {
        assert_eq!(steps[name], Value::Double(*rank), "{name}");
    }
    assert!(ranks["1"] > ranks["2"] && ranks["2"] > ranks["16"]);
    for threads in [1, 3] {
        let options = AlgorithmOptions { threads: Some(threads), ..options.clone() };
        assert_eq!(by_name(&database, snapshot.page_rank(&PageRank::default(), &options)?)?, ranks);
    }

    let name_of = |found: BTreeMap<String, Vertex>| -> Result<BTreeMap<String, String>> {
        found.into_iter().map(|(of, vertex)| Ok((of, snapshot.graph().external_id(vertex)?))).collect()
    };
    let whole = name_of(by_name(&database, snapshot.connected_components(&options)?)?)?;
    let steps = step("connectedComponent()", "gremlin.connectedComponentVertexProgram.component")?;
    for (name, component) in &whole {
        assert_eq!(steps[name], Value::text(component), "{name}");
        assert_eq!(component, if name == "7" { "7" } else { "1" }, "{name}");
    }
    let parts = AlgorithmOptions { labels: vec!["e".to_owned()], ..options.clone() };
    let parts = name_of(by_name(&database, snapshot.connected_components(&parts)?)?)?;
    assert_eq!((parts["2"].as_str(), parts["16"].as_str()), ("1", "14"));

    let clusters = name_of(by_name(&database, snapshot.peer_pressure(&PeerPressure::default(), &options)?)?)?;
    let steps = step("peerPressure()", "gremlin.peerPressureVertexProgram.cluster")?;
    for (name, cluster) in &clusters {
        assert_eq!(steps[name].to_string(), format!("{cluster}L"), "{name}");
    }

    let vertex = |name: &str| -> Result<Vertex> { Ok(snapshot.graph().vertex(name)?.expect("it was added")) };
    let far = PathSearch { distance: Some("far".to_owned()), ..PathSearch::default() };
    let out = AlgorithmOptions { follow: Some(Follow::Out), ..options };
    let mut found = Vec::new();
    let each = &mut |path: vervet::algorithms::FoundPath<'_>| {
        found.push((path.vertices.len(), path.distance));
        Ok(())
    };
    snapshot.shortest_paths(&[vertex("16")?], Some(&[vertex("1")?, vertex("15")?]), &far, &out, each)?;
    assert_eq!(found, [(4, 4.0), (2, 5.0)]);
    Ok(())
}

#[test]
fn ranks_can_be_stored_and_transactions_see_themselves() -> Result<()> {
    let database = Database::in_memory();
    database.gremlin(GRAPH)?;
    assert!(database.gremlin("g.V().pageRank().values('rank')")?.is_empty(), "nothing is stored by itself");
    database.gremlin("g.V().pageRank().with(PageRank.propertyName, 'r').property('rank', values('r'))")?;
    assert_eq!(database.gremlin("g.V().values('rank').count()")?.into_values()?, [Value::Long(7)]);
    assert!(database.gremlin("g.V().values('r')")?.is_empty());
    let component = "g.V(7).connectedComponent().with(ConnectedComponent.propertyName, 'c').values('c')";
    let mut transaction = database.begin()?;
    transaction.gremlin("g.V(7).addE('e').to(__.V(15))")?;
    assert_eq!(transaction.gremlin(component)?.into_values()?, [Value::text("1")]);
    assert_eq!(database.gremlin(component)?.into_values()?, [Value::text("7")]);
    // A computed property cannot be dropped; it hides a stored property with the same key.
    database.gremlin("g.V().pageRank().with(PageRank.propertyName, 'rank').properties('rank').drop()")?;
    assert_eq!(database.gremlin("g.V().values('rank').count()")?.into_values()?, [Value::Long(7)]);
    Ok(())
}

#[test]
fn limits_end_algorithms() -> Result<()> {
    let database = Database::in_memory();
    database.gremlin(GRAPH)?;
    let snapshot = database.snapshot();
    let cancelled = CancelToken::default();
    cancelled.cancel();
    for (options, kind) in [
        (
            AlgorithmOptions { timeout: Some(Duration::ZERO), ..AlgorithmOptions::default() },
            ErrorKind::Deadline,
        ),
        (
            AlgorithmOptions { memory_limit_bytes: Some(10), ..AlgorithmOptions::default() },
            ErrorKind::MemoryLimit,
        ),
        (AlgorithmOptions { cancel: Some(cancelled), ..AlgorithmOptions::default() }, ErrorKind::Cancelled),
    ] {
        let failed = [
            snapshot.page_rank(&PageRank::default(), &options).map(drop),
            snapshot.connected_components(&options).map(drop),
            snapshot.peer_pressure(&PeerPressure::default(), &options).map(drop),
        ];
        for failed in failed {
            assert_eq!(failed.expect_err("a limit").kind(), kind);
        }
    }
    Ok(())
}
