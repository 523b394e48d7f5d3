//! Requests and responses in each format, and deviations of drivers from the format.

use uuid::Uuid;
use vervet_gremlin::{Bytecode, Instruction, Map, P, Value};
use vervet_tinkerpop::{
    BadRequest, Data, Format, Limits, ReadErrorKind, Request, Response, ResultsWriter, Status, Traverser,
    graphson,
};

const ID: &str = "41d2e28a-20a4-4ab0-b379-d810dede3786";

fn id() -> Uuid {
    Uuid::try_parse(ID).unwrap()
}

fn map(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Map {
    entries.into_iter().map(|(key, value)| (Value::text(key), value)).collect()
}

fn read(text: &str) -> Result<Request, BadRequest> {
    Request::read(text.as_bytes(), Format::GraphSon3, Limits::default())
}

#[test]
fn requests_round_trip_in_each_format() {
    let step = Instruction::new("has", vec![Value::text("age"), Value::from(P::Within(vec![Value::Int(1)]))]);
    let bytecode = Bytecode {
        source: vec![Instruction::new("tx", vec![Value::text("commit")])],
        steps: vec![Instruction::new("V", vec![]), step],
    };
    let args = map([
        ("gremlin", Value::from(bytecode)),
        ("aliases", Value::map(map([("g", Value::text("social"))]))),
        ("evaluationTimeout", Value::Long(500)),
    ]);
    let request = Request { id: id(), op: "bytecode".into(), processor: "traversal".into(), args };
    for format in Format::ALL {
        let mut frame = Vec::new();
        format.begin_frame(&mut frame);
        request.write(format, &mut frame).unwrap();
        let (found, read) = Request::read_frame(&frame, Limits::default()).unwrap();
        assert_eq!(found, format);
        if format
            .dialect()
            .is_none_or(|dialect| dialect == graphson::Dialect::V3 || dialect == graphson::Dialect::V2)
        {
            assert_eq!(read, request, "{format:?}");
            assert_eq!(read.argument("evaluationTimeout"), Some(&Value::Long(500)));
        } else {
            // Without types a traversal becomes a map, and a long an int.
            assert_eq!((read.id, &read.op, &read.processor), (request.id, &request.op, &request.processor));
            assert_eq!(read.argument("evaluationTimeout"), Some(&Value::Int(500)));
        }
    }
}

#[test]
fn drivers_differ() {
    let wanted = read(&format!(
        r#"{{"requestId":"{ID}","op":"eval","processor":"","args":{{"gremlin":"g.V(x)","bindings":{{"x":1}}}}}}"#
    ))
    .unwrap();
    assert_eq!(wanted.argument("gremlin"), Some(&Value::text("g.V(x)")));
    for text in [
        format!(
            r#"{{"requestId":{{"@type":"g:UUID","@value":"{ID}"}},"op":"eval","processor":"","args":{{"@type":"g:Map","@value":["gremlin","g.V(x)","bindings",{{"@type":"g:Map","@value":["x",{{"@type":"g:Int32","@value":1}}]}}]}}}}"#
        ),
        format!(
            r#"{{"args":{{"gremlin":"g.V(x)","bindings":{{"x":{{"@value":1,"@type":"g:Int32"}}}}}},"op":"eval","other":[{{}}],"requestId":"{ID}"}}"#
        ),
        format!(
            r#" {{ "op" : "eval" , "requestId" : {{"@value":"{ID}" , "@type":"g:UUID"}}, "args" : {{ "@value" : [ "gremlin" , "g.V(x)" , "bindings" , {{"x":1}} ] , "@type" : "g:Map" }} }} "#
        ),
    ] {
        assert_eq!(read(&text).unwrap(), wanted, "{text}");
    }
}

#[test]
fn bad_requests_keep_their_id() {
    for text in [
        format!(r#"{{"requestId":"{ID}","op":"eval","args":{{"gremlin":x}}}}"#),
        format!(r#"{{"requestId":"{ID}","args":{{}}}}"#),
        format!(r#"{{"args":{{"a":{{"@type":"g:Nothing","@value":1}}}},"op":"eval","requestId":"{ID}"}}"#),
        format!(r#"{{"requestId":"{ID}","op":"eval"}} x"#),
    ] {
        let bad = read(&text).unwrap_err();
        assert_eq!(bad.id, Some(id()), "{text}: {bad}");
    }
    for (text, message) in [
        ("", "expected an object, found the end at byte 0"),
        (r#"{"op":"eval"}"#, "expected a member \"requestId\" at byte 0"),
        (r#"{"requestId":"x","op":"eval"}"#, "expected a UUID, found \"x\" at byte 13"),
        (r#"{"requestId":1,"op":"eval"}"#, "expected a string, found \"1,\\\"op\\\":\\\"eval\" at byte 13"),
    ] {
        let bad = read(text).unwrap_err();
        assert_eq!((bad.id, bad.to_string().as_str()), (None, message));
    }

    let mut bytes = Vec::new();
    Format::GraphBinary1.begin_frame(&mut bytes);
    let before = bytes.len();
    let request = Request { id: id(), op: "eval".into(), ..Request::default() };
    request.write(Format::GraphBinary1, &mut bytes).unwrap();
    bytes.pop();
    let bad = Request::read_frame(&bytes, Limits::default()).unwrap_err();
    assert_eq!(bad.id, Some(id()));
    assert_eq!(bad.error.at(), (before + 1 + 16 + 8 + 4) as u64, "{bad}");
    let bad = Request::read(&[0x84; 40], Format::GraphBinary1, Limits::default()).unwrap_err();
    assert_eq!(bad.to_string(), "expected version 0x81, found 0x84 at byte 0");
}

#[test]
fn responses_round_trip_in_each_format() {
    let status =
        Status { code: 200, message: "ok \"x\"\n".into(), attributes: map([("host", Value::text("/::1"))]) };
    let traversers = (1..4).map(|n| Traverser { bulk: n, value: Value::Long(n) }).collect();
    let values = Value::list(vec![Value::text("a"), Value::Null, Value::Boolean(true)]);
    for format in Format::ALL {
        for data in [
            Data::Value(Value::Null),
            Data::Value(values.clone()),
            Data::Value(Value::list(vec![])),
            Data::Value(Value::text("challenge")),
            Data::Traversers(Vec::clone(&traversers)),
        ] {
            for id in [None, Some(id())] {
                let meta = map([("a", Value::text("b"))]);
                let response = Response { id, status: status.clone(), data: data.clone(), meta };
                let mut out = b"before".to_vec();
                response.write(format, &mut out).unwrap();
                let read = Response::read(&out[6..], format, Limits::default()).unwrap();
                let untyped = format.dialect().is_some_and(|dialect| {
                    dialect != graphson::Dialect::V3 && dialect != graphson::Dialect::V2
                });
                if !(untyped && matches!(data, Data::Traversers(_))) {
                    assert_eq!(read, response, "{format:?}");
                }
            }
        }
    }
}

#[test]
fn traversers_stand_in_results_alone() {
    let traverser = r#"{"@type":"g:Traverser","@value":{"bulk":{"@type":"g:Int64","@value":2},"value":"x"}}"#;
    let error = graphson::read(format!("[{traverser}]").as_bytes(), Limits::default()).unwrap_err();
    assert_eq!(error.message(), "expected a value, found a traverser, which only stands in results");
    let response = |data: &str| {
        let text = format!(r#"{{"requestId":null,"status":{{"code":200}},"result":{{"data":{data}}}}}"#);
        Response::read(text.as_bytes(), Format::GraphSon3, Limits::default())
    };
    let one = Traverser { bulk: 2, value: Value::text("x") };
    assert_eq!(response(&format!("[{traverser}]")).unwrap().data, Data::Traversers(vec![one]));
    assert!(response(&format!("[{traverser},1]")).unwrap_err().message().ends_with("found both"));
}

#[test]
fn failed_writes_leave_no_output() {
    let vertex = Value::from(vervet_gremlin::Vertex::from_key(7));
    for format in Format::ALL {
        let response = Response {
            data: Data::Value(Value::list(vec![Value::Int(1), vertex.clone()])),
            ..Response::default()
        };
        let mut out = b"before".to_vec();
        let error = response.write(format, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "could not write a vertex whose details are not known");
        assert_eq!(out, b"before");
    }
}

#[test]
fn messages_have_limits() {
    let limits = Limits { bytes: 100, ..Limits::default() };
    let request = Request { id: id(), op: "x".repeat(100), ..Request::default() };
    for format in Format::ALL {
        let mut out = Vec::new();
        request.write(format, &mut out).unwrap();
        let bad = Request::read(&out, format, limits).unwrap_err();
        assert_eq!(bad.error.kind(), ReadErrorKind::TooLarge, "{format:?}");
    }
}

/// Streamed results read like results written at once.
#[test]
fn results_one_by_one_are_a_response() {
    let attributes = map([("host", Value::text("/127.0.0.1:1"))]);
    let values = [Value::text("a"), Value::Int(1), Value::list(vec![])];
    let traversers: Vec<Traverser> =
        values.iter().map(|value| Traverser { bulk: 3, value: value.clone() }).collect();
    for format in Format::ALL {
        let mut writer = ResultsWriter::new(format, id(), attributes.clone()).unwrap();
        for (length, code) in [(3, 206), (1, 206), (0, 204), (2, 200)] {
            let values = &values[..length];
            let expected = Response {
                id: Some(id()),
                status: Status { code, message: String::new(), attributes: attributes.clone() },
                data: Data::Value(Value::list(values.to_vec())),
                meta: Map::default(),
            };
            values.iter().for_each(|value| writer.add(value).unwrap());
            assert_eq!(writer.count(), length);
            assert!(writer.add(&Value::Vertex(vervet_gremlin::Vertex::default())).is_err());
            let size = writer.size_bytes();
            let message = writer.take(code);
            assert!(message.len() >= size);
            assert_eq!(Response::read(&message, format, Limits::default()).unwrap(), expected, "{format:?}");
            if format.dialect().is_none() {
                let mut whole = Vec::new();
                expected.write(format, &mut whole).unwrap();
                assert_eq!(message, whole);
            }
        }
        if format
            .dialect()
            .is_none_or(|dialect| [graphson::Dialect::V3, graphson::Dialect::V2].contains(&dialect))
        {
            traversers.iter().for_each(|traverser| writer.add_traverser(traverser).unwrap());
            let message = writer.take(200);
            let read = Response::read(&message, format, Limits::default()).unwrap();
            assert_eq!(read.data, Data::Traversers(traversers.clone()), "{format:?}");
        }
    }
}
