//! Bytes of jobs, tasks and outcomes: they are read as they were written, and other bytes are refused.

use crate::moved::MovedRows;
use crate::task::{
    Answered, Combine, Fragment, Job, Outcome, ReceivedTask, Task, bytes_of, read_delivered, read_delivery,
    read_job, write_delivered, write_delivery,
};
use crate::wire::Wire;
use oxrdf::{Literal, NamedNode, Term, Triple};
use std::sync::Arc;
use vervet_algebra::{Comparator, Expression, Function, OrderKey, Path, Variable};
use vervet_kernel::Batch;
use vervet_kernel::plan::{
    Access, Automaton, CandidateKeys, GraphOperand, JoinKind, Leg, Match, Move, Operand, PathGraphs,
    PathStep, Pipeline, PlanStep, SemiJoinKind, Sent, Step, StepProfile, StringRange,
};
use vervet_model::{Direction, Id, Multiplicity};
use vervet_snapshot::GraphFilter;

const A: Variable = Variable(0);
const B: Variable = Variable(3);

fn access(direction: Direction) -> Access {
    let graph = GraphFilter::Named(Id::vertex(7));
    Access { predicate: Id::vertex(1_000_000), direction, graph, parallel: true }
}

fn pipeline(steps: Vec<Step>) -> Pipeline {
    let keep = vec![A, B];
    let of = |step| PlanStep { step, keep: keep.clone(), rows: 12.5, validity: None };
    Pipeline { steps: steps.into_iter().map(of).collect() }
}

fn terms() -> Vec<Term> {
    let name = NamedNode::new_unchecked("http://example.com/ä");
    let tagged = Literal::new_language_tagged_literal_unchecked("x\n\"", "de-CH");
    let directed =
        Literal::new_directional_language_tagged_literal_unchecked("שלום", "he", oxrdf::BaseDirection::Rtl);
    let triple = Triple::new(name.clone(), name.clone(), tagged.clone());
    vec![
        name.clone().into(),
        oxrdf::BlankNode::new_unchecked("b1").into(),
        Literal::from("").into(),
        Literal::from(-4).into(),
        tagged.into(),
        directed.into(),
        Literal::new_typed_literal("odd", name).into(),
        triple.into(),
    ]
}

fn expressions() -> Expression {
    let variable = || Box::new(Expression::Variable(A));
    let constants = terms().into_iter().map(Expression::Constant).collect::<Vec<_>>();
    let name = NamedNode::new_unchecked("http://www.w3.org/2001/XMLSchema#date");
    let call = |function| Expression::Call(function, vec![Expression::Variable(B)]);
    Expression::And(vec![
        Expression::Or(vec![Expression::Unbound, Expression::Bound(A), Expression::Not(variable())]),
        Expression::Equal(variable(), variable()),
        Expression::SameTerm(variable(), variable()),
        Expression::Compare(Comparator::GreaterOrEqual, variable(), variable()),
        Expression::In(variable(), constants),
        Expression::Add(variable(), Box::new(Expression::Subtract(variable(), variable()))),
        Expression::Multiply(variable(), Box::new(Expression::Divide(variable(), variable()))),
        Expression::Plus(Box::new(Expression::Minus(variable()))),
        Expression::If(variable(), variable(), variable()),
        Expression::Coalesce(vec![
            call(Function::StrLen),
            call(Function::Iri { base: Some("http://example.com/".to_owned()) }),
            call(Function::Cast(name.clone())),
            call(Function::Unknown(name)),
            call(Function::Regex),
        ]),
    ])
}

