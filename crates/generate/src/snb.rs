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

mod files;
mod forums;
mod people;
mod world;

use std::io::{self, Write};

/// Creates the writer of a file; called once with the name of each file.
pub type FileMaker<'m> = dyn FnMut(&str) -> io::Result<Box<dyn Write>> + 'm;

/// Statistics of [`generate_snb`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SnbStatistics {
    /// Pairs of persons that know each other.
    pub knows: u64,
    /// Forums.
    pub forums: u64,
    /// Members of forums.
    pub members: u64,
    /// Posts.
    pub posts: u64,
    /// Comments.
    pub comments: u64,
    /// Likes of posts and of comments.
    pub likes: u64,
}

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

/// Start of the network's time range in milliseconds since 1970: 2010-01-01.
const BEGIN: i64 = 1_262_304_000_000;
/// End of the time range (exclusive): 2013-01-01.
const END: i64 = 1_356_998_400_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Purpose of a random number stream. Purpose, seed and a number determine a separate generator, so that
/// parts are independent.
#[derive(Clone, Copy)]
enum Purpose {
    World,
    Person,
    Order,
    Knows,
    Details,
    Forums,
}

fn random(seed: u64, purpose: Purpose, number: u64) -> crate::Random {
    crate::Random::for_part(seed, &[0x736e_6220, purpose as u64, number])
}

/// A skewed index below `count`: a uniform number to the power `power`, scaled. The density falls as
/// `index^(1 / power - 1)`.
fn skewed(random: &mut crate::Random, count: usize, power: u32) -> usize {
    let uniform = random.unit();
    // Not `powi`, whose rounding may differ between platforms.
    scaled((1..power).fold(uniform, |product, _| product * uniform), count)
}

/// Scales a number in `[0, 1)` to an index below `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion from float saturates, and the result is capped"
)]
fn scaled(part: f64, count: usize) -> usize {
    ((part * count as f64) as usize).min(count.saturating_sub(1))
}

/// A geometrically distributed number with continuation probability `mean / (mean + 1)`, at most `most`.
fn geometric(random: &mut crate::Random, mean: f64, most: u32) -> u32 {
    let chance = mean / (mean + 1.0);
    let mut count = 0;
    while count < most && random.unit() < chance {
        count += 1;
    }
    count
}

/// A time after `from`, heavy-tailed with median delay `scale`. `None`: it would be after the end.
fn later(random: &mut crate::Random, from: i64, scale: i64) -> Option<i64> {
    let steps = i64::from(random.below(1 << 20)) + 1;
    // Heavy-tailed: scale * u / (1 - u) without floats.
    let wait = scale * steps / ((1 << 20) + 1 - steps);
    Some(from + 1000 + wait).filter(|time| *time < END)
}

/// A random time in a range, at least a second after its start. `None`: the range is too short.
fn between(random: &mut crate::Random, from: i64, to: i64) -> Option<i64> {
    let span = to - from - 1000;
    (span > 0).then(|| from + 1000 + span * i64::from(random.below(1 << 26)) / (1 << 26))
}
