//! Rows between servers: how many go together, and their bytes.

use crate::wire::{Input, Wire, malformed};
use vervet_codec::{VARINT_BYTES_MAX, write_varint};
use vervet_kernel::{BATCH_ROWS, Batch};
use vervet_model::{Id, Multiplicity, Result};

/// Maximum number of rows that one request carries, or that wait to be sent: some 100 KB if few columns are
/// carried, and always below the largest request.
pub(crate) fn rows_max(rows: &Batch) -> usize {
    let carried = rows.columns.iter().filter(|column| !column.is_empty()).count();
    (REQUEST_BYTES / (VARINT_BYTES_MAX * (carried + 2))).clamp(BATCH_ROWS, 1 << 14)
}

/// Rows without columns take no bytes, so their number has a limit of its own: above [`rows_max`] and a
/// batch.
const ROWS_READ_MAX: usize = 1 << 15;

/// Below the largest frame of the protocol, with room for a job.
const REQUEST_BYTES: usize = 8 << 20;

/// Rows that are gathered for steps that read other servers.
pub(crate) const GATHERED_ROWS: usize = 4 * BATCH_ROWS;

/// Appends all rows of a batch.
pub(crate) fn append_all(to: &mut Batch, from: &Batch) {
    let all: Vec<u32> = (0_u32..).take(from.rows).collect();
    append(to, from, &all);
}

/// Appends some rows of a batch.
pub(crate) fn append(to: &mut Batch, from: &Batch, rows: &[u32]) {
    for (to_column, column) in to.columns.iter_mut().zip(&from.columns) {
        if column.is_empty() {
            if !to_column.is_empty() {
                to_column.resize(to.rows + rows.len(), Id::UNBOUND);
            }
            continue;
        }
        // Rows before had no value in this column.
        to_column.resize(to.rows, Id::UNBOUND);
        to_column.extend(rows.iter().map(|&row| column[row as usize]));
    }
    if !from.multiplicity.is_empty() || !to.multiplicity.is_empty() {
        to.multiplicity.resize(to.rows, Multiplicity::ONE);
        to.multiplicity.extend(rows.iter().map(|&row| from.times(row as usize)));
    }
    to.rows += rows.len();
}

/// Rows, columns that are carried with their numbers, multiplicities. Ids are differences to the one before,
/// zigzag-encoded: sorted ones take some 3 bytes.
pub(crate) fn write_batch(batch: &Batch, out: &mut Vec<u8>) {
    batch.rows.write(out);
    if batch.rows == 0 {
        return;
    }
    let carried = || batch.columns.iter().enumerate().filter(|(_, column)| column.len() == batch.rows);
    carried().count().write(out);
    for (number, column) in carried() {
        number.write(out);
        let mut before = 0_u64;
        for id in column {
            let difference = id.bits().wrapping_sub(before).cast_signed();
            write_varint(((difference << 1) ^ (difference >> 63)).cast_unsigned(), out);
            before = id.bits();
        }
    }
    (!batch.multiplicity.is_empty()).write(out);
    for times in &batch.multiplicity {
        let times = times.get();
        #[expect(clippy::cast_possible_truncation, reason = "two halves")]
        ((times as u64), (times >> 64) as u64).write(out);
    }
}

/// # Errors
/// Unavailable: the bytes are no rows, or more than any server sends.
pub(crate) fn read_batch(input: &mut Input<'_>, variables: usize) -> Result<Batch> {
    let mut batch = Batch::new(variables);
    let rows = usize::read(input)?;
    if rows > ROWS_READ_MAX {
        return Err(malformed("too many rows"));
    }
    if rows == 0 {
        return Ok(batch);
    }
    let carried = usize::read(input)?;
    for _ in 0..carried {
        let column = usize::read(input)?;
        let column = batch.columns.get_mut(column).ok_or_else(|| malformed("a column without a variable"))?;
        if !column.is_empty() {
            return Err(malformed("a column comes twice"));
        }
        // Each takes a byte at least.
        column.reserve(rows.min(input.left()));
        let mut before = 0_u64;
        for _ in 0..rows {
            let zigzag = input.number()?;
            before = before.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg());
            column.push(Id::from_bits(before));
        }
    }
    if bool::read(input)? {
        for _ in 0..rows {
            let (low, high): (u64, u64) = Wire::read(input)?;
            let times = Multiplicity::from_count(u128::from(high) << 64 | u128::from(low));
            batch.multiplicity.push(times.ok_or_else(|| malformed("a multiplicity is too large"))?);
        }
    }
    batch.rows = rows;
    Ok(batch)
}
