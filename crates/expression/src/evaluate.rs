//! Evaluation of a compiled expression for one row.
//!
//! `Ok(None)` is a SPARQL expression error. Operands remain ids as long as operators can work on ids.

use crate::MAX_TEXT_BYTES;
use crate::arithmetic::{apply, apply_unary};
use crate::cast::cast;
use crate::compile::{Node, PairFunction, PatternNode, SearchNode, Test, TextFunction};
use crate::computed::{ComputedKind, text_too_long};
use crate::context::{Context, Operand, Text};
use crate::dates::date_time_field;
use crate::evaluator::mix;
use crate::operands::{compare_ids, compare_operands, equal, equal_ids, equality_key};
use crate::pattern::{Pattern, Replacement};
use crate::strings::{encode_for_uri, hash, language_matches, substring, uuid};
use crate::value::{RDF_DIR_LANG_STRING, RDF_LANG_STRING, Value};
use crate::wide::double_of_decimal;
use crate::work::of_text;
use oxiri::Iri;
use oxrdf::{BaseDirection, Literal};
use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::hash::Hasher;
use vervet_model::{
    Id, Inline, LiteralKind, Result, TRIPLE_DEPTH_MAX, Tag, TermParts, TextSearch, Words, triple_depth,
    triple_parts, with_nt, write_triple,
};

/// Unwraps two operands, or returns early with an expression error.
macro_rules! both {
    ($pair:expr, $context:expr) => {{
        let Some(a) = $pair[0].evaluate($context)? else { return Ok(None) };
        let Some(b) = $pair[1].evaluate($context)? else { return Ok(None) };
        (a, b)
    }};
}

