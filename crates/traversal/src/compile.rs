//! The compiler from bytecode to a pipeline of steps.
//!
//! # Shape
//! Modulators (`as`, `by`, `from`, `to`, `with`, `option`, `times`, `until`, `emit`, `read`, `write`) are
//! gathered at the step that they modify; then the file of each step family builds the step. Strategies are
//! applied during compilation.
//! # Invariants
//! Bytecode is untrusted: names and arguments are validated. The number of steps and the nesting depth are
//! limited, which bounds the stack depth of the pipeline.

use crate::by::By;
use crate::context::Settings;
use crate::step::{Node, Pipeline, Step};
use crate::steps::fused::fuse;
use crate::steps::write::{self, Write};
use crate::steps::{self, algorithm, collect, make};
use crate::strategy::Strategies;
use crate::translation::translate;
use crate::traverser::Labels;
use std::borrow::Cow;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Instruction, Order, Token, Value};
use vervet_model::{Error, ErrorKind, Result};

/// Maximum number of steps of a traversal, nested steps included.
pub const STEPS_MAX: usize = 500;
/// Maximum nesting depth of traversals.
pub const DEPTH_MAX: usize = 64;

/// A step with its modulators.
pub(crate) struct Modulated<'b> {
    pub(crate) instruction: &'b Instruction,
    pub(crate) labels: Vec<Arc<str>>,
    pub(crate) bys: Vec<&'b Instruction>,
    pub(crate) from: Option<&'b Instruction>,
    pub(crate) to: Option<&'b Instruction>,
    pub(crate) options: Vec<&'b Instruction>,
    pub(crate) withs: Vec<&'b Instruction>,
    /// The property writes of `property`, and of `addV` and `addE` followed by `property`.
    pub(crate) writes: Vec<Write<'b>>,
    /// The modulators before and after `repeat`.
    pub(crate) before: Vec<&'b Instruction>,
    pub(crate) after: Vec<&'b Instruction>,
}

/// State of the compilation of one traversal.
pub(crate) struct Compiler {
    pub(crate) settings: Settings,
    pub(crate) strategies: Strategies,
    /// Whether steps keep their text, for `explain` and `profile`.
    texts: bool,
    /// Whether the traversal writes.
    pub(crate) mutates: bool,
    /// Number of `repeat` steps around the current step.
    pub(crate) loops: usize,
    /// Whether an earlier root step may have moved the traversers. Graph algorithms then count the traversers
    /// at each vertex.
    pub(crate) walked: bool,
    /// Whether earlier steps read the graph each time that they produce a traverser.
    reading: bool,
    depth: usize,
    steps: usize,
    /// Side effects that the current or a later step of the root traversal writes to.
    side_effects_written: Vec<Arc<str>>,
    /// The side effects before the first traverser: an empty collection for each name that a step writes to.
    pub(crate) side_effects: Vec<(Arc<str>, Value)>,
}

impl Compiler {
    pub(crate) fn new(settings: Settings, strategies: Strategies, texts: bool) -> Self {
        Self {
            settings,
            strategies,
            texts,
            mutates: false,
            loops: 0,
            walked: false,
            reading: false,
            depth: 0,
            steps: 0,
            side_effects_written: Vec::new(),
            side_effects: Vec::new(),
        }
    }

    /// Whether the current step is in a nested traversal.
    pub(crate) fn is_nested(&self) -> bool {
        self.depth > 0
    }

    /// Whether the current or a later step may write to the side effect `name`.
    pub(crate) fn writes_side_effect(&self, name: &Arc<str>) -> bool {
        self.side_effects_written.contains(name)
    }

    /// Fuses the last step into the fused pipeline before it, if the result is equivalent.
    pub(crate) fn fuse_last(&self, nodes: &mut Vec<Node>) {
        if !self.settings.paths && self.strategies.is_plain() {
            let merges = self.settings.sack.is_none()
                && !self.settings.no_bulk
                && self.side_effects_written.is_empty();
            fuse(nodes, merges);
        }
    }

