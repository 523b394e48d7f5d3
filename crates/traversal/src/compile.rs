//! The compiler from bytecode to a pipeline of steps.
//!
//! # Shape
//! Modulators (`as`, `by`, `from`, `to`, `with`, `option`, `times`, `until`, `emit`, `read`, `write`) are
//! gathered at the step that they modify; then the file of each step family builds the step. Strategies are
//! applied during compilation.
//! # Invariants
//! Bytecode is untrusted: names and arguments are validated. The number of steps and the nesting depth are
//! limited, which bounds the stack depth of the pipeline.

use crate::analysis::{reads_after_first_output, side_effects_written_by, stays_at_source};
use crate::by::{By, selected, values_of};
use crate::context::Settings;
use crate::error::query_error;
use crate::fusion::Test;
use crate::modulated::{Modulated, modulated};
use crate::step::{Node, Pipeline, Step};
use crate::steps::fused::fuse;
use crate::steps::make::{barrier, constant, identity};
use crate::steps::query::QueryStep;
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

/// Builds one step: appends its nodes. `steps::build`, which knows all step families, is the only one; the
/// compiler receives it as a value, since the step families use the compiler for nested traversals.
pub(crate) type BuildStep = fn(&Modulated<'_>, &mut Compiler, &mut Vec<Node>) -> Result<()>;

/// State of the compilation of one traversal.
pub(crate) struct Compiler {
    pub(crate) build_step: BuildStep,
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
    pub(crate) fn new(
        build_step: BuildStep,
        settings: Settings,
        strategies: Strategies,
        texts: bool,
    ) -> Self {
        Self {
            build_step,
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

    /// The test of a strategy on elements; strategies do not apply to it.
    pub(crate) fn strategy_test(&mut self, traversal: &Bytecode) -> Result<Box<dyn Test>> {
        let kept = std::mem::take(&mut self.strategies);
        let test = self.nested(traversal);
        self.strategies = kept;
        Ok(Box::new(test?))
    }

    /// The traversals among the arguments of an instruction.
    pub(crate) fn traversals(&mut self, instruction: &Instruction) -> Result<Vec<Pipeline>> {
        instruction
            .arguments
            .iter()
            .map(|argument| match argument {
                Value::Traversal(traversal) => self.nested(traversal),
                // A constant in place of a traversal yields that constant.
                other => Ok(Pipeline::new(vec![self.node(Box::new(constant(other.clone())))])),
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
        if let (Some(name), [_, _, ..]) = (single, step.bys.as_slice()) {
            return Err(query_error(format!("{name} step can only have one by modulator")));
        }
        step.bys.iter().map(|by| Ok(self.by(by)?.0)).collect()
    }

    /// The `by(…)` modulators of a step, with their orders.
    pub(crate) fn ordered_bys(&mut self, step: &Modulated<'_>) -> Result<Vec<(By, Option<Order>)>> {
        step.bys.iter().map(|by| self.by(by)).collect()
    }

    /// Parses `by(…)`. Only `order()` uses the order.
    fn by(&mut self, instruction: &Instruction) -> Result<(By, Option<Order>)> {
        let mut order = None;
        let mut what = By::Identity;
        for argument in &instruction.arguments {
            match argument {
                Value::Token(Token::Order(given)) => order = Some(*given),
                argument => what = self.by_of_argument(argument, instruction)?,
            }
        }
        Ok((what, order))
    }

    /// The projection of one argument.
    fn by_of_argument(&mut self, argument: &Value, instruction: &Instruction) -> Result<By> {
        Ok(match argument {
            Value::String(key) => By::Key(key.clone()),
            Value::Token(Token::T(token)) => By::Token(*token),
            Value::Token(Token::Column(column)) => By::Column(*column),
            Value::Traversal(traversal) => {
                let steps = self.nested(traversal)?;
                match values_of(traversal).filter(|_| self.strategies.is_plain()) {
                    Some((label, key)) => By::Values { label, key, otherwise: steps },
                    None => match selected(traversal) {
                        Some(label) => By::Selected { label, steps },
                        None => By::Traversal(steps),
                    },
                }
            }
            Value::Null => By::Identity,
            other => {
                return Err(query_error(format!(
                    "{}() cannot take a {}",
                    instruction.name,
                    other.type_name()
                )));
            }
        })
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
        let steps = modulated(instructions)?;
        self.side_effects_written = side_effects_of(&steps);
        let is_plain = self.strategies.is_plain();
        let taken = (translated && is_plain).then(|| translate(&steps, &self.settings)).flatten();
        let Some((query, count)) = taken else { return self.nodes(&steps, true) };
        let fallback = self.nodes(&steps[..count], false)?;
        let mut first = self.node(Box::new(QueryStep::new(query, fallback)));
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
        let steps = modulated(instructions)?;
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
                let step = Box::new(identity());
                let mut node = self.node(step);
                node.labels = labels.into();
                nodes.push(node);
                continue;
            }
            if self.reading && step.contains_write() {
                nodes.push(self.node(barrier(|all, _| Ok(all))));
                self.reading = false;
            }
            let first = nodes.len();
            (self.build_step)(step, self, &mut nodes)?;
            self.reading = reads_after_first_output(step.name(), self.reading);
            self.walked |= !self.is_nested() && !stays_at_source(step.name());
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
                    let step = Box::new(identity());
                    nodes.push(self.node(step));
                }
                if let Some(last) = nodes.last_mut() {
                    last.labels = labels.into();
                }
            }
        }
        Ok(Pipeline::new(nodes))
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

/// The names of the side effects that the steps write to.
fn side_effects_of(steps: &[Modulated<'_>]) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    steps
        .iter()
        .flat_map(Modulated::nested_instructions)
        .for_each(|part| side_effects_written_by(part, &mut names));
    names
}