/// Unwraps an `Option`, or returns early with an expression error.
macro_rules! some {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

/// Separator of language tag and base direction.
const DIRECTION: &str = "--";

type Evaluated<'e> = Result<Option<Operand<'e>>>;

impl Node {
    /// The value for the row `context.row`.
    pub(crate) fn evaluate<'e>(&'e self, context: &mut Context<'_>) -> Evaluated<'e> {
        match self {
            Self::Constant(constant) => Ok(Some(Operand::Constant(constant))),
            Self::Error => Ok(None),
            Self::Variable(variable) => {
                let id = context.id(*variable);
                Ok(id.is_bound().then_some(Operand::Id(id)))
            }
            Self::Bound(_)
            | Self::Or(_)
            | Self::And(_)
            | Self::Not(_)
            | Self::Equal(_)
            | Self::SameTerm(_)
            | Self::Compare(..)
            | Self::In(..)
            | Self::InConstants(..)
            | Self::LangMatches(_)
            | Self::Test(..)
            | Self::Regex(..)
            | Self::Search(_, _, false) => {
                Ok(self.truth(context)?.map(|truth| Operand::Value(Value::Boolean(truth))))
            }
            Self::Pair(
                function @ (PairFunction::Contains | PairFunction::StartsWith | PairFunction::EndsWith),
                ab,
            ) => {
                context.work(1)?;
                Ok(text_test(*function, ab, context)?.map(|truth| Operand::Value(Value::Boolean(truth))))
            }
            Self::If(abc) => match abc[0].truth(context)? {
                Some(true) => abc[1].evaluate(context),
                Some(false) => abc[2].evaluate(context),
                None => Ok(None),
            },
            Self::Coalesce(list) => {
                for item in list {
                    context.work(1)?;
                    if let Some(operand) = item.evaluate(context)? {
                        return Ok(Some(operand));
                    }
                }
                Ok(None)
            }
            Self::StrDt(ab) => {
                context.work(1)?;
                let (text, datatype) = both!(ab, context);
                let text = some!(context.simple(text)?);
                Ok(match context.decode(datatype)? {
                    // A term instead of a value, to preserve its lexical form.
                    Value::Iri(iri) if iri != RDF_LANG_STRING && iri != RDF_DIR_LANG_STRING => {
                        Some(Operand::Id(context.evaluator.intern_parts(ComputedKind::Typed, &text, &iri)?))
                    }
                    _ => None,
                })
            }
            Self::TriplePart(part, a) => {
                context.work(1)?;
                let a = some!(a.evaluate(context)?);
                triple_part(*part, a, context)
            }
            Self::EqualityKey(a) => {
                context.work(1)?;
                let a = some!(a.evaluate(context)?);
                equality_key(a, context).map(Some)
            }
            _ => {
                context.work(1)?;
                Ok(self.compute(context)?.map(Operand::Value))
            }
        }
    }

    /// Fast path: the id of a variable or a constant; it may be unbound.
    #[inline]
    fn id(&self, context: &Context<'_>) -> Option<Id> {
        match self {
            Self::Variable(variable) => Some(context.id(*variable)),
            Self::Constant(constant) => Some(constant.id),
            _ => None,
        }
    }

    /// The effective boolean value for the row `context.row`.
    pub(crate) fn truth(&self, context: &mut Context<'_>) -> Result<Option<bool>> {
        context.work(1)?;
        match self {
            Self::Bound(variable) => Ok(Some(context.id(*variable).is_bound())),
            Self::Or(list) => any(list.iter().map(|item| item.truth(context))),
            Self::And(list) => {
                let negated =
                    list.iter().map(|item| item.truth(context).map(|truth| truth.map(|truth| !truth)));
                Ok(any(negated)?.map(|truth| !truth))
            }
            Self::Not(a) => Ok(a.truth(context)?.map(|truth| !truth)),
            Self::Equal(ab) => {
                if let (Some(a), Some(b)) = (ab[0].id(context), ab[1].id(context))
                    && let Some(answer) = equal_ids(a, b)
                {
                    return Ok(Some(answer));
                }
                let (a, b) = both!(ab, context);
                equal(&a, &b, context)
            }
            Self::SameTerm(ab) => {
                let (a, b) = both!(ab, context);
                Ok(Some(context.intern(a)? == context.intern(b)?))
            }
            Self::Compare(comparator, ab) => {
                if let (Some(a), Some(b)) = (ab[0].id(context), ab[1].id(context))
                    && let Some(answer) = compare_ids(*comparator, a, b)
                {
                    return Ok(Some(answer));
                }
                let (a, b) = both!(ab, context);
                compare_operands(*comparator, a, b, context)
            }
            Self::In(a, list) => {
                let a = some!(a.evaluate(context)?);
                any(list.iter().map(|item| {
                    context.work(1)?;
                    match item.evaluate(context)? {
                        Some(item) => equal(&a, &item, context),
                        None => Ok(None),
                    }
                }))
            }
            Self::InConstants(a, list, others) => {
                let a = some!(a.evaluate(context)?);
                let (found, a) = list.contains(a, context)?;
                if found == Some(true) || others.is_empty() {
                    return Ok(found);
                }
                any(std::iter::once(Ok(found)).chain(others.iter().map(|item| {
                    context.work(1)?;
                    match item.evaluate(context)? {
                        Some(item) => equal(&a, &item, context),
                        None => Ok(None),
                    }
                })))
            }
            Self::LangMatches(ab) => {
                let (tag, range) = both!(ab, context);
                let (tag, range) = (some!(context.simple(tag)?), some!(context.simple(range)?));
                Ok(Some(language_matches(&tag, &range)))
            }
            Self::Test(test, a) => {
                let a = some!(a.evaluate(context)?);
                Ok(Some(test_kind(*test, a, context)?))
            }
            Self::Regex(text, pattern) => {
                let text = some!(text.evaluate(context)?);
                let computed;
                let pattern = match pattern {
                    PatternNode::Fixed(pattern) => pattern,
                    PatternNode::Computed(pattern, flags) => {
                        computed = some!(compute_pattern(pattern, flags.as_deref(), context)?);
                        &computed
                    }
                };
                let (text, _) = some!(context.text(text)?);
                let found = pattern.is_match(&text, &mut |units| context.work(units))?;
                context.recycle(text);
                Ok(found)
            }
            Self::Search(text, search, false) => {
                searched(text, search, context, |search, words| search.matches(words))
            }
            Self::Pair(
                function @ (PairFunction::Contains | PairFunction::StartsWith | PairFunction::EndsWith),
                ab,
            ) => text_test(*function, ab, context),
            _ => match self.evaluate(context)? {
                Some(operand) => context.effective_boolean(operand),
                None => Ok(None),
            },
        }
    }

    /// Evaluates a function that computes a new value.
    fn compute<'e>(&'e self, context: &mut Context<'_>) -> Result<Option<Value<'e>>> {
        match self {
            Self::Arithmetic(operator, ab) => {
                if let (Some(a), Some(b)) = (ab[0].id(context), ab[1].id(context))
                    && let (Some(Inline::Integer(a)), Some(Inline::Integer(b))) =
                        (Inline::from_id(a), Inline::from_id(b))
                {
                    return Ok(apply(*operator, &Value::Integer(a.into()), &Value::Integer(b.into())));
                }
                let (a, b) = both!(ab, context);
                let (a, b) = (context.decode(a)?, context.decode(b)?);
                // The square of the sum is at most twice the sum of the squares.
                context.work(2 * (a.work() + b.work()))?;
                Ok(apply(*operator, &a, &b))
            }
            Self::Search(text, search, _) => {
                let score = searched(text, search, context, TextSearch::score)?;
                Ok(score.map(|score| Value::Double(score.into())))
            }
            Self::Unary(function, a) => {
                let a = some!(a.evaluate(context)?);
                let value = context.decode(a)?;
                context.work(value.work())?;
                Ok(apply_unary(*function, &value))
            }
            Self::DateTimeField(which, a) => {
                let a = some!(a.evaluate(context)?);
                Ok(date_time_field(*which, &context.decode(a)?))
            }
            Self::Cast(to, a) => {
                let a = some!(a.evaluate(context)?);
                let value = context.decode(a)?;
                context.work(value.work())?;
                Ok(cast(*to, &value))
            }
            Self::Str(a) => {
                let a = some!(a.evaluate(context)?);
                lexical_form(a, context)
            }
            Self::Lang(a) => {
                let a = some!(a.evaluate(context)?);
                if let Operand::Id(id) = a
                    && id.tag() == Tag::Literal
                {
                    return language(id, context);
                }
                Ok(match context.decode(a)? {
                    Value::Iri(_) | Value::Blank(_) | Value::Triple(_) => None,
                    Value::Language(_, tag) => {
                        let length = tag.find(DIRECTION).unwrap_or(tag.len());
                        Some(Value::String(Cow::Owned(tag[..length].to_owned())))
                    }
                    _ => Some(Value::String(Cow::Borrowed(""))),
                })
            }
            Self::LangDir(a) => {
                let a = some!(a.evaluate(context)?);
                Ok(match context.decode(a)? {
                    Value::Iri(_) | Value::Blank(_) | Value::Triple(_) => None,
                    Value::Language(_, tag) => {
                        let direction = tag.split_once(DIRECTION).map_or("", |(_, direction)| direction);
                        Some(Value::String(Cow::Owned(direction.to_owned())))
                    }
                    _ => Some(Value::String(Cow::Borrowed(""))),
                })
            }
            Self::Datatype(a) => {
                let a = some!(a.evaluate(context)?);
                datatype(a, context)
            }
            Self::Iri(a, base) => {
                let a = some!(a.evaluate(context)?);
                Ok(match context.decode(a)? {
                    Value::Iri(iri) => Some(Value::Iri(iri)),
                    Value::String(text) => {
                        let iri = match base {
                            Some(base) => base.resolve(&text),
                            None => Iri::parse(text.into_owned()),
                        };
                        iri.ok().map(|iri| Value::Iri(Cow::Owned(iri.into_inner())))
                    }
                    _ => None,
                })
            }
            Self::Blank(a) => blank_node(a.as_deref(), context),
            Self::Rand => {
                // A double in [0, 1) has 53 random bits.
                #[expect(clippy::cast_precision_loss, reason = "53 bits fit in the mantissa of an f64")]
                let fraction = (context.evaluator.random() >> 11) as f64 / (1_u64 << 53) as f64;
                Ok(Some(Value::Double(fraction.into())))
            }
            Self::Uuid | Self::StrUuid => {
                let mut text = context.buffer();
                let iri = matches!(self, Self::Uuid);
                text.push_str(if iri { "urn:uuid:" } else { "" });
                uuid(context.evaluator.random(), context.evaluator.random(), &mut text);
                let text = Cow::Owned(text);
                Ok(Some(if iri { Value::Iri(text) } else { Value::String(text) }))
            }
            Self::Text(function, a) => {
                let a = some!(a.evaluate(context)?);
                text_function(*function, a, context)
            }
            Self::Pair(function, ab) => text_part(*function, ab, context),
            Self::StrLang(ab) => {
                let (text, tag) = both!(ab, context);
                let (text, tag) = (some!(context.simple(text)?), some!(context.simple(tag)?));
                // The library validates the tag and converts it to lower case.
                let literal = some!(Literal::new_language_tagged_literal("", tag).ok());
                let tag = some!(literal.language()).to_owned();
                Ok(Some(Value::Language(text, Cow::Owned(tag))))
            }
            Self::StrLangDir(abc) => {
                let [text, tag, direction] = &**abc;
                let (text, tag) = (some!(text.evaluate(context)?), some!(tag.evaluate(context)?));
                let direction = some!(direction.evaluate(context)?);
                let (text, tag) = (some!(context.simple(text)?), some!(context.simple(tag)?));
                let direction = match &*some!(context.simple(direction)?) {
                    "ltr" => BaseDirection::Ltr,
                    "rtl" => BaseDirection::Rtl,
                    _ => return Ok(None),
                };
                let literal = Literal::new_directional_language_tagged_literal("", tag, direction);
                let literal = some!(literal.ok());
                let tag = format!("{}{DIRECTION}{direction}", some!(literal.language()));
                Ok(Some(Value::Language(text, Cow::Owned(tag))))
            }
            Self::Triple(parts) => triple(parts, context),
            Self::Concat(list) => concat(list, context),
            Self::SubStr(ab, length) => {
                let (text, start) = both!(ab, context);
                let start = some!(rounded(start, context)?);
                let length = match length {
                    Some(length) => Some(some!(rounded(some!(length.evaluate(context)?), context)?)),
                    None => None,
                };
                let (text, tag) = some!(context.text(text)?);
                let mut out = context.buffer();
                out.push_str(substring(&text, start, length));
                context.recycle(text);
                Ok(Some(with_tag(Cow::Owned(out), tag)))
            }
            Self::Replace(ab, pattern) => {
                let (text, replacement) = both!(ab, context);
                let computed;
                let pattern = match pattern {
                    PatternNode::Fixed(pattern) => pattern,
                    PatternNode::Computed(pattern, flags) => {
                        computed = some!(compute_pattern(pattern, flags.as_deref(), context)?);
                        &computed
                    }
                };
                let (text, tag) = some!(context.text(text)?);
                let replacement = some!(context.simple(replacement)?);
                let replaced =
                    pattern.replace(&text, &replacement, MAX_TEXT_BYTES, &mut |units| context.work(units))?;
                match some!(replaced) {
                    Replacement::Text(text) => Ok(Some(with_tag(Cow::Owned(text), tag))),
                    Replacement::TooLong => Err(text_too_long()),
                }
            }
            // The remaining nodes are booleans or terms; `evaluate` handles them.
            _ => Ok(None),
        }
    }
}

/// SPARQL's `||`: true if one item is true, else an error if one is, else false.
fn any(items: impl Iterator<Item = Result<Option<bool>>>) -> Result<Option<bool>> {
    let mut result = Some(false);
    for item in items {
        match item? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn test_kind(test: Test, operand: Operand<'_>, context: &mut Context<'_>) -> Result<bool> {
    if let Some(id) = operand.known_id() {
        let tag = id.tag();
        match test {
            Test::Iri | Test::Blank | Test::Literal | Test::Triple if tag == Tag::Computed => {
                let kind = context.evaluator.computed().kind(id)?;
                return Ok(match test {
                    Test::Iri => kind == ComputedKind::Iri,
                    Test::Blank => kind == ComputedKind::Blank,
                    Test::Triple => kind == ComputedKind::Triple,
                    _ => !matches!(kind, ComputedKind::Iri | ComputedKind::Blank | ComputedKind::Triple),
                });
            }
            Test::Iri => {
                return Ok(
                    tag == Tag::Edge || (tag == Tag::Vertex && !context.evaluator.snapshot().is_blank(id)?)
                );
            }
            Test::Blank => return Ok(tag == Tag::Vertex && context.evaluator.snapshot().is_blank(id)?),
            Test::Literal | Test::Triple => {
                let may_be = tag == Tag::Literal && context.evaluator.snapshot().may_have_triple_terms();
                let triple = may_be && is_triple(id, context)?;
                return Ok(if test == Test::Triple { triple } else { id.is_stored_literal() && !triple });
            }
            Test::Language | Test::Direction => match tag {
                Tag::Literal => {
                    let mut answer = false;
                    context.evaluator.read_literal_kind(id, &mut |kind| {
                        answer = matches!(kind, Some(LiteralKind::Language(tag))
                            if test == Test::Language || tag.contains(DIRECTION));
                    })?;
                    return Ok(answer);
                }
                Tag::Computed => {}
                _ => return Ok(false),
            },
            Test::Numeric => match tag {
                Tag::Integer | Tag::Int | Tag::Long | Tag::Decimal | Tag::Double => return Ok(true),
                Tag::Literal | Tag::Computed => {}
                _ => return Ok(false),
            },
        }
    }
    let value = context.decode(operand)?;
    let answer = match test {
        Test::Iri => matches!(value, Value::Iri(_)),
        Test::Blank => matches!(value, Value::Blank(_)),
        Test::Literal => !matches!(value, Value::Iri(_) | Value::Blank(_) | Value::Triple(_)),
        Test::Numeric => value.is_numeric(),
        Test::Language => matches!(value, Value::Language(..)),
        Test::Direction => matches!(&value, Value::Language(_, tag) if tag.contains(DIRECTION)),
        Test::Triple => matches!(value, Value::Triple(_)),
    };
    context.recycle_value(value);
    Ok(answer)
}

/// Whether a term of the dictionary is a triple term.
fn is_triple(id: Id, context: &Context<'_>) -> Result<bool> {
    let mut triple = false;
    context.evaluator.read_literal_kind(id, &mut |kind| triple = kind == Some(LiteralKind::Triple))?;
    Ok(triple)
}

/// `TRIPLE()`: a triple term whose parts keep their lexical forms; an expression error if it would be nested
/// too deep.
fn triple<'e>(parts: &'e [Node; 3], context: &mut Context<'_>) -> Result<Option<Value<'e>>> {
    let mut texts = [const { String::new() }; 3];
    for (position, (part, text)) in parts.iter().zip(&mut texts).enumerate() {
        let operand = some!(part.evaluate(context)?);
        let id = context.intern(operand)?;
        let mut bytes = Vec::new();
        context.evaluator.read_term(id, &mut context.scratch, &mut |parts| parts.write_nt(&mut bytes))?;
        // Terms are UTF-8.
        *text = some!(String::from_utf8(bytes).ok());
        // Subjects are IRIs or blank nodes, predicates are IRIs.
        let fits = match position {
            0 => text.starts_with("_:") || text.starts_with('<') && !text.starts_with("<<"),
            1 => text.starts_with('<') && !text.starts_with("<<"),
            _ => true,
        };
        if !fits {
            return Ok(None);
        }
    }
    let [subject, predicate, object] = &texts;
    if triple_depth(object) >= TRIPLE_DEPTH_MAX {
        return Ok(None);
    }
    let mut text = context.buffer();
    write_triple([subject, predicate, object], &mut text);
    Ok(Some(Value::Triple(Cow::Owned(text))))
}

/// `SUBJECT()`, `PREDICATE()`, `OBJECT()`: the term instead of its value, to preserve its lexical form.
fn triple_part<'e>(part: usize, operand: Operand<'_>, context: &mut Context<'_>) -> Evaluated<'e> {
    let text = match context.decode(operand)? {
        Value::Triple(text) => text,
        other => {
            context.recycle_value(other);
            return Ok(None);
        }
    };
    let parts = some!(triple_parts(&text));
    let evaluator = context.evaluator;
    let interned = with_nt(parts[part], &mut context.scratch, |parts| evaluator.intern_term_parts(parts));
    let id = some!(interned)?;
    context.recycle(text);
    Ok(Some(Operand::Id(id)))
}

/// Appends the result of `STR()` of a term; `false`: it has none.
pub(crate) fn write_lexical_form(id: Id, out: &mut String, context: &mut Context<'_>) -> Result<bool> {
    if let Some(inline) = Inline::from_id(id) {
        inline.write_lexical(out);
        return Ok(true);
    }
    let (mut none, before) = (false, out.len());
    context.evaluator.read_term(id, &mut context.scratch, &mut |parts| {
        let triple = matches!(parts, TermParts::Literal { kind: LiteralKind::Triple, .. });
        none = triple || matches!(parts, TermParts::Blank(_));
        parts.write_str(out);
    })?;
    context.work(of_text(out.len() - before))?;
    Ok(!none)
}

/// `STR()`: the exact lexical form, so the term is not decoded to its value.
pub(crate) fn lexical_form<'e>(operand: Operand<'e>, context: &mut Context<'_>) -> Result<Option<Value<'e>>> {
    if let Some(id) = operand.known_id() {
        let mut out = context.buffer();
        let is_text = write_lexical_form(id, &mut out, context)?;
        return Ok(is_text.then_some(Value::String(Cow::Owned(out))));
    }
    let value = context.decode(operand)?;
    context.work(value.work())?;
    Ok(match value {
        Value::Blank(_) | Value::Triple(_) => None,
        Value::Iri(text) | Value::String(text) | Value::Language(text, _) | Value::Typed(text, _) => {
            Some(Value::String(text))
        }
        value => {
            let mut out = context.buffer();
            value.write_lexical(&mut out);
            Some(Value::String(Cow::Owned(out)))
        }
    })
}

/// `DATATYPE()`: the datatype of the term, which may be narrower than that of its value.
fn datatype<'e>(operand: Operand<'e>, context: &mut Context<'_>) -> Result<Option<Value<'e>>> {
    let Some(id) = operand.known_id() else {
        let value = context.decode(operand)?;
        return Ok(value.datatype().map(|datatype| Value::Iri(Cow::Owned(datatype.to_owned()))));
    };
    if let Some(inline) = Inline::from_id(id) {
        return Ok(Some(Value::Iri(Cow::Borrowed(inline.datatype()))));
    }
    let mut out = context.buffer();
    let mut literal = false;
    context.evaluator.read_literal_kind(id, &mut |kind| {
        if let Some(kind) = kind {
            literal = kind != LiteralKind::Triple;
            out.push_str(match kind {
                LiteralKind::Triple => "",
                LiteralKind::String => "http://www.w3.org/2001/XMLSchema#string",
                LiteralKind::Typed(datatype) => datatype,
                LiteralKind::Language(tag) if tag.contains(DIRECTION) => RDF_DIR_LANG_STRING,
                LiteralKind::Language(_) => RDF_LANG_STRING,
            });
        }
    })?;
    Ok(literal.then_some(Value::Iri(Cow::Owned(out))))
}

/// `LANG()` of a stored literal, without reading its text.
fn language(id: Id, context: &mut Context<'_>) -> Result<Option<Value<'static>>> {
    let mut out = context.buffer();
    let mut literal = false;
    context.evaluator.read_literal_kind(id, &mut |kind| {
        literal = kind.is_some_and(|kind| kind != LiteralKind::Triple);
        if let Some(LiteralKind::Language(tag)) = kind {
            out.push_str(&tag[..tag.find(DIRECTION).unwrap_or(tag.len())]);
        }
    })?;
    Ok(literal.then_some(Value::String(Cow::Owned(out))))
}

fn blank_node(label: Option<&Node>, context: &mut Context<'_>) -> Result<Option<Value<'static>>> {
    let label = match label {
        None => {
            let id = context.evaluator.fresh_blank()?;
            return context.decode_id(id).map(Some);
        }
        Some(label) => some!(label.evaluate(context)?),
    };
    let text = some!(context.simple(label)?);
    let solution = solution(context)?;
    let mut name = context.buffer();
    name.push('q');
    for half in 0..2 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(mix(context.evaluator.seed() ^ half));
        hasher.write_u64(solution);
        hasher.write(text.as_bytes());
        name.push_str(&format!("{:016x}", mix(hasher.finish() ^ half)));
    }
    Ok(Some(Value::Blank(Cow::Owned(name))))
}

/// The solution number of the current row. See [`crate::Evaluator::with_solution`].
fn solution(context: &Context<'_>) -> Result<u64> {
    if let Some(variable) = context.evaluator.solution() {
        return Ok(context.id(variable.index()).bits());
    }
    let mut hasher = FxHasher::default();
    for variable in 0..context.columns.len() {
        let id = context.id(variable);
        // Blank nodes computed for this solution must not change its number.
        let made = id.tag() == Tag::Computed && context.evaluator.computed().kind(id)? == ComputedKind::Blank;
        if id.is_bound() && !made {
            hasher.write_usize(variable);
            hasher.write_u64(mix(id.bits()));
        }
    }
    Ok(mix(hasher.finish()))
}

fn text_function<'e>(
    function: TextFunction,
    operand: Operand<'e>,
    context: &mut Context<'_>,
) -> Result<Option<Value<'e>>> {
    if let TextFunction::Hash(function) = function {
        let text = some!(context.simple(operand)?);
        return Ok(Some(Value::String(Cow::Owned(hash(function, &text)))));
    }
    let (text, tag) = some!(context.text(operand)?);
    let value = match function {
        TextFunction::Length => Value::Integer(text.chars().count() as i128),
        TextFunction::Upper => with_tag(Cow::Owned(text.to_uppercase()), tag),
        TextFunction::Lower => with_tag(Cow::Owned(text.to_lowercase()), tag),
        TextFunction::EncodeForUri | TextFunction::Hash(_) => {
            let mut out = context.buffer();
            encode_for_uri(&text, &mut out);
            Value::String(Cow::Owned(out))
        }
    };
    context.recycle(text);
    Ok(Some(value))
}

/// The two texts of a string function, if they are compatible: the second has no language tag, or that of the
/// first.
fn compatible<'e>(ab: &'e [Node; 2], context: &mut Context<'_>) -> Result<Option<(Text<'e>, Cow<'e, str>)>> {
    let (a, b) = both!(ab, context);
    let (a, (b, b_tag)) = (some!(context.text(a)?), some!(context.text(b)?));
    Ok((b_tag.is_none() || a.1 == b_tag).then_some((a, b)))
}

fn text_test(function: PairFunction, ab: &[Node; 2], context: &mut Context<'_>) -> Result<Option<bool>> {
    let ((a, _), b) = some!(compatible(ab, context)?);
    let answer = match function {
        PairFunction::Contains => a.contains(&*b),
        PairFunction::StartsWith => a.starts_with(&*b),
        PairFunction::EndsWith | PairFunction::Before | PairFunction::After => a.ends_with(&*b),
    };
    context.recycle(a);
    context.recycle(b);
    Ok(Some(answer))
}

/// `STRBEFORE` and `STRAFTER`.
fn text_part<'e>(
    function: PairFunction,
    ab: &'e [Node; 2],
    context: &mut Context<'_>,
) -> Result<Option<Value<'e>>> {
    let ((a, tag), b) = some!(compatible(ab, context)?);
    let Some(at) = a.find(&*b) else {
        return Ok(Some(Value::String(Cow::Borrowed(""))));
    };
    let mut out = context.buffer();
    out.push_str(if function == PairFunction::Before { &a[..at] } else { &a[at + b.len()..] });
    context.recycle(a);
    context.recycle(b);
    Ok(Some(with_tag(Cow::Owned(out), tag)))
}

