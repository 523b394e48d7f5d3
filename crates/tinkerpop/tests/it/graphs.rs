//! Graph files: TinkerPop's own files make a round trip, and each edge counts once.

use crate::folder;
use std::collections::HashSet;
use std::io::BufReader;
use vervet_gremlin::{Direction, Value};
use vervet_tinkerpop::graph_file::{GraphReader, GraphVertex, GraphWriter, Layout};
use vervet_tinkerpop::graphson::Dialect;
use vervet_tinkerpop::{Limits, ReadError, ReadErrorKind};

/// File, vertices, edges, properties of vertices, properties of properties.
const GRAPHS: &[(&str, usize, usize, usize, usize)] = &[
    ("tinkerpop-modern", 6, 6, 12, 0),
    ("tinkerpop-classic", 6, 6, 12, 0),
    ("tinkerpop-crew", 6, 14, 20, 24),
    ("tinkerpop-sink", 3, 3, 3, 0),
    ("grateful-dead", 808, 8_049, 1_976, 0),
];

fn read(text: &str) -> Result<Vec<GraphVertex>, ReadError> {
    GraphReader::new(text.as_bytes()).collect()
}

fn write(vertices: &[GraphVertex], dialect: Dialect, layout: Layout) -> String {
    let mut writer = GraphWriter::new(Vec::new(), dialect, layout);
    for vertex in vertices {
        writer.vertex(vertex).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn edges(vertices: &[GraphVertex]) -> Vec<(Value, Value, Value, String)> {
    let each = vertices.iter().flat_map(GraphVertex::edges);
    each.map(|(edge, source, target)| {
        (edge.id.clone(), source.clone(), target.clone(), edge.label.to_string())
    })
    .collect()
}

#[test]
fn graphs_round_trip() {
    let Some(folder) = folder("graphs") else { return };
    for &(name, vertex_count, edge_count, property_count, meta_count) in GRAPHS {
        let text = std::fs::read_to_string(folder.join(name).with_extension("json")).unwrap();
        let vertices = read(&text).unwrap();
        assert_eq!(vertices.len(), vertex_count, "{name}");
        let properties: Vec<_> = vertices.iter().flat_map(|vertex| &vertex.properties).collect();
        assert_eq!(properties.len(), property_count, "{name}");
        let meta: usize =
            properties.iter().map(|property| property.detail.as_ref().unwrap().properties.len()).sum();
        assert_eq!(meta, meta_count, "{name}");
        let edges = edges(&vertices);
        assert_eq!(edges.len(), edge_count, "{name}");
        let ids: HashSet<_> = edges.iter().map(|edge| edge.0.clone()).collect();
        assert_eq!(ids.len(), edge_count, "{name}: an edge twice");
        assert_eq!(write(&vertices, Dialect::V3, Layout::Lines), text, "{name}");

        // Other dialects and layouts, with buffer boundaries at any byte.
        let wrapped = write(&vertices, Dialect::V3, Layout::Wrapped);
        assert_eq!(read(&wrapped).unwrap(), vertices, "{name}");
        assert_eq!(read(&write(&vertices, Dialect::V2, Layout::Wrapped)).unwrap(), vertices, "{name}");
        let untyped = write(&vertices, Dialect::V3_UNTYPED, Layout::Lines);
        assert_eq!(read(&untyped).unwrap().len(), vertex_count, "{name}");
        serde_json::from_str::<serde_json::Value>(&wrapped).unwrap();
        for text in [&text, &wrapped] {
            let reader = GraphReader::new(BufReader::with_capacity(7, text.as_bytes()));
            assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), vertices, "{name}");
        }
    }
}

#[test]
fn one_direction_is_enough() {
    let both = concat!(
        r#"{"id":1,"label":"a","outE":{"x":[{"id":7,"inV":2},{"id":8,"inV":1}]},"#,
        r#""inE":{"x":[{"id":8,"outV":1}]}}"#,
        "\n\n",
        r#"{"id":2,"inE":{"x":[{"id":7,"outV":1,"properties":{"w":0.5}}]}}"#,
    );
    let vertices = read(both).unwrap();
    assert_eq!(vertices[1].counted, Direction::In);
    assert_eq!(&*vertices[1].label, "vertex");
    let int = Value::Int;
    let wanted = [(int(8), int(1), int(1), "x".to_owned()), (int(7), int(1), int(2), "x".to_owned())];
    assert_eq!(edges(&vertices), wanted);

    let outgoing = r#"{"id":2} {"id":1,"outE":{"x":[{"id":7,"inV":2},{"inV":1}]}}"#;
    let vertices = read(outgoing).unwrap();
    assert_eq!(
        edges(&vertices),
        [(int(7), int(1), int(2), "x".to_owned()), (Value::Null, int(1), int(1), "x".to_owned())]
    );
    let incoming = r#"{"id":2,"inE":{"x":[{"id":7,"outV":1}]}}{"id":1}"#;
    assert_eq!(edges(&read(incoming).unwrap()), [(int(7), int(1), int(2), "x".to_owned())]);
}

