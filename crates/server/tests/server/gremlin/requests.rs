//! Operations in each format, and their errors.

use super::client::{Answer, Client, args, bytecode, bytecode_args, modern, texts};
use crate::common::Running;
use uuid::Uuid;
use vervet::gremlin::{Bytecode, Direction, Instruction, Lambda, Map, Strategy, Token, Value};
use vervet_tinkerpop::{Data, Format};

const TYPED: [Format; 3] = [Format::GraphBinary1, Format::GraphSon3, Format::GraphSon2];

#[test]
fn scripts_and_bytecode_work_in_each_format() {
    let server = Running::start(&modern(), |_| ());
    for format in [None].into_iter().chain(Format::ALL.map(Some)) {
        let mut client = Client::new(&server, format);
        let names = texts(["josh", "marko", "peter", "vadas"]);
        let text = r#"g.V().hasLabel("person").values("name").order()"#;
        assert_eq!(client.eval(text).values(), names, "{format:?}");
        // An untyped format cannot carry bytecode.
        if format.is_some_and(|format| TYPED.contains(&format) || format == Format::GraphBinary1Strings) {
            assert_eq!(client.bytecode(text).values(), names, "{format:?}");
        }
        assert_eq!(client.eval("g.V(1).out().iterate()").code(), 204);
        // The Java driver's keep-alive request.
        assert_eq!(client.eval("''").code(), 204);
    }
}

#[test]
fn properties_are_materialized_on_request() {
    let server = Running::start(&modern(), |_| ());
    for format in TYPED {
        let mut client = Client::new(&server, format);
        for (all, answer) in [
            (true, client.eval("g.V(1).outE('created')")),
            (true, client.bytecode("g.V(1).outE('created')")),
            (false, client.bytecode("g.with('materializeProperties', 'tokens').V(1).outE('created')")),
            (
                false,
                client.ask(
                    "eval",
                    "",
                    args([
                        ("gremlin", "g.V(1).outE('created')".into()),
                        ("materializeProperties", "tokens".into()),
                    ]),
                ),
            ),
        ] {
            let values = answer.values();
            let [Value::Edge(edge)] = values.as_slice() else { panic!("{values:?}") };
            let detail = edge.detail.as_ref().expect("it is written with its details");
            assert_eq!(
                (&*detail.label, detail.properties.len()),
                ("created", usize::from(all)),
                "{format:?}"
            );
            assert_eq!(detail.id, Value::from(9_i64), "{format:?}");
        }
    }
    let mut client = Client::new(&server, Format::GraphBinary1Strings);
    assert_eq!(client.eval("g.V(1).outE('created')").values(), texts(["e[9][1-created->3]"]));
}

#[test]
fn traversers_have_bulks_and_values_have_none() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let answer = client.bytecode("g.V().both().barrier().label()");
    let traversers: usize = answer
        .0
        .iter()
        .map(|response| match &response.data {
            Data::Traversers(traversers) => traversers.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(traversers < 12, "{traversers}");
    assert_eq!(answer.values().len(), 12);
    assert_eq!(client.eval("g.V().both().barrier().label()").values().len(), 12);
}

/// The result of `next()` on a collection is sent as its items, as Gremlin Server does.
#[test]
fn next_unrolls_collections() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphSon3);
    let whole = client.eval("g.V().label().groupCount()").values();
    assert!(matches!(whole.as_slice(), [Value::Map(map)] if map.len() == 2), "{whole:?}");
    assert_eq!(client.eval("g.V().label().groupCount().next()").values().len(), 2);
    assert_eq!(client.eval("g.V().values('name').fold().next()").values().len(), 6);
    assert_eq!(client.eval("g.V().values('name').fold()").values().len(), 1);
    assert_eq!(client.eval("g.V().values('name').toList()").values().len(), 6);
    assert_eq!(client.eval("g.V().hasNext()").values(), [Value::from(true)]);
}

#[test]
fn results_are_sent_in_batches() {
    let server = Running::start(&modern(), |_| ());
    for format in TYPED {
        let mut client = Client::new(&server, format);
        let lengths = |answer: &super::client::Answer| -> Vec<(i32, usize)> {
            let length = |data: &Data| match data {
                Data::Value(Value::List(values)) => values.len(),
                Data::Traversers(traversers) => traversers.len(),
                other => panic!("{other:?}"),
            };
            answer.0.iter().map(|response| (response.status.code, length(&response.data))).collect()
        };
        let text = "g.inject(1).repeat(identity()).emit().limit(130)";
        assert_eq!(lengths(&client.eval(text)), [(206, 64), (206, 64), (200, 2)]);
        let with = |size: Value| args([("gremlin", text.into()), ("batchSize", size)]);
        assert_eq!(lengths(&client.ask("eval", "", with(65.into()))), [(206, 65), (200, 65)]);
        let bytes = "g.with('batchSize', 4).V().values('name')";
        assert_eq!(lengths(&client.bytecode(bytes)), [(206, 4), (200, 2)]);
        client.ask("eval", "", with(0.into())).refused(499, "batchSize");
        // Long results are sent in earlier messages.
        let text = "g.inject('x').repeat(concat('xxxxxxxxxxxxxxxx')).times(15000).map(union(identity(), identity()).fold())";
        assert_eq!(client.eval(text).values().len(), 1);
    }
}

