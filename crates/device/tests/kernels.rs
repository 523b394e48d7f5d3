//! The device kernels against references of a few lines, with random inputs.
//!
//! They run on the simulated device, or on the first GPU if `VERVET_KERNELS` is a file of
//! `cargo xtask gpu build` and the feature `cuda` is on.
#![cfg(feature = "simulated")]
#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use std::collections::BTreeMap;
use vervet_device::{
    Address, Combine, Device, Intervals, Kernel, Leg, Locate, Mark, Number, Operand, Produce, STATUS_WORDS,
    Simulated, Status, Test, Window, Windows,
};

type Lists = BTreeMap<u64, Vec<u64>>;

/// A device whose allocations live as long as it.
struct Bench {
    device: Box<dyn Device>,
}

/// The device of a case.
fn bench(bytes: u64, seed: u64) -> Bench {
    #[cfg(all(feature = "cuda", unix))]
    if let Some(file) = std::env::var_os("VERVET_KERNELS") {
        let gpu = vervet_device::Cuda::open(0, &std::fs::read(file).unwrap()).unwrap();
        return Bench { device: Box::new(gpu) };
    }
    Bench { device: Box::new(Simulated::new(bytes, seed)) }
}

impl Bench {
    fn upload(&mut self, words: &[u64]) -> Address {
        let at = self.device.allocate(8 * words.len() as u64).unwrap();
        self.device.upload(at, words).unwrap();
        at
    }

    fn zeros(&mut self, words: u64) -> Address {
        let at = self.device.allocate(8 * words).unwrap();
        self.device.clear(at, words).unwrap();
        at
    }

    fn download(&mut self, at: Address, words: u64) -> Vec<u64> {
        let mut out = vec![0; usize::try_from(words).unwrap()];
        self.device.download(at, &mut out).unwrap();
        out
    }

    fn launch(&mut self, kernel: Kernel, parameters: &[u64]) {
        let blocks = self.device.blocks_max();
        self.device.launch(kernel, parameters, blocks).unwrap();
    }

    fn status(&mut self) -> Address {
        self.upload(&Status::CLEARED)
    }

    fn read_status(&mut self, at: Address) -> Status {
        let mut words = [0; STATUS_WORDS];
        self.device.download(at, &mut words).unwrap();
        Status::from_words(words)
    }

    /// A segment in windows of at most this many keys.
    fn windows(&mut self, lists: &Lists, keys_max: usize) -> Windows {
        let (mut last_keys, mut addresses) = (Vec::new(), Vec::new());
        for part in lists.iter().collect::<Vec<_>>().chunks(keys_max) {
            let keys: Vec<u64> = part.iter().map(|(key, _)| **key).collect();
            let neighbours: Vec<u64> = part.iter().flat_map(|(_, list)| list.iter().copied()).collect();
            let mut ends = Vec::new();
            for (_, list) in part {
                ends.push(ends.last().unwrap_or(&0) + u32::try_from(list.len()).unwrap());
            }
            let window = Window::encode(&keys, &ends, &neighbours).unwrap();
            last_keys.push(*keys.last().unwrap());
            addresses.push(self.upload(window.words()).0);
        }
        let count = last_keys.len() as u64;
        Windows { last_keys: self.upload(&last_keys), addresses: self.upload(&addresses), count }
    }

    /// Starts, ends and number of candidates of rows.
    fn locate(&mut self, rows: u64, legs: &[Leg]) -> (Address, Address, u64) {
        let (starts, ends) = (self.zeros(rows), self.zeros(rows));
        let (states, status) = (self.zeros(rows), self.status());
        let parameters =
            Locate { rows, legs: legs.to_vec(), starts, ends, factors: Address::NONE, states, status };
        self.launch(Kernel::Locate, &parameters.words());
        (starts, ends, self.read_status(status).candidates)
    }
}

/// A random segment; with a range, bitmap or sorted list as key sets of its windows.
fn lists(random: &mut fastrand::Rng) -> Lists {
    let span = [40, 400, 1 << 40][random.usize(0..3)];
    let first = random.u64(0..1 << 60);
    let neighbour_span = [1, 50, 3_000, 1 << 20, 1 << 62][random.usize(0..5)];
    let degree_max = [1, 3, 3, 700][random.usize(0..4)];
    let mut lists = Lists::new();
    for _ in 0..random.usize(1..60) {
        let degree = if random.u8(0..4) == 0 { random.usize(1..=degree_max) } else { 1 };
        let mut list: Vec<u64> = (0..degree).map(|_| 77 + random.u64(0..neighbour_span)).collect();
        list.sort_unstable();
        list.dedup();
        lists.insert(first + random.u64(0..span), list);
    }
    lists
}

