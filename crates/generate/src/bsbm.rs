//! Products, offers and reviews after the schema of BSBM, streamed as N-Triples.
//!
//! # Shape
//! The number of products determines everything else. Product types form a tree of three levels with eight
//! types in the second; a product has the types of a path from a leaf to the root, and features of these
//! types.
//!
//! | for each product | number |
//! | --- | --- |
//! | offers, reviews | 20, 10 |
//! | features, textual and numeric properties | 9-24, 3-5, 3-5 |
//! | products for each producer, vendor and reviewer | 35, 70, 2 (20 reviews) |
//! # Source
//! Bizer, Schultz, "The Berlin SPARQL Benchmark", IJSWIS 5(2), 2009, and its published rules of generation.
//! Different: texts are of made-up words, distributions are uniform or skewed by powers. Not comparable with
//! published figures.

use crate::Random;
use crate::statements::{Prefixes, Statements, date, skewed, word, words};
use std::io::{self, Write};

/// Prefixes of the data and the queries.
pub const BSBM_PREFIXES: Prefixes = &[
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("rev", "http://purl.org/stuff/rev#"),
    ("bsbm", "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"),
    ("inst", "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/"),
    ("country", "http://downlode.org/rdf/iso-3166/countries#"),
];

/// Countries, the first more likely.
const COUNTRIES: [&str; 10] = ["US", "GB", "JP", "CN", "DE", "FR", "ES", "RU", "KR", "AT"];

/// Children of a product type.
const CHILDREN: u32 = 8;

/// Features of each product type.
const FEATURES: u32 = 12;

/// The numbers of entities for a number of products; entity numbers start at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BsbmSizes {
    /// `inst:ProductN`.
    pub products: u32,
    /// `inst:ProductTypeN`: 0 is the root, 1 to 8 its children, the others leaves.
    pub types: u32,
    /// `inst:ProductFeatureN`: those of type `N` are `12 N` to `12 N + 11`.
    pub features: u32,
    /// `inst:ProducerN`.
    pub producers: u32,
    /// `inst:VendorN`.
    pub vendors: u32,
    /// `inst:OfferN`; those of product `N` are `20 N` to `20 N + 19`.
    pub offers: u32,
    /// `inst:ReviewN`.
    pub reviews: u32,
    /// `inst:ReviewerN`.
    pub reviewers: u32,
}

impl BsbmSizes {
    /// The sizes for a number of products.
    #[must_use]
    pub fn of(products: u32) -> Self {
        let products = products.max(1);
        // The root, its children, and leaves as products grow.
        let types = 1 + CHILDREN + (products / 20).min(CHILDREN * CHILDREN * CHILDREN);
        Self {
            products,
            types,
            features: types * FEATURES,
            producers: products.div_ceil(35),
            vendors: products.div_ceil(70).max(3),
            offers: products * 20,
            reviews: products * 10,
            reviewers: products.div_ceil(2),
        }
    }
}

/// Writes the data of this number of products to `out`; returns the number of statements, about 320 a
/// product.
///
/// # Errors
/// Those of `out`.
pub fn generate_bsbm(products: u32, seed: u64, out: &mut dyn Write) -> io::Result<u64> {
    let mut market = Market {
        out: Statements::new(BSBM_PREFIXES, out),
        random: Random::for_part(seed, &[0x6273_626d]),
        sizes: BsbmSizes::of(products),
    };
    for number in 0..market.sizes.types {
        market.product_type(number)?;
    }
    for number in 0..market.sizes.features {
        let feature = name("ProductFeature", number);
        market.out.link(&feature, "rdf:type", "bsbm:ProductFeature")?;
        market.described(&feature)?;
    }
    for number in 0..market.sizes.producers {
        market.company("Producer", number)?;
    }
    for number in 0..market.sizes.vendors {
        market.company("Vendor", number)?;
    }
    for number in 0..market.sizes.products {
        market.product(number)?;
    }
    for number in 0..market.sizes.offers {
        market.offer(number)?;
    }
    for number in 0..market.sizes.reviewers {
        market.reviewer(number)?;
    }
    for number in 0..market.sizes.reviews {
        market.review(number)?;
    }
    market.out.finish()
}

fn name(class: &str, number: u32) -> String {
    format!("inst:{class}{number}")
}

/// The parent of a product type; `None` for the root. Leaves go to the children of the root in turn.
fn parent(number: u32) -> Option<u32> {
    match number {
        0 => None,
        1..=CHILDREN => Some(0),
        _ => Some(1 + (number - 1 - CHILDREN) % CHILDREN),
    }
}

struct Market<'w> {
    out: Statements<'w>,
    random: Random,
    sizes: BsbmSizes,
}