#[test]
fn directions_that_disagree_are_refused() {
    let text = concat!(
        r#"{"id":1,"outE":{"x":[{"id":7,"inV":2},{"id":8,"inV":2}]}}"#,
        r#"{"id":2,"inE":{"x":[{"id":7,"outV":1}]}}"#
    );
    let error = read(text).unwrap_err();
    assert_eq!(error.message(), "expected as many edges in inE as in outE, found 1 and 2");
}

#[test]
fn layouts_without_vertices() {
    for text in ["", " \n", r#"{"vertices":[]}"#, " { \"vertices\" : [ ] } \n"] {
        assert_eq!(read(text).unwrap(), [], "{text:?}");
    }
    assert_eq!(write(&[], Dialect::V3, Layout::Wrapped), r#"{"vertices":[]}"#);
    let spaced = " { \"vertices\" :\n[ {\"id\":1} ,\n {\"id\":\"}\\\"{\"} ] }";
    let vertices = read(spaced).unwrap();
    assert_eq!(vertices[1].id, Value::text("}\"{"));
    // A vertex whose first member has the same prefix as the array's.
    let vertices = read(r#"{"vert":[], "id":1} {"id":2}"#).unwrap();
    assert_eq!(vertices.len(), 2);
}

#[test]
fn graph_file_errors_have_positions() {
    for (text, message) in [
        ("{\"id\":1}\n[", "expected a vertex, found '[' at byte 9"),
        ("{\"id\":1}\n{\"id\":", "expected the rest of a vertex, found the end at byte 15"),
        ("{\"id\":1}\n{\"id\":x}", "expected a value, found \"x}\" at byte 15"),
        ("{\"id\":1}\n{\"label\":\"x\"}", "expected a member \"id\" at byte 9"),
        ("{\"id\":1,\"outE\":{\"x\":[{}]}}", "expected a member \"inV\" at byte 21"),
        ("{\"vertices\":[{\"id\":1} {\"id\":2}]}", "expected \",\" or \"]\", found '{' at byte 22"),
        ("{\"vertices\":[{\"id\":1}],\"x\":1}", "expected \"}\", found ',' at byte 22"),
        ("{\"vertices\":[]} {}", "expected the end, found '{' at byte 16"),
        ("{\"vertices\":[", "expected \",\" or \"]\", found the end at byte 13"),
        ("x", "expected a vertex, found 'x' at byte 0"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
        // Everything before the error is read, nothing after it.
        let last = GraphReader::new(text.as_bytes()).enumerate().skip_while(|(_, item)| item.is_ok());
        assert_eq!(last.count(), 1, "{text}");
    }
    // After JSON that is not a vertex the next vertex is read; the missing edges are not a second error.
    let text = concat!(
        r#"{"id":1,"outE":{"x":[{"inV":2},{"inV":3}]}} {"id":2,"properties":{"name":"bare"}} {"id":[}"#,
        "\n{\"id\":3}"
    );
    let text = text.replace("[}", "3,\"inE\":{\"x\":[{\"outV\":1}]}}");
    let mut reader = GraphReader::new(text.as_bytes());
    assert!(reader.next().unwrap().is_ok());
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(error.message(), "expected an array, found \"bare\"");
    assert!(reader.has_more());
    assert_eq!(reader.by_ref().map(|vertex| vertex.unwrap().id).collect::<Vec<_>>(), [3, 3].map(Value::Int));
    assert!(!reader.has_more());
    let limits = Limits { bytes: 100, ..Limits::default() };
    let long = format!("{{\"id\":\"{}\"}}", "x".repeat(1_000));
    let error = GraphReader::new(long.as_bytes()).with_limits(limits).next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ReadErrorKind::TooLarge);
}
