//! A social network in the form and with the shape of LDBC's: persons who know each other, forums, posts,
//! replies, likes.
//!
//! # Shape
//! The files are those of LDBC's form "vanilla" (`person_0_0.csv`, `person_knows_person_0_0.csv`, …; `|`
//! between columns, dates in milliseconds since 1970), so a load with names from files takes them. What is
//! modelled, with SF0.1 as the measure (docs/benchmarks/snb-like.md has both beside each other):
//! * degrees of `knows`: heavy-tailed, their mean grows as `N^(0.512 - 0.028 log10 N)`, as Datagen's does;
//! * correlation: friends come from one university and city, or share an interest, or are anybody (45, 45, 10
//!   in a hundred); interests, names and languages depend on the country;
//! * forums: a wall for each person whose members are the friends, albums of photos of some persons, and
//!   groups;
//! * time: nobody does anything before having joined, a friendship begins after both have, a member joins a
//!   forum after it is made, a reply follows what it replies to, a like what is liked; all of it within three
//!   years;
//! * popularity of tags, places and messages follows power laws.
//!
//! Persons are numbered by the day they join. Places, organisations, tags and their classes are as many as
//! LDBC has, with made-up names.
//! # Invariants
//! The same number of persons and seed give the same bytes, everywhere: but for the mean of degrees, which is
//! rounded, nothing rests on functions of floats other than sums and products.
//! # Cost
//! About 150 bytes of memory a person and 4 for each friend; all else is streamed. Some 30 kB of files a
//! person.
//! # Source
//! Erling et al., "The LDBC Social Network Benchmark: Interactive Workload", SIGMOD 2015, §2 for what is
//! correlated with what. Different: nothing of Datagen's dictionaries or code is here, and all figures are
//! fitted to totals and percentiles.
//! # Not here
//! Update streams, parameters of queries. This is not LDBC's benchmark, and results on it are not LDBC
//! results.

mod files;
mod forums;
mod people;
mod world;

use std::io::{self, Write};

/// Where the files go: called once with the name of each.
pub type FileMaker<'m> = dyn FnMut(&str) -> io::Result<Box<dyn Write>> + 'm;

/// How much was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SnbStatistics {
    /// Pairs of persons who know each other.
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

/// Makes a network of so many persons. See the header of this file.
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
/// Those of `make` and of what it makes, which should have buffers.
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

/// The first millisecond of the network: 2010-01-01.
const BEGIN: i64 = 1_262_304_000_000;
/// The millisecond after its last: 2013-01-01.
const END: i64 = 1_356_998_400_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// What a sequence of random numbers is for: with the seed and a number it makes a generator of its own, so
/// that parts do not depend on each other.
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

/// Index below `count`, of which small ones are much more likely: a uniform number to this power, scaled. The
/// density falls as `index^(1 / power - 1)`.
fn skewed(random: &mut crate::Random, count: usize, power: u32) -> usize {
    let uniform = random.unit();
    // Not `powi`, whose rounding is not promised to be the same everywhere.
    scaled((1..power).fold(uniform, |product, _| product * uniform), count)
}

/// The index that a part of one is of `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion from float saturates, and the result is capped"
)]
fn scaled(part: f64, count: usize) -> usize {
    ((part * count as f64) as usize).min(count.saturating_sub(1))
}

/// How often something happens whose chance is `mean / (mean + 1)` each time: a geometric distribution. At
/// most `most`.
fn geometric(random: &mut crate::Random, mean: f64, most: u32) -> u32 {
    let chance = mean / (mean + 1.0);
    let mut count = 0;
    while count < most && random.unit() < chance {
        count += 1;
    }
    count
}

/// A time after `from`, mostly soon: within `scale` half of the time. `None`: it would be after the end.
fn later(random: &mut crate::Random, from: i64, scale: i64) -> Option<i64> {
    let steps = i64::from(random.below(1 << 20)) + 1;
    // Heavy-tailed: scale * u / (1 - u) without floats.
    let wait = scale * steps / ((1 << 20) + 1 - steps);
    Some(from + 1000 + wait).filter(|time| *time < END)
}

/// A time between two, at least a second after the first. `None`: there is none.
fn between(random: &mut crate::Random, from: i64, to: i64) -> Option<i64> {
    let span = to - from - 1000;
    (span > 0).then(|| from + 1000 + span * i64::from(random.below(1 << 26)) / (1 << 26))
}