fn concat<'e>(list: &'e [Node], context: &mut Context<'_>) -> Result<Option<Value<'e>>> {
    let mut out = context.buffer();
    let text = concat_into(list, &mut out, context);
    context.release(out.len());
    let tag = some!(text?);
    Ok(Some(with_tag(Cow::Owned(out), tag)))
}

/// Appends the texts of `list`; their common tag. The caller releases the held text.
fn concat_into<'e>(
    list: &'e [Node],
    out: &mut String,
    context: &mut Context<'_>,
) -> Result<Option<Option<Cow<'e, str>>>> {
    let mut common: Option<Option<Cow<'e, str>>> = None;
    for item in list {
        context.work(1)?;
        let item = some!(item.evaluate(context)?);
        let (text, tag) = some!(context.text(item)?);
        let before = out.len();
        if before + text.len() > MAX_TEXT_BYTES {
            return Err(text_too_long());
        }
        out.push_str(&text);
        context.hold(before, out.len())?;
        context.recycle(text);
        common = match common {
            None => Some(tag),
            Some(common) if common == tag => Some(common),
            Some(_) => Some(None),
        };
    }
    Ok(Some(common.flatten()))
}

/// A number rounded as by XPath's `fn:round`; `None` if it is not a number.
fn rounded(operand: Operand<'_>, context: &mut Context<'_>) -> Result<Option<f64>> {
    #[expect(clippy::cast_precision_loss, reason = "no text has 2^53 characters")]
    Ok(match context.decode(operand)? {
        Value::Integer(value) => Some(value as f64),
        Value::Decimal(value) => Some((double_of_decimal(value) + 0.5).floor()),
        Value::Wide(value) => Some((value.to_double() + 0.5).floor()),
        Value::Float(value) => Some((f64::from(value) + 0.5).floor()),
        Value::Double(value) => Some((f64::from(value) + 0.5).floor()),
        _ => None,
    })
}

