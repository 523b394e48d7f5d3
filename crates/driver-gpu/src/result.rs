//! Rows that leave the device: results, rows that the CPU runs on, and the combination of equal rows.
//!
//! # Shape
//! A hash table of row numbers finds for each row of a table one that represents all equal ones, and the sum
//! of their multiplicities; *produce* then keeps the representatives. So a group on the CPU receives few rows
//! with large multiplicities, and its aggregates need no second implementation.
//! # Cost
//! Four words of the arena a row in addition to the result. A strip stops combining after a table of which
//! more than seven of eight rows were distinct.

use crate::lower::Combination;
use crate::rest::Rest;
use crate::stop::Stop;
use crate::strip::Strip;
use crate::table::DeviceTable;
use vervet_device::{Address, COLUMNS_MAX, Combine, Kernel, Produce};
use vervet_kernel::Batch;
use vervet_model::{Id, Multiplicity};

impl<'a> Strip<'_, 'a> {
    /// Results.
    pub(crate) fn collect(&mut self, table: &DeviceTable) -> Result<(), Stop> {
        let Some(combination) = self.part.combination.as_ref().filter(|_| self.combines && table.rows > 1)
        else {
            return self.download(table);
        };
        let number = self.part.steps.last().map_or(0, |step| step.number);
        let mut start = 0;
        while start < table.rows {
            let mark = self.arena.mark();
            let slice_rows = Self::combined_rows(self.arena.work_free(), table)?;
            let slice = table.slice(start, slice_rows);
            start += slice.rows;
            let combined = self.combine(&slice, combination, number)?;
            self.combines &= combined.rows <= slice.rows / 8 * 7;
            self.download(&combined)?;
            self.arena.release_to(mark);
        }
        Ok(())
    }

    /// Keeps one of equal rows.
    pub(crate) fn unique(&mut self, rest: Rest<'_, 'a>, table: &DeviceTable) -> Result<(), Stop> {
        let (number, mut table) = (rest.steps[0].number, table.clone());
        table.keep(&rest.steps[0].keep);
        let mut start = 0;
        while start < table.rows {
            let mark = self.arena.mark();
            let slice_rows = Self::combined_rows(self.budget(rest), &table)?;
            let slice = table.slice(start, slice_rows);
            start += slice.rows;
            let next = self.combine(&slice, &Combination::Once, number)?;
            self.figures[number].rows_out += next.rows;
            self.run_from(rest.after(1), &next)?;
            self.arena.release_to(mark);
        }
        Ok(())
    }

    /// Rows of a table that can be combined with this many words.
    fn combined_rows(words: u64, table: &DeviceTable) -> Result<u64, Stop> {
        // Slots, at most four for each row; the total; the result.
        Self::fitting(words, 4 + 1 + table.carried().len() as u64 + 1)
    }

    /// Combines the equal rows of a table. The result is on top of the arena.
    fn combine(
        &mut self,
        table: &DeviceTable,
        combination: &Combination,
        number: usize,
    ) -> Result<DeviceTable, Stop> {
        let rows = table.rows;
        let carried = table.carried();
        if carried.len() > COLUMNS_MAX {
            return Err(Stop::Rows);
        }
        let (once, alone) = match combination {
            Combination::Once => (true, 0),
            Combination::Sum { alone } => {
                let is_alone = |column: usize| alone.iter().any(|variable| variable.index() == column);
                let bits = (0..).zip(&carried).filter(|(_, column)| is_alone(**column));
                (false, bits.fold(0, |bits, (bit, _): (u32, _)| bits | 1 << bit))
            }
        };
        let mut next = DeviceTable::new(0, table.columns.len());
        next.bounds.clone_from(&table.bounds);
        let mut copied = Vec::new();
        for &column in &carried {
            next.columns[column] = self.take(rows)?;
            copied.push((table.columns[column], next.columns[column]));
        }
        let sums = if once { Address::NONE } else { self.take(rows)? };
        next.times = sums;
        let mark = self.arena.mark();
        let totals = self.take(rows)?;
        let slot_count = (2 * rows).next_power_of_two();
        let slots = self.take(slot_count)?;
        self.device.clear(totals, rows)?;
        self.device.clear(slots, slot_count)?;
        let status = self.launch(number, Kernel::Combine, rows, |_, status| {
            let columns = copied.iter().map(|(from, _)| *from).collect();
            let times = table.times;
            Combine { rows, columns, alone, once, times, totals, slots, slot_count, status }.words()
        })?;
        if status.overflow {
            return Err(Stop::Overflow);
        }
        let status = self.launch(number, Kernel::Produce, rows, |states, status| {
            let none = Produce::default();
            let (columns, times_to, factors) = (copied, sums, totals);
            Produce { rows, last: rows, factors, times_to, columns, capacity: rows, states, status, ..none }
                .words()
        })?;
        next.rows = status.rows;
        self.arena.release_to(mark);
        Ok(next)
    }

    /// Copies the rows of a table to the result.
    fn download(&mut self, table: &DeviceTable) -> Result<(), Stop> {
        let mut out = std::mem::take(&mut self.out);
        let copied = self.copy_to(table, &mut out);
        self.out = out;
        copied
    }

    /// Copies the rows of a table for the CPU, which runs the step at this position and all later ones.
    pub(crate) fn leave(&mut self, position: usize, table: &DeviceTable) -> Result<(), Stop> {
        let at = match self.exits.iter().position(|(other, _)| *other == position) {
            Some(at) => at,
            None => {
                self.exits.push((position, Batch::new(table.columns.len())));
                self.exits.len() - 1
            }
        };
        let mut exit = std::mem::take(&mut self.exits[at].1);
        let copied = self.copy_to(table, &mut exit);
        self.exits[at].1 = exit;
        copied
    }

    fn copy_to(&mut self, table: &DeviceTable, out: &mut Batch) -> Result<(), Stop> {
        let rows = usize::try_from(table.rows).map_err(|_| Stop::Rows)?;
        let waiting = |exits: &[(usize, Batch)]| exits.iter().map(|(_, batch)| batch.rows).sum::<usize>();
        if out.rows + self.out.rows + waiting(&self.exits) + rows > self.options.result_rows_max {
            return Err(Stop::Rows);
        }
        let carried = table.carried();
        // Some tables of a strip may have multiplicities, and others none.
        let has_times = table.times != Address::NONE || !out.multiplicity.is_empty();
        let mut bytes = rows as u64 * (8 * carried.len() as u64 + if has_times { 16 } else { 0 });
        if has_times && out.multiplicity.is_empty() {
            bytes += 16 * out.rows as u64;
        }
        if !self.control.has_room(2 * bytes) {
            return Err(Stop::Rows);
        }
        let before = out.size_bytes();
        let mut words = vec![0; rows];
        for column in carried {
            self.device.download(table.columns[column], &mut words)?;
            // Rows without the optional part have fewer columns than those with it.
            out.columns[column].resize(out.rows, Id::UNBOUND);
            out.columns[column].extend(words.iter().map(|bits| Id::from_bits(*bits)));
        }
        if table.times != Address::NONE {
            self.device.download(table.times, &mut words)?;
            out.multiplicity.resize(out.rows, Multiplicity::ONE);
            out.multiplicity.extend(words.iter().map(|times| Multiplicity::new(*times)));
        }
        out.rows += rows;
        for column in out.columns.iter_mut().filter(|column| !column.is_empty()) {
            column.resize(out.rows, Id::UNBOUND);
        }
        if has_times {
            out.multiplicity.resize(out.rows, Multiplicity::ONE);
        }
        self.control.recount(self.counted, *self.counted + out.size_bytes() - before)?;
        Ok(())
    }
}
