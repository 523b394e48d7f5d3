//! Updates on a model: each test states the graph before, the request, and the graph after.

use std::collections::BTreeSet;
use vervet::update::{Documents, UpdateOptions, UpdateReport, UpdateTarget, run};
use vervet::{CancelToken, Environment, Error, ErrorKind, Id, Literal, QueryOptions, Result, Source};
use vervet_model::{Statement, Tag};
use vervet_snapshot::Snapshot;
use vervet_sparql::{ParseOptions, parse_update};
use vervet_testkit::MemorySnapshot;

/// The reference snapshot, rebuilt when it is read after a change.
#[derive(Default)]
struct Model {
    graph: MemorySnapshot,
    changed: bool,
}

impl UpdateTarget for Model {
    fn read(&mut self, with: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        if std::mem::take(&mut self.changed) {
            self.graph = std::mem::take(&mut self.graph).finish();
        }
        with(&self.graph)
    }

    fn intern(&mut self, term: oxrdf::TermRef<'_>) -> Result<Id> {
        Ok(self.graph.intern(&term.into_owned()))
    }

    fn insert(&mut self, statement: &Statement) -> Result<bool> {
        self.changed = true;
        Ok(self.graph.add(*statement))
    }

    fn remove(&mut self, statement: &Statement) -> Result<bool> {
        self.changed = true;
        Ok(self.graph.remove(statement))
    }
}

impl Model {
    fn of(update: &str) -> Self {
        let mut model = Self::default();
        model.update(update).expect("this begins the test");
        model
    }

    fn update(&mut self, text: &str) -> Result<UpdateReport> {
        self.update_with(text, &mut UpdateOptions::default())
    }

    fn update_with(&mut self, text: &str, options: &mut UpdateOptions<'_>) -> Result<UpdateReport> {
        let parameters: Vec<&str> = options.query.parameters.iter().map(|(name, _)| name.as_str()).collect();
        let parse = ParseOptions {
            parameters: &parameters,
            prefixes: &[("", "http://a/")],
            base_iri: None,
            dataset: None,
        };
        let update = parse_update(text, &parse)?;
        run(&update, self, &Environment::simulated(7), options)
    }

    /// Adds an edge between terms of the namespace; returns its id.
    fn edge(&mut self, subject: &str, predicate: &str, object: &str, graph: Option<&str>) -> Id {
        let mut id = |name: &str| self.graph.intern(&node(name).into());
        let [s, p, o] = [subject, predicate, object].map(&mut id);
        let g = graph.map_or(Id::UNBOUND, id);
        self.changed = true;
        self.graph.add_edge(s, p, o, g)
    }

    /// Statements as words: `a` for `<http://a/a>`, `_` for blank nodes, `eN` for edges, `@g` for graphs.
    fn lines(&self) -> BTreeSet<String> {
        let word = |id: Id| {
            if id.tag() == Tag::Edge {
                return format!("e{}", id.payload());
            }
            let mut text = String::new();
            self.graph
                .read_term(id, &mut String::new(), &mut |parts| text = parts.to_term().to_string())
                .expect("it was interned");
            let name = text.strip_prefix("<http://a/").and_then(|rest| rest.strip_suffix('>'));
            match name {
                Some(name) => name.to_owned(),
                None if text.starts_with("_:") => "_".to_owned(),
                None => text,
            }
        };
        let line = |s: &Statement| {
            let mut line = [s.subject, s.predicate, s.object].map(word).join(" ");
            if s.graph.is_bound() {
                line += &format!(" @{}", word(s.graph));
            }
            if s.edge.is_bound() {
                line += &format!(" ~{}", word(s.edge));
            }
            line
        };
        self.graph.statements().map(line).collect()
    }

    /// Runs an update and compares the graph with lines separated by `;`.
    fn check(&mut self, update: &str, expected: &str) {
        let done = self.update(update);
        assert!(done.is_ok(), "{update}: {}", done.expect_err("not done"));
        self.holds(expected, update);
    }