#[test]
fn bindings_aliases_and_languages() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphSon3);
    let bindings = Value::map(args([("x", 1.into()), ("what", "name".into())]));
    let mut with = |more: &[(&str, Value)]| {
        let mut args = args([("gremlin", "social.V(x).values(what)".into()), ("bindings", bindings.clone())]);
        args.insert("aliases".into(), Value::map(super::client::args([("social", "g".into())])));
        args.extend(more.iter().map(|(name, value)| (Value::text(name), value.clone())));
        client.ask("eval", "", args)
    };
    assert_eq!(with(&[]).values(), texts(["marko"]));
    for language in ["gremlin-lang", "gremlin-groovy"] {
        assert_eq!(with(&[("language", language.into())]).values(), texts(["marko"]));
    }
    with(&[("language", "gremlin-jython".into())]).refused(499, "gremlin-lang");
    with(&[("bindings", 1.into())]).refused(499, "bindings must be a map");
    with(&[("aliases", Value::map(args([("social", "other".into())])))]).refused(499, "other");
    with(&[("bindings", Value::Null)]).refused(597, "x");
    with(&[("evaluationTimeout", "soon".into())]).refused(499, "milliseconds");
    with(&[("materializeProperties", "some".into())]).refused(499, "tokens or all");
    with(&[("gremlin", 1.into())]).refused(499, "a string");
    with(&[("gremlin", Value::Null)]).refused(499, "no argument gremlin");
}

#[test]
fn errors_have_their_codes() {
    let server = Running::start(&modern(), |_| ());
    for format in TYPED {
        let mut client = Client::new(&server, format);
        client.eval("g.V().oout()").refused(597, "did you mean");
        client.eval("g.V().map{it.get()}").refused(597, "line 1");
        client.eval("g.V().values('name').math('_ + 1')").refused(597, "");
        client.eval("g.V().fail('not today')").refused(595, "not today");
        client.eval("g.V().where(fail())").refused(595, "fail() Step Triggered");
        client.bytecode("g.V().local(fail('deep'))").refused(595, "deep");
        client.eval("g.addV().property(T.id, 1)").refused(500, "Vertex with id already exists");
        client.eval("g.tx().commit()").refused(597, "session");
        client.ask("eval", "nobody", Map::default()).refused(498, "nobody");
        client.ask("dance", "", Map::default()).refused(498, "dance");
        client.ask("bytecode", "", bytecode_args(bytecode("g.V()"))).refused(498, "bytecode");
        client.ask("eval", "", Map::default()).refused(499, "no argument gremlin");
        client.ask("bytecode", "traversal", args([("gremlin", "g.V()".into())])).refused(499, "bytecode");
        let no_alias = args([("gremlin", bytecode("g.V()").into())]);
        client.ask("bytecode", "traversal", no_alias).refused(499, "aliases");
        client.ask("eval", "session", args([("gremlin", "g.V()".into())])).refused(499, "session");
        let unknown = Bytecode { source: vec![], steps: vec![Instruction::new("dance", vec![])] };
        client.ask("bytecode", "traversal", bytecode_args(unknown)).refused(597, "dance");
        let lambda = Lambda { language: "gremlin-groovy".into(), script: "it".into(), arity: 1 };
        let lambda = Value::Lambda(lambda.into());
        let steps = vec![Instruction::new("V", vec![]), Instruction::new("map", vec![lambda])];
        let answer = client.ask("bytecode", "traversal", bytecode_args(Bytecode { source: vec![], steps }));
        answer.refused(597, "lambda");
        // Errors have details for clients that read them.
        let answer = client.eval("g.V().fail('x')");
        let attributes = &answer.0[0].status.attributes;
        assert_eq!(attributes.get(&Value::text("failStepMessage")), Some(&Value::text("x")));
        assert!(
            matches!(attributes.get(&Value::text("exceptions")), Some(Value::List(list)) if list.len() == 1)
        );
        assert_eq!(client.eval("g.V().count()").values(), [Value::from(6_i64)], "it goes on");
    }
}

/// As drivers send `g.with_("evaluationTimeout", 500)`.
#[test]
fn options_strategy_sets_options() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let strategy = Strategy {
        name: "org.apache.tinkerpop.gremlin.process.traversal.strategy.decoration.OptionsStrategy".into(),
        options: vec![("evaluationTimeout".into(), 50_i64.into()), ("userAgent".into(), "me".into())],
    };
    let mut bytecode = bytecode(super::client::ENDLESS);
    bytecode.source.push(Instruction::new("withStrategies", vec![Value::Strategy(strategy.into())]));
    client.ask("bytecode", "traversal", bytecode_args(bytecode)).refused(598, "hint");
}

