//! A shop with users, products, reviews, retailers and offers after the schema of WatDiv, streamed as
//! N-Triples.
//!
//! # Shape
//! Entities have the classes and predicates of the WatDiv data model; each optional predicate has a
//! probability, and targets of the social and of the commercial predicates are skewed, so that stars of equal
//! shape differ widely in their numbers. Sizes grow with the scale, except cities, countries, topics, genres,
//! languages, roles and ages.
//!
//! | per scale | number |
//! | --- | --- |
//! | users, products, reviews, offers, purchases | 1,000, 250, 1,500, 900, 1,500 |
//! | retailers, websites | 12, 50 |
//! # Source
//! Aluç, Hartig, Özsu, Daudjee, "Diversified Stress Testing of RDF Data Management Systems", ISWC 2014, and
//! the published data model. Different: probabilities are rounded, texts are of made-up words, and numbers of
//! entities are exact. Not comparable with published figures.

use crate::Random;
use crate::statements::{Prefixes, Statements, date, scaled, skewed, word, words};
use std::io::{self, Write};

/// Prefixes of the data and the queries.
pub const WATDIV_PREFIXES: Prefixes = &[
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("wsdbm", "http://db.uwaterloo.ca/~galuc/wsdbm/"),
    ("foaf", "http://xmlns.com/foaf/"),
    ("dc", "http://purl.org/dc/terms/"),
    ("sorg", "http://schema.org/"),
    ("gr", "http://purl.org/goodrelations/"),
    ("gn", "http://www.geonames.org/ontology#"),
    ("mo", "http://purl.org/ontology/mo/"),
    ("og", "http://ogp.me/ns#"),
    ("rev", "http://purl.org/stuff/rev#"),
];

/// The numbers of entities at a scale; entity numbers start at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatDivSizes {
    /// `wsdbm:UserN`.
    pub users: u32,
    /// `wsdbm:ProductN`.
    pub products: u32,
    /// `wsdbm:ReviewN`.
    pub reviews: u32,
    /// `wsdbm:OfferN`.
    pub offers: u32,
    /// `wsdbm:PurchaseN`.
    pub purchases: u32,
    /// `wsdbm:RetailerN`.
    pub retailers: u32,
    /// `wsdbm:WebsiteN`.
    pub websites: u32,
}

/// Numbers that do not grow.
const CITIES: u32 = 240;
const COUNTRIES: u32 = 25;
const TOPICS: u32 = 250;
const SUB_GENRES: u32 = 145;
const LANGUAGES: u32 = 25;
const CATEGORIES: u32 = 15;
const AGE_GROUPS: u32 = 9;

impl WatDivSizes {
    /// The sizes at `scale`; 1 is about a hundred thousand statements.
    #[must_use]
    pub fn at(scale: f64) -> Self {
        let sized = |size| scaled(size, scale);
        Self {
            users: sized(1_000),
            products: sized(250),
            reviews: sized(1_500),
            offers: sized(900),
            purchases: sized(1_500),
            retailers: sized(12),
            websites: sized(50),
        }
    }
}

/// Writes the shop at `scale` to `out`; returns the number of statements.
///
/// # Errors
/// Those of `out`.
pub fn generate_watdiv(scale: f64, seed: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut shop = Shop {
        out: Statements::new(WATDIV_PREFIXES, out),
        random: Random::for_part(seed, &[0x7761_7464]),
        sizes: WatDivSizes::at(scale),
    };
    for city in 0..CITIES {
        let country = skewed(&mut shop.random, COUNTRIES, 2);
        shop.out.link(&name("City", city), "gn:parentCountry", &name("Country", country))?;
    }
    for genre in 0..SUB_GENRES {
        shop.out.link(&name("SubGenre", genre), "rdf:type", &name("Genre", genre % 21))?;
        shop.tags(&name("SubGenre", genre))?;
    }
    for website in 0..shop.sizes.websites {
        shop.website(&name("Website", website))?;
    }
    for user in 0..shop.sizes.users {
        shop.user(user)?;
    }
    for product in 0..shop.sizes.products {
        shop.product(&name("Product", product))?;
    }
    for review in 0..shop.sizes.reviews {
        shop.review(&name("Review", review))?;
    }
    for retailer in 0..shop.sizes.retailers {
        shop.retailer(&name("Retailer", retailer))?;
    }
    for offer in 0..shop.sizes.offers {
        shop.offer(&name("Offer", offer))?;
    }
    for purchase in 0..shop.sizes.purchases {
        shop.purchase(&name("Purchase", purchase))?;
    }
    shop.out.finish()
}

fn name(class: &str, number: u32) -> String {
    format!("wsdbm:{class}{number}")
}

struct Shop<'w> {
    out: Statements<'w>,
    random: Random,
    sizes: WatDivSizes,
}