    fn holds(&self, expected: &str, why: &str) {
        let expected = expected.split(';').map(|line| line.trim().to_owned());
        assert_eq!(self.lines(), expected.filter(|line| !line.is_empty()).collect(), "{why}");
    }
}

fn node(name: &str) -> vervet::NamedNode {
    vervet::NamedNode::new_unchecked(format!("http://a/{name}"))
}

fn kind(result: Result<UpdateReport, Error>) -> ErrorKind {
    result.expect_err("this is refused").kind()
}

#[test]
fn data_comes_and_goes() {
    let mut model = Model::default();
    let text = "INSERT DATA { :a :p :b, :c . GRAPH :g { :a :p 1 } :a :p :b }";
    assert_eq!(model.update(text).expect("valid"), UpdateReport { inserted: 3, removed: 0 });
    model.holds("a p b; a p c; a p \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> @g", text);
    assert_eq!(model.update(text).expect("valid"), UpdateReport::default());
    let text = "DELETE DATA { :a :p :b, :nobody . GRAPH :g { :a :p :c } GRAPH :h { :a :p :c } }";
    assert_eq!(model.update(text).expect("valid"), UpdateReport { inserted: 0, removed: 1 });
    model.check("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", "a p c");
}

#[test]
fn all_solutions_are_found_before_anything_changes() {
    let mut model = Model::of("INSERT DATA { :a :p :b . :b :p :c . :c :p :d }");
    model.check("DELETE { ?x :p ?y } INSERT { ?y :p ?x } WHERE { ?x :p ?y }", "b p a; c p b; d p c");
    // A statement both removed and added stays.
    model.check("DELETE { ?x ?p ?y } INSERT { ?x ?p ?y } WHERE { ?x ?p ?y }", "b p a; c p b; d p c");
    model.check("INSERT { ?x :q ?z } WHERE { ?x :p ?y . ?y :p ?z }", "b p a; c p b; d p c; c q a; d q b");
    // An operation sees the changes of the previous one.
    model
        .check("DELETE WHERE { ?x :p ?y } ; DELETE { ?x :q ?y } WHERE { ?x :q ?y FILTER(?x = :d) }", "c q a");
    model.check("DELETE { :c :q :a } WHERE { ?nobody :r ?at_all }", "c q a");
    model.check("INSERT { :x :y :z } WHERE { }", "c q a; x y z");
}

#[test]
fn blank_nodes_are_new_for_each_solution() {
    let mut model = Model::of("INSERT DATA { :a :p :b, :c }");
    let count = |model: &Model, end: &str| model.lines().iter().filter(|line| line.ends_with(end)).count();
    model.update("INSERT { _:x :of ?o ; :with [] } WHERE { :a :p ?o }").expect("valid");
    assert_eq!((count(&model, "of b"), count(&model, "of c")), (1, 1));
    // Two solutions create two subjects, each with one blank node at its end.
    let text = "INSERT { ?x :two ?y } WHERE { ?x :of ?o ; :with ?y . FILTER(isBlank(?x) && isBlank(?y)) }";
    assert_eq!(model.update(text).expect("valid").inserted, 2);
    let vertices = model.graph.vertex_count();
    model.update("INSERT DATA { _:x :p _:x, [] }").expect("valid");
    model.update("INSERT DATA { _:x :p _:x }").expect("valid");
    assert_eq!(model.graph.vertex_count(), vertices + 3);
    // Lists as well.
    let mut model = Model::default();
    assert_eq!(model.update("INSERT DATA { :a :p (1 2 3) }").expect("valid").inserted, 7);
}