    /// Steps with [`connected`] connectives, unless the source disables `ConnectiveStrategy`.
    pub(crate) fn connected<'b>(&self, steps: &'b [Instruction], root: bool) -> Cow<'b, [Instruction]> {
        if self.strategies.unconnected { Cow::Borrowed(steps) } else { connected(steps, root) }
    }

    /// An error about an instruction.
    pub(crate) fn error(&self, instruction: &Instruction, message: impl Into<String>) -> Error {
        let _ = instruction;
        Error::new(ErrorKind::Query, message)
    }

    /// Compiles a nested traversal.
    pub(crate) fn nested(&mut self, traversal: &Bytecode) -> Result<Pipeline> {
        if !traversal.source.is_empty() {
            let message = "a traversal inside another one cannot begin with a source";
            return Err(Error::new(ErrorKind::Query, message).with_hint("begin it with __"));
        }
        let reading = std::mem::take(&mut self.reading);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("traversals are nested deeper than {DEPTH_MAX}");
            return Err(Error::new(ErrorKind::Query, message).with_hint("the limit is DEPTH_MAX"));
        }
        let pipeline = self.pipeline(&traversal.steps);
        self.depth -= 1;
        self.reading = reading;
        pipeline
    }

    /// Builds a part to which element strategies do not apply: the conditions of those strategies.
    pub(crate) fn without_strategies<T>(&mut self, build: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let kept = std::mem::take(&mut self.strategies);
        let built = build(self);
        self.strategies = kept;
        built
    }

    /// The traversals among the arguments of an instruction.
    pub(crate) fn traversals(&mut self, instruction: &Instruction) -> Result<Vec<Pipeline>> {
        instruction
            .arguments
            .iter()
            .map(|argument| match argument {
                Value::Traversal(traversal) => self.nested(traversal),
                // A constant in place of a traversal yields that constant.
                other => Ok(Pipeline::new(vec![self.node(Box::new(steps::constant(other.clone())))])),
            })
            .collect()
    }

    /// The `by(…)` modulators of a step.
    pub(crate) fn bys(&mut self, step: &Modulated<'_>) -> Result<Vec<By>> {
        let single = match step.name() {
            "aggregate" | "store" => Some("Aggregate"),
            "sample" => Some("Sample"),
            "sack" => Some("Sack"),
            "groupCount" => Some("GroupCount"),
            "dedup" => Some("Dedup"),
            "valueMap" | "propertyMap" => Some("PropertyMap"),
            _ => None,
        };
        if let (Some(name), [_, second, ..]) = (single, step.bys.as_slice()) {
            return Err(self.error(second, format!("{name} step can only have one by modulator")));
        }
        step.bys.iter().map(|by| Ok(By::new(by, self)?.0)).collect()
    }

    /// The `by(…)` modulators of a step, with their orders.
    pub(crate) fn ordered_bys(&mut self, step: &Modulated<'_>) -> Result<Vec<(By, Option<Order>)>> {
        step.bys.iter().map(|by| By::new(by, self)).collect()
    }

    /// A node without text.
    pub(crate) fn node(&self, step: Box<dyn Step>) -> Node {
        let moves = step.moves();
        Node { step, labels: Labels::default(), moves, text: Arc::default(), meter: None }
    }

    /// Compiles the root traversal. Kernels run the prefix that translates to a query, unless `translated` is
    /// off.
    pub(crate) fn root(&mut self, instructions: &[Instruction], translated: bool) -> Result<Pipeline> {
        let instructions = &*self.connected(instructions, true);
        let steps = self.modulated(instructions)?;
        self.side_effects_written = side_effects_of(&steps);
        let is_plain = self.strategies.is_plain();
        let taken = (translated && is_plain).then(|| translate(&steps, &self.settings)).flatten();
        let Some((query, count)) = taken else { return self.nodes(&steps, true) };
        let fallback = self.nodes(&steps[..count], false)?;
        let mut first = self.node(Box::new(steps::query::QueryStep::new(query, fallback)));
        if self.texts {
            let taken: Vec<String> = steps[..count].iter().map(|step| step.instruction.to_string()).collect();
            first.text = format!("kernels: {}", taken.join(".")).into();
        }
        self.reading = true;
        let mut rest = self.nodes(&steps[count..], true)?;
        rest.nodes.insert(0, first);
        Ok(rest)
    }

    /// Compiles a sequence of steps.
    pub(crate) fn pipeline(&mut self, instructions: &[Instruction]) -> Result<Pipeline> {
        let instructions = &*self.connected(instructions, false);
        let steps = self.modulated(instructions)?;
        self.nodes(&steps, false)
    }

    /// `to_end`: the steps end the root traversal.
    fn nodes(&mut self, steps: &[Modulated<'_>], to_end: bool) -> Result<Pipeline> {
        let mut nodes: Vec<Node> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if to_end && !self.side_effects_written.is_empty() {
                self.side_effects_written = side_effects_of(&steps[at..]);
            }
            self.steps += 1;
            if self.steps > STEPS_MAX {
                let message = format!("the traversal has more than {STEPS_MAX} steps");
                return Err(Error::new(ErrorKind::Query, message).with_hint("the limit is STEPS_MAX"));
            }
            let labels: Vec<Arc<str>> = step.labels.clone();
            if &*step.instruction.name == "as" {
                // A label before the first step names the input.
                let step = Box::new(steps::identity());
                let mut node = self.node(step);
                node.labels = labels.into();
                nodes.push(node);
                continue;
            }
            if self.reading && step.contains_write() {
                nodes.push(self.node(make::barrier(|all, _| Ok(all))));
                self.reading = false;
            }
            let first = nodes.len();
            steps::build(step, self, &mut nodes)?;
            self.reading = write::reads_after_first_output(step.name(), self.reading);
            self.walked |= !self.is_nested() && !algorithm::stays_at_source(step.name());
            let text: Arc<str> = match self.texts {
                true => step.instruction.to_string().into(),
                false => Arc::default(),
            };
            match nodes.get_mut(first..) {
                _ if !self.texts => {}
                Some(new) if !new.is_empty() => new.iter_mut().for_each(|node| node.text = text.clone()),
                // The step is fused into the one before it.
                _ => {
                    if let Some(last) = nodes.last_mut() {
                        last.text = format!("{}.{text}", last.text).into();
                    }
                }
            }
            if !labels.is_empty() {
                if let Some(last) = nodes.last()
                    && nodes.len() <= first
                    && !(last.moves && last.labels.is_empty())
                {
                    let step = Box::new(steps::identity());
                    nodes.push(self.node(step));
                }
                if let Some(last) = nodes.last_mut() {
                    last.labels = labels.into();
                }
            }
        }
        Ok(Pipeline::new(nodes))
    }

    /// Groups instructions into steps with modulators; infix `and()` and `or()` become prefix steps.
    fn modulated<'b>(&self, instructions: &'b [Instruction]) -> Result<Vec<Modulated<'b>>> {
        let mut all: Vec<Modulated<'b>> = Vec::new();
        let mut ahead: Vec<&'b Instruction> = Vec::new();
        for instruction in instructions {
            let misplaced = || self.error(instruction, format!("{}() modulates nothing", instruction.name));
            match &*instruction.name {
                "as" => {
                    let labels = instruction.arguments.iter().filter_map(Value::as_text).map(Arc::from);
                    match all.last_mut() {
                        Some(step) => step.labels.extend(labels),
                        None => {
                            let mut step = Modulated::new(instruction);
                            step.labels.extend(labels);
                            all.push(step);
                        }
                    }
                }
                "by" => {
                    let step = all.last_mut().ok_or_else(misplaced)?;
                    if !steps::takes_by(&step.instruction.name) {
                        return Err(self
                            .error(instruction, format!("{}() does not take by()", step.instruction.name)));
                    }
                    step.bys.push(instruction);
                }
                "from" => all.last_mut().ok_or_else(misplaced)?.from = Some(instruction),
                "to" if !matches!(instruction.arguments.first(), Some(Value::Token(Token::Direction(_)))) => {
                    all.last_mut().ok_or_else(misplaced)?.to = Some(instruction);
                }
                "with" | "read" | "write" => all.last_mut().ok_or_else(misplaced)?.withs.push(instruction),
                "property" => {
                    // `property` modifies the step that adds an element, across other `property` steps.
                    let adds = all.iter().rposition(|step| step.name() != "property");
                    let mut rest = Modulated::new(instruction);
                    for write in Write::all(instruction)? {
                        match adds.and_then(|place| all.get_mut(place)) {
                            Some(step) if write.belongs_to(step.name())? => step.writes.push(write),
                            _ => rest.writes.push(write),
                        }
                    }
                    if !rest.writes.is_empty() {
                        all.push(rest);
                    }
                }
                "option" => all.last_mut().ok_or_else(misplaced)?.options.push(instruction),
                "times" | "until" | "emit" => match all.last_mut() {
                    // A second `until` or `emit` after a loop starts the next loop.
                    Some(step)
                        if step.name() == "repeat"
                            && ahead.is_empty()
                            && !step.has_modulator(instruction) =>
                    {
                        step.after.push(instruction);
                    }
                    _ => ahead.push(instruction),
                },
                name => {
                    let mut step = Modulated::new(instruction);
                    if name == "repeat" {
                        step.before = std::mem::take(&mut ahead);
                    } else if let Some(first) = ahead.first() {
                        return Err(self.error(
                            first,
                            format!(
                                "The repeat()-traversal was not defined: {}() has no repeat()",
                                first.name
                            ),
                        ));
                    }
                    all.push(step);
                }
            }
        }
        match ahead.first() {
            Some(first) => Err(self.error(
                first,
                format!("The repeat()-traversal was not defined: {}() has no repeat()", first.name),
            )),
            None => Ok(all),
        }
    }
}