/// A job with every step that has bytes.
fn job() -> Job {
    let candidates = CandidateKeys {
        keys: vec![(Id::vertex(3), Id::vertex(9))],
        literals: 4..90,
        string_range: Some(StringRange { from: b"a".to_vec(), to: None }),
        search: None,
        count: 77,
    };
    let pattern = Match {
        subject: Operand::Variable(A),
        predicate: Operand::Constant(Id::vertex(2)),
        object: Operand::Variable(B),
        graph: GraphOperand::Variable(B),
        edge: Some(Operand::Variable(A)),
        parallel: false,
        predicates_once: true,
    };
    let moves = vec![
        vec![(Move::Predicate(Id::vertex(5), Direction::In), 1)],
        vec![(Move::Except(Arc::from([Id::vertex(1), Id::vertex(2)]), Direction::Out), 0)],
    ];
    let name = NamedNode::new_unchecked("http://example.com/p");
    let path = Path::Sequence(vec![
        Path::ZeroOrMore(Box::new(Path::Inverse(Box::new(Path::Predicate(name.clone()))))),
        Path::Alternative(vec![Path::Except(vec![name]), Path::ZeroOrOne(Box::new(Path::Sequence(vec![])))]),
    ]);
    let path = PathStep {
        subject: Operand::Variable(A),
        object: Operand::Variable(B),
        path,
        automaton: Arc::new(Automaton { moves, accepting: vec![false, true] }),
        graphs: PathGraphs::These(vec![GraphFilter::Any, GraphFilter::Default, GraphFilter::AnyNamed]),
        zero_length: [true, false],
        tested: [false, true],
    };
    let inner = || pipeline(vec![Step::Filter(expressions())]);
    let (key, neighbour) = (Operand::Variable(A), Operand::Variable(B));
    let out = || access(Direction::Out);
    let steps = vec![
        Step::Empty,
        Step::Scan { access: out(), key: A, neighbour: Some(B) },
        Step::Seek { access: out(), key: A, neighbour: None, candidates: candidates.clone() },
        Step::Expand { key, access: access(Direction::In), neighbour: Some(B), edge: Some(A) },
        Step::Check { key, access: out(), neighbour },
        Step::Intersect { target: B, legs: vec![Leg { key, access: out() }; 2], count_only: true },
        Step::Match(pattern),
        Step::SeekMatch { pattern, candidates },
        Step::Filter(expressions()),
        Step::Extend { variable: B, expression: Expression::Variable(A) },
        Step::Values { variables: vec![A, B], rows: Arc::from([vec![Id::UNBOUND, Id::literal(4)]]) },
        Step::Optional { inner: inner(), row: B },
        Step::Seeded { inner: inner(), seed: A, on: vec![A], adds: vec![B] },
        Step::Path(path),
        Step::Exists { inner: inner(), row: B, semi_join_kind: SemiJoinKind::Mark(A) },
        Step::Union { branches: vec![inner(), Pipeline::default()] },
        Step::Frontier { variables: vec![A] },
        Step::Order {
            keys: vec![OrderKey { expression: Expression::Variable(B), descending: true }],
            limit: Some(30),
        },
    ];
    Job {
        variables: 4,
        origin: 2,
        query: u64::MAX,
        pipeline: pipeline(steps),
        fragments: vec![Fragment { steps: 0..3, key: None }, Fragment { steps: 3..18, key: Some(B) }],
        behind: 3,
        combine: Combine::Sum,
        now: [7; 18],
        base: Some("http://example.com/".to_owned()),
        computed: terms(),
        tables: Vec::new(),
        memory_bytes: Some(1 << 40),
        profile: true,
        is_heavy: true,
        assignment: Vec::new(),
        build: 0,
        places: Vec::new(),
    }
}

#[test]
fn an_assignment_is_part_of_a_job() {
    let assigned = Job { assignment: vec![0, 2, 1, 2], build: 100, ..job() };
    let bytes = bytes_of(&assigned).expect("a job");
    assert_eq!(read_job(&bytes).expect("read"), assigned);
    assert_eq!(bytes[..bytes.len() - 6], *bytes_of(&job()).expect("a job"));
}

fn rows() -> MovedRows {
    let mut rows = Batch::new(4);
    rows.rows = 3;
    rows.columns[3] = vec![Id::vertex(70_000), Id::UNBOUND, Id::from_bits(u64::MAX)];
    rows.multiplicity =
        [1, 2, u128::MAX >> 1].map(|one| Multiplicity::from_count(one).expect("small")).to_vec();
    MovedRows::plain(rows)
}

fn is_same(one: &MovedRows, other: &MovedRows) -> bool {
    let bytes = |rows: &MovedRows| {
        let mut bytes = Vec::new();
        rows.write(&mut bytes);
        bytes
    };
    bytes(one) == bytes(other)
}

