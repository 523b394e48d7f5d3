//! Gremlin writes, read back by Gremlin and by SPARQL: before and after the commit, from base and delta, by
//! several transactions, and after reopening the directory.

use std::cell::Cell;
use vervet::gremlin::{Bytecode, Instruction, Token, Value};
use vervet::{Database, ErrorKind, GremlinOptions, Result, Transaction};

/// The values of a traversal.
fn values(db: &Database, text: &str) -> Vec<Value> {
    db.gremlin(text).unwrap_or_else(|error| panic!("{text}: {error}")).into_values().expect("there are few")
}

fn count(db: &Database, text: &str) -> usize {
    values(db, text).len()
}

fn texts(db: &Database, text: &str) -> Vec<String> {
    let texts = values(db, text).into_iter().map(|value| match value {
        Value::String(text) => text.to_string(),
        other => format!("{other:?}"),
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    texts
}

/// Solutions of a SPARQL pattern with the column `x`, sorted.
fn sparql(db: &Database, pattern: &str) -> Vec<String> {
    let solutions = db.select(&query(pattern)).expect("a SELECT");
    sorted(&solutions)
}

fn sparql_in(transaction: &Transaction, pattern: &str) -> Vec<String> {
    sorted(&transaction.select(&query(pattern)).expect("a SELECT"))
}

fn query(pattern: &str) -> String {
    format!(
        "PREFIX : <urn:vervet:key:> PREFIX v: <urn:vervet:vertex:> PREFIX l: <urn:vervet:label:>
         PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> SELECT ?x {{ {pattern} }}"
    )
}

fn sorted(solutions: &vervet::Solutions) -> Vec<String> {
    let mut all: Vec<String> =
        solutions.rows().map(|row| row.text("x").expect("no damage").unwrap_or_default()).collect();
    all.sort_unstable();
    all
}

fn fails(db: &Database, text: &str, part: &str) {
    let error = db.gremlin(text).expect_err(text);
    assert!(error.to_string().contains(part), "{text}: {error}");
}

const MODERN: &str = r#"
    g.addV("person").property(T.id, 1).property("name", "marko").property("age", 29).as("marko").
      addV("person").property(T.id, 2).property("name", "vadas").property("age", 27).as("vadas").
      addV("software").property(T.id, 3).property("name", "lop").property("lang", "java").as("lop").
      addV("person").property(T.id, 4).property("name", "josh").property("age", 32).as("josh").
      addV("software").property(T.id, 5).property("name", "ripple").property("lang", "java").as("ripple").
      addV("person").property(T.id, 6).property("name", "peter").property("age", 35).as("peter").
      addE("knows").from("marko").to("vadas").property(T.id, 7).property("weight", 0.5d).
      addE("knows").from("marko").to("josh").property(T.id, 8).property("weight", 1.0d).
      addE("created").from("marko").to("lop").property(T.id, 9).property("weight", 0.4d).
      addE("created").from("josh").to("ripple").property(T.id, 10).property("weight", 1.0d).
      addE("created").from("josh").to("lop").property(T.id, 11).property("weight", 0.4d).
      addE("created").from("peter").to("lop").property(T.id, 12).property("weight", 0.2d)"#;

fn modern() -> Database {
    let db = Database::in_memory();
    db.gremlin(MODERN).expect("a fresh graph");
    db
}

#[test]
fn sparql_sees_what_gremlin_writes() {
    let db = modern();
    assert_eq!(
        sparql(&db, "?x a l:person"),
        ["1", "2", "4", "6"].map(|id| format!("urn:vervet:vertex:{id}"))
    );
    assert_eq!(sparql(&db, "v:1 :knows/:name ?x"), ["josh", "vadas"]);
    assert_eq!(sparql(&db, "v:1 :age ?x"), ["29"]);
    assert_eq!(sparql(&db, "v:1 :knows v:2 ~ ?e . ?e :weight ?x"), ["5.0E-1"]);
    assert_eq!(sparql(&db, "?s :created v:5 ~ ?e . ?e <urn:vervet:id> ?x"), ["10"]);
    assert_eq!(texts(&db, "g.E(10).inV().values('name')"), ["ripple"]);
    assert_eq!(values(&db, "g.V(1).id()"), [Value::Long(1)]);
    assert_eq!(count(&db, "g.E()"), 6);
}

#[test]
fn gremlin_sees_what_sparql_writes() {
    let db = modern();
    db.update(
        "PREFIX : <urn:vervet:key:> PREFIX v: <urn:vervet:vertex:> PREFIX l: <urn:vervet:label:>
         INSERT DATA { v:8 a l:person ; :name \"lena\" ; :knows v:1 ~ _:e . _:e :weight 0.75 }",
    )
    .expect("an update");
    assert_eq!(texts(&db, "g.V().has('name', 'lena').out('knows').values('name')"), ["marko"]);
    assert_eq!(count(&db, "g.V(8).outE('knows').has('weight', 0.75)"), 1);
    db.gremlin("g.V(8).outE().property('weight', 2)").expect("a write");
    assert_eq!(sparql(&db, "v:8 :knows v:1 ~ ?e . ?e :weight ?x"), ["2"]);
    db.gremlin("g.V(8).drop()").expect("a write");
    assert_eq!(sparql(&db, "{ v:8 ?p ?x } UNION { ?x ?p v:8 }"), [""; 0]);
}

/// One graph, two languages: before the commit only the transaction sees its writes, in both.
#[test]
fn one_graph_two_languages_in_a_transaction() {
    let db = modern();
    let mut transaction = db.begin().expect("it may write");
    transaction
        .gremlin("g.addV('person').property(T.id, 'x').property('name', 'xenia').addE('knows').to(__.V(1))")
        .unwrap();
    assert_eq!(sparql_in(&transaction, "?x :knows v:1"), ["urn:vervet:vertex:x"]);
    assert_eq!(sparql(&db, "?x :knows v:1"), [""; 0]);
    assert_eq!(count(&db, "g.V(1).in('knows')"), 0);

    transaction
        .update("PREFIX : <urn:vervet:key:> PREFIX v: <urn:vervet:vertex:> INSERT DATA { v:x :age 41 }")
        .expect("an update");
    let ages =
        transaction.gremlin("g.V('x').values('age')").expect("a read").into_values().expect("there are few");
    assert_eq!(ages, [Value::Long(41)]);
    transaction.gremlin("g.V('x').property('age', 42)").expect("a write");
    assert_eq!(sparql_in(&transaction, "v:x :age ?x"), ["42"]);
    transaction.commit().expect("no concurrent writer");

    assert_eq!(sparql(&db, "?x :knows v:1"), ["urn:vervet:vertex:x"]);
    assert_eq!(texts(&db, "g.V(1).in('knows').values('name')"), ["xenia"]);

    let mut transaction = db.begin().expect("it may write");
    transaction.gremlin("g.V('x').drop()").expect("a write");
    assert_eq!(sparql_in(&transaction, "v:x ?p ?x"), [""; 0]);
    transaction.roll_back();
    assert_eq!(sparql(&db, "v:x :age ?x"), ["42"]);
    assert_eq!(count(&db, "g.V('x').has('age', 42)"), 1);
}

#[test]
fn a_traversal_that_fails_leaves_a_transaction_as_it_was() {
    let db = modern();
    let mut transaction = db.begin().expect("it may write");
    transaction.gremlin("g.addV('kept')").expect("a write");
    let error = transaction
        .gremlin("g.V().hasLabel('person').property('seen', true).fold().addV('x').property(T.id, 1)");
    assert_eq!(error.expect_err("1 is there").kind(), ErrorKind::Input);
    let error = transaction.gremlin("g.addV('gone'); g.V().values('name').outE()");
    assert_eq!(error.expect_err("no text has edges").kind(), ErrorKind::Query);
    assert_eq!(transaction.gremlin("g.V().has('seen')").unwrap().len(), 0);
    transaction.commit().expect("no concurrent writer");
    assert_eq!((count(&db, "g.V().hasLabel('kept')"), count(&db, "g.V().hasLabel('gone')")), (1, 0));
    fails(&db, "g.addV('gone'); g.V().values('name').outE()", "edges");
    assert_eq!(count(&db, "g.V()"), 7);
}

#[test]
fn several_statements_are_one_transaction_with_the_results_of_the_last() {
    let db = Database::in_memory();
    let script =
        "g.addV('a').property('n', 1); g.addV('a').property('n', 2)\n g.V().hasLabel('a').values('n').sum()";
    assert_eq!(values(&db, script), [Value::Int(3)]);
    fails(&db, "g.addV('b'); g.tx().commit()", "g.tx().commit() has no transaction");
    assert_eq!(count(&db, "g.V()"), 2);
}

#[test]
fn results_as_they_are_asked_for() {
    let db = modern();
    assert_eq!(
        values(&db, "g.V().hasLabel('person').order().by('age').values('name').next()"),
        [Value::text("vadas")]
    );
    assert_eq!(count(&db, "g.V().next(4)"), 4);
    assert_eq!(values(&db, "g.V().has('name', 'nobody').hasNext()"), [Value::Boolean(false)]);
    assert_eq!(count(&db, "g.V().has('name', 'nobody').tryNext()"), 0);
    fails(&db, "g.V().has('name', 'nobody').next()", "there is no next result");
    assert_eq!(count(&db, "g.addV('x').iterate()"), 0);
    assert_eq!(count(&db, "g.V().label().toSet()"), 3);
    assert_eq!(count(&db, "g.V().hasLabel('x')"), 1);
    let counted = db.gremlin("g.V().hasLabel('person').label().toBulkSet()").expect("a read");
    assert_eq!(counted.counted(), [(Value::text("person"), 4)]);
    let options = GremlinOptions::default().with_binding("who", "marko");
    let bound = db.gremlin_with("g.V().has('name', who).count()", &options).expect("a read");
    assert_eq!(bound.into_values().expect("there are few"), [Value::Long(1)]);
    let sources = GremlinOptions { sources: vec!["social".to_owned()], ..GremlinOptions::default() };
    assert_eq!(db.gremlin_with("social.V()", &sources).expect("a read").len(), 7);
}

#[test]
fn bytecode_runs_without_a_text() {
    let db = Database::in_memory();
    let steps = vec![
        Instruction::new("addV", vec![Value::text("person")]),
        Instruction::new("property", vec![Value::text("name"), Value::text("ann")]),
    ];
    let bytecode = Bytecode { source: Vec::new(), steps };
    assert_eq!(db.traverse(&bytecode, &GremlinOptions::default()).expect("a write").len(), 1);
    let mut transaction = db.begin().expect("it may write");
    transaction.traverse(&bytecode, &GremlinOptions::default()).expect("a write");
    transaction.commit().expect("no concurrent writer");
    assert_eq!(count(&db, "g.V().has('person', 'name', 'ann')"), 2);
    let token = Value::Token(Token::T(vervet::gremlin::T::Id));
    let bad = Instruction::new("property", vec![token, Value::Int(3)]);
    let bad = Bytecode { source: Vec::new(), steps: vec![Instruction::new("V", vec![]), bad] };
    let error = db.traverse(&bad, &GremlinOptions::default()).expect_err("ids stay");
    assert!(error.to_string().contains("T.id is immutable"), "{error}");
}

#[test]
fn ids_are_given_or_fresh() {
    let db = Database::in_memory();
    db.gremlin("g.addV().property(T.id, 1)").expect("a write");
    db.gremlin("g.addV().property(T.id, UUID('0f7a6b5c-4d3e-4f2a-8b1c-9d8e7f6a5b4c'))").expect("a write");
    db.gremlin("g.addV().property(T.id, 'http://example.org/x')").expect("a write");
    db.gremlin("g.addV().addV()").expect("a write");
    assert_eq!(count(&db, "g.V().id().dedup()"), 5);
    assert_eq!(count(&db, "g.V(1, '1')"), 2);
    assert_eq!(sparql(&db, "<http://example.org/x> a ?x"), ["urn:vervet:label:vertex"]);
    assert_eq!(
        sparql(&db, "<urn:uuid:0f7a6b5c-4d3e-4f2a-8b1c-9d8e7f6a5b4c> a ?x"),
        ["urn:vervet:label:vertex"]
    );
    fails(&db, "g.addV().property(T.id, '1')", "Vertex with id already exists: 1");
    fails(&db, "g.addV().property(T.id, true)", "cannot have an id of the type Boolean");
    db.gremlin("g.V(1).addE('self').to(__.V(1)).property(T.id, 100)").expect("a write");
    fails(&db, "g.V(1).addE('self').property(T.id, 100)", "Edge with id already exists: 100");
    fails(&db, "g.V(1).addE('self').property(T.id, 'urn:vervet:edge:1')", "cannot be the id of an edge");
    db.gremlin("g.E(100).drop()").expect("a write");
    db.gremlin("g.V(1).addE('self').property(T.id, 100)").expect("the id is free again");
    assert_eq!(count(&db, "g.E(100)"), 1);
}

#[test]
fn values_of_a_key() {
    let db = Database::in_memory();
    db.gremlin("g.addV('p').property(T.id, 1).property('n', 'a').property('n', 'b')").expect("a write");
    assert_eq!(texts(&db, "g.V(1).values('n')"), ["a", "b"]);
    db.gremlin("g.V(1).property(set, 'n', 'a').property(list, 'n', 'b')").expect("a write");
    assert_eq!(texts(&db, "g.V(1).values('n')"), ["a", "b", "b"]);
    assert_eq!(sparql(&db, "v:1 :n ?x"), ["a", "b"]);
    db.gremlin("g.V(1).property('n', 'b')").expect("a write");
    assert_eq!(texts(&db, "g.V(1).values('n')"), ["b"]);
    // A plain value gets an equal value beside it.
    db.gremlin("g.V(1).property(list, 'n', 'b')").expect("a write");
    assert_eq!(count(&db, "g.V(1).properties('n').id().dedup()"), 2);
    db.gremlin("g.V(1).properties('n').limit(1).drop()").expect("a write");
    assert_eq!(texts(&db, "g.V(1).values('n')"), ["b"]);
    db.gremlin("g.V(1).property('n', null).property(list, 'm', null)").expect("a write");
    assert_eq!(count(&db, "g.V(1).properties()"), 0);
    db.gremlin("g.V(1).property(['k': 1, 'l': Cardinality.list(2)]).property(list, ['l': 2]).property(null)")
        .expect("a write");
    assert_eq!(count(&db, "g.V(1).properties()"), 3);
}

#[test]
fn what_is_said_about_a_value() {
    let db = Database::in_memory();
    db.gremlin("g.addV('p').property(T.id, 1).property('n', 'a').property(list, 'city', 'x', 'since', 2010, 'to', 2012)")
        .expect("a write");
    assert_eq!(values(&db, "g.V(1).properties('city').values('since')"), [Value::Int(2010)]);
    assert_eq!(sparql(&db, "v:1 :city ?c ~ ?e . ?e :since ?x"), ["2010"]);
    // A plain value gets an identity when a meta-property is set, and stays the same value.
    let found = values(&db, "g.V(1).properties('n').property('by', 'me').values('by')");
    assert_eq!(found, [Value::text("me")]);
    assert_eq!(sparql(&db, "v:1 :n ?x"), ["a"]);
    assert_eq!(sparql(&db, "v:1 :n 'a' ~ ?e . ?e :by ?x"), ["me"]);
    db.gremlin("g.V(1).properties().properties('since').drop()").expect("a write");
    assert_eq!(count(&db, "g.V(1).properties().properties()"), 2);
    db.gremlin("g.V(1).properties('city').drop()").expect("a write");
    assert_eq!(sparql(&db, "?x :to ?y"), [""; 0]);
    // A new single value has no meta-properties.
    db.gremlin("g.V(1).property('n', 'a')").expect("a write");
    assert_eq!(count(&db, "g.V(1).properties().properties()"), 0);
    fails(
        &db,
        "g.V(1).properties().property(set, 'k', 1)",
        "Property cardinality can only be set for a Vertex",
    );
    fails(&db, "g.V(1).property('k', 1, 'l')", "found key without matching value");
}

#[test]
fn edges_have_properties_also_those_of_rdf() {
    let db = modern();
    db.update("INSERT DATA { <urn:a> <urn:likes> <urn:b> }").expect("an update");
    let found = values(&db, "g.V('urn:a').outE().property('weight', 3).values('weight')");
    assert_eq!(found, [Value::Int(3)]);
    assert_eq!(sparql(&db, "<urn:a> <urn:likes> ?x"), ["urn:b"]);
    assert_eq!(sparql(&db, "<urn:a> <urn:likes> <urn:b> ~ ?e . ?e :weight ?x"), ["3"]);
    db.gremlin("g.E(7).property('weight', 9).property('weight', null)").expect("a write");
    assert_eq!(count(&db, "g.E(7).values('weight')"), 0);
    fails(&db, "g.E(7).property(list, 'weight', 9)", "Property cardinality");
    fails(&db, "g.V(1).addE('x').to(__.V(2)).property(set, 'k', 1)", "Multi-property cardinality of [set]");
    db.gremlin("g.V('urn:a').outE().drop()").expect("a write");
    assert_eq!(sparql(&db, "<urn:a> <urn:likes> ?x"), [""; 0]);
}

#[test]
fn what_a_traversal_adds_it_does_not_walk() {
    let db = modern();
    db.gremlin("g.V().addV('copy').property('name', 'c')").expect("a write");
    assert_eq!(count(&db, "g.V().hasLabel('copy')"), 6);
    db.gremlin("g.V().hasLabel('copy').as('a').V().hasLabel('copy').addE('all').from('a')").expect("a write");
    assert_eq!(count(&db, "g.E().hasLabel('all')"), 36);
    db.gremlin("g.V().hasLabel('copy').union(__.addV('twice'), __.addV('twice'))").expect("a write");
    assert_eq!(count(&db, "g.V().hasLabel('twice')"), 12);
    // Each traverser counts, including those in a bulk.
    db.gremlin("g.V().hasLabel('software').in('created').values('name').barrier().addV('maker')")
        .expect("a write");
    assert_eq!(count(&db, "g.V().hasLabel('maker')"), 4);
    // Vertices with an edge are collected before any edge is removed.
    db.gremlin("g.V().where(__.both('all')).drop()").expect("a write");
    assert_eq!(count(&db, "g.V().hasLabel('copy')"), 0);
}

#[test]
fn arguments_are_seen_from_the_traverser_that_comes_in() {
    let db = modern();
    db.gremlin("g.V().hasLabel('person').addV('animal').property('name', __.values('name')).property('name', 'an animal').property(__.values('name'), __.label())").expect("a write");
    assert_eq!(
        count(
            &db,
            "g.V().hasLabel('animal').has('name', 'marko').has('name', 'an animal').has('marko', 'person')"
        ),
        1
    );
    db.gremlin(
        "g.V(1).as('a').out('created').addE('createdBy').to('a').property('weight', __.values('lang'))",
    )
    .expect("a write");
    assert_eq!(texts(&db, "g.V(1).inE('createdBy').values('weight')"), ["java"]);
    db.gremlin("g.withSideEffect('b', 'x').V(2).property(__.select('b'), 5)").expect("a write");
    assert_eq!(values(&db, "g.V(2).values('x')"), [Value::Int(5)]);
    fails(
        &db,
        "g.addE('knows').from(__.V(1))",
        "must resolve to a Vertex or the ID of a Vertex present in the graph",
    );
    fails(&db, "g.addE('knows').from(__.V(1)).to(__.V(77))", "does not map to a value");
    fails(&db, "g.addV('~x')", "Label can not be a hidden key: ~x");
    fails(&db, "g.addV('')", "Label can not be empty");
    fails(&db, "g.V().property('~k', 1)", "Property key can not be a hidden key: ~k");
    fails(&db, "g.V().values('name').drop()", "not removable");
}

#[test]
fn merge_vertices() {
    let db = modern();
    let merge = "g.mergeV([(T.label): 'person', 'name': 'marko']).option(Merge.onCreate, ['age': 1]).option(Merge.onMatch, ['seen': Cardinality.set(true), 'age': 30])";
    assert_eq!(count(&db, merge), 1);
    assert_eq!(values(&db, "g.V(1).values('age')"), [Value::Int(30)]);
    let merge = merge.replace("marko", "stephen");
    let created = values(&db, &merge);
    assert_eq!((created.len(), count(&db, "g.V()")), (1, 7));
    assert_eq!(values(&db, "g.V().has('person', 'name', 'stephen').values('age')"), [Value::Int(1)]);
    assert_eq!(values(&db, &merge), created);
    assert_eq!(count(&db, "g.V().hasLabel('person').mergeV([(T.label): 'software']).path()"), 10);
    // The second one finds the vertex made by the first.
    assert_eq!(count(&db, "g.inject(['name': 'new'], ['name': 'new']).mergeV()"), 2);
    assert_eq!(count(&db, "g.V().has('name', 'new')"), 1);
    assert_eq!(count(&db, "g.mergeV([(T.id): 50]).option(onCreate, [(T.label): 'made'])"), 1);
    assert_eq!(texts(&db, "g.V(50).label()"), ["made"]);
    fails(
        &db,
        "g.mergeV([(T.label): 'a']).option(onCreate, [(T.label): 'b'])",
        "option(onCreate) cannot override values from merge() argument",
    );
    fails(&db, "g.mergeV([(T.label): null])", "does not allow null");
    fails(&db, "g.mergeV(['~id': 1])", "Property key can not be a hidden key: ~id");
    fails(&db, "g.mergeV([(OUT): 1])", "expect keys in Map to be either String or [id, label]");
    fails(&db, "g.V(1).mergeV()", "needs a Map");
}

#[test]
fn merge_edges() {
    let db = modern();
    let merge = "g.mergeE([(T.label): 'knows', (OUT): 1, (IN): 2]).option(onMatch, ['weight': 2]).option(onCreate, ['weight': 1])";
    assert_eq!(count(&db, merge), 1);
    assert_eq!((count(&db, "g.E()"), values(&db, "g.E(7).values('weight')")), (6, vec![Value::Int(2)]));
    assert_eq!(count(&db, &merge.replace("(IN): 2", "(IN): 6")), 1);
    assert_eq!(
        values(&db, "g.V(1).outE('knows').where(__.inV().hasId(6)).values('weight')"),
        [Value::Int(1)]
    );
    let both = "g.mergeV([(T.id): 1]).as('a').mergeV([(T.id): 9]).as('b').mergeE([(T.label): 'knows', (OUT): Merge.outV, (IN): Merge.inV]).option(outV, select('a')).option(inV, select('b'))";
    let first = values(&db, both);
    assert_eq!((count(&db, "g.V()"), values(&db, both)), (7, first));
    let by_map = "g.mergeE([(T.label): 'likes', (OUT): Merge.outV, (IN): Merge.inV, (T.id): 77]).option(outV, [(T.id): 1]).option(inV, ['name': 'lop'])";
    assert_eq!((count(&db, by_map), count(&db, by_map), count(&db, "g.E(77)")), (1, 1, 1));
    assert_eq!(count(&db, "g.mergeE([(IN): 3])"), 4);
    assert_eq!(count(&db, "g.mergeE([(T.label): 'created', 'weight': 0.4d])"), 2);
    fails(&db, "g.mergeE([:]).option(onCreate, [:]).option(onMatch, ['~x': 1])", "hidden key");
    fails(&db, "g.mergeE(['k': 1])", "Out Vertex not specified");
    fails(&db, "g.mergeE([(OUT): 1, 'k': 1])", "In Vertex not specified");
    fails(&db, "g.mergeE([(OUT): 1, (IN): 1000])", "Vertex id could not be resolved from mergeE: 1000");
    fails(
        &db,
        "g.mergeE([(OUT): Merge.outV, (IN): 1])",
        "option(outV) must be specified if it is used for OUT",
    );
    fails(
        &db,
        "g.mergeE([(OUT): Merge.inV, (IN): 1])",
        "Only Merge.outV token may be used for Direction.OUT",
    );
}

#[test]
fn strategies_say_what_may_be_written() {
    let db = modern();
    for write in [
        "addV('x')",
        "V().drop()",
        "V().property('a', 1)",
        "V(1).addE('x')",
        "mergeV([:])",
        "V().sideEffect(__.addV())",
    ] {
        let text = format!("g.withStrategies(ReadOnlyStrategy).{write}");
        fails(&db, &text, "The provided traversal has a mutating step and thus is not read only");
    }
    let reserved =
        "g.withStrategies(ReservedKeysVerificationStrategy(throwException: true)).addV().property('id', 1)";
    fails(&db, reserved, "is setting a property key to a reserved word: id");
    fails(
        &db,
        "g.withStrategies(EdgeLabelVerificationStrategy(throwException: true)).V().out()",
        "vertex step without any specified edge label",
    );

    let part = "g.withStrategies(new PartitionStrategy(partitionKey: '_p', writePartition: 'a', readPartitions: ['a']))";
    db.gremlin(&format!("{part}.addV('person').property('name', 'alice').addE('self')")).expect("a write");
    assert_eq!(texts(&db, &format!("{part}.V().values('name')")), ["alice"]);
    assert_eq!(count(&db, "g.E().has('_p', 'a')"), 1);
    assert_eq!(count(&db, &format!("{part}.mergeV(['name': 'marko'])")), 1);
    assert_eq!(count(&db, "g.V().has('name', 'marko')"), 2);
}

#[test]
fn base_and_delta_are_one_graph() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::open_or_create(directory.path()).expect("a new directory");
    db.gremlin(MODERN).expect("a write");
    db.gremlin("g.V(1).property(list, 'n', 'x', 'since', 1).property(list, 'n', 'x', 'since', 2)")
        .expect("a write");
    assert!(db.checkpoint().expect("a free disk"), "there was something to merge");
    let check = |db: &Database| {
        assert_eq!(texts(db, "g.V(1).values('n')"), ["x", "x"]);
        assert_eq!(count(db, "g.V(1).properties('n').has('since', 2)"), 1);
        assert_eq!(count(db, "g.V(1).out().out().values('name')"), 2);
        assert_eq!(sparql(db, "v:1 :n ?x"), ["x"]);
    };
    check(&db);
    db.gremlin("g.V(1).properties('n').has('since', 1).property('since', 3)").expect("a write");
    db.gremlin("g.V(6).drop()").expect("a write");
    db.gremlin("g.mergeE([(T.label): 'knows', (OUT): 1, (IN): 2]).option(onMatch, ['weight': 5])")
        .expect("a write");
    check(&db);
    drop(db);
    let db = Database::open(directory.path()).expect("what was written");
    check(&db);
    assert_eq!(count(&db, "g.V()"), 5);
    assert_eq!(count(&db, "g.E()"), 5);
    assert_eq!(values(&db, "g.E(7).values('weight')"), [Value::Int(5)]);
    assert_eq!(values(&db, "g.V(1).properties('n').values('since').sum()"), [Value::Int(5)]);
    fails(&db, "g.addV().property(T.id, 1)", "Vertex with id already exists: 1");
    db.check().expect("no damage");
}

/// Runs two overlapping transactions; returns whether both may commit. Returning results with their
/// properties would be a read.
fn both_commit(db: &Database, one: &str, other: &str) -> bool {
    let (mut first, mut second) = (db.begin().expect("one"), db.begin().expect("another"));
    let (one, other) = (&format!("{one}.iterate()"), &format!("{other}.iterate()"));
    first.gremlin(one).unwrap_or_else(|error| panic!("{one}: {error}"));
    second.gremlin(other).unwrap_or_else(|error| panic!("{other}: {error}"));
    first.commit().expect("the first one");
    match second.commit() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{one} / {other}: {error}");
            false
        }
    }
}