#[test]
fn schema_queries_of_tools_work() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphSon3);
    let counts = client.eval("g.V().label().groupCount()").values();
    let expected = args([("person", 4_i64.into()), ("software", 2_i64.into())]);
    assert_eq!(counts, [Value::map(expected)]);
    assert_eq!(client.eval("g.E().label().dedup().order()").values(), texts(["created", "knows"]));
    let keys = client.bytecode("g.V().properties().key().dedup().order()").values();
    assert_eq!(keys, texts(["age", "lang", "name"]));
    let keys = client.eval("g.V().hasLabel('person').limit(100).properties().key().dedup()").values();
    assert_eq!(keys.len(), 2);
    let ends = client
        .eval("g.E().project('from', 'label', 'to').by(outV().label()).by(label()).by(inV().label()).dedup()")
        .values();
    assert_eq!(ends.len(), 2);
    let map = client.eval("g.V(1).elementMap()").values();
    assert!(matches!(map.as_slice(), [Value::Map(map)] if map.len() == 4), "{map:?}");
    let edge = client.bytecode("g.E(7).elementMap()").values();
    let [Value::Map(edge)] = edge.as_slice() else { panic!("{edge:?}") };
    assert!(edge.contains_key(&Value::from(Token::Direction(Direction::Out))));
}

#[test]
fn requests_of_a_connection_run_concurrently() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let slow = args([("gremlin", super::client::ENDLESS.into()), ("evaluationTimeout", 300.into())]);
    let slow = client.send("eval", "", slow);
    let quick: Vec<Uuid> = (0..100)
        .map(|n| client.send("eval", "", args([("gremlin", format!("g.inject({n})").into())])))
        .collect();
    for (n, id) in quick.into_iter().enumerate().rev() {
        let values = client.answer(id).values();
        assert_eq!(values, [Value::from(i32::try_from(n).expect("small"))]);
    }
    client.answer(slow).refused(598, "");
}

#[test]
fn writes_are_visible_to_all_connections() {
    let database = modern();
    let server = Running::start(&database, |_| ());
    let mut client = Client::new(&server, Format::GraphSon3);
    client.bytecode("g.addV('person').property('name', 'eve')").values();
    let count = database.select("SELECT * { ?v <urn:vervet:key:name> \"eve\" }").expect("it runs").len();
    assert_eq!(count, 1);
    server.update("INSERT DATA { <urn:vervet:vertex:77> <urn:vervet:key:name> \"bob\" }", &[]).expect(204);
    assert_eq!(client.eval("g.V(77).values('name')").values(), texts(["bob"]));
    // A response is counted after it was sent, so possibly after it has arrived.
    server.wait_for("vervet_requests_total{kind=\"gremlin\",status=\"200\"}", 2.0);
}

/// users 16: an empty response has warnings about the traversal in its status, in each format, on the fast
/// path too; in a session, names added by its own transaction count as known.
#[test]
fn users_16_warnings_are_attributes_of_the_status() {
    let server = Running::start(&modern(), |_| ());
    let warnings = |answer: &Answer| {
        let last = answer.0.last().expect("a message");
        let found = last.status.attributes.get(&Value::text("warnings")).cloned();
        (answer.code(), found, last.status.attributes.contains_key(&Value::text("host")))
    };
    let expected = |text: &str| Some(Value::list(texts([text])));
    for format in [None].into_iter().chain(Format::ALL.map(Some)) {
        let mut client = Client::new(&server, format);
        for _ in 0..3 {
            let label = r#"nothing has the label "persn"; did you mean "person"?"#;
            let empty = client.eval("g.V().hasLabel('persn')");
            assert_eq!(warnings(&empty), (204, expected(label), true), "{format:?}");
            let zero = client.eval("g.V().hasLabel('persn').count()");
            assert_eq!(warnings(&zero), (200, expected(label), true), "{format:?}");
            assert_eq!(zero.0.len(), 1);
            assert!(zero.values().len() == 1, "{format:?}");
            for fine in ["g.V().hasLabel('person')", "g.V().has('name', 'nobody').count()", "g.V().count()"] {
                assert_eq!(warnings(&client.eval(fine)).1, None, "{format:?} {fine}");
            }
        }
        let (session, key) = (format!("of {format:?}"), r#"nothing has the key "nick""#);
        let asked = |client: &mut Client| warnings(&client.in_session(&session, "g.V().has('nick', 'x')"));
        for _ in 0..4 {
            assert_eq!(asked(&mut client), (204, expected(key), true), "{format:?}");
        }
        client.in_session(&session, "g.V(1).property('nick', 'y').iterate()").values();
        assert_eq!(asked(&mut client), (204, None, true), "{format:?}");
        client.in_session(&session, "g.tx().rollback()").values();
    }
}
