//! `EXPLAIN`: plans as text.
//!
//! One line for each step: operator and operands, with variable names and shortened terms, then estimated
//! rows, and with a profile actual rows and time. Nested pipelines are children of their step.

mod steps;

pub use steps::{PlanStep, explain_steps};

use std::fmt::Write;
use vervet_algebra::{Aggregate, AggregateKind, Comparator, Expression, Function, OrderKey, Path, Variable};
use vervet_kernel::plan::{
    Access, GraphOperand, JoinKind, Match, Operand, PathGraphs, Pipeline, Plan, Profile, SemiJoinKind, Step,
};
use vervet_model::{Direction, Id, Tag, TermParts};
use vervet_snapshot::{GraphFilter, Snapshot};

/// A name for the beginning of IRIs: `("ub", "http://swat.cse.lehigh.edu/onto/univ-bench.owl#")`.
pub type Prefix<'a> = (&'a str, &'a str);

/// Maximum length of a literal or a condition; longer ones are truncated.
const TEXT_MAX: usize = 60;

/// Formats the plan as a tree with estimated rows.
#[must_use]
pub fn explain(plan: &Plan, snapshot: &dyn Snapshot, prefixes: &[Prefix<'_>]) -> String {
    Writer { plan, snapshot, prefixes, threads: &[] }.write(None)
}

/// [`explain`] with the number of threads of each step, by step number ([`Pipeline::number_steps`]), if any
/// step has more than one; with a profile also actual rows and time, summed over all threads.
#[must_use]
pub fn explain_threads(
    plan: &Plan,
    threads: &[usize],
    profile: Option<&Profile>,
    snapshot: &dyn Snapshot,
    prefixes: &[Prefix<'_>],
) -> String {
    let threads = if threads.iter().any(|&threads| threads > 1) { threads } else { &[] };
    Writer { plan, snapshot, prefixes, threads }.write(profile)
}

/// Formats the plan as a tree with estimated rows, actual rows and time. The time of a step includes that of
/// its nested pipelines.
#[must_use]
pub fn explain_profile(
    plan: &Plan,
    profile: &Profile,
    snapshot: &dyn Snapshot,
    prefixes: &[Prefix<'_>],
) -> String {
    Writer { plan, snapshot, prefixes, threads: &[] }.write(Some(profile))
}

struct Writer<'a> {
    plan: &'a Plan,
    snapshot: &'a dyn Snapshot,
    prefixes: &'a [Prefix<'a>],
    /// Number of threads by step number; empty: one each.
    threads: &'a [usize],
}

/// A line of the tree and its columns.
struct Line {
    text: String,
    cells: Vec<String>,
}

impl Writer<'_> {
    fn write(&self, profile: Option<&Profile>) -> String {
        let mut header = vec!["est. rows".to_owned()];
        if profile.is_some() {
            header.extend(["rows".to_owned(), "time".to_owned()]);
        }
        if !self.threads.is_empty() {
            header.push("threads".to_owned());
        }
        let names: Vec<_> = self.plan.result.iter().map(|variable| self.name(*variable)).collect();
        let title =
            if names.is_empty() { "plan".to_owned() } else { format!("plan for {}", names.join(" ")) };
        let mut lines = vec![Line { text: title, cells: header }];
        let mut number = 0;
        self.pipeline(&self.plan.pipeline, "", profile, &mut number, &mut lines);
        let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..lines[0].cells.len())
            .map(|at| {
                lines
                    .iter()
                    .filter_map(|line| line.cells.get(at))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for line in &lines {
            let mut row = line.text.clone();
            if !line.cells.is_empty() {
                row.extend(std::iter::repeat_n(' ', width - line.text.chars().count()));
            }
            for (cell, width) in line.cells.iter().zip(&widths) {
                let _ = write!(row, "  {cell:>width$}");
            }
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }

    fn pipeline(
        &self,
        pipeline: &Pipeline,
        indent: &str,
        profile: Option<&Profile>,
        number: &mut usize,
        lines: &mut Vec<Line>,
    ) {
        if pipeline.steps.is_empty() {
            lines.push(Line { text: format!("{indent}└─ all rows"), cells: Vec::new() });
        }
        for (at, step) in pipeline.steps.iter().enumerate() {
            let last = at + 1 == pipeline.steps.len();
            let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let mut cells = vec![estimate(step.rows)];
            if let Some(profile) = profile {
                let of_step = profile.steps.get(*number).copied().unwrap_or_default();
                cells.extend([grouped(of_step.rows_out), time(of_step.nanoseconds)]);
            }
            if let Some(threads) = self.threads.get(*number) {
                cells.push(threads.to_string());
            }
            *number += 1;
            lines
                .push(Line { text: format!("{indent}{branch}{}", self.step(&step.step, &step.keep)), cells });
            let inside = format!("{indent}{below}");
            match &step.step {
                Step::Union { branches } => {
                    for (at, pipeline) in branches.iter().enumerate() {
                        let last = at + 1 == branches.len();
                        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                        lines.push(Line {
                            text: format!("{inside}{branch}branch {}", at + 1),
                            cells: Vec::new(),
                        });
                        self.pipeline(pipeline, &format!("{inside}{below}"), profile, number, lines);
                    }
                }
                other => {
                    for nested in other.nested() {
                        self.pipeline(nested, &inside, profile, number, lines);
                    }
                }
            }
        }
    }

    fn step(&self, step: &Step, keep: &[Variable]) -> String {
        match step {
            Step::Empty => "empty: provably no solution".to_owned(),
            Step::Scan { access, key, neighbour } => {
                format!("scan       {}", self.entry(Operand::Variable(*key), access, *neighbour))
            }
            Step::Seek { access, key, neighbour, candidates } => {
                let entry = self.entry(Operand::Variable(*key), access, *neighbour);
                format!("seek       {entry}  among {} values", grouped(candidates.count))
            }
            Step::Expand { key, access, neighbour, edge } => {
                let entry = self.entry(*key, access, *neighbour);
                let edge = edge.map_or_else(String::new, |edge| format!(" as {}", self.name(edge)));
                format!("expand     {entry}{edge}")
            }
            Step::Check { key, access, neighbour } => {
                format!(
                    "check      {} {} {}",
                    self.operand(*key),
                    self.arrow(access),
                    self.operand(*neighbour)
                )
            }
            Step::Intersect { target, legs, count_only } => {
                let legs: Vec<_> = legs
                    .iter()
                    .map(|leg| format!("{} {}", self.operand(leg.key), self.arrow(&leg.access)))
                    .collect();
                let target = if *count_only { "(count)".to_owned() } else { self.name(*target) };
                format!("intersect  {target} in {}", legs.join(" and "))
            }
            Step::Match(pattern) if pattern.predicates_once => {
                format!("match      {} (each predicate once)", self.pattern(pattern))
            }
            Step::Match(pattern) => format!("match      {}", self.pattern(pattern)),
            Step::SeekMatch { pattern, candidates } => {
                format!("seek       {}  among {} values", self.pattern(pattern), grouped(candidates.count))
            }
            Step::Filter(condition) => format!("filter     {}", self.condition(condition)),
            Step::Extend { variable, expression } => {
                format!("extend     {} = {}", self.name(*variable), self.condition(expression))
            }
            Step::Values { variables, rows } => {
                let first: Vec<_> = rows.first().into_iter().flatten().map(|id| self.term(*id)).collect();
                let names = self.names(variables);
                match rows.len() {
                    1 => format!("values     {names} = {}", first.join(" ")),
                    count => format!("values     {names}: {count} rows"),
                }
            }
            Step::Join { kind: JoinKind::Inner(None), on, compatible, adds, .. }
                if on.is_empty() && compatible.is_empty() && adds.is_empty() =>
            {
                "product    by the number of solutions".to_owned()
            }
            Step::Join { kind: JoinKind::Semi(None), on, compatible, .. }
                if on.is_empty() && compatible.is_empty() =>
            {
                "exists     any solution".to_owned()
            }
            Step::Join { kind, on, compatible, .. } => {
                let name = match kind {
                    JoinKind::Inner(_) => "join",
                    JoinKind::Left(_) => "left join",
                    JoinKind::Minus => "minus",
                    JoinKind::Semi(_) => "semi join",
                    JoinKind::Anti(_) => "anti join",
                };
                let mut text = format!("hash {name}");
                if let Some(condition) = kind.condition() {
                    let _ = write!(text, " if {}", self.condition(condition));
                }
                if !on.is_empty() {
                    let _ = write!(text, " on {}", self.names(on));
                }
                if !compatible.is_empty() {
                    let _ = write!(text, " where compatible {}", self.names(compatible));
                }
                text
            }
            Step::Optional { .. } => "optional".to_owned(),
            Step::Seeded { seed, on, .. } => {
                format!("optional   from each {} on {}", self.name(*seed), self.names(on))
            }
            Step::Exists { semi_join_kind, .. } => match semi_join_kind {
                SemiJoinKind::Semi => "exists".to_owned(),
                SemiJoinKind::Anti => "not exists".to_owned(),
                SemiJoinKind::Mark(variable) => format!("exists     {} =", self.name(*variable)),
            },
            Step::Path(step) => {
                let graphs = match &step.graphs {
                    PathGraphs::These(graphs) => match graphs.as_slice() {
                        [GraphFilter::Default] => String::new(),
                        [GraphFilter::Named(graph)] => format!(" in {}", self.term(*graph)),
                        graphs => format!(" in {} graphs", graphs.len()),
                    },
                    PathGraphs::Variable(graph) => format!(" in {}", self.name(*graph)),
                };
                let end = |operand: Operand, tested: bool| match operand {
                    Operand::Variable(variable) if tested && !keep.contains(&variable) => "(any)".to_owned(),
                    operand => self.operand(operand),
                };
                let [of_subject, of_object] = step.tested;
                let (subject, object) = (end(step.subject, of_subject), end(step.object, of_object));
                format!("path       {subject} {} {object}{graphs}", cut(&self.path(&step.path)))
            }
            Step::Union { .. } => "union".to_owned(),
            Step::Group { keys, aggregates } => {
                let computed: Vec<_> = aggregates
                    .iter()
                    .map(|(variable, aggregate)| {
                        format!("{} = {}", self.name(*variable), self.aggregate(aggregate))
                    })
                    .collect();
                let by = if keys.is_empty() { String::new() } else { format!("by {} ", self.names(keys)) };
                format!("group      {by}{}", computed.join(", "))
            }
            Step::Distinct { variables } => format!("distinct   {}", self.names(variables)),
            Step::Frontier { variables } => format!("frontier   {} once", self.names(variables)),
            Step::Order { keys, limit } => {
                let keys: Vec<_> = keys.iter().map(|key| self.order_key(key)).collect();
                let limit = limit.map_or_else(String::new, |limit| format!(" (first {limit})"));
                format!("order      {}{limit}", keys.join(" "))
            }
            Step::Slice { start, length } => match (start, length) {
                (0, Some(length)) => format!("slice      first {length}"),
                (start, Some(length)) => format!("slice      skip {start}, then {length}"),
                (start, None) => format!("slice      skip {start}"),
            },
        }
        .trim_end()
        .to_owned()
    }

    fn name(&self, variable: Variable) -> String {
        match self.plan.variables.get(variable.index()) {
            Some(name) if !name.is_empty() => format!("?{name}"),
            _ => format!("?_{}", variable.0),
        }
    }

    fn names(&self, variables: &[Variable]) -> String {
        variables.iter().map(|variable| self.name(*variable)).collect::<Vec<_>>().join(" ")
    }

    fn entry(&self, key: Operand, access: &Access, neighbour: Option<Variable>) -> String {
        let neighbour = neighbour.map_or_else(|| "(count)".to_owned(), |neighbour| self.name(neighbour));
        format!("{} {} {neighbour}", self.operand(key), self.arrow(access))
    }

    fn arrow(&self, access: &Access) -> String {
        let predicate = self.term(access.predicate);
        let graph = match access.graph {
            GraphFilter::Default => String::new(),
            GraphFilter::Named(graph) => format!(" in {}", self.term(graph)),
            GraphFilter::AnyNamed => " in any named graph".to_owned(),
            GraphFilter::Any => " in any graph".to_owned(),
        };
        match access.direction {
            Direction::Out => format!("─{predicate}{graph}→"),
            Direction::In => format!("←{predicate}{graph}─"),
        }
    }

    fn pattern(&self, pattern: &Match) -> String {
        let mut text = format!(
            "{} {} {}",
            self.operand(pattern.subject),
            self.operand(pattern.predicate),
            self.operand(pattern.object)
        );
        match pattern.graph {
            GraphOperand::Filter(GraphFilter::Default) => {}
            GraphOperand::Filter(GraphFilter::Any) => text.push_str(" in any graph"),
            GraphOperand::Filter(GraphFilter::AnyNamed) => text.push_str(" in any named graph"),
            GraphOperand::Filter(GraphFilter::Named(graph)) => {
                let _ = write!(text, " in {}", self.term(graph));
            }
            GraphOperand::Variable(graph) => {
                let _ = write!(text, " in {}", self.name(graph));
            }
        }
        if let Some(edge) = pattern.edge {
            let _ = write!(text, " as {}", self.operand(edge));
        }
        text
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Variable(variable) => self.name(variable),
            Operand::Constant(id) => self.term(id),
        }
    }

    fn term(&self, id: Id) -> String {
        if !id.is_bound() {
            return "UNDEF".to_owned();
        }
        if id.tag() == Tag::Computed {
            let term = usize::try_from(id.payload()).ok().and_then(|at| self.plan.computed.get(at));
            return term.map_or_else(|| format!("{id:?}"), |term| cut(&self.shorten(&term.to_string())));
        }
        let mut text = String::new();
        let mut scratch = String::new();
        let read = self.snapshot.read_term(id, &mut scratch, &mut |parts: TermParts<'_>| {
            text = parts.to_term().to_string();
        });
        match read {
            Ok(()) => cut(&self.shorten(&text)),
            Err(_) => format!("{id:?}"),
        }
    }

    fn shorten(&self, term: &str) -> String {
        let Some(iri) = term.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
            return term.to_owned();
        };
        let best = self
            .prefixes
            .iter()
            .filter_map(|(name, namespace)| Some((namespace.len(), name, iri.strip_prefix(namespace)?)))
            .filter(|(.., local)| !local.contains(['/', '#']))
            // Of equal ones the first: those of the query come first.
            .reduce(|best, other| if other.0 > best.0 { other } else { best });
        match best {
            Some((_, name, local)) => format!("{name}:{local}"),
            None if iri == vervet_model::vocab::RDF_TYPE => "rdf:type".to_owned(),
            None => term.to_owned(),
        }
    }

    fn path(&self, path: &Path) -> String {
        let all = |parts: &[Path], between: &str| {
            format!("({})", parts.iter().map(|part| self.path(part)).collect::<Vec<_>>().join(between))
        };
        match path {
            Path::Predicate(iri) if iri.as_str() == vervet_model::vocab::RDF_TYPE => "a".to_owned(),
            Path::Predicate(iri) => self.shorten(&iri.to_string()),
            Path::Except(these) => {
                let these: Vec<_> = these.iter().map(|iri| self.shorten(&iri.to_string())).collect();
                format!("!({})", these.join("|"))
            }
            Path::Inverse(path) => format!("^{}", self.path(path)),
            Path::Sequence(parts) => all(parts, "/"),
            Path::Alternative(parts) => all(parts, "|"),
            Path::ZeroOrOne(path) => format!("{}?", self.path(path)),
            Path::ZeroOrMore(path) => format!("{}*", self.path(path)),
            Path::OneOrMore(path) => format!("{}+", self.path(path)),
        }
    }

    fn order_key(&self, key: &OrderKey) -> String {
        let text = self.condition(&key.expression);
        if key.descending { format!("desc({text})") } else { text }
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let name = match &aggregate.kind {
            AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Avg => "avg",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::Sample => "sample",
            AggregateKind::GroupConcat { .. } => "group_concat",
        };
        let of = aggregate.expression.as_ref().map_or_else(|| "*".to_owned(), |of| self.expression(of));
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        format!("{name}({distinct}{of})")
    }

    fn condition(&self, expression: &Expression) -> String {
        cut(&self.expression(expression))
    }

    fn expression(&self, expression: &Expression) -> String {
        let one = |operand: &Expression| match operand {
            Expression::Or(_)
            | Expression::And(_)
            | Expression::Equal(..)
            | Expression::Compare(..)
            | Expression::In(..)
            | Expression::Add(..)
            | Expression::Subtract(..)
            | Expression::Multiply(..)
            | Expression::Divide(..) => format!("({})", self.expression(operand)),
            other => self.expression(other),
        };
        let all = |operands: &[Expression], between: &str| {
            operands.iter().map(one).collect::<Vec<_>>().join(between)
        };
        let list = |operands: &[Expression]| {
            operands.iter().map(|operand| self.expression(operand)).collect::<Vec<_>>().join(", ")
        };
        let two = |a: &Expression, sign: &str, b: &Expression| format!("{} {sign} {}", one(a), one(b));
        match expression {
            Expression::Constant(term) => self.shorten(&term.to_string()),
            Expression::Variable(variable) => self.name(*variable),
            Expression::Unbound => "unbound".to_owned(),
            Expression::Bound(variable) => format!("bound({})", self.name(*variable)),
            Expression::Or(operands) => all(operands, " || "),
            Expression::And(operands) => all(operands, " && "),
            Expression::Not(operand) => format!("!{}", one(operand)),
            Expression::Equal(a, b) => two(a, "=", b),
            Expression::SameTerm(a, b) => format!("sameTerm({}, {})", self.expression(a), self.expression(b)),
            Expression::Compare(comparator, a, b) => {
                let sign = match comparator {
                    Comparator::Less => "<",
                    Comparator::LessOrEqual => "<=",
                    Comparator::Greater => ">",
                    Comparator::GreaterOrEqual => ">=",
                };
                two(a, sign, b)
            }
            Expression::In(operand, operands) => format!("{} in ({})", one(operand), list(operands)),
            Expression::Add(a, b) => two(a, "+", b),
            Expression::Subtract(a, b) => two(a, "-", b),
            Expression::Multiply(a, b) => two(a, "*", b),
            Expression::Divide(a, b) => two(a, "/", b),
            Expression::Plus(operand) => format!("+{}", one(operand)),
            Expression::Minus(operand) => format!("-{}", one(operand)),
            Expression::If(a, b, c) => {
                format!("if({}, {}, {})", self.expression(a), self.expression(b), self.expression(c))
            }
            Expression::Exists(_) => "exists {…}".to_owned(),
            Expression::Coalesce(operands) => format!("coalesce({})", list(operands)),
            Expression::Call(function, operands) => {
                format!("{}({})", self.function(function), list(operands))
            }
        }
    }

    fn function(&self, function: &Function) -> String {
        match function {
            Function::Cast(datatype) => self.shorten(&datatype.to_string()),
            Function::Iri { .. } => "iri".to_owned(),
            Function::EqualityKey => "equality_key".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}

/// The end of an IRI, or the beginning of another text, within [`TEXT_MAX`] characters.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= TEXT_MAX {
        return text.to_owned();
    }
    match text.starts_with('<') {
        true => "<…".chars().chain(text.chars().skip(length - (TEXT_MAX - 2))).collect(),
        false => text.chars().take(TEXT_MAX - 1).chain(['…']).collect(),
    }
}

/// Formats an estimate: small ones with one decimal, large ones rounded.
fn estimate(rows: f64) -> String {
    if rows < 0.05 {
        "0".to_owned()
    } else if rows < 9.95 {
        let text = format!("{rows:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    } else if rows < 1e15 {
        format!("{rows:.0}").parse().map_or_else(|_| format!("{rows:.0}"), grouped)
    } else {
        format!("{rows:.0e}")
    }
}

/// Formats a number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn time(nanoseconds: u64) -> String {
    let ns = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