/// Rewrites infix `and()` and `or()` (without arguments) as prefix steps with arguments. `and` binds tighter.
/// At the root the source steps stay in front.
fn connected(steps: &[Instruction], root: bool) -> Cow<'_, [Instruction]> {
    let is = |step: &Instruction, name: &str| &*step.name == name && step.arguments.is_empty();
    let (start, rest) = match steps
        .iter()
        .position(|step| !(root && matches!(&*step.name, "V" | "E" | "inject" | "as" | "addV" | "addE")))
    {
        Some(first) => steps.split_at(first),
        None => return Cow::Borrowed(steps),
    };
    for name in ["or", "and"] {
        if rest.iter().any(|step| is(step, name)) {
            let parts = rest
                .split(|step| is(step, name))
                .map(|part| Value::from(Bytecode { source: Vec::new(), steps: part.to_vec() }));
            let mut all = start.to_vec();
            all.push(Instruction::new(name, parts.collect()));
            return Cow::Owned(all);
        }
    }
    Cow::Borrowed(steps)
}

impl<'b> Modulated<'b> {
    pub(crate) fn new(instruction: &'b Instruction) -> Self {
        Self {
            instruction,
            labels: Vec::new(),
            bys: Vec::new(),
            from: None,
            to: None,
            options: Vec::new(),
            withs: Vec::new(),
            writes: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Whether the step or a nested traversal changes the graph.
    fn contains_write(&self) -> bool {
        self.nested_instructions().any(write::writes)
    }

    /// The instruction and its modulators that may contain traversals.
    fn nested_instructions(&self) -> impl Iterator<Item = &'b Instruction> {
        let around = [&self.bys, &self.options, &self.before, &self.after];
        let around = around.into_iter().flatten().copied();
        std::iter::once(self.instruction).chain(around).chain(self.from).chain(self.to)
    }

    /// Whether a loop already has a modulator of this kind (end condition or emit condition).
    fn has_modulator(&self, modulator: &Instruction) -> bool {
        let is_emit = |instruction: &Instruction| &*instruction.name == "emit";
        self.before.iter().chain(&self.after).any(|own| is_emit(own) == is_emit(modulator))
    }

    pub(crate) fn name(&self) -> &str {
        &self.instruction.name
    }

    pub(crate) fn arguments(&self) -> &'b [Value] {
        &self.instruction.arguments
    }

