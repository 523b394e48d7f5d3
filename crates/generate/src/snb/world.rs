//! Static part of the network: places, organisations, tags and their classes, in the same numbers as LDBC.

use super::distributions::{Purpose, random, skewed};
use super::files::Files;
use crate::Random;
use std::io;

const CONTINENTS: u32 = 6;
const COUNTRIES: u32 = 111;
const CITIES: u32 = 1343;
const UNIVERSITIES: u32 = 6380;
const COMPANIES: u32 = 1575;
const CLASSES: u32 = 71;
/// Number of tags.
pub(super) const TAGS: u32 = 16_080;
/// Maximum number of preferred tags of a country.
const PREFERRED: u32 = 400;

/// The static part. Places are numbered: first countries, then continents, then cities.
pub(super) struct World {
    /// The country of each city.
    country_of_city: Vec<u32>,
    /// The first city of each country, and the end of the last one.
    first_city: Vec<u32>,
    /// First preferred tag of each country.
    first_preferred: Vec<u32>,
    names: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = random(seed, Purpose::World, 0);
        // Each country has a city; most other cities are in few countries.
        let mut counts = vec![1_u32; COUNTRIES as usize];
        for _ in COUNTRIES..CITIES {
            counts[skewed(&mut random, COUNTRIES as usize, 2)] += 1;
        }
        let mut first_city = vec![0];
        let mut country_of_city = Vec::with_capacity(CITIES as usize);
        for (country, count) in (0..).zip(counts) {
            country_of_city.extend((0..count).map(|_| country));
            first_city.push(u32::try_from(country_of_city.len()).unwrap_or(u32::MAX));
        }
        let first_preferred = (0..COUNTRIES).map(|_| random.below(TAGS - PREFERRED)).collect();
        let names = (0..2000).map(|_| name(&mut random)).collect();
        Self { country_of_city, first_city, first_preferred, names }
    }

    /// A fictitious name, determined by `number`.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize % self.names.len()]
    }

    /// A random country with one of its cities; skewed, so that few countries have most people.
    pub(super) fn home(&self, random: &mut Random) -> (u32, u32) {
        let country = skewed(random, COUNTRIES as usize, 3);
        let (first, end) = (self.first_city[country], self.first_city[country + 1]);
        let city = first + u32::try_from(skewed(random, (end - first) as usize, 2)).unwrap_or(0);
        (u32::try_from(country).unwrap_or(0), city)
    }

    pub(super) fn any_country(random: &mut Random) -> u32 {
        random.below(COUNTRIES)
    }

    /// A university in the country.
    pub(super) fn university(country: u32, random: &mut Random) -> u32 {
        let of_country = UNIVERSITIES / COUNTRIES;
        COMPANIES + country + COUNTRIES * u32::try_from(skewed(random, of_country as usize, 3)).unwrap_or(0)
    }

    /// A company, usually in the country.
    pub(super) fn company(country: u32, random: &mut Random) -> u32 {
        let country = if random.once_in(8) { Self::any_country(random) } else { country };
        country + COUNTRIES * random.below(COMPANIES / COUNTRIES)
    }

    /// A tag preferred by the country, or any tag.
    pub(super) fn tag(&self, country: u32, random: &mut Random) -> u32 {
        let preferred = random.below(3) > 0;
        let (first, count) =
            if preferred { (self.first_preferred[country as usize], PREFERRED) } else { (0, TAGS) };
        first + u32::try_from(skewed(random, count as usize, if preferred { 2 } else { 4 })).unwrap_or(0)
    }

    pub(super) fn city_place(city: u32) -> u32 {
        COUNTRIES + CONTINENTS + city
    }

    pub(super) fn tag_name(&self, tag: u32) -> String {
        format!("{}_{tag}", self.name(tag))
    }

    pub(super) fn write(&self, files: &mut Files) -> io::Result<()> {
        let url = |name: &str| format!("http://example.org/resource/{name}");
        for place in 0..COUNTRIES + CONTINENTS + CITIES {
            let (kind, parent) = match place {
                0..COUNTRIES => ("country", Some(COUNTRIES + place % CONTINENTS)),
                place if place < COUNTRIES + CONTINENTS => ("continent", None),
                place => ("city", Some(self.country_of_city[(place - COUNTRIES - CONTINENTS) as usize])),
            };
            let name = format!("{}_{place}", self.name(place));
            files.row("place", format_args!("{place}|{name}|{}|{kind}", url(&name)))?;
            if let Some(parent) = parent {
                files.row("place_isPartOf_place", format_args!("{place}|{parent}"))?;
            }
        }
        for organisation in 0..COMPANIES + UNIVERSITIES {
            let is_company = organisation < COMPANIES;
            let kind = if is_company { "company" } else { "university" };
            let name = format!("{}_{kind}_{organisation}", self.name(organisation * 7));
            files.row("organisation", format_args!("{organisation}|{kind}|{name}|{}", url(&name)))?;
            let place = if is_company {
                organisation % COUNTRIES
            } else {
                let country = (organisation - COMPANIES) % COUNTRIES;
                let [first, end] = [0, 1].map(|next| self.first_city[country as usize + next]);
                Self::city_place(first + organisation / COUNTRIES % (end - first))
            };
            files.row("organisation_isLocatedIn_place", format_args!("{organisation}|{place}"))?;
        }
        for class in 0..CLASSES {
            let name = format!("{}Class{class}", self.name(class * 3));
            files.row("tagclass", format_args!("{class}|{name}|{}", url(&name)))?;
            if class > 0 {
                let parent = (class - 1) / 4;
                files.row("tagclass_isSubclassOf_tagclass", format_args!("{class}|{parent}"))?;
            }
        }
        for tag in 0..TAGS {
            let name = self.tag_name(tag);
            files.row("tag", format_args!("{tag}|{name}|{}", url(&name)))?;
            let class = 1 + (tag * 31 % (CLASSES - 1)) * (tag * 17 % CLASSES) / CLASSES;
            files.row("tag_hasType_tagclass", format_args!("{tag}|{class}"))?;
        }
        Ok(())
    }
}

/// A name of two or three syllables.
fn name(random: &mut Random) -> String {
    const STARTS: [&str; 20] = [
        "B", "D", "F", "G", "H", "J", "K", "L", "M", "N", "P", "R", "S", "T", "V", "W", "Z", "Ch", "Sh", "Br",
    ];
    const MIDDLES: [&str; 10] = ["a", "e", "i", "o", "u", "ai", "ei", "ou", "ia", "ar"];
    const ENDS: [&str; 12] = ["", "n", "r", "l", "s", "m", "nd", "t", "k", "", "", "v"];
    let mut name = String::new();
    for _ in 0..random.between(2..=3) {
        for part in [random.pick::<&str>(&STARTS), random.pick(&MIDDLES), random.pick(&ENDS)] {
            name.push_str(part);
        }
    }
    let lower = name.to_lowercase();
    let mut letters = lower.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