fn compute_pattern(
    pattern: &Node,
    flags: Option<&Node>,
    context: &mut Context<'_>,
) -> Result<Option<Pattern>> {
    let pattern = some!(pattern.evaluate(context)?);
    let pattern = some!(context.simple(pattern)?);
    let flags = match flags {
        Some(flags) => {
            let flags = some!(flags.evaluate(context)?);
            some!(context.simple(flags)?)
        }
        None => Cow::Borrowed(""),
    };
    context.pattern(&pattern, &flags)
}

/// Applies `ask` to the words of a text and a search; `None` if either is invalid.
fn searched<T>(
    text: &Node,
    search: &SearchNode,
    context: &mut Context<'_>,
    ask: impl FnOnce(&TextSearch, &Words) -> T,
) -> Result<Option<T>> {
    let text = some!(text.evaluate(context)?);
    let computed;
    let search = match search {
        SearchNode::Fixed(search) => search,
        SearchNode::Computed(search) => {
            let search = some!(search.evaluate(context)?);
            let search = some!(context.simple(search)?);
            computed = some!(TextSearch::parse(&search).ok());
            &computed
        }
    };
    let (text, _) = some!(context.text(text)?);
    let mut words = std::mem::take(&mut context.words);
    words.take(&text);
    let answer = ask(search, &words);
    context.words = words;
    context.recycle(text);
    Ok(Some(answer))
}

fn with_tag<'e>(text: Cow<'e, str>, tag: Option<Cow<'e, str>>) -> Value<'e> {
    match tag {
        Some(tag) => Value::Language(text, tag),
        None => Value::String(text),
    }
}
