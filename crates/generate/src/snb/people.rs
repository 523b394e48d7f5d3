//! Persons, their attributes, and the friendship graph.

use super::distributions::{BEGIN, DAY, END, Purpose, between, geometric, random, scaled, skewed};
use super::files::Files;
use super::statistics::SnbStatistics;
use super::world::World;
use std::io;

/// Maximum number of interests of a person.
const INTERESTS_MAX: usize = 80;
/// Target maximum number of friends of a person.
const FRIENDS_MAX: u32 = 1_000;
/// Percentages of friends with the same place and university, and with a common interest; the rest is random.
const SHARES: [u32; 2] = [45, 45];

const BROWSERS: [&str; 5] = ["Firefox", "Internet Explorer", "Chrome", "Safari", "Opera"];

/// Attributes of a person that are kept in memory.
#[derive(Clone, Copy)]
pub(super) struct Person {
    pub(super) created: i64,
    pub(super) country: u32,
    city: u32,
    university: Option<u32>,
    /// The most important tag of interest.
    pub(super) interest: u32,
    address: u32,
    browser: u8,
}

/// All persons and the friendship graph.
pub(super) struct People {
    pub(super) seed: u64,
    pub(super) all: Vec<Person>,
    /// Friends of each person, ascending.
    pub(super) friends: Vec<Vec<u32>>,
}

impl Person {
    pub(super) fn browser(&self) -> &'static str {
        BROWSERS[usize::from(self.browser) % BROWSERS.len()]
    }

    pub(super) fn address(&self) -> String {
        let [a, b, c, d] = self.address.to_be_bytes();
        format!("{}.{b}.{c}.{d}", a % 223 + 1)
    }

    /// The code of the language of the country.
    pub(super) fn language(&self) -> &'static str {
        const LANGUAGES: [&str; 16] =
            ["en", "es", "zh", "hi", "pt", "ru", "ja", "de", "fr", "it", "tr", "pl", "vi", "ar", "nl", "id"];
        LANGUAGES[self.country as usize % LANGUAGES.len()]
    }
}

impl People {
    pub(super) fn new(count: u32, seed: u64, world: &World) -> Self {
        let step = (END - BEGIN - 30 * DAY) / i64::from(count.max(1));
        let mut all = Vec::with_capacity(count as usize);
        for number in 0..count {
            let mut random = random(seed, Purpose::Person, u64::from(number));
            let (country, city) = world.home(&mut random);
            let university = (random.below(100) < 79).then(|| {
                let country = if random.once_in(10) { World::any_country(&mut random) } else { country };
                World::university(country, &mut random)
            });
            all.push(Person {
                created: BEGIN
                    + step * i64::from(number)
                    + step * i64::from(random.below(1 << 16)) / (1 << 16),
                country,
                city,
                university,
                interest: world.tag(country, &mut random),
                address: country << 24 | random.below(1 << 24),
                browser: u8::try_from(skewed(&mut random, BROWSERS.len(), 2)).unwrap_or(0),
            });
        }
        let friends = knows(&all, seed);
        Self { seed, all, friends }
    }

    /// Time at which a friendship began.
    pub(super) fn since(&self, one: u32, other: u32) -> i64 {
        let (first, second) = (one.min(other), one.max(other));
        let mut random = random(self.seed, Purpose::Knows, u64::from(first) << 32 | u64::from(second));
        let both = self.all[first as usize].created.max(self.all[second as usize].created);
        between(&mut random, both, END).unwrap_or(both + 1)
    }

    pub(super) fn write(
        &self,
        world: &World,
        files: &mut Files,
        statistics: &mut SnbStatistics,
    ) -> io::Result<()> {
        for (number, person) in (0_u32..).zip(&self.all) {
            self.write_person(number, person, world, files)?;
            for &friend in self.friends[number as usize].iter().filter(|friend| **friend > number) {
                let since = self.since(number, friend);
                files.row("person_knows_person", format_args!("{number}|{friend}|{since}"))?;
                statistics.knows += 1;
            }
        }
        Ok(())
    }