impl Market<'_> {
    /// Label and comment.
    fn described(&mut self, subject: &str) -> io::Result<()> {
        let length = self.random.between(1..=3);
        let label = words(&mut self.random, length);
        self.out.text(subject, "rdfs:label", &label)?;
        let length = self.random.between(20..=60);
        let comment = words(&mut self.random, length);
        self.out.text(subject, "rdfs:comment", &comment)
    }

    fn country(&mut self) -> String {
        let index = skewed(&mut self.random, 10, 2);
        format!("country:{}", COUNTRIES[index as usize])
    }

    fn product_type(&mut self, number: u32) -> io::Result<()> {
        let class = name("ProductType", number);
        self.out.link(&class, "rdf:type", "bsbm:ProductType")?;
        self.described(&class)?;
        match parent(number) {
            Some(parent) => self.out.link(&class, "rdfs:subClassOf", &name("ProductType", parent)),
            None => Ok(()),
        }
    }

    fn company(&mut self, class: &str, number: u32) -> io::Result<()> {
        let company = name(class, number);
        self.out.link(&company, "rdf:type", &format!("bsbm:{class}"))?;
        self.described(&company)?;
        self.out.text(&company, "foaf:homepage", &format!("http://www.{class}{number}.example/"))?;
        let country = self.country();
        self.out.link(&company, "bsbm:country", &country)
    }

    fn product(&mut self, number: u32) -> io::Result<()> {
        let product = name("Product", number);
        self.out.link(&product, "rdf:type", "bsbm:Product")?;
        self.described(&product)?;
        let producer = name("Producer", number / 35);
        self.out.link(&product, "bsbm:producer", &producer)?;
        // A leaf and its ancestors, with a quarter to a half of the features of each.
        let first_leaf = if self.sizes.types > 1 + CHILDREN { 1 + CHILDREN } else { 1 };
        let mut class = Some(first_leaf + self.random.below(self.sizes.types - first_leaf));
        while let Some(number) = class {
            self.out.link(&product, "rdf:type", &name("ProductType", number))?;
            let mut features: Vec<u32> = (0..FEATURES).collect();
            self.random.shuffle(&mut features);
            let count = self.random.between(3..=8) as usize;
            for feature in &features[..count] {
                let feature = name("ProductFeature", number * FEATURES + feature);
                self.out.link(&product, "bsbm:productFeature", &feature)?;
            }
            class = parent(number);
        }
        for property in 1..=5 {
            // The first three are always there.
            if property <= 3 || self.random.below(100) < 75 - property * 5 {
                let number = 1 + skewed(&mut self.random, 2_000, 1);
                self.out.integer(&product, &format!("bsbm:productPropertyNumeric{property}"), number)?;
            }
            if property <= 3 || self.random.below(100) < 75 - property * 5 {
                let length = self.random.between(3..=15);
                let text = words(&mut self.random, length);
                self.out.text(&product, &format!("bsbm:productPropertyTextual{property}"), &text)?;
            }
        }
        Ok(())
    }

    fn offer(&mut self, number: u32) -> io::Result<()> {
        let offer = name("Offer", number);
        self.out.link(&offer, "rdf:type", "bsbm:Offer")?;
        self.out.link(&offer, "bsbm:product", &name("Product", number / 20))?;
        let vendor = name("Vendor", self.random.below(self.sizes.vendors));
        self.out.link(&offer, "bsbm:vendor", &vendor)?;
        let price = format!("{}.{:02}", self.random.between(5..=9_999), self.random.below(100));
        self.out.typed(&offer, "bsbm:price", &price, "bsbm:USD")?;
        let from = date(&mut self.random, 2007, 2007) + "T00:00:00";
        self.out.typed(&offer, "bsbm:validFrom", &from, "xsd:dateTime")?;
        let to = date(&mut self.random, 2008, 2008) + "T00:00:00";
        self.out.typed(&offer, "bsbm:validTo", &to, "xsd:dateTime")?;
        let days = 1 + skewed(&mut self.random, 20, 2);
        self.out.integer(&offer, "bsbm:deliveryDays", days)?;
        self.out.text(&offer, "bsbm:offerWebpage", &format!("http://www.offers.example/{number}"))
    }

    fn reviewer(&mut self, number: u32) -> io::Result<()> {
        let reviewer = name("Reviewer", number);
        self.out.link(&reviewer, "rdf:type", "foaf:Person")?;
        let full = format!("{}-{}", word(self.random.below(4_000)), word(self.random.below(4_000)));
        self.out.text(&reviewer, "foaf:name", &full)?;
        let country = self.country();
        self.out.link(&reviewer, "bsbm:country", &country)
    }

    fn review(&mut self, number: u32) -> io::Result<()> {
        let review = name("Review", number);
        self.out.link(&review, "rdf:type", "rev:Review")?;
        let product = name("Product", skewed(&mut self.random, self.sizes.products, 1));
        self.out.link(&review, "bsbm:reviewFor", &product)?;
        let reviewer = name("Reviewer", self.random.below(self.sizes.reviewers));
        self.out.link(&review, "rev:reviewer", &reviewer)?;
        let length = self.random.between(2..=9);
        let title = words(&mut self.random, length);
        self.out.text(&review, "dc:title", &title)?;
        let length = self.random.between(20..=80);
        let text = words(&mut self.random, length);
        let language = *self.random.pick(&["en", "en", "en", "de", "fr", "ja"]);
        self.out.tagged(&review, "rev:text", &text, language)?;
        let day = date(&mut self.random, 2007, 2008) + "T00:00:00";
        self.out.typed(&review, "bsbm:reviewDate", &day, "xsd:dateTime")?;
        for rating in 1..=4 {
            if self.random.below(100) < 70 {
                let value = self.random.between(1..=10);
                self.out.integer(&review, &format!("bsbm:rating{rating}"), value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_deterministic_and_complete() {
        let generate = |products, seed| {
            let mut text = Vec::new();
            let count = generate_bsbm(products, seed, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.lines().count() as u64, count);
            text
        };
        let text = generate(40, 1);
        assert_eq!(text, generate(40, 1));
        assert_ne!(text, generate(40, 2));
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), text.lines().count(), "no statement is repeated");
        let statements = generate(200, 0).lines().count();
        assert!((200 * 250..200 * 400).contains(&statements), "{statements}");
        let ancestors: Vec<u32> = std::iter::successors(Some(70), |&number| parent(number)).collect();
        assert_eq!(ancestors, [70, 6, 0]);
    }
}