#[test]
fn writes_conflict_only_where_they_must() {
    let db = modern();
    assert!(both_commit(&db, "g.addV('a')", "g.addV('a')"), "new vertices");
    assert!(
        both_commit(&db, "g.V(1).addE('x').to(__.V(2))", "g.V(1).addE('x').to(__.V(2))"),
        "parallel edges between two that stay"
    );
    assert!(both_commit(&db, "g.V(1).property('a', 1)", "g.V(1).property('b', 1)"), "different keys");
    assert!(!both_commit(&db, "g.V(1).property('a', 3)", "g.V(1).property('a', 4)"), "the same key");
    assert!(
        both_commit(&db, "g.V(1).property(list, 'l', 1)", "g.V(1).property(list, 'l', 2)"),
        "different values"
    );
    assert!(!both_commit(&db, "g.V(1).addE('x').to(__.V(6))", "g.V(6).drop()"), "an end goes");
    assert!(
        !both_commit(&db, "g.addV().property(T.id, 60)", "g.addV().property(T.id, 60)"),
        "the same new id"
    );
    assert!(
        !both_commit(
            &db,
            "g.mergeV([(T.label): 'person', 'name': 'zoe'])",
            "g.mergeV([(T.label): 'person', 'name': 'zoe'])"
        ),
        "the same merged vertex"
    );
    assert!(
        !both_commit(
            &db,
            "g.mergeE([(T.label): 'm', (OUT): 1, (IN): 2])",
            "g.mergeE([(T.label): 'm', (OUT): 1, (IN): 2])"
        ),
        "the same merged edge"
    );
    assert!(
        both_commit(
            &db,
            "g.mergeE([(T.label): 'm', (OUT): 1, (IN): 4])",
            "g.mergeE([(T.label): 'm', (OUT): 1, (IN): 3])"
        ),
        "merged edges to different vertices"
    );
}