#[test]
fn jobs_tasks_and_outcomes_are_their_bytes() {
    let (job, rows) = (job(), rows());
    let bytes = bytes_of(&job).expect("steps with bytes");
    assert_eq!(read_job(&bytes).expect("a job"), job);
    let mut request = Vec::new();
    Task { number: u64::MAX, job: &bytes, fragment: 1, partitions: &[5, 300], rows: &rows }
        .write(&mut request);
    let (task, ()) =
        ReceivedTask::read(&request[1..], |_, _, _| Some(())).expect("a task").expect("admitted");
    let refused = ReceivedTask::read(&request[1..], |_, number, fragment| {
        assert_eq!((number, fragment), (u64::MAX, 1));
        None::<()>
    });
    assert!(refused.expect("a task").is_none());
    assert_eq!(
        (task.number, task.job, task.fragment, &*task.partitions, task.job_bytes),
        (u64::MAX, job, 1, &[5, 300][..], &*bytes)
    );
    assert!(is_same(&task.rows, &rows));
    let figures = vec![StepProfile { rows_in: 1, rows_out: u64::MAX, nanoseconds: 3 }];
    let outcome = Outcome {
        rows: rows.clone(),
        delivered: 9,
        sent: vec![Sent::default(), Sent { rows: 2, bytes: 3 }],
        figures: figures.clone(),
    };
    let mut bytes = Vec::new();
    outcome.write(&mut bytes);
    let read = Outcome::read(&bytes, 4).expect("an outcome");
    assert!(is_same(&read.rows, &rows));
    // The answer itself was sent back.
    let back = Sent { rows: 5, bytes: 3 + bytes.len() as u64 };
    assert_eq!((read.delivered, read.sent, read.figures), (9, vec![Sent::default(), back], figures));
    let mut bytes = Vec::new();
    write_delivery(77, &rows, &mut bytes);
    let (number, read) = read_delivery(&bytes[1..]).expect("a delivery");
    assert!(number == 77 && is_same(&read, &rows));
}

#[test]
fn steps_without_bytes_are_not_sent() {
    let order = |limit| Step::Order { keys: Vec::new(), limit };
    let slice = Step::Slice { start: 0, length: None };
    for step in [slice, Step::Distinct { variables: vec![A] }, order(None), order(Some(1 << 30))] {
        let fragments = vec![Fragment { steps: 0..1, key: None }];
        let job = Job { pipeline: pipeline(vec![step]), fragments, ..job() };
        assert!(bytes_of(&job).is_none());
    }
    let mut deep = Expression::Unbound;
    for _ in 0..10_000 {
        deep = Expression::Not(Box::new(deep));
    }
    let mut bytes = Vec::new();
    deep.write(&mut bytes);
    assert!(Expression::read(&mut crate::wire::Input::new(&bytes)).is_err());
    // It is dropped as it was made: level by level.
    while let Expression::Not(inner) = deep {
        deep = *inner;
    }
}

#[test]
fn groups_are_last() {
    let group = || Step::Group { keys: vec![A], aggregates: Vec::new() };
    let has_bytes = |steps: Vec<Step>| {
        let fragments = vec![Fragment { steps: 0..steps.len(), key: None }];
        bytes_of(&Job { pipeline: pipeline(steps), fragments, ..job() }).is_some()
    };
    let nested = Step::Union { branches: vec![pipeline(vec![group()])] };
    assert!(has_bytes(vec![Step::Empty, group()]));
    assert!(!has_bytes(vec![group(), Step::Empty]) && !has_bytes(vec![nested]));
}

#[test]
fn joins_have_their_tables() {
    let condition = Some(expressions());
    let join = |compatible: Vec<Variable>, steps: usize| Step::Join {
        right: pipeline(vec![Step::Empty; steps]),
        kind: JoinKind::Left(condition.clone()),
        on: vec![A],
        compatible,
        adds: vec![B],
    };
    let of = |steps: Vec<Step>, tables: Vec<MovedRows>| {
        let fragments = vec![Fragment { steps: 0..steps.len(), key: None }];
        Job { pipeline: pipeline(steps), fragments, tables, ..job() }
    };
    let whole = of(vec![join(vec![B], 3), Step::Empty, join(Vec::new(), 0)], vec![rows(), rows()]);
    let read = read_job(&bytes_of(&whole).expect("steps with bytes")).expect("a job");
    assert_eq!((read.tables, read.pipeline.number_steps()), (whole.tables, 6));
    let refused = |steps: Vec<Step>, tables: Vec<MovedRows>| {
        assert!(bytes_of(&of(steps, tables)).is_none());
    };
    refused(vec![join(Vec::new(), 1)], Vec::new());
    refused(vec![Step::Empty], vec![rows()]);
    refused(vec![Step::Union { branches: vec![pipeline(vec![join(Vec::new(), 1)])] }], vec![rows()]);
    refused(vec![join(vec![A; 65], 1)], vec![rows()]);
    refused(vec![join(Vec::new(), 1_000)], vec![rows()]);
}

