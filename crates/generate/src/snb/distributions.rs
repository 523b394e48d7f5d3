//! Times, random number streams and distributions of the network.

use crate::Random;

/// Start of the network's time range in milliseconds since 1970: 2010-01-01.
pub(super) const BEGIN: i64 = 1_262_304_000_000;
/// End of the time range (exclusive): 2013-01-01.
pub(super) const END: i64 = 1_356_998_400_000;
pub(super) const HOUR: i64 = 3_600_000;
pub(super) const DAY: i64 = 24 * HOUR;

/// Purpose of a random number stream. Purpose, seed and a number determine a separate generator, so that
/// parts are independent.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    World,
    Person,
    Order,
    Knows,
    Details,
    Forums,
}

pub(super) fn random(seed: u64, purpose: Purpose, number: u64) -> Random {
    Random::for_part(seed, &[0x736e_6220, purpose as u64, number])
}

/// A skewed index below `count`: a uniform number to the power `power`, scaled. The density falls as
/// `index^(1 / power - 1)`.
pub(super) fn skewed(random: &mut Random, count: usize, power: u32) -> usize {
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
pub(super) fn scaled(part: f64, count: usize) -> usize {
    ((part * count as f64) as usize).min(count.saturating_sub(1))
}

/// A geometrically distributed number with continuation probability `mean / (mean + 1)`, at most `most`.
pub(super) fn geometric(random: &mut Random, mean: f64, most: u32) -> u32 {
    let chance = mean / (mean + 1.0);
    let mut count = 0;
    while count < most && random.unit() < chance {
        count += 1;
    }
    count
}

/// A time after `from`, heavy-tailed with median delay `scale`. `None`: it would be after the end.
pub(super) fn later(random: &mut Random, from: i64, scale: i64) -> Option<i64> {
    let steps = i64::from(random.below(1 << 20)) + 1;
    // Heavy-tailed: scale * u / (1 - u) without floats.
    let wait = scale * steps / ((1 << 20) + 1 - steps);
    Some(from + 1000 + wait).filter(|time| *time < END)
}

/// A random time in a range, at least a second after its start. `None`: the range is too short.
pub(super) fn between(random: &mut Random, from: i64, to: i64) -> Option<i64> {
    let span = to - from - 1000;
    (span > 0).then(|| from + 1000 + span * i64::from(random.below(1 << 26)) / (1 << 26))
}