#[test]
fn statements_that_are_none_are_passed_over() {
    let mut model = Model::of("INSERT DATA { :a :p 'text' . :b :p [] }");
    let before = model.lines();
    for text in [
        "INSERT { ?o :q :a } WHERE { :a :p ?o }",
        "INSERT { 'text' :q :a } WHERE { }",
        "INSERT { :a ?o :a } WHERE { ?s :p ?o }",
        "INSERT { GRAPH ?o { :a :q :a } } WHERE { :a :p ?o }",
        "INSERT { :a :q ?nothing } WHERE { :a :p ?o OPTIONAL { :a :r ?nothing } }",
        "INSERT { :a :q ?nowhere } WHERE { :a :p ?o }",
        "INSERT { ?c :q :a } WHERE { BIND(CONCAT('a longer ', 'text') AS ?c) }",
        "DELETE { ?o :p :a . :a :p ?nothing } WHERE { :a :p ?o OPTIONAL { :a :r ?nothing } }",
    ] {
        assert_eq!(model.update(text).expect("valid"), UpdateReport::default(), "{text}");
    }
    assert_eq!(model.lines(), before);
    let text = "INSERT { ?nowhere :q _:b . :a :q :b } WHERE { :a :p ?o } ; DELETE DATA { :a :q :b }";
    let report = UpdateReport { inserted: 1, removed: 1 };
    assert_eq!(model.update(text).expect("valid"), report);
    // The other statements of the template are inserted.
    let text = "INSERT { :a :q ?nothing . :a :q :b } WHERE { :a :p ?o OPTIONAL { :a :r ?nothing } }";
    assert_eq!(model.update(text).expect("valid").inserted, 1);
}

#[test]
fn computed_terms_become_terms_when_they_are_needed() {
    let mut model = Model::of("INSERT DATA { :a :name 'Ann of the long name' . :b :name 'Bob' }");
    let vertices = (model.graph.vertex_count(), model.graph.literal_count());
    let bind =
        "?x :name ?n BIND(CONCAT(?n, ' and company') AS ?long) BIND(IRI(CONCAT('http://a/', ?n)) AS ?i)";
    model.update(&format!("DELETE {{ ?i :p ?long }} WHERE {{ {bind} }}")).expect("valid");
    model.update(&format!("INSERT {{ ?long :p ?i }} WHERE {{ {bind} }}")).expect("valid");
    assert_eq!((model.graph.vertex_count(), model.graph.literal_count()), vertices);
    model.check(
        &format!("INSERT {{ GRAPH ?i {{ ?i ?i ?long }} }} WHERE {{ {bind} FILTER(?x = :b) }}"),
        "a name \"Ann of the long name\"; b name \"Bob\"; Bob Bob \"Bob and company\" @Bob",
    );
    let text =
        "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(?o = 'Bob and company') }";
    assert_eq!(model.update(text).expect("valid").removed, 1);
}

#[test]
fn with_and_using_choose_graphs() {
    let start = "INSERT DATA { :d :p :d . GRAPH :g { :g :p :g } GRAPH :h { :g :p :g . :h :p :h } }";
    let check = |update: &str, expected: &str| {
        let mut model = Model::of(start);
        let all = format!("d p d; g p g @g; g p g @h; h p h @h; {expected}");
        model.check(update, &all);
    };
    check("WITH :g INSERT { ?x :q ?x } WHERE { ?x :p ?x }", "g q g @g");
    check("WITH :g INSERT { GRAPH :i { ?x :q ?x } } WHERE { ?x :p ?x }", "g q g @i");
    check("WITH :g INSERT { ?x :q ?x } WHERE { GRAPH :h { ?x :p ?x } }", "g q g @g; h q h @g");
    check("INSERT { ?x :q ?x } USING :g WHERE { ?x :p ?x }", "g q g");
    check("WITH :new INSERT { ?x :q ?x } USING :g WHERE { ?x :p ?x }", "g q g @new");
    // The union of two graphs has common statements once.
    let count = "{ SELECT (COUNT(*) AS ?n) { ?x :p ?y } } BIND(IF(?n = 2, :two, :other) AS ?c)";
    check(&format!("INSERT {{ :n :is ?c }} USING :g USING :h WHERE {{ {count} }}"), "n is two");
    check("INSERT { ?x :q ?g } USING :g WHERE { GRAPH ?g { ?x :p ?x } }", "");
    check("INSERT { ?x :q ?g } USING NAMED :g USING NAMED :g WHERE { GRAPH ?g { ?x :p ?x } }", "g q g");
    check("INSERT { ?x :q ?g } USING NAMED :g WHERE { { ?x :p ?x } UNION { GRAPH :h { ?x :p ?x } } }", "");
    check(
        "INSERT { ?x :q ?y } USING :g USING NAMED :h WHERE { ?x :p ?x . GRAPH ?g { ?y :p ?y } }",
        "g q g; g q h",
    );
    let mut model = Model::of(start);
    model.check(
        "WITH :h DELETE { ?x :p ?x } WHERE { ?x :p ?x . FILTER(?x = :g) }",
        "d p d; g p g @g; h p h @h",
    );
}