/// Bytes of a few rows or steps that would take much to run.
#[test]
fn jobs_and_rows_are_bounded() {
    let refused = |result: vervet_model::Result<()>| {
        let error = result.expect_err("too much");
        assert_eq!(error.kind(), vervet_model::ErrorKind::Unavailable, "{error}");
    };
    // 2^36 rows without a column in ten bytes.
    let mut bytes = Vec::new();
    (77_u64, 4_u64).write(&mut bytes);
    (1_u64 << 36, 0_u64).write(&mut bytes);
    false.write(&mut bytes);
    refused(read_delivery(&bytes).map(drop));
    let of = |steps: usize, fragments: Vec<Fragment>| {
        let steps = vec![Step::Empty; steps];
        Job { pipeline: pipeline(steps), fragments, behind: 0, ..job() }
    };
    let each = |count: usize| (0..count).map(|at| Fragment { steps: at..at + 1, key: Some(A) }).collect();
    let all = |steps: usize| vec![Fragment { steps: 0..steps, key: None }];
    assert!(bytes_of(&of(1_000, all(1_000))).is_some() && bytes_of(&of(64, each(64))).is_some());
    assert!(bytes_of(&of(1_001, all(1_001))).is_none() && bytes_of(&of(65, each(65))).is_none());
    for (behind, fits) in [(24, true), (25, false), (usize::MAX, false)] {
        assert_eq!(bytes_of(&Job { behind, ..of(40, each(40)) }).is_some(), fits, "{behind} behind");
    }
    let long = Job { base: Some("x".repeat(300_000)), ..job() };
    assert!(bytes_of(&long).is_none());
    let job = bytes_of(&job()).expect("steps with bytes");
    for partitions in [&[3, 3][..], &[4, 2]] {
        let mut request = Vec::new();
        Task { number: 1, job: &job, fragment: 0, partitions, rows: &rows() }.write(&mut request);
        refused(ReceivedTask::read(&request[1..], |_, _, _| Some(())).map(drop));
    }
}

#[test]
fn answers_are_their_bytes() {
    for (bytes, is_busy) in [(&[1][..], true), (&[2], false)] {
        let answered = Answered::read(bytes, 4).expect("an answer");
        assert_eq!(matches!(answered, Answered::Busy), is_busy);
        let mut written = Vec::new();
        answered.write(&mut written);
        assert_eq!(written, bytes);
    }
    for bytes in [&[][..], &[3], &[1, 0], &[2, 9]] {
        assert!(Answered::read(bytes, 4).is_err() && read_delivered(bytes).is_err());
    }
    for is_needed in [true, false] {
        let mut bytes = Vec::new();
        write_delivered(is_needed, &mut bytes);
        assert_eq!(read_delivered(&bytes).expect("an answer"), is_needed);
    }
}

/// Bytes that were changed, cut or made up are a job or an error, never a panic, and take little memory.
#[test]
fn other_bytes_are_refused() {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_128);
    println!("seed {seed}");
    let mut state: u64 = seed;
    let mut random = || {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 1).unwrap_or(0)
    };
    let job = bytes_of(&job()).expect("steps with bytes");
    let mut request = Vec::new();
    Task { number: 1, job: &job, fragment: 1, partitions: &[], rows: &rows() }.write(&mut request);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = request[1..].to_vec();
        for _ in 0..=random() % 3 {
            let at = random() % bytes.len();
            match random() % 4 {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = 0xFF,
                2 => bytes.insert(at, u8::try_from(random() % 256).unwrap_or(0)),
                _ => bytes[at] ^= 1 << (random() % 8),
            }
        }
        refused += usize::from(ReceivedTask::read(&bytes, |_, _, _| Some(())).is_err());
        let _ = Outcome::read(&bytes, 4);
        let _ = read_delivery(&bytes);
    }
    assert!(refused > 5_000, "{refused} were refused");
}