impl Shop<'_> {
    fn chance(&mut self, percent: u32) -> bool {
        self.random.below(100) < percent
    }

    /// Links to between no and `most` distinct entities of a class, the first numbers more likely.
    fn links(
        &mut self,
        subject: &str,
        predicate: &str,
        (class, count): (&str, u32),
        most: u32,
        power: u32,
    ) -> io::Result<()> {
        let mut targets: Vec<u32> = (0..most).map(|_| skewed(&mut self.random, count, power)).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.iter().try_for_each(|&target| self.out.link(subject, predicate, &name(class, target)))
    }

    fn optional_text(&mut self, subject: &str, predicate: &str, percent: u32, length: u32) -> io::Result<()> {
        if self.chance(percent) {
            let text = words(&mut self.random, length);
            self.out.text(subject, predicate, &text)?;
        }
        Ok(())
    }

    fn optional_number(&mut self, subject: &str, predicate: &str, percent: u32, most: u32) -> io::Result<()> {
        if self.chance(percent) {
            let number = self.random.between(1..=most);
            self.out.integer(subject, predicate, number)?;
        }
        Ok(())
    }

    fn tags(&mut self, subject: &str) -> io::Result<()> {
        let most = self.random.below(12);
        self.links(subject, "og:tag", ("Topic", TOPICS), most, 2)
    }

    fn language(&mut self, subject: &str, percent: u32) -> io::Result<()> {
        let most = u32::from(self.chance(percent));
        self.links(subject, "sorg:language", ("Language", LANGUAGES), most, 3)
    }

    fn website(&mut self, website: &str) -> io::Result<()> {
        let local = website.trim_start_matches("wsdbm:");
        self.out.text(website, "sorg:url", &format!("http://www.{local}.example/"))?;
        let hits = skewed(&mut self.random, 1_000_000, 3);
        self.out.integer(website, "wsdbm:hits", hits)?;
        self.language(website, 25)
    }

    fn user(&mut self, number: u32) -> io::Result<()> {
        let user = name("User", number);
        self.out.integer(&user, "wsdbm:userId", number * 7 + 1_000)?;
        self.out.link(&user, "rdf:type", &name("Role", number % 3))?;
        if self.chance(60) {
            let gender = name("Gender", self.random.below(2));
            self.out.link(&user, "wsdbm:gender", &gender)?;
        }
        if self.chance(50) {
            let age = name("AgeGroup", self.random.below(AGE_GROUPS));
            self.out.link(&user, "foaf:age", &age)?;
        }
        if self.chance(70) {
            let (given, family) = (word(self.random.below(300)), word(self.random.below(800)));
            self.out.text(&user, "foaf:givenName", &given)?;
            self.out.text(&user, "foaf:familyName", &family)?;
        }
        if self.chance(90) {
            self.out.text(&user, "sorg:email", &format!("user{number}@mail.example"))?;
        }
        if self.chance(5) {
            let title = word(self.random.below(40));
            self.out.text(&user, "sorg:jobTitle", &title)?;
        }
        let country = u32::from(self.chance(20));
        self.links(&user, "sorg:nationality", ("Country", COUNTRIES), country, 2)?;
        let city = u32::from(self.chance(40));
        self.links(&user, "dc:Location", ("City", CITIES), city, 1)?;
        let home = u32::from(self.chance(5));
        self.links(&user, "foaf:homepage", ("Website", self.sizes.websites), home, 1)?;
        let most = skewed(&mut self.random, 100, 2);
        self.links(&user, "wsdbm:follows", ("User", self.sizes.users), most, 2)?;
        let most = if self.chance(40) { skewed(&mut self.random, 220, 1) } else { 0 };
        self.links(&user, "wsdbm:friendOf", ("User", self.sizes.users), most, 1)?;
        let most = if self.chance(24) { self.random.below(10) } else { 0 };
        self.links(&user, "wsdbm:likes", ("Product", self.sizes.products), most, 2)?;
        let most = if self.chance(20) { self.random.below(16) } else { 0 };
        self.links(&user, "wsdbm:subscribes", ("Website", self.sizes.websites), most, 2)
    }

    fn product(&mut self, product: &str) -> io::Result<()> {
        let category = skewed(&mut self.random, CATEGORIES, 2);
        self.out.link(product, "rdf:type", &name("ProductCategory", category))?;
        let genres = self.random.between(1..=3);
        self.links(product, "wsdbm:hasGenre", ("SubGenre", SUB_GENRES), genres, 2)?;
        self.optional_text(product, "sorg:caption", 50, 3)?;
        self.optional_text(product, "sorg:description", 60, 12)?;
        self.optional_text(product, "sorg:text", 30, 30)?;
        self.optional_text(product, "sorg:keywords", 30, 4)?;
        self.optional_number(product, "sorg:contentRating", 50, 18)?;
        self.optional_number(product, "sorg:contentSize", 30, 5_000)?;
        self.optional_text(product, "og:title", 80, 4)?;
        self.tags(product)?;
        let home = u32::from(self.chance(25));
        self.links(product, "foaf:homepage", ("Website", self.sizes.websites), home, 1)?;
        self.language(product, 40)?;
        self.optional_text(product, "sorg:publisher", 10, 1)?;
        let users = ("User", self.sizes.users);
        let people = self.random.between(1..=5);
        match category {
            0..=2 => {
                self.links(product, "sorg:actor", users, people, 1)?;
                self.links(product, "sorg:director", users, 1, 1)?;
                self.optional_text(product, "sorg:trailer", 30, 2)
            }
            3 | 4 => self.links(product, "sorg:author", users, 1 + people / 4, 1),
            5 => {
                self.links(product, "mo:artist", users, people, 2)?;
                let conductor = u32::from(self.chance(40));
                self.links(product, "mo:conductor", users, conductor, 1)
            }
            6 => self.links(product, "mo:artist", users, 1, 2),
            _ => Ok(()),
        }
    }

    fn review(&mut self, review: &str) -> io::Result<()> {
        let product = name("Product", skewed(&mut self.random, self.sizes.products, 2));
        self.out.link(&product, "rev:hasReview", review)?;
        self.links(review, "rev:reviewer", ("User", self.sizes.users), 1, 1)?;
        self.optional_number(review, "rev:rating", 100, 10)?;
        self.optional_text(review, "rev:title", 30, 4)?;
        self.optional_text(review, "rev:text", 60, 40)?;
        self.optional_number(review, "rev:totalVotes", 5, 50)
    }

    fn retailer(&mut self, retailer: &str) -> io::Result<()> {
        self.optional_text(retailer, "sorg:legalName", 50, 2)?;
        self.optional_text(retailer, "sorg:openingHours", 10, 2)?;
        self.optional_text(retailer, "sorg:paymentAccepted", 60, 2)?;
        let home = u32::from(self.chance(50));
        self.links(retailer, "foaf:homepage", ("Website", self.sizes.websites), home, 1)?;
        let contact = u32::from(self.chance(20));
        self.links(retailer, "sorg:contactPoint", ("User", self.sizes.users), contact, 1)
    }

    fn offer(&mut self, offer: &str) -> io::Result<()> {
        let retailer = name("Retailer", skewed(&mut self.random, self.sizes.retailers, 2));
        self.out.link(&retailer, "gr:offers", offer)?;
        self.links(offer, "gr:includes", ("Product", self.sizes.products), 1, 1)?;
        let price = format!("{}.{:02}", self.random.between(1..=999), self.random.below(100));
        self.out.typed(offer, "gr:price", &price, "xsd:decimal")?;
        let serial = self.random.between(10_000..=99_999_999);
        self.out.integer(offer, "gr:serialNumber", serial)?;
        if self.chance(40) {
            let from = date(&mut self.random, 2005, 2009);
            self.out.typed(offer, "gr:validFrom", &from, "xsd:date")?;
        }
        if self.chance(40) {
            let through = date(&mut self.random, 2010, 2014);
            self.out.typed(offer, "gr:validThrough", &through, "xsd:date")?;
        }
        if self.chance(20) {
            let until = date(&mut self.random, 2010, 2014);
            self.out.typed(offer, "sorg:priceValidUntil", &until, "xsd:date")?;
        }
        let regions = if self.chance(50) { self.random.between(1..=10) } else { 0 };
        self.links(offer, "sorg:eligibleRegion", ("Country", COUNTRIES), regions, 1)?;
        self.optional_number(offer, "sorg:eligibleQuantity", 80, 20)
    }

    fn purchase(&mut self, purchase: &str) -> io::Result<()> {
        let user = name("User", skewed(&mut self.random, self.sizes.users, 2));
        self.out.link(&user, "wsdbm:makesPurchase", purchase)?;
        self.links(purchase, "wsdbm:purchaseFor", ("Product", self.sizes.products), 1, 2)?;
        if self.chance(80) {
            let day = date(&mut self.random, 2008, 2012);
            self.out.typed(purchase, "wsdbm:purchaseDate", &day, "xsd:date")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shops_are_deterministic_and_of_the_given_size() {
        let generate = |scale, seed| {
            let mut text = Vec::new();
            let count = generate_watdiv(scale, seed, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.lines().count() as u64, count);
            text
        };
        let text = generate(0.2, 1);
        assert_eq!(text, generate(0.2, 1));
        assert_ne!(text, generate(0.2, 2));
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), text.lines().count(), "no statement is repeated");
        let statements = generate(1.0, 0).lines().count();
        assert!((60_000..140_000).contains(&statements), "{statements}");
    }
}
