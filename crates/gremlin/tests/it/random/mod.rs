//! Random values from a small domain, so that equal ones occur.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "values are chosen so, or may be anything"
)]

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::sync::Arc;
use vervet_gremlin::{
    Bulk, Duration, Edge, EdgeDetail, EdgeKey, Extended, Order, P, Path, Property, PropertyDetail,
    PropertyKey, T, Token, Tree, Value, Vertex, VertexDetail, VertexProperty,
};

/// Random number generator with a reproducible seed.
pub struct Random {
    pub seed: u64,
    source: vervet_testkit::Random,
}

impl Random {
    pub fn new() -> Self {
        let seed = vervet_testkit::seed();
        Self { seed, source: vervet_testkit::Random(seed) }
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.source.below(bound)
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }
}

const DOUBLES: &[f64] = &[
    0.0,
    -0.0,
    0.1,
    1.0,
    -1.0,
    2.5,
    16_777_216.0,
    9.3e15,
    1e300,
    -1e300,
    5e-324,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];
const INTEGERS: &[i64] =
    &[0, 1, -1, 2, 127, -128, 16_777_216, 16_777_217, i32::MAX as i64, i64::MAX, i64::MIN];
const TEXTS: &[&str] = &["", "a", "b", "ab", "äö", "😀", " x ", "1", "2023-08-02", "%{a}"];

pub fn text(random: &mut Random) -> Arc<str> {
    random.pick(TEXTS).into()
}

pub fn number(random: &mut Random) -> Value {
    let integer = random.pick(INTEGERS);
    let double = random.pick(DOUBLES);
    match random.below(8) {
        0 => Value::Byte(integer as i8),
        1 => Value::Short(integer as i16),
        2 => Value::Int(integer as i32),
        3 => Value::Long(integer),
        4 => Value::Float(double as f32),
        5 => Value::Double(double),
        6 => Value::BigInteger(Arc::new(BigInt::from(integer) << random.pick(&[0_u8, 1, 70]))),
        _ => {
            let scale =
                random.pick(&[0, 1, -1, 5, -400, 400, 1_000_000_000, -1_000_000_000, i64::MAX, i64::MIN]);
            let scale = if random.below(3) > 0 { random.pick(&[0, 1, 2]) } else { scale };
            Value::BigDecimal(Arc::new(BigDecimal::new(integer.into(), scale)))
        }
    }
}

/// `depth`: maximum nesting depth of collections.
pub fn value(random: &mut Random, depth: u32) -> Value {
    let kinds = if depth == 0 { 13 } else { 23 };
    match random.below(kinds) {
        0 => Value::Null,
        1 => Value::Boolean(random.below(2) == 1),
        2..=5 => number(random),
        6 | 7 => Value::String(text(random)),
        8 => Value::Char(random.pick(&['a', 'b', '😀'])),
        9 => Value::Uuid(uuid::Uuid::from_u128(random.below(3).into())),
        10 => Value::from(
            time::OffsetDateTime::from_unix_timestamp(random.pick(&[0, 1_700_000_000, -1, 253_402_300_799]))
                .unwrap(),
        ),
        11 => Value::Token(random.pick(&[Token::T(T::Id), Token::T(T::Label), Token::Order(Order::Asc)])),
        12 => extended(random),
        13 => element(random, depth - 1),
        14 => Value::list(values(random, depth - 1)),
        15 => Value::set(values(random, depth - 1)),
        16 => Value::from(
            values(random, depth - 1).into_iter().map(|value| (value, random.below(3))).collect::<Bulk>(),
        ),
        17 => {
            let keys = values(random, depth - 1);
            Value::map(keys.into_iter().map(|key| (key, value(random, depth - 1))).collect())
        }
        18 => Value::from(tree(random, depth - 1)),
        19 => {
            let objects = values(random, depth - 1);
            Value::from(Path { labels: vec![vec![]; objects.len()], objects })
        }
        20 => {
            Value::from(Property { element: Value::Null, key: text(random), value: value(random, depth - 1) })
        }
        21 => Value::Entry(Arc::new((value(random, depth - 1), value(random, depth - 1)))),
        _ => Value::from(P::Within(values(random, depth - 1))),
    }
}

fn values(random: &mut Random, depth: u32) -> Vec<Value> {
    (0..random.below(4)).map(|_| value(random, depth)).collect()
}

fn tree(random: &mut Random, depth: u32) -> Tree {
    let keys = values(random, 0);
    let below = |random: &mut Random| if depth == 0 { Tree::default() } else { tree(random, depth - 1) };
    Tree { children: keys.into_iter().map(|key| (key, below(random))).collect() }
}

fn extended(random: &mut Random) -> Value {
    let (a, b) = (random.pick(&[0, 1, i64::MAX, i64::MIN]), random.pick(&[0, 1, i32::MAX, i32::MIN]));
    let small = random.pick(&[0_u8, 1, 12, 255]);
    Value::Extended(Arc::new(match random.below(18) {
        0 => Extended::Date(a),
        1 => Extended::Timestamp(a),
        2 => Extended::Instant(a, b),
        3 => Extended::LocalDate(b, small, small),
        4 => Extended::LocalDateTime(b, small, small, a),
        5 => Extended::LocalTime(a),
        6 => Extended::MonthDay(small, small),
        7 => Extended::OffsetDateTime(b, small, small, a, b),
        8 => Extended::OffsetTime(a, b),
        9 => Extended::Period(b, b, b),
        10 => Extended::Year(b),
        11 => Extended::YearMonth(b, small),
        12 => Extended::ZonedDateTime(b, small, small, a, b, None),
        13 => Extended::ZoneOffset(b),
        14 => Extended::InetAddress([127, 0, 0, small].into()),
        15 => Extended::Bytes(vec![small; 2]),
        16 => Extended::Class("java.lang.Integer".into()),
        _ => return Value::Duration(Duration { seconds: a, nanoseconds: random.pick(&[0, 1, 999_999_999]) }),
    }))
}

/// An element with a key or with a detail, as inside a traversal or from a client.
fn element(random: &mut Random, depth: u32) -> Value {
    let wire = random.below(2) == 0;
    let key = if wire { 0 } else { 1 + random.below(3) };
    let id = wire.then(|| value(random, depth));
    match random.below(3) {
        0 => {
            let detail = id.map(|id| Arc::new(VertexDetail { id, label: text(random), properties: vec![] }));
            Value::Vertex(Vertex { key, detail })
        }
        1 => {
            let key = EdgeKey { edge: 0, source: key, label: key, target: key };
            let detail = id.map(|id| EdgeDetail { id, label: text(random), ..EdgeDetail::default() });
            Value::from(Edge { key, detail })
        }
        _ => {
            let key = PropertyKey { vertex: key, key, value: key, edge: 0 };
            let detail = id.map(|id| PropertyDetail { id, properties: vec![] });
            Value::from(VertexProperty { key, label: text(random), value: value(random, depth), detail })
        }
    }
}