    fn write_person(&self, number: u32, person: &Person, world: &World, files: &mut Files) -> io::Result<()> {
        let mut random = random(self.seed, Purpose::Details, u64::from(number));
        // Names repeat within a country, some of them often.
        let first = world.name(person.country * 37 + u32::try_from(skewed(&mut random, 120, 2)).unwrap_or(0));
        let last =
            world.name(person.country * 53 + 700 + u32::try_from(skewed(&mut random, 300, 2)).unwrap_or(0));
        let gender = if random.once_in(2) { "male" } else { "female" };
        // Born from 1980 to 1990.
        let birthday = 315_532_800_000 + DAY * i64::from(random.below(3_653));
        let mut languages = person.language().to_owned();
        if languages != "en" && !random.once_in(3) {
            languages.push_str(";en");
        }
        let email = |domain: &str| format!("{first}{number}@{domain}.example");
        let mut emails = email("mail");
        for domain in ["post", "letter", "note"].iter().take(random.below(4) as usize) {
            emails.push(';');
            emails.push_str(&email(domain));
        }
        let (created, address, browser) = (person.created, person.address(), person.browser());
        files.row(
            "person",
            format_args!(
                "{number}|{first}|{last}|{gender}|{birthday}|{created}|{address}|{browser}|{languages}|{emails}"
            ),
        )?;
        let place = World::city_place(person.city);
        files.row("person_isLocatedIn_place", format_args!("{number}|{place}"))?;
        if let Some(university) = person.university {
            let year = 2000 + (birthday / DAY - 3_652) / 365 + i64::from(random.below(3));
            files.row("person_studyAt_organisation", format_args!("{number}|{university}|{year}"))?;
        }
        let mut companies: Vec<u32> = Vec::new();
        for _ in 0..geometric(&mut random, 2.2, 8) {
            let company = World::company(person.country, &mut random);
            if !companies.contains(&company) {
                companies.push(company);
                let year = random.between(2000..=2013);
                files.row("person_workAt_organisation", format_args!("{number}|{company}|{year}"))?;
            }
        }
        for tag in self.interests(number, world) {
            files.row("person_hasInterest_tag", format_args!("{number}|{tag}"))?;
        }
        Ok(())
    }

    /// The interests of a person, the most important one first.
    pub(super) fn interests(&self, number: u32, world: &World) -> Vec<u32> {
        let person = &self.all[number as usize];
        let mut random = random(self.seed, Purpose::Order, u64::from(number));
        let uniform = random.unit();
        let count = 1 + scaled(uniform * uniform * (uniform + 1.0) / 2.0, INTERESTS_MAX);
        let mut tags = vec![person.interest];
        // Draws may repeat; the number of attempts is limited.
        for _ in 0..count * 3 {
            let tag = world.tag(person.country, &mut random);
            if tags.len() < count && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }
}

/// Generates the friendship graph: persons are sorted in three orders by similarity, and choose friends near
/// them in each order.
fn knows(all: &[Person], seed: u64) -> Vec<Vec<u32>> {
    let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let mut random = random(seed, Purpose::Knows, u64::MAX);
    let mean = mean_degree(count);
    let wanted: Vec<u32> = (0..count)
        .map(|_| {
            let times = if random.once_in(30) { 3.0 } else { 1.0 };
            geometric(&mut random, mean * times, FRIENDS_MAX.min(count / 2))
        })
        .collect();
    let mut friends: Vec<Vec<u32>> = vec![Vec::new(); all.len()];
    let mut order: Vec<u32> = (0..count).collect();
    for round in 0..3 {
        random.shuffle(&mut order);
        let key = |number: &u32| {
            let person = &all[*number as usize];
            match round {
                0 => [person.country, person.university.unwrap_or(0), person.city],
                1 => [person.interest, 0, 0],
                _ => [0; 3],
            }
        };
        // Stable: equal persons remain shuffled.
        order.sort_by_key(key);
        // This round also uses the unused budget of earlier rounds.
        let share: u32 = SHARES.iter().take(round + 1).sum::<u32>() + if round == 2 { 10 } else { 0 };
        for at in 0..order.len() {
            let one = order[at];
            let most = |person: u32| (wanted[person as usize] * share).div_ceil(100) as usize;
            let missing = most(one).saturating_sub(friends[one as usize].len());
            let reach = (missing as f64).max(8.0);
            for _ in 0..missing * 3 {
                if friends[one as usize].len() >= most(one) {
                    break;
                }
                let distance = 1 + geometric(&mut random, reach, 4 * FRIENDS_MAX) as usize;
                let Some(&other) = order.get(at + distance) else { continue };
                if friends[other as usize].len() < most(other) && !friends[one as usize].contains(&other) {
                    friends[one as usize].push(other);
                    friends[other as usize].push(one);
                }
            }
        }
    }
    for friends in &mut friends {
        friends.sort_unstable();
    }
    friends
}

/// Mean number of friends, as in Datagen; rounded to tenths, so that the last digits of powers do not matter.
fn mean_degree(count: u32) -> f64 {
    let count = f64::from(count.max(2));
    // A sixth less than the formula, as measured in SF0.1.
    let mean = count.powf(0.512 - 0.028 * count.log10()) * 0.83;
    (mean * 10.0).round() / 10.0
}
