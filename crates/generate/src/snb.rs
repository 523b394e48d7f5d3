//! SNB-like generator: a social network in the format and with the statistics of LDBC SNB (persons, forums,
//! posts, replies, likes).
//!
//! # Shape
//! The files are those of LDBC's format "vanilla" (`person_0_0.csv`, `person_knows_person_0_0.csv`, …; `|`
//! between columns, dates in milliseconds since 1970), so a load with names from files accepts them. The
//! model, fitted to SF0.1 (docs/benchmarks/snb-like.md compares both):
//! * degrees of `knows`: heavy-tailed, with a mean that grows as `N^(0.512 - 0.028 log10 N)`, as in Datagen;
//! * correlation: friends have the same university and city, share an interest, or are random (45, 45, 10
//!   percent); interests, names and languages depend on the country;
//! * forums: a wall for each person, whose members are the friends, photo albums of some persons, and groups;
//! * time: a person acts only after joining, a friendship begins after both have joined, a member joins a
//!   forum after its creation, a reply follows its parent, a like follows its message; all within three
//!   years;
//! * popularity of tags, places and messages follows power laws.
//!
//! Persons are numbered by the day they join. The numbers of places, organisations, tags and their classes
//! are those of LDBC, with fictitious names.
//! # Invariants
//! The same number of persons and seed give the same bytes on every platform: except for the mean degree,
//! which is rounded, the output depends only on sums and products of floats.
//! # Cost
//! About 150 bytes of memory for each person and 4 for each friend; all else is streamed. Some 30 kB of files
//! for each person.
//! # Source
//! Erling et al., "The LDBC Social Network Benchmark: Interactive Workload", SIGMOD 2015, §2 for the
//! correlations. Different: no dictionaries or code of Datagen are used, and all figures are fitted to totals
//! and percentiles.
//! # Not here
//! Update streams, query parameters. This is not an LDBC benchmark, and results on it are not LDBC results.

mod distributions;
mod files;
mod forums;
mod people;
mod statistics;
mod world;

pub use files::FileMaker;
pub use statistics::SnbStatistics;

use std::io;

/// Generates a network of `persons` persons. See the header of this file.
///
/// ```
/// use vervet_generate::generate_snb;
/// let mut names = Vec::new();
/// let made = generate_snb(50, 7, &mut |name| {
///     names.push(name.to_owned());
///     Ok(Box::new(std::io::sink()))
/// })?;
/// assert!(made.posts > 0 && names.contains(&"person_knows_person_0_0.csv".to_owned()));
/// # Ok::<(), std::io::Error>(())
/// ```
/// # Errors
/// Those of `make` and of its writers, which should be buffered.
pub fn generate_snb(persons: u32, seed: u64, make: &mut FileMaker<'_>) -> io::Result<SnbStatistics> {
    let mut files = files::Files::new(make)?;
    let world = world::World::new(seed);
    world.write(&mut files)?;
    let people = people::People::new(persons, seed, &world);
    let mut statistics = SnbStatistics::default();
    people.write(&world, &mut files, &mut statistics)?;
    forums::write(&people, &world, &mut files, &mut statistics)?;
    files.finish()?;
    Ok(statistics)
}