/// Ann knows Bob as a plain statement, by an edge since 2010, and by an edge since 2020 with a source.
fn friends() -> Model {
    let mut model = Model::of("INSERT DATA { :ann :knows :bob . :eve :knows :bob }");
    let old = model.edge("ann", "knows", "bob", None);
    let new = model.edge("ann", "knows", "bob", None);
    let since = model.edge("x", "x", "x", None);
    let mut id = |name: &str| model.graph.intern(&node(name).into());
    let [key, source, first, second, x] = ["since", "source", "y2010", "y2020", "x"].map(&mut id);
    let plain =
        |subject, predicate, object, edge| Statement { subject, predicate, object, graph: Id::UNBOUND, edge };
    model.graph.remove(&plain(x, x, x, since));
    model.graph.add(plain(old, key, first, Id::UNBOUND));
    // A statement about a statement about an edge.
    let about = model.graph.add_edge(new, key, second, Id::UNBOUND);
    model.graph.add(plain(about, source, first, Id::UNBOUND));
    model.changed = true;
    model
}

#[test]
fn a_statement_takes_its_edges_along() {
    let all = "ann knows bob; ann knows bob ~e0; ann knows bob ~e1; e0 since y2010; e1 since y2020 ~e3; \
               e3 source y2010; eve knows bob";
    friends().holds(all, "nothing was done");
    let mut model = friends();
    let report = model.update("DELETE DATA { :ann :knows :bob }").expect("valid");
    assert_eq!(report.removed, 6);
    model.holds("eve knows bob", "all entries went, and what was said about them");
    friends().check("DELETE WHERE { ?x :knows :bob }", "");
    let first = "ann knows bob; ann knows bob ~e0; e0 since y2010; eve knows bob";
    friends().check("DELETE { ?x :knows ?y ~ ?e } WHERE { ?x :knows ?y ~ ?e . ?e :since :y2020 }", first);
    friends().check("DELETE WHERE { ?x :knows ?y ~ ?e {| :since :y2020 |} }", first);
    friends().check("DELETE DATA { :ann :knows :bob ~ <urn:vervet:edge:1> }", first);
    friends().check("DELETE DATA { :ann :knows :bob ~ <urn:vervet:edge:77> . :eve :knows :bob ~ :ann }", all);
    friends().check("DELETE DATA { :eve :knows :bob ~ <urn:vervet:edge:1> }", all);
    friends()
        .check("DELETE DATA { <urn:vervet:edge:0> :since :y2010 }", &all.replace("e0 since y2010; ", ""));
    friends().check("CLEAR DEFAULT", "");
    let other = "DELETE { GRAPH :g { :ann :knows :bob } } WHERE { :ann :knows :bob }";
    friends().check(other, all);
}