#[test]
fn a_write_that_conflicts_runs_again() {
    let db = modern();
    db.gremlin("g.V(1).property('count', 0)").expect("a write");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    db.gremlin(
                        "g.V(1).property('count', __.union(__.values('count'), __.constant(1)).sum())",
                    )
                    .expect("it conflicts at most so often");
                    db.gremlin("g.mergeV([(T.label): 'one', 'name': 'only'])")
                        .expect("it conflicts at most so often");
                }
            });
        }
    });
    assert_eq!(texts(&db, "g.V(1).values('count').asString()"), ["100"]);
    assert_eq!(count(&db, "g.V().hasLabel('one')"), 1);
}

#[test]
fn results_stream_and_stop_when_told() -> Result<()> {
    let db = modern();
    let options = GremlinOptions::default();
    let seen = Cell::new(0);
    let stop = |_: Value, _: u64| {
        seen.set(seen.get() + 1);
        Err(vervet::Error::new(ErrorKind::Cancelled, "enough"))
    };
    let script = db.gremlin_script("g.V()", &options)?;
    assert!(!script.mutates());
    assert_eq!(db.gremlin_each(&script, &options, &mut { stop }).expect_err("it stops").message(), "enough");
    assert_eq!(seen.get(), 1);

    // In a transaction, a failure is rolled back; outside, the write is committed before its results are
    // returned.
    let script = db.gremlin_script("g.inject(1, 2).addV('told')", &options)?;
    assert!(script.mutates());
    let mut transaction = db.begin()?;
    transaction.gremlin_each(&script, &options, &mut { stop }).expect_err("it stops");
    transaction.commit()?;
    assert_eq!(count(&db, "g.V().hasLabel('told')"), 0);
    db.gremlin_each(&script, &options, &mut { stop }).expect_err("it stops");
    assert_eq!(count(&db, "g.V().hasLabel('told')"), 2);
    Ok(())
}

#[test]
fn limits_hold() {
    let db = Database::in_memory();
    let mut options =
        GremlinOptions { timeout: Some(std::time::Duration::ZERO), ..GremlinOptions::default() };
    let error = db.gremlin_with("g.addV()", &options).expect_err("no time");
    assert_eq!(error.kind(), ErrorKind::Deadline);
    options.timeout = None;
    options.memory_limit_bytes = Some(1000);
    let error = db
        .gremlin_with("g.inject(1).repeat(__.addV()).emit().times(50).fold()", &options)
        .expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
    assert_eq!(count(&db, "g.V()"), 0);
    let token = vervet::CancelToken::new();
    token.cancel();
    options = GremlinOptions { cancel: Some(token), ..GremlinOptions::default() };
    assert_eq!(db.gremlin_with("g.addV()", &options).expect_err("cancelled").kind(), ErrorKind::Cancelled);
}