/// Keys of rows: those of the segment, and others.
fn keys(random: &mut fastrand::Rng, lists: &Lists, rows: usize) -> Vec<u64> {
    let present: Vec<u64> = lists.keys().copied().collect();
    let near = |random: &mut fastrand::Rng| {
        let key = present[random.usize(0..present.len())];
        key.wrapping_add([0, 0, 0, 1, u64::MAX, 64][random.usize(0..6)])
    };
    (0..rows).map(|_| near(random)).collect()
}

fn check(case: fn(u64, &mut fastrand::Rng)) {
    for seed in 0..60 {
        // Shown if the case fails.
        println!("seed {seed}");
        case(seed, &mut fastrand::Rng::with_seed(seed));
    }
}

#[test]
fn an_expansion_lists_the_neighbours_of_every_row() {
    check(|seed, random| {
        let lists = lists(random);
        let rows = random.usize(1..900);
        let column = keys(random, &lists, rows);
        let mut bench = bench(1 << 28, seed);
        let windows = bench.windows(&lists, random.usize(1..40));
        let uploaded = bench.upload(&column);
        let legs = [Leg { key: Operand::Column(uploaded), windows }];
        let rows = rows as u64;
        let (starts, ends, candidates) = bench.locate(rows, &legs);
        let mut expected: Vec<[u64; 2]> = Vec::new();
        for key in &column {
            expected.extend(lists.get(key).into_iter().flatten().map(|neighbour| [*key, *neighbour]));
        }
        assert_eq!(candidates, expected.len() as u64);

        // In pieces, as where the output does not fit.
        let mut found = Vec::new();
        let piece = random.u64(1..=candidates.max(1));
        for first in (0..candidates).step_by(usize::try_from(piece).unwrap()) {
            let last = (first + piece).min(candidates);
            let (values, to) = (bench.zeros(piece), bench.zeros(piece));
            let (states, status) = (bench.zeros(piece), bench.status());
            let parameters = Produce {
                rows,
                first,
                last,
                starts,
                ends,
                legs: legs.to_vec(),
                values_to: values,
                columns: vec![(uploaded, to)],
                capacity: piece,
                states,
                status,
                ..Produce::default()
            };
            bench.launch(Kernel::Produce, &parameters.words());
            let status = bench.read_status(status);
            assert!(!status.overflow && status.rows == last - first);
            let (keys, values) = (bench.download(to, status.rows), bench.download(values, status.rows));
            assert_eq!(status.bounds.0, *values.iter().min().unwrap());
            assert_eq!(status.bounds.1, *values.iter().max().unwrap());
            found.extend(keys.into_iter().zip(values).map(|(key, value)| [key, value]));
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn tests_keep_the_candidates_with_an_entry_in_every_segment() {
    check(|seed, random| {
        let (lists, other) = (lists(random), lists(random));
        let rows = random.usize(1..700);
        let column = keys(random, &lists, rows);
        let others = keys(random, &other, rows);
        let neighbours: Vec<u64> = lists.values().flatten().copied().collect();
        // A column that is equal to some neighbour in the second segment, often that of the row.
        let wanted: Vec<u64> = others
            .iter()
            .map(|key| match other.get(key) {
                Some(list) if random.bool() => list[random.usize(0..list.len())],
                _ => neighbours[random.usize(0..neighbours.len())],
            })
            .collect();
        let mut bench = bench(1 << 28, seed);
        let (windows, in_other) = (bench.windows(&lists, 7), bench.windows(&other, 9));
        let uploaded = [&column, &others, &wanted].map(|column| bench.upload(column));
        let legs = [Leg { key: Operand::Column(uploaded[0]), windows }];
        let rows = rows as u64;
        let (starts, ends, candidates) = bench.locate(rows, &legs);
        let times: Vec<u64> = (0..rows).map(|_| random.u64(1..9)).collect();
        let constant = neighbours[random.usize(0..neighbours.len())];
        let tests = [
            Test::Entry {
                key: Operand::Column(uploaded[1]),
                neighbour: Operand::Column(uploaded[2]),
                windows: in_other,
            },
            Test::Entry { key: Operand::Column(uploaded[0]), neighbour: Operand::Candidate, windows },
            Test::Entry {
                key: Operand::Column(uploaded[0]),
                neighbour: Operand::Constant(constant),
                windows,
            },
        ];
        let tests = &tests[..random.usize(1..=3)];
        let (values, times_to) = (bench.zeros(candidates), bench.zeros(candidates));
        let (states, status) = (bench.zeros(candidates), bench.status());
        let parameters = Produce {
            rows,
            last: candidates,
            starts,
            ends,
            legs: legs.to_vec(),
            tests: tests.to_vec(),
            times: bench.upload(&times),
            times_to,
            values_to: values,
            capacity: candidates,
            states,
            status,
            ..Produce::default()
        };
        bench.launch(Kernel::Produce, &parameters.words());
        let status = bench.read_status(status);
        let found =
            bench.download(values, status.rows).into_iter().zip(bench.download(times_to, status.rows));
        let mut found: Vec<(u64, u64)> = found.collect();
        let has = |lists: &Lists, key: &u64, neighbour: &u64| {
            lists.get(key).is_some_and(|list| list.contains(neighbour))
        };
        let mut expected = Vec::new();
        let mut passed = [0; 4];
        for row in 0..column.len() {
            for value in lists.get(&column[row]).into_iter().flatten() {
                let results =
                    [has(&other, &others[row], &wanted[row]), true, has(&lists, &column[row], &constant)];
                let first_failed = results[..tests.len()].iter().position(|result| !result);
                passed[..first_failed.unwrap_or(tests.len())].iter_mut().for_each(|count| *count += 1);
                if first_failed.is_none() {
                    expected.push((*value, times[row]));
                }
            }
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(status.passed, passed);
    });
}

#[test]
fn an_intersection_has_the_neighbours_in_all_legs() {
    check(|seed, random| {
        let lists: Vec<Lists> = (0..random.usize(2..=4))
            .map(|_| {
                let mut lists = Lists::new();
                for key in 0..20 {
                    let list: Vec<u64> = (0..60).filter(|_| random.bool()).collect();
                    if !list.is_empty() {
                        lists.insert(key, list);
                    }
                }
                lists
            })
            .collect();
        let rows = random.usize(1..300);
        let columns: Vec<Vec<u64>> =
            lists.iter().map(|_| (0..rows).map(|_| random.u64(0..22)).collect()).collect();
        let mut bench = bench(1 << 28, seed);
        let legs: Vec<Leg> = lists
            .iter()
            .zip(&columns)
            .map(|(lists, column)| Leg {
                key: Operand::Column(bench.upload(column)),
                windows: bench.windows(lists, 3),
            })
            .collect();
        let expected: Vec<u64> = (0..rows)
            .map(|row| {
                let listed = |leg: usize| lists[leg].get(&columns[leg][row]).map_or(&[][..], Vec::as_slice);
                let in_all = |value: &&u64| (0..legs.len()).all(|leg| listed(leg).contains(value));
                listed(0).iter().filter(in_all).count() as u64
            })
            .collect();
        let rows = rows as u64;
        let (starts, ends, candidates) = bench.locate(rows, &legs);
        let (values, counts) = (bench.zeros(candidates), bench.zeros(rows));
        let produce = |bench: &mut Bench, counts| {
            let (states, status) = (bench.zeros(candidates), bench.status());
            let legs = legs.clone();
            let capacity = candidates;
            let parameters = Produce {
                rows,
                last: candidates,
                starts,
                ends,
                legs,
                counts,
                values_to: values,
                capacity,
                states,
                status,
                ..Produce::default()
            };
            bench.launch(Kernel::Produce, &parameters.words());
            bench.read_status(status)
        };
        assert_eq!(produce(&mut bench, Address::NONE).rows, expected.iter().sum::<u64>());
        produce(&mut bench, counts);
        assert_eq!(bench.download(counts, rows), expected);
    });
}

#[test]
fn rows_are_multiplied_by_degrees_and_dropped_without_one() {
    check(|seed, random| {
        let lists = lists(random);
        let rows = random.usize(1..1_500);
        let column = keys(random, &lists, rows);
        let mut bench = bench(1 << 28, seed);
        let windows = bench.windows(&lists, 11);
        let legs = vec![Leg { key: Operand::Column(bench.upload(&column)), windows }];
        let rows = rows as u64;
        let factors = bench.zeros(rows);
        let (states, status) = (bench.zeros(rows), bench.status());
        let parameters = Locate { rows, legs, factors, states, status, ..Locate::default() };
        bench.launch(Kernel::Locate, &parameters.words());
        let degrees: Vec<u64> =
            column.iter().map(|key| lists.get(key).map_or(0, |list| list.len() as u64)).collect();
        assert_eq!(bench.download(factors, rows), degrees);

        let times: Vec<u64> =
            (0..rows).map(|_| if random.u16(0..2_000) == 0 { 1 << 62 } else { 3 }).collect();
        let (times_to, to) = (bench.zeros(rows), bench.zeros(rows));
        let (states, status) = (bench.zeros(rows), bench.status());
        let numbers = bench.upload(&(0..rows).collect::<Vec<_>>());
        let parameters = Produce {
            rows,
            last: rows,
            times: bench.upload(&times),
            factors,
            times_to,
            columns: vec![(numbers, to)],
            capacity: rows,
            states,
            status,
            ..Produce::default()
        };
        bench.launch(Kernel::Produce, &parameters.words());
        let status = bench.read_status(status);
        let products = || degrees.iter().zip(&times).map(|(degree, times)| degree.checked_mul(*times));
        assert_eq!(status.overflow, products().any(|product| product.is_none()));
        if status.overflow {
            return;
        }
        let expected: Vec<(u64, u64)> =
            (0..).zip(products().flatten()).filter(|(_, product)| *product != 0).collect();
        let found = bench.download(to, status.rows).into_iter().zip(bench.download(times_to, status.rows));
        let mut found: Vec<(u64, u64)> = found.collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    });
}

#[test]
fn output_that_does_not_fit_is_reported_and_not_written() {
    let mut bench = bench(1 << 20, 1);
    let column = bench.upload(&(0..2_000).collect::<Vec<_>>());
    let to = bench.zeros(100);
    let (states, status) = (bench.zeros(2_000), bench.status());
    let parameters = Produce {
        rows: 2_000,
        last: 2_000,
        columns: vec![(column, to)],
        capacity: 99,
        states,
        status,
        ..Produce::default()
    };
    bench.launch(Kernel::Produce, &parameters.words());
    assert!(bench.read_status(status).overflow);
    assert_eq!(bench.download(to, 100)[99], 0);
}

#[test]
fn accesses_outside_of_allocated_memory_are_errors() {
    let mut device = Simulated::new(1_000, 1);
    let at = device.allocate(80).unwrap();
    assert!(device.upload(at, &[1; 10]).is_ok());
    assert!(device.upload(at, &[1; 11]).is_err());
    assert!(device.upload(at.plus_words(1), &[1; 10]).is_err());
    assert!(device.download(Address(8), &mut [0]).is_err());
    assert!(device.clear(Address(at.0 + 4), 1).is_err());
    assert!(device.allocate(1_000).is_err(), "80 bytes are taken");
    device.free(at);
    assert!(device.upload(at, &[1]).is_err());
    assert!(device.allocate(1_000).is_ok());
    assert!(device.launch(Kernel::Locate, &[0; 3], 1).is_err(), "wrong parameters");
}

#[test]
fn intervals_accept_reject_or_leave_undecided() {
    check(|seed, random| {
        let starts: Vec<u64> = {
            let later = (0..random.usize(0..40)).map(|_| random.u64(1..500));
            let all: std::collections::BTreeSet<u64> = std::iter::once(0).chain(later).collect();
            all.into_iter().collect()
        };
        let outcomes: Vec<u64> = starts.iter().map(|_| random.u64(0..3)).collect();
        let rows = random.usize(1..1_500);
        let column: Vec<u64> = (0..rows).map(|_| random.u64(0..520)).collect();
        let mut bench = bench(1 << 28, seed);
        let count = starts.len() as u64;
        let intervals = Intervals { starts: bench.upload(&starts), outcomes: bench.upload(&outcomes), count };
        let uploaded = bench.upload(&column);
        let rows = rows as u64;
        let outcome = |value: u64| outcomes[starts.partition_point(|start| *start <= value) - 1];
        for undecided in [false, true] {
            let to = bench.zeros(rows);
            let (states, status) = (bench.zeros(rows), bench.status());
            let parameters = Produce {
                rows,
                last: rows,
                tests: vec![Test::Interval { value: Operand::Column(uploaded), intervals }],
                undecided,
                columns: vec![(uploaded, to)],
                capacity: rows,
                states,
                status,
                ..Produce::default()
            };
            bench.launch(Kernel::Produce, &parameters.words());
            let status = bench.read_status(status);
            let mut found = bench.download(to, status.rows);
            let wanted = 1 + u64::from(undecided);
            let mut expected: Vec<u64> =
                column.iter().copied().filter(|value| outcome(*value) == wanted).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert_eq!(status.undecided, column.iter().any(|value| outcome(*value) == 2));
        }
    });
}

#[test]
fn marks_are_the_greatest_of_their_position() {
    check(|seed, random| {
        let (rows, count) = (random.usize(1..1_500), random.u64(1..100));
        let positions: Vec<u64> = (0..rows).map(|_| random.u64(0..count)).collect();
        let mut bench = bench(1 << 28, seed);
        let (marks, numbers) = (bench.zeros(count), bench.zeros(count));
        let uploaded = bench.upload(&positions);
        let rows = rows as u64;
        let all = Mark { rows, positions: uploaded, value: 1, marks };
        let first = Mark { rows: rows / 2, value: 2, ..all };
        bench.launch(Kernel::Mark, &first.words());
        bench.launch(Kernel::Mark, &all.words());
        bench.launch(Kernel::Number, &Number { rows: count, to: numbers }.words());
        let mut expected = vec![0; usize::try_from(count).unwrap()];
        for (row, position) in positions.iter().enumerate() {
            let mark = if (row as u64) < rows / 2 { 2 } else { 1 };
            let at = &mut expected[usize::try_from(*position).unwrap()];
            *at = mark.max(*at);
        }
        assert_eq!(bench.download(marks, count), expected);
        assert_eq!(bench.download(numbers, count), (0..count).collect::<Vec<_>>());
    });
}

#[test]
fn equal_rows_are_combined_into_one() {
    const DOUBLE: u64 = 7 << 60;
    check(|seed, random| {
        let rows = random.usize(1..1_500);
        let distinct = [1, 4, 300][random.usize(0..3)];
        let columns: Vec<Vec<u64>> = (0..random.usize(0..4))
            .map(|_| {
                let value = |value| if value == 1 { DOUBLE | value } else { value };
                (0..rows).map(|_| value(random.u64(0..distinct))).collect()
            })
            .collect();
        let times: Vec<u64> =
            (0..rows).map(|_| if random.u16(0..4_000) == 0 { u64::MAX - 3 } else { 2 }).collect();
        let (alone, once, has_times) = (random.u64(0..4), random.bool(), random.bool());
        let mut bench = bench(1 << 28, seed);
        let slot_count = (2 * rows as u64).next_power_of_two();
        let status = bench.status();
        let parameters = Combine {
            rows: rows as u64,
            columns: columns.iter().map(|column| bench.upload(column)).collect(),
            alone,
            once,
            times: if has_times { bench.upload(&times) } else { Address::NONE },
            totals: bench.zeros(rows as u64),
            slots: bench.zeros(slot_count),
            slot_count,
            status,
        };
        bench.launch(Kernel::Combine, &parameters.words());
        let key = |row: usize| columns.iter().map(|column| column[row]).collect::<Vec<_>>();
        let times = |row: usize| if has_times { times[row] } else { 1 };
        let is_alone = |row: usize| {
            (0..).zip(&columns).any(|(at, column)| alone >> at & 1 == 1 && column[row] & DOUBLE == DOUBLE)
        };
        let mut expected: BTreeMap<(Vec<u64>, usize), u128> = BTreeMap::new();
        for row in 0..rows {
            let own = if is_alone(row) { row + 1 } else { 0 };
            *expected.entry((key(row), own)).or_default() += u128::from(times(row));
        }
        let overflows = !once && expected.values().any(|sum| u64::try_from(*sum).is_err());
        assert_eq!(bench.read_status(status).overflow, overflows);
        if overflows {
            return;
        }
        let totals = bench.download(parameters.totals, rows as u64);
        let mut found: Vec<(Vec<u64>, u128)> = (0..rows)
            .filter(|row| totals[*row] != 0)
            .map(|row| (key(row), u128::from(totals[row])))
            .collect();
        // A row that is alone keeps its own multiplicity also where each distinct row counts once.
        let total = |own: usize, sum: u128| if once && own == 0 { 1 } else { sum };
        let mut expected: Vec<(Vec<u64>, u128)> =
            expected.into_iter().map(|((key, own), sum)| (key, total(own, sum))).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    });
}