#[test]
fn what_comes_is_plain() {
    // An entry with an identity exists, so the statement exists.
    let mut model = friends();
    let plain = model.graph.statements().find(|s| !s.edge.is_bound()).copied().expect("Ann knows Bob");
    model.graph.remove(&plain);
    model.changed = true;
    let before = model.lines();
    assert_eq!(model.update("INSERT DATA { :ann :knows :bob }").expect("valid").inserted, 0);
    assert_eq!(model.lines(), before);
    assert_eq!(model.update("INSERT DATA { GRAPH :g { :ann :knows :bob } }").expect("valid").inserted, 1);
    // Edges get properties; removed edges do not.
    let mut model = friends();
    model.update("INSERT { ?e :weight 3 } WHERE { ?x :knows ?y ~ ?e }").expect("valid");
    assert_eq!(model.lines().iter().filter(|line| line.contains(" weight ")).count(), 2);
    let text = "DELETE { ?x :knows ?y } INSERT { ?e :gone 1 . ?x :had ?e . ?x :lost ?y } WHERE { ?x :knows ?y ~ ?e }";
    friends().check(text, "ann lost bob; eve knows bob");
    assert_eq!(kind(friends().update("INSERT DATA { <urn:vervet:edge:77> :weight 3 }")), ErrorKind::Query);
    let silly = "INSERT DATA { :a <urn:vervet:edge:0> :b . GRAPH <urn:vervet:edge:0> { :a :b :c } }";
    assert_eq!(friends().update(silly).expect("valid"), UpdateReport::default());
}

#[test]
fn whole_graphs() {
    let start = "INSERT DATA { :d :p :d . GRAPH :g { :g :p :g } GRAPH :h { :h :q :h } }";
    for (update, expected) in [
        ("CLEAR DEFAULT", "g p g @g; h q h @h"),
        ("CLEAR GRAPH :g", "d p d; h q h @h"),
        ("DROP NAMED", "d p d"),
        ("DROP ALL", ""),
        ("DROP GRAPH :nobody ; CREATE GRAPH :nobody ; CREATE SILENT GRAPH :g", "d p d; g p g @g; h q h @h"),
        ("ADD :g TO :h", "d p d; g p g @g; g p g @h; h q h @h"),
        ("ADD :g TO DEFAULT", "d p d; g p g; g p g @g; h q h @h"),
        ("COPY :g TO :h", "d p d; g p g @g; g p g @h"),
        ("COPY DEFAULT TO :h", "d p d; g p g @g; d p d @h"),
        ("MOVE :g TO :h", "d p d; g p g @h"),
        ("MOVE :g TO :new", "d p d; g p g @new; h q h @h"),
        ("MOVE DEFAULT TO :new", "d p d @new; g p g @g; h q h @h"),
        ("MOVE :g TO :g ; COPY :g TO :g ; ADD :g TO :g", "d p d; g p g @g; h q h @h"),
        ("COPY SILENT :nobody TO :g ; MOVE SILENT :nobody TO :h", "d p d; g p g @g; h q h @h"),
    ] {
        Model::of(start).check(update, expected);
    }
    for update in ["CREATE GRAPH :g", "ADD :nobody TO :g", "COPY :nobody TO :g", "MOVE :nobody TO DEFAULT"] {
        let mut model = Model::of(start);
        assert_eq!(kind(model.update(update)), ErrorKind::Query, "{update}");
        model.holds("d p d; g p g @g; h q h @h", update);
    }
    for update in ["COPY DEFAULT TO :g", "MOVE DEFAULT TO :g", "ADD DEFAULT TO :g"] {
        assert_eq!(kind(friends().update(update)), ErrorKind::Unsupported, "{update}");
    }
    // Statements elsewhere about the edges of a graph are removed with them.
    let mut model = Model::default();
    model.edge("a", "p", "b", Some("g"));
    model.update("INSERT { GRAPH :h { ?e :k 1 } } WHERE { GRAPH :g { ?s ?p ?o ~ ?e } }").expect("valid");
    assert_eq!(model.lines().len(), 2);
    model.check("CLEAR GRAPH :g", "");
}