    /// The arguments that are strings; nulls are skipped.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        let mut all = Vec::new();
        gather_texts(self.arguments(), &mut all);
        all
    }
}

fn gather_texts(values: &[Value], all: &mut Vec<Arc<str>>) {
    for value in values {
        match value {
            Value::String(text) => all.push(text.clone()),
            Value::List(values) => gather_texts(values, all),
            _ => {}
        }
    }
}

/// The names of the side effects that the steps write to.
fn side_effects_of(steps: &[Modulated<'_>]) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    steps
        .iter()
        .flat_map(Modulated::nested_instructions)
        .for_each(|part| collect::side_effects_written_by(part, &mut names));
    names
}

/// Determines whether the steps need whole paths or labelled objects.
pub(crate) fn path_needs(bytecode: &Bytecode, settings: &mut Settings) {
    for instruction in bytecode.source.iter().chain(&bytecode.steps) {
        match &*instruction.name {
            "path" | "simplePath" | "cyclicPath" | "tree" | "otherV" | "withPath" => {
                settings.paths = true;
            }
            "as" | "match" => settings.labels = true,
            _ => {}
        }
        instruction.arguments.iter().for_each(|argument| argument_needs(argument, settings));
    }
}

fn argument_needs(value: &Value, settings: &mut Settings) {
    match value {
        Value::Traversal(traversal) => path_needs(traversal, settings),
        Value::Strategy(strategy) => {
            strategy.options.iter().for_each(|(_, value)| argument_needs(value, settings));
        }
        Value::List(values) => values.iter().for_each(|value| argument_needs(value, settings)),
        Value::Map(map) => map.values().for_each(|value| argument_needs(value, settings)),
        _ => {}
    }
}
