//! The units that can continue a random traversal, by the kind of the traverser's value.

use super::graph::{EDGE_LABELS, VERTEX_LABELS};
use super::traversal::{Kind, OrderEffect, Unit, Writer, text};

type Step = (Unit, Kind, OrderEffect);

/// Ids without duplicates: TinkerGraph may find a duplicate id twice, which is undocumented.
fn once(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn boxed(kind: &Kind) -> Box<Kind> {
    Box::new(kind.clone())
}

impl Writer<'_> {
    /// The first unit of a traversal.
    pub(super) fn start(&mut self) -> (Unit, Kind) {
        match self.random.below(12) {
            0..6 => (Unit::new("V()"), Kind::Vertex),
            6 | 7 => {
                let ids: Vec<String> =
                    (0..1 + self.random.below(3)).map(|_| self.graph.vertex_id(self.random)).collect();
                (Unit::new(format!("V({})", once(ids).join(","))), Kind::Vertex)
            }
            8 => {
                let label = self.random.pick(&VERTEX_LABELS);
                (Unit::new(format!("V().hasLabel('{label}')")), Kind::Vertex)
            }
            9 | 10 => (Unit::new("E()"), Kind::Edge),
            _ => {
                let (kind, count) = (Kind::Mixed, 1 + self.random.below(5));
                let values: Vec<String> = (0..count).map(|_| self.value(&kind)).collect();
                (Unit::new(format!("inject({})", values.join(","))), kind)
            }
        }
    }

    /// A unit for values of a kind, and the kind of its results. `outer`: it is not nested.
    pub(super) fn step(&mut self, kind: &Kind, depth: usize, outer: bool) -> Step {
        self.budget = self.budget.saturating_sub(1);
        let depth = if self.budget == 0 { 0 } else { depth };
        loop {
            let found = match self.random.below(100) {
                0..52 => self.of_kind(kind, depth),
                52..62 => self.filter(kind, depth),
                62..76 => self.branch(kind, depth),
                76..86 => self.history(kind, depth),
                _ => self.gathered(kind, depth, outer),
            };
            if let Some(found) = found {
                return found;
            }
        }
    }

    fn of_kind(&mut self, kind: &Kind, depth: usize) -> Option<Step> {
        match kind {
            Kind::Vertex => self.of_vertex(depth),
            Kind::Edge => self.of_edge(depth),
            Kind::VertexProperty | Kind::Property => self.of_property(kind),
            Kind::Bag(_) | Kind::List(_) => self.of_list(kind, depth),
            Kind::Project(_) | Kind::Table(..) | Kind::Entry(..) => self.of_map(kind),
            Kind::Path => Some(match self.random.below(3) {
                0 => (Unit::new("count(local)"), Kind::Long, OrderEffect::Order),
                1 => (Unit::new("unfold()"), Kind::Any, OrderEffect::Nothing),
                _ => (Unit::new("identity()"), Kind::Path, OrderEffect::Order),
            }),
            Kind::Any => Some((Unit::new("identity()"), Kind::Any, OrderEffect::Order)),
            _ => self.of_scalar(kind),
        }
    }

    fn edge_labels(&mut self) -> String {
        match self.random.below(10) {
            0..4 => String::new(),
            // Without duplicates: TinkerGraph walks such edges twice, which is undocumented.
            4 => {
                let first = self.random.below(EDGE_LABELS.len());
                format!("'{}','{}'", EDGE_LABELS[first], EDGE_LABELS[(first + 1) % EDGE_LABELS.len()])
            }
            5 if self.random.chance(20) => "'nothing'".to_owned(),
            _ => format!("'{}'", self.random.pick(&EDGE_LABELS)),
        }
    }

    fn of_vertex(&mut self, depth: usize) -> Option<Step> {
        let kind = Kind::Vertex;
        let labels = self.edge_labels();
        let direction = self.random.pick(&["out", "in", "both"]);
        Some(match self.random.below(24) {
            0..7 => (Unit::new(format!("{direction}({labels})")), kind, OrderEffect::Nothing),
            7..10 => (Unit::new(format!("{direction}E({labels})")), Kind::Edge, OrderEffect::Nothing),
            10 => (Unit::new(format!("{direction}E({labels}).otherV()")), kind, OrderEffect::Nothing),
            11 if depth > 0 => {
                let question = self.question(&Kind::Edge, depth - 1);
                let walk = format!("{direction}E({labels}).where(#).otherV()");
                (Unit::with(walk, vec![question]), kind, OrderEffect::Nothing)
            }
            12 | 13 => self.repeat(depth)?,
            14 => (Unit::new("values('tag')"), Kind::Text, OrderEffect::Nothing),
            15 => (Unit::new("values('nums')"), Kind::Mixed, OrderEffect::Nothing),
            16 => {
                let keys = self.random.pick(&["", "'tag'", "'name','age'", "'nums','tag'", "'near'"]);
                (Unit::new(format!("properties({keys})")), Kind::VertexProperty, OrderEffect::Nothing)
            }
            17 => {
                self.bags = true;
                let keys = self.random.pick(&["", "'tag'", "'name','age'", "'nums','none'"]);
                let kind = Kind::Table(Box::new(Kind::Text), Box::new(Kind::Bag(Box::new(Kind::Mixed))));
                let with = self.random.pick(&["", "", ".by(__.unfold())", ".with(WithOptions.tokens)"]);
                // One of several values would be an arbitrary choice.
                let (keys, with) = match with {
                    ".by(__.unfold())" => ("'name','age'", with),
                    _ => (keys, with),
                };
                let kind = if with.is_empty() { kind } else { Kind::Any };
                (Unit::new(format!("valueMap({keys}){with}")), kind, OrderEffect::Order)
            }
            18 => {
                let keys = self.random.pick(&["'name','age'", "'none'", "'mixed'", "'near','flag'"]);
                (Unit::new(format!("elementMap({keys})")), Kind::Any, OrderEffect::Order)
            }
            _ => self.of_element(&kind)?,
        })
    }

    fn of_edge(&mut self, _depth: usize) -> Option<Step> {
        Some(match self.random.below(14) {
            0..6 => {
                let end = self.random.pick(&["outV()", "inV()", "bothV()"]);
                (Unit::new(end), Kind::Vertex, OrderEffect::Nothing)
            }
            6 => {
                let keys = self.random.pick(&["", "'weight'", "'since','mixed'"]);
                (Unit::new(format!("properties({keys})")), Kind::Property, OrderEffect::Nothing)
            }
            7 => {
                let map = self.random.pick(&[
                    "valueMap()",
                    "elementMap()",
                    "valueMap('weight')",
                    "elementMap('since')",
                ]);
                (Unit::new(map), Kind::Any, OrderEffect::Order)
            }
            _ => self.of_element(&Kind::Edge)?,
        })
    }

    /// Units for vertices and edges.
    fn of_element(&mut self, kind: &Kind) -> Option<Step> {
        let id = if self.graph.numbered { Kind::Long } else { Kind::Text };
        let (key, of) = self.key(kind)?;
        let filter = |text: String| (Unit::new(text), kind.clone(), OrderEffect::Order);
        let count = 1 + self.random.below(4);
        let ids = (0..count).map(|_| match kind {
            Kind::Vertex => self.graph.vertex_id(self.random),
            _ => self.graph.edge_id(self.random),
        });
        let ids = once(ids.collect());
        let label = match kind {
            Kind::Vertex => self.random.pick(&VERTEX_LABELS),
            _ => self.random.pick(&EDGE_LABELS),
        };
        Some(match self.random.below(20) {
            0..5 => (Unit::new(format!("values('{key}')")), of, OrderEffect::Nothing),
            5 => (Unit::new("values()"), Kind::Mixed, OrderEffect::Nothing),
            6 => (Unit::new(format!("values('{key}','name')")), Kind::Mixed, OrderEffect::Nothing),
            7 => (Unit::new("id()"), id, OrderEffect::Order),
            8 => (Unit::new("label()"), Kind::Text, OrderEffect::Order),
            9 | 10 => filter(format!("has('{key}',{})", self.predicate(&of, 1))),
            11 | 12 => filter(format!("has('{key}',{})", self.value(&of))),
            13 => filter(format!("has('{key}')")),
            14 => filter(format!("hasNot('{key}')")),
            15 => filter(format!("hasId({})", ids.join(","))),
            16 => match self.random.below(3) {
                0 => filter(format!("hasId(P.neq({}))", ids[0])),
                1 => filter(format!("hasId(P.within({}))", ids.join(","))),
                _ => filter(format!("hasId(P.gt({}))", ids[0])),
            },
            17 => filter(format!("has('{label}','{key}',{})", self.predicate(&of, 0))),
            18 => filter(format!("hasLabel(P.neq('{label}'))")),
            _ if *kind == Kind::Vertex && self.random.chance(50) => match self.random.chance(50) {
                true => filter(format!("has('tag',{})", self.whole_predicate(&Kind::Text))),
                false => filter(format!("has('nums',{})", self.whole_predicate(&Kind::Mixed))),
            },
            _ => {
                let other = if *kind == Kind::Edge && label != "knows" { "knows" } else { "nothing" };
                filter(format!("hasLabel('{label}','{other}')"))
            }
        })
    }

    fn of_property(&mut self, kind: &Kind) -> Option<Step> {
        let of_vertex = *kind == Kind::VertexProperty;
        let filter = |text: String| (Unit::new(text), kind.clone(), OrderEffect::Order);
        Some(match self.random.below(12) {
            0..3 => (Unit::new("value()"), Kind::Mixed, OrderEffect::Order),
            3 => (Unit::new("key()"), Kind::Text, OrderEffect::Order),
            4 if of_vertex => (Unit::new("label()"), Kind::Text, OrderEffect::Order),
            5 if of_vertex => (Unit::new("properties()"), Kind::Property, OrderEffect::Nothing),
            6 if of_vertex => (Unit::new("values('since')"), Kind::Int, OrderEffect::Nothing),
            7 if of_vertex => filter(format!("has('since',{})", self.predicate(&Kind::Int, 1))),
            8 if of_vertex => (Unit::new("element()"), Kind::Vertex, OrderEffect::Order),
            9 => filter(format!("hasKey({})", self.random.pick(&["'tag'", "'since'", "'name','age'"]))),
            10 => filter(format!("hasValue({})", self.predicate(&Kind::Mixed, 1))),
            11 => filter(format!("hasValue({})", self.value(&Kind::Mixed))),
            _ if of_vertex => (Unit::new("valueMap()"), Kind::Any, OrderEffect::Order),
            _ => return None,
        })
    }

    fn of_scalar(&mut self, kind: &Kind) -> Option<Step> {
        let to = |text: &str, kind: Kind| (Unit::new(text), kind, OrderEffect::Order);
        Some(match (self.random.below(14), kind) {
            (0..4, _) => {
                let predicate = self.predicate(kind, 1);
                (Unit::new(format!("is({predicate})")), kind.clone(), OrderEffect::Order)
            }
            (4, _) => (Unit::new(format!("is({})", self.value(kind))), kind.clone(), OrderEffect::Order),
            (5 | 6, Kind::Int | Kind::Long | Kind::Double) => to(
                self.random.pick(&["math('_ + 1')", "math('_ * _ - 2')", "math('abs(_) / 4')"]),
                Kind::Double,
            ),
            (5, Kind::Text) => to("toUpper()", Kind::Text),
            (6, Kind::Text) => to("toLower()", Kind::Text),
            (7, Kind::Text) => to("length()", Kind::Int),
            (8, Kind::Text) => {
                to(self.random.pick(&["substring(1)", "substring(0,2)", "substring(1,2)"]), Kind::Text)
            }
            (9, Kind::Text) => {
                to(self.random.pick(&["reverse()", "trim()", "replace('b','xy')", "lTrim()"]), Kind::Text)
            }
            (10, Kind::Text) => to("concat('-',' z')", Kind::Text),
            (11, Kind::Text) => to("split('b')", Kind::List(Box::new(Kind::Text))),
            (7 | 8, Kind::Int | Kind::Long | Kind::Boolean | Kind::Mixed) => to("asString()", Kind::Text),
            (9, Kind::Int | Kind::Long | Kind::Double) => to("asNumber()", kind.clone()),
            (10, Kind::Int) => to("asNumber(GType.LONG)", Kind::Long),
            _ => return None,
        })
    }

    fn of_list(&mut self, kind: &Kind, depth: usize) -> Option<Step> {
        let (Kind::Bag(item) | Kind::List(item)) = kind else { return None };
        let is_list = matches!(kind, Kind::List(_));
        let to = |text: String, kind: Kind| (Unit::new(text), kind, OrderEffect::Order);
        Some(match self.random.below(14) {
            0..4 => (Unit::new("unfold()"), (**item).clone(), OrderEffect::Nothing),
            4 => to("count(local)".to_owned(), Kind::Long),
            5 if item.is_number() => to("sum(local)".to_owned(), (**item).clone()),
            6 if item.is_number() => to("mean(local)".to_owned(), Kind::Double),
            7 if item.is_ordered() => to("max(local)".to_owned(), (**item).clone()),
            8 if item.is_ordered() => {
                let by = self.random.pick(&["", ".by(asc)", ".by(desc)"]);
                let cut = self.random.pick(&["", ".limit(local,2)", ".tail(local,1)", ".range(local,1,3)"]);
                to(format!("order(local){by}{cut}"), Kind::List(item.clone()))
            }
            9 if item.is_scalar() => {
                let test = self.random.pick(&["all", "any", "none"]);
                let predicate = self.predicate(item, 1);
                to(format!("{test}({predicate})"), kind.clone())
            }
            10 if item.is_plain() => to("dedup(local)".to_owned(), kind.clone()),
            11 if is_list && **item == Kind::Text => to("conjoin('/')".to_owned(), Kind::Text),
            11 if item.is_scalar() => {
                let (a, b) = (self.value(item), self.value(item));
                let step = self.random.pick(&["difference", "disjunct", "intersect", "merge"]);
                self.bags = true;
                to(format!("{step}([{a},{b}])"), Kind::Bag(item.clone()))
            }
            12 if is_list => to("reverse()".to_owned(), kind.clone()),
            13 if item.is_plain() && depth > 0 => {
                let mut unit = Unit::new("local(#)");
                let (nested, inner) = self.nested(item, depth - 1);
                unit.nested = vec![[vec![Unit::new("unfold()")], nested].concat()];
                (unit, inner, OrderEffect::Nothing)
            }
            _ => return None,
        })
    }

    fn of_map(&mut self, kind: &Kind) -> Option<Step> {
        let to = |text: String, kind: Kind| (Unit::new(text), kind, OrderEffect::Order);
        Some(match (kind, self.random.below(6)) {
            (Kind::Project(keys), 0..4) if !keys.is_empty() => {
                let (name, of) = keys[self.random.below(keys.len())].clone();
                to(format!("select('{name}')"), of)
            }
            (Kind::Project(_) | Kind::Table(..), 4) => to("count(local)".to_owned(), Kind::Long),
            (Kind::Project(_), _) => (
                Unit::new("unfold()"),
                Kind::Entry(Box::new(Kind::Text), Box::new(Kind::Any)),
                OrderEffect::Nothing,
            ),
            (Kind::Table(key, value), 0..3) => {
                (Unit::new("unfold()"), Kind::Entry(key.clone(), value.clone()), OrderEffect::Nothing)
            }
            (Kind::Table(key, _), 3) => to("select(keys)".to_owned(), Kind::Bag(key.clone())),
            (Kind::Table(_, value), _) => {
                self.bags = true;
                to("select(values)".to_owned(), Kind::Bag(value.clone()))
            }
            (Kind::Entry(key, _), 0 | 1) => to("select(keys)".to_owned(), (**key).clone()),
            (Kind::Entry(_, value), 2 | 3) => to("select(values)".to_owned(), (**value).clone()),
            (Kind::Entry(_, value), 4) if value.is_number() => {
                let predicate = self.predicate(value, 1);
                to(format!("where(__.select(values).is({predicate}))"), kind.clone())
            }
            (Kind::Entry(..), _) => (Unit::new("order().by(keys)"), kind.clone(), OrderEffect::Nothing),
            _ => return None,
        })
    }

    fn repeat(&mut self, depth: usize) -> Option<Step> {
        if depth == 0 || self.is_repeated {
            return None;
        }
        self.is_repeated = true;
        let labels = self.edge_labels();
        let direction = self.random.pick(&["out", "in", "both"]);
        let mut body = vec![Unit::new(format!("{direction}({labels})"))];
        if self.random.chance(25) {
            let filter = self.of_element(&Kind::Vertex).filter(|(_, kind, _)| *kind == Kind::Vertex);
            match (self.has_history && self.random.chance(40), filter) {
                (false, Some((filter, ..))) => body.push(filter),
                (true, _) => body.push(Unit::new("simplePath()")),
                _ => {}
            }
        }
        let times = 1 + self.random.below(3);
        let stop = self.question(&Kind::Vertex, depth - 1);
        let emit = self.question(&Kind::Vertex, depth - 1);
        self.is_repeated = false;
        let times = format!("times({times})");
        let (template, nested) = match self.random.below(9) {
            0 | 1 => (format!("repeat(#).{times}"), vec![body]),
            2 => (format!("repeat(#).{times}.emit()"), vec![body]),
            3 => (format!("repeat(#).emit().{times}"), vec![body]),
            4 => (format!("emit().repeat(#).{times}"), vec![body]),
            5 => (format!("emit(#).repeat(#).{times}"), vec![emit, body]),
            6 => (format!("repeat(#).emit(#).{times}"), vec![body, emit]),
            7 => ("repeat(#).until(__.or(__.loops().is(P.gte(3)),#))".to_owned(), vec![body, stop]),
            _ => ("until(__.or(__.loops().is(P.gte(2)),#)).repeat(#)".to_owned(), vec![stop, body]),
        };
        Some((Unit::with(template, nested), Kind::Vertex, OrderEffect::Nothing))
    }

    /// Filters by traversals and labels.
    fn filter(&mut self, kind: &Kind, depth: usize) -> Option<Step> {
        if self.random.chance(25) && !self.labels.is_empty() {
            let (label, of) = self.labels[self.random.below(self.labels.len())].clone();
            if of != *kind || !kind.is_plain() {
                return None;
            }
            let test = self.random.pick(&["eq", "neq"]);
            let test = match kind.is_ordered() && self.random.chance(50) {
                true => self.random.pick(&["lt", "gte"]),
                false => test,
            };
            let by = match self.random.chance(30) {
                true => {
                    let (by, nested, of) = self.by(kind, 0);
                    if nested.is_empty() && of.is_plain() { by } else { String::new() }
                }
                false => String::new(),
            };
            return Some((
                Unit::new(format!("where(P.{test}('{label}')){by}")),
                kind.clone(),
                OrderEffect::Order,
            ));
        }
        if depth == 0 {
            return None;
        }
        let first = self.question(kind, depth - 1);
        let unit = match self.random.below(7) {
            0..3 => Unit::with("where(#)", vec![first]),
            3 => Unit::with("not(#)", vec![first]),
            4 => Unit::with("and(#,#)", vec![first, self.question(kind, depth - 1)]),
            5 => Unit::with("or(#,#)", vec![first, self.question(kind, depth - 1)]),
            _ => Unit::with("filter(#)", vec![first]),
        };
        Some((unit, kind.clone(), OrderEffect::Order))
    }

    /// Units with nested traversals.
    fn branch(&mut self, kind: &Kind, depth: usize) -> Option<Step> {
        if depth == 0 {
            return None;
        }
        let depth = depth - 1;
        let either = |a: Kind, b: Kind| match a == b {
            true => a,
            false if a.is_scalar() && b.is_scalar() => Kind::Mixed,
            false => Kind::Any,
        };
        Some(match self.random.below(12) {
            0 | 1 => {
                let ((a, a_kind), (b, b_kind)) = (self.nested(kind, depth), self.nested(kind, depth));
                (Unit::with("union(#,#)", vec![a, b]), either(a_kind, b_kind), OrderEffect::Nothing)
            }
            2 | 3 => {
                let ((a, a_kind), (b, b_kind)) = (self.nested(kind, depth), self.nested(kind, depth));
                (Unit::with("coalesce(#,#)", vec![a, b]), either(a_kind, b_kind), OrderEffect::Nothing)
            }
            4 => {
                let question = self.question(kind, depth);
                let ((a, a_kind), (b, b_kind)) = (self.nested(kind, depth), self.nested(kind, depth));
                (
                    Unit::with("choose(#,#,#)", vec![question, a, b]),
                    either(a_kind, b_kind),
                    OrderEffect::Nothing,
                )
            }
            5 if kind.is_scalar() => {
                let predicate = self.predicate(kind, 1);
                let (a, a_kind) = self.nested(kind, depth);
                (
                    Unit::with(format!("choose({predicate},#)"), vec![a]),
                    either(a_kind, kind.clone()),
                    OrderEffect::Nothing,
                )
            }
            6 if matches!(kind, Kind::Vertex) => {
                let (key, of) = self.key(kind)?;
                let (x, y) = (self.value(&of), self.predicate(&of, 0));
                let ((a, a_kind), (b, b_kind)) = (self.nested(kind, depth), self.nested(kind, depth));
                let template = format!("choose(__.values('{key}')).option({x},#).option({y},#)");
                (
                    Unit::with(template, vec![a, b]),
                    either(either(a_kind, b_kind), Kind::Vertex),
                    OrderEffect::Nothing,
                )
            }
            7 => {
                // TinkerGraph evaluates it before there is input to count, and merges equal traversers.
                let gathers = std::mem::replace(&mut self.gathers, false);
                let (a, a_kind) = self.nested(kind, depth);
                self.gathers = gathers;
                (Unit::with("optional(#)", vec![a]), either(a_kind, kind.clone()), OrderEffect::Nothing)
            }
            8 => {
                // As in `optional`: TinkerGraph returns the count of an empty input.
                let gathers = std::mem::replace(&mut self.gathers, false);
                let (a, a_kind) = self.nested(kind, depth);
                self.gathers = gathers;
                (Unit::with("local(#)", vec![a]), a_kind, OrderEffect::Nothing)
            }
            9 => {
                let (a, a_kind) = self.nested(kind, depth);
                (Unit::with("flatMap(#)", vec![a]), a_kind, OrderEffect::Nothing)
            }
            10 => {
                let (a, a_kind) = self.single(kind, depth);
                (Unit::with("map(#)", vec![a]), a_kind, OrderEffect::Order)
            }
            _ => {
                let question = self.question(kind, depth);
                (Unit::with("sideEffect(#)", vec![question]), kind.clone(), OrderEffect::Order)
            }
        })
    }

    /// Units that use labels and paths.
    fn history(&mut self, kind: &Kind, depth: usize) -> Option<Step> {
        Some(match self.random.below(9) {
            0..3 => {
                let label = self.name("l");
                let unit = Unit::new(format!("as('{label}')"));
                self.labels.push((label, kind.clone()));
                (unit, kind.clone(), OrderEffect::Order)
            }
            3 if !self.labels.is_empty() => {
                let (label, of) = self.labels[self.random.below(self.labels.len())].clone();
                let pop = self.random.pick(&["", "", "", "Pop.first,", "Pop.last,"]);
                (Unit::new(format!("select({pop}'{label}')")), of, OrderEffect::Order)
            }
            4 | 5 if self.labels.len() > 1 => {
                let first = self.random.below(self.labels.len());
                let second = (first + 1 + self.random.below(self.labels.len() - 1)) % self.labels.len();
                let [(a, a_kind), (b, b_kind)] = [first, second].map(|at| self.labels[at].clone());
                let (mut template, mut nested) = (format!("select('{a}','{b}')"), Vec::new());
                let mut kinds = Vec::new();
                for (name, of) in [(a, a_kind), (b, b_kind)] {
                    let (by, traversals, of) = self.by(&of, depth.min(1));
                    // A single modulator would apply to both.
                    template += if by.is_empty() { ".by()" } else { &by };
                    nested.extend(traversals);
                    kinds.push((name, of));
                }
                (Unit::with(template, nested), Kind::Project(kinds), OrderEffect::Order)
            }
            6 if self.has_history => {
                let step = self.random.pick(&["path()", "simplePath()", "cyclicPath()"]);
                let next = if step == "path()" { Kind::Path } else { kind.clone() };
                (Unit::new(step), next, OrderEffect::Order)
            }
            7 if self.has_history && *kind == Kind::Vertex && depth > 0 => self.matched(),
            8 if kind.is_number() && self.labels.iter().any(|(_, of)| of.is_number()) => {
                let (label, _) = self.labels.iter().find(|(_, of)| of.is_number())?.clone();
                (Unit::new(format!("math('_ - {label}')")), Kind::Double, OrderEffect::Order)
            }
            _ => return None,
        })
    }

    fn matched(&mut self) -> Step {
        let [a, b, c] = [self.name("m"), self.name("m"), self.name("m")];
        let mut walk = || {
            let labels = self.edge_labels();
            format!("{}({labels})", self.random.pick(&["out", "in", "both"]))
        };
        let (first, second) = (walk(), walk());
        let (key, of) = self.key(&Kind::Vertex).unwrap_or(("name", Kind::Text));
        let predicate = self.predicate(&of, 0);
        let patterns = match self.random.below(4) {
            0 => format!("__.as('{a}').{first}.as('{b}'),__.as('{b}').{second}.as('{c}')"),
            1 => format!(
                "__.as('{a}').{first}.as('{b}'),__.as('{a}').{second}.as('{c}'),__.as('{c}').{first}.as('{b}')"
            ),
            2 => format!(
                "__.as('{a}').{first}.as('{b}'),__.as('{b}').has('{key}',{predicate}),__.as('{b}').{second}.as('{c}')"
            ),
            _ => format!(
                "__.as('{a}').{first}.as('{b}'),__.not(__.as('{b}').{second}.as('{a}')),__.as('{b}').{first}.as('{c}')"
            ),
        };
        let kinds = [a, b, c].map(|name| (name, Kind::Vertex)).to_vec();
        self.labels.extend(kinds.iter().cloned());
        // Paths show the order in which the patterns were walked.
        self.has_history = false;
        (Unit::new(format!("match({patterns})")), Kind::Project(kinds), OrderEffect::Nothing)
    }

    /// A unit that cuts an ordered result.
    fn cut(&mut self) -> String {
        let n = self.random.below(5);
        match self.random.below(6) {
            0 | 1 => format!(".limit({n})"),
            2 => format!(".range({n},{})", n + 1 + self.random.below(4)),
            3 => format!(".tail({})", n + 1),
            4 => format!(".skip({n})"),
            _ => String::new(),
        }
    }

    /// A total order, and a unit that cuts it.
    fn ordered(&mut self, kind: &Kind) -> Option<Step> {
        let direction = self.random.pick(&["", ",asc", ",desc"]);
        let order = match kind {
            Kind::Vertex | Kind::Edge => {
                let first = match self.random.chance(60) {
                    true => {
                        let (key, of) = self.key(kind)?;
                        // Values that compare as equal but differ are ordered by the id.
                        let _ = of;
                        format!(".by('{key}'{direction})")
                    }
                    false => String::new(),
                };
                format!("order(){first}.by(T.id{})", self.random.pick(&["", ",desc"]))
            }
            _ if kind.is_ordered() => {
                format!("order(){}", self.random.pick(&["", ".by(desc)", ".by(asc)", ".by()"]))
            }
            _ => return None,
        };
        let cut = self.cut();
        if !cut.is_empty() {
            // An arbitrary choice among equal values remains.
            self.forget();
        }
        if self.random.chance(20) {
            self.forget();
            return Some((
                Unit::new(format!("{order}{cut}.fold()")),
                Kind::List(boxed(kind)),
                OrderEffect::Makes,
            ));
        }
        Some((Unit::new(format!("{order}{cut}")), kind.clone(), OrderEffect::Makes))
    }

    /// Units that reduce many traversers.
    fn gathered(&mut self, kind: &Kind, depth: usize, outer: bool) -> Option<Step> {
        if self.is_repeated || !self.gathers {
            return None;
        }
        Some(match self.random.below(20) {
            0..4 => return self.ordered(kind),
            4..6 if kind.is_plain() => {
                self.forget();
                (Unit::new("dedup()"), kind.clone(), OrderEffect::Order)
            }
            6 if matches!(kind, Kind::Vertex | Kind::Edge) => {
                self.forget();
                let (key, of) = self.key(kind)?;
                (Unit::new(format!("dedup().by('{key}').values('{key}')")), of, OrderEffect::Nothing)
            }
            7 if self.labels.iter().filter(|(name, of)| name.starts_with('l') && of.is_plain()).count()
                > 1 =>
            {
                let labels: Vec<_> = self
                    .labels
                    .iter()
                    .filter(|(name, of)| name.starts_with('l') && of.is_plain())
                    .take(2)
                    .cloned()
                    .collect();
                self.forget();
                let names = format!("'{}','{}'", labels[0].0, labels[1].0);
                (
                    Unit::new(format!("dedup({names}).select({names})")),
                    Kind::Project(labels),
                    OrderEffect::Nothing,
                )
            }
            8..11 => {
                self.forget();
                let (by, mut nested, key) = self.by(kind, depth);
                let is_plain = key.is_plain();
                let (template, value) = match self.random.below(4) {
                    _ if !is_plain => return None,
                    3 if outer && key.is_ordered() => {
                        let cut = self.cut();
                        let order =
                            self.random.pick(&[".by(keys)", ".by(values,desc).by(keys)", ".by(keys,desc)"]);
                        let unit =
                            Unit::with(format!("groupCount(){by}.unfold().order(){order}{cut}"), nested);
                        return Some((
                            unit,
                            Kind::Entry(Box::new(key), Box::new(Kind::Long)),
                            OrderEffect::Makes,
                        ));
                    }
                    0 => (format!("groupCount(){by}"), Kind::Long),
                    1 => {
                        // If the traversal gives nothing behind another barrier, TinkerGraph shows the
                        // barrier's state.
                        let gathers = std::mem::replace(&mut self.gathers, false);
                        let (value, value_kind) = self.single(kind, depth.min(1));
                        self.gathers = gathers;
                        if ["values('tag').fold()", "values('nums').fold()"].contains(&text(&value).as_str())
                        {
                            // TinkerGraph rewrites it to `by("tag")`, which rejects several values.
                            return None;
                        }
                        nested.push(value);
                        (format!("group(){}.by(#)", if by.is_empty() { ".by()" } else { &by }), value_kind)
                    }
                    _ => {
                        self.bags = true;
                        (format!("group(){by}"), Kind::Bag(boxed(kind)))
                    }
                };
                (
                    Unit::with(template, nested),
                    Kind::Table(Box::new(key), Box::new(value)),
                    OrderEffect::Makes,
                )
            }
            11 | 12 => {
                let (mut template, mut nested, mut kinds) = (String::new(), Vec::new(), Vec::new());
                for _ in 0..1 + self.random.below(3) {
                    let (by, traversals, of) = self.by(kind, depth);
                    template += if by.is_empty() { ".by()" } else { &by };
                    nested.extend(traversals);
                    let name = self.name("k");
                    kinds.push((name, of));
                }
                let names: Vec<String> = kinds.iter().map(|(name, _)| format!("'{name}'")).collect();
                (
                    Unit::with(format!("project({}){template}", names.join(",")), nested),
                    Kind::Project(kinds),
                    OrderEffect::Order,
                )
            }
            13 if self.has_history => {
                let (by, nested, _) = self.by(kind, 0);
                if !nested.is_empty() || !by.contains('T') {
                    return None;
                }
                (Unit::new("path().by(__.coalesce(__.id(),__.constant(0)))"), Kind::Path, OrderEffect::Order)
            }
            14 if outer && self.stored.is_none() => {
                self.stored = Some(kind.clone());
                (Unit::new("aggregate('x')"), kind.clone(), OrderEffect::Nothing)
            }
            15 if outer && self.stored.is_some() => {
                let stored = self.stored.clone()?;
                if stored == *kind && kind.is_plain() {
                    let test = self.random.pick(&["within", "without"]);
                    (Unit::new(format!("where(P.{test}('x'))")), kind.clone(), OrderEffect::Order)
                } else {
                    self.forget();
                    self.bags = true;
                    (Unit::new("cap('x')"), Kind::Bag(Box::new(stored)), OrderEffect::Makes)
                }
            }
            16..18 => {
                let (unit, next) = self.reduced(kind);
                self.forget();
                (unit, next, OrderEffect::Makes)
            }
            18 => {
                let value = self.value(&Kind::Mixed);
                (Unit::new(format!("constant({value})")), Kind::Mixed, OrderEffect::Order)
            }
            _ => {
                (Unit::new(self.random.pick(&["barrier()", "identity()"])), kind.clone(), OrderEffect::Order)
            }
        })
    }
}
