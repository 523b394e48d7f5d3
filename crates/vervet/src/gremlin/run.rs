//! Runs the statements of a script on a host.

use super::options::GremlinOptions;
use super::transaction_host::TransactionHost;
use crate::Transaction;
use vervet_gremlin::semantics::operator::add_to_bag;
use vervet_gremlin::text::{self, Statement, Terminal};
use vervet_gremlin::{Bulk, Set, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};
use vervet_traversal::{Host, Run, Traversal};

/// Callback for every result with its count.
pub type Each<'e> = dyn FnMut(Value, u64) -> Result<()> + 'e;

/// Memory charge of a held result, in bytes, beside its value.
const RESULT_BYTES: u64 = 128;

/// Memory charge of a held result, in bytes.
///
/// # Errors
/// Cancellation.
pub(super) fn result_bytes(value: &Value, control: &Control<'_>) -> Result<u64> {
    Ok(RESULT_BYTES + vervet_traversal::value_bytes(value, control)?)
}

/// A traversal source as text.
const SOURCE_TEXT: &str = "graphtraversalsource[vervet, standard]";

/// Like [`all`], in a transaction.
pub(super) fn all_in(
    transaction: &mut Transaction,
    statements: &[Statement],
    control: &Control<'_>,
    options: &GremlinOptions,
    each: &mut Each<'_>,
) -> Result<()> {
    let mut host = TransactionHost { transaction, options };
    all(statements, &mut host, control, options, each)
}

/// Runs statements in order; `each` receives the results of the last.
pub(super) fn all(
    statements: &[Statement],
    host: &mut dyn Host,
    control: &Control<'_>,
    options: &GremlinOptions,
    each: &mut Each<'_>,
) -> Result<()> {
    let Some((last, before)) = statements.split_last() else { return Ok(()) };
    for statement in before {
        one(statement, host, control, options, &mut |_, _| Ok(()))?;
    }
    one(last, host, control, options, each)
}

fn one(
    statement: &Statement,
    host: &mut dyn Host,
    control: &Control<'_>,
    options: &GremlinOptions,
    each: &mut Each<'_>,
) -> Result<()> {
    match statement {
        Statement::Nothing => Ok(()),
        Statement::Source { .. } => each(Value::text(SOURCE_TEXT), 1),
        Statement::Transaction { action, .. } => Err(not_here(*action)),
        Statement::Traversal { bytecode, terminal: Some(Terminal::ToText), .. } => {
            each(Value::text(bytecode.to_string()), 1)
        }
        Statement::Traversal { bytecode, terminal: Some(Terminal::Explain), .. } => {
            each(Value::text(explained(Traversal::to_explain(bytecode, options.kernels)?, host)?), 1)
        }
        Statement::Traversal { bytecode, terminal, .. } => {
            let run = Traversal::new_with(bytecode, options.kernels)?.run(host, control);
            results(run, *terminal, control, options, each)
        }
    }
}

/// The steps of a traversal, with the plan of the query that kernels run for it below the first step.
fn explained(mut traversal: Traversal, host: &dyn Host) -> Result<String> {
    let steps = traversal.explain();
    let (Some(query), Some((first, rest))) = (traversal.query(), steps.split_once('\n')) else {
        return Ok(steps);
    };
    let mut plan = String::new();
    host.read(&mut |snapshot| {
        plan = super::snapshot_host::plan_text(query, snapshot)?;
        Ok(())
    })?;
    let plan: String = plan.lines().map(|line| format!("     {line}\n")).collect();
    Ok(format!("{first}\n{plan}{rest}"))
}

fn results(
    mut run: Run<'_>,
    terminal: Option<Terminal>,
    control: &Control<'_>,
    options: &GremlinOptions,
    each: &mut Each<'_>,
) -> Result<()> {
    let how = options.materialize;
    match terminal {
        None | Some(Terminal::ToList | Terminal::Explain | Terminal::ToText) => {
            run.for_each(how, each)?;
        }
        Some(Terminal::Iterate) => while run.advance()?.is_some() {},
        Some(Terminal::HasNext) => {
            let has_next = run.advance()?.is_some();
            each(Value::Boolean(has_next), 1)?;
        }
        Some(terminal @ (Terminal::Next | Terminal::TryNext)) => match run.advance()? {
            Some((value, _)) => each(run.detailed(value, how)?, 1)?,
            None if terminal == Terminal::TryNext => {}
            None => {
                let error = Error::new(ErrorKind::Query, "there is no next result");
                return Err(error.with_hint("check with hasNext() or tryNext()"));
            }
        },
        Some(Terminal::NextMany(wanted)) => {
            let mut left = u64::try_from(wanted).unwrap_or(0);
            while left > 0
                && let Some((value, count)) = run.advance()?
            {
                let taken = count.min(left);
                each(run.detailed(value, how)?, taken)?;
                left -= taken;
            }
        }
        Some(Terminal::ToSet) => {
            let mut seen = Set::default();
            while let Some((value, _)) = run.advance()? {
                if !seen.contains(&value) {
                    control.grow(result_bytes(&value, control)?)?;
                    seen.insert(value.clone());
                    each(run.detailed(value, how)?, 1)?;
                }
            }
        }
        Some(Terminal::ToBulkSet) => {
            let mut all = Bulk::default();
            while let Some((value, count)) = run.advance()? {
                if !all.contains_key(&value) {
                    control.grow(result_bytes(&value, control)?)?;
                }
                add_to_bag(&mut all, value, count)
                    .map_err(|error| Error::new(ErrorKind::Query, error.message()))?;
            }
            for (value, count) in all {
                each(run.detailed(value, how)?, count)?;
            }
        }
    }
    Ok(())
}

/// The error of `g.tx()` outside a session.
fn not_here(action: text::Transaction) -> Error {
    let name = match action {
        text::Transaction::Begin => "begin",
        text::Transaction::Commit => "commit",
        text::Transaction::Rollback => "rollback",
    };
    let message = format!("g.tx().{name}() has no transaction to act on here");
    Error::new(ErrorKind::Query, message)
        .with_hint("a text is a transaction of its own; use `Database::begin`, or a session of the server")
}