#[test]
fn documents_are_loaded_if_the_caller_says_so() {
    let mut model = Model::of("INSERT DATA { :a :p :b }");
    assert_eq!(kind(model.update("LOAD <http://docs/a.ttl>")), ErrorKind::Unsupported);
    model.check("LOAD SILENT <http://docs/a.ttl>", "a p b");
    let open = |iri: &str| match iri {
        "http://docs/a.ttl" => Ok(Source::bytes("a.ttl", *b"<http://a/c> <http://a/p> _:x . <#y> a <>.")),
        "http://docs/bad.ttl" => Ok(Source::bytes("bad.ttl", *b"<http://a/c> <http://a/q> 1 . oops")),
        "http://docs/edge.ttl" => {
            Ok(Source::bytes("e.ttl", *b"<http://a/c> <http://a/q> <http://a/d> ~ <http://a/e> ."))
        }
        _ => Err(Error::new(ErrorKind::Input, "there is no such document")),
    };
    let options = || UpdateOptions {
        documents: Some(Documents::new(["http://docs/"], open)),
        ..UpdateOptions::default()
    };
    let kinds = [
        ("http://docs/bad.ttl", ErrorKind::Input),
        ("http://docs/nothing", ErrorKind::Input),
        ("http://elsewhere/a.ttl", ErrorKind::Input),
        ("http://docs/edge.ttl", ErrorKind::Unsupported),
    ];
    for (iri, expected) in kinds {
        assert_eq!(kind(model.update_with(&format!("LOAD <{iri}>"), &mut options())), expected, "{iri}");
        model.update_with(&format!("LOAD SILENT <{iri}> INTO GRAPH :g"), &mut options()).expect("silent");
        model.holds("a p b", iri);
    }
    let text = "LOAD <http://docs/a.ttl> INTO GRAPH :g ; LOAD <http://docs/a.ttl> INTO GRAPH :g";
    // Two loads create two blank nodes.
    assert_eq!(model.update_with(text, &mut options()).expect("there").inserted, 3);
    let typed =
        "<http://docs/a.ttl#y> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://docs/a.ttl> @g";
    model.holds(&format!("a p b; c p _ @g; {typed}"), text);
}

#[test]
fn parameters_and_limits() {
    let mut model = Model::of("INSERT DATA { :a :p :b . :c :p :b }");
    let with = |query: QueryOptions| UpdateOptions { query, documents: None };
    let query = || {
        QueryOptions::default()
            .with_parameter("who", node("a"))
            .with_parameter("text", Literal::new_simple_literal("a text of some length"))
    };
    let text = "INSERT { ?who :says ?text } WHERE { ?who :p :b } ; INSERT { :d :says ?text } WHERE {}";
    model.update_with(text, &mut with(query())).expect("valid");
    let says = "a p b; c p b; a says \"a text of some length\"; d says \"a text of some length\"";
    model.holds(says, text);
    assert_eq!(kind(model.update_with("INSERT DATA { :a :b :c }", &mut with(query()))), ErrorKind::Query);
    let token = CancelToken::new();
    token.cancel();
    let query = QueryOptions::default().with_cancel(&token);
    assert_eq!(kind(model.update_with("CLEAR SILENT ALL", &mut with(query))), ErrorKind::Cancelled);
    let query = QueryOptions { memory_limit_bytes: Some(1000), ..QueryOptions::default() };
    let text = "INSERT { ?a :x ?e } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";
    assert_eq!(kind(model.update_with(text, &mut with(query))), ErrorKind::MemoryLimit);
    model.holds(says, "nothing changed");
}

#[test]
fn much_data_comes_in_pieces() {
    let mut text = String::from("INSERT DATA {");
    for i in 0..40_000 {
        text += &format!(":s{} :p {i} .", i % 100);
    }
    text += "}";
    let mut model = Model::default();
    assert_eq!(model.update(&text).expect("valid").inserted, 40_000);
    assert_eq!(model.update("DELETE WHERE { :s7 ?p ?o }").expect("valid").removed, 400);
    assert_eq!(model.update("CLEAR ALL").expect("valid").removed, 39_600);
}
