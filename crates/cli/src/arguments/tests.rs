//! Tests of the definition, and of the value parsers.

use super::*;
use clap::CommandFactory;

fn parse(line: &[&str]) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once(&"vervet").chain(line))
}

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn levels_of_durability_have_names() {
    for text in ["sync", "none", "interval:0.25"] {
        let level = durability(text).expect("it is one");
        assert_eq!(crate::output::durability(level), text.replace(':', " "));
    }
    assert_eq!(durability("interval"), Ok(Durability::Interval(INTERVAL_DEFAULT)));
    for text in ["", "fast", "interval:", "interval:-1", "sync:1"] {
        durability(text).expect_err(text);
    }
}

#[test]
fn orders_are_two_names() {
    let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
    assert_eq!(order("knows=since"), pair("knows", "since"));
    assert_eq!(order("<http://e/?a=b>=<http://e/c>"), pair("http://e/?a=b", "http://e/c"));
    assert_eq!(order("http://e/a=b"), pair("http://e/a", "b"));
    for text in ["", "knows", "knows=", "=since", "<http://e/a>", "<a>=b", "<http://e/a>=<b>"] {
        assert!(order(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_have_units_of_1024() {
    for (text, bytes) in [
        ("0", 0),
        ("1000", 1000),
        ("64k", 65_536),
        ("512M", 512 << 20),
        ("1.5G", 3 << 29),
        ("2GiB", 2 << 30),
        ("1tb", 1 << 40),
    ] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "M", "-1", "1X", "99999999T", "1e30", "nan", "inf"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn seconds_may_be_fractions() {
    assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
    for text in ["-1", "x", "1e30", "nan", ""] {
        assert!(seconds(text).is_err(), "{text}");
    }
}

#[test]
fn queries_take_a_database_or_data() -> Result<(), clap::Error> {
    let Command::Query(query) =
        parse(&["query", "db", "ASK {}", "--timeout", "5", "--threads", "3", "--param", "n=5"])?.command
    else {
        panic!("not a query");
    };
    assert_eq!(query.second.as_deref(), Some("ASK {}"));
    assert_eq!(query.timeout, Some(Duration::from_secs(5)));
    assert_eq!(query.threads, Some(3));
    assert_eq!(query.parameters[0].name, "n");
    let Command::Query(query) = parse(&["query", "ASK {}", "--data", "a.ttl", "b.ttl"])?.command else {
        panic!("not a query");
    };
    assert_eq!(query.data.len(), 2);
    assert!(parse(&["query", "db", "--explain", "--profile"]).is_err());
    assert!(parse(&["query", "db", "--format", "yaml"]).is_err());
    assert!(parse(&["query", "db", "--threads", "0"]).is_err());
    Ok(())
}

#[test]
fn loads_name_their_files() -> Result<(), clap::Error> {
    let line = ["load", "db", "a.nt", "b.nt", "--graph", "<http://a/g>", "--memory", "1G", "--threads", "2"];
    let Command::Load(load) = parse(&line)?.command else { panic!("not a load") };
    assert_eq!(load.files.len(), 2);
    assert_eq!(load.reading.graph.as_ref().map(NamedNode::as_str), Some("http://a/g"));
    assert_eq!((load.memory, load.threads), (Some(1 << 30), Some(2)));
    for line in [
        &["load", "db"][..],
        &["load", "db", "a.nt", "--threads", "0"],
        &["load", "db", "a.nt", "--graph", "g"],
        &["load", "db", "a.nt", "--format", "doc"],
        &["load", "db", "a.nt", "--report", "x"],
        &["generate", "lubm", "--universities", "0"],
        &["fly"],
    ] {
        assert!(parse(line).is_err(), "{line:?}");
    }
    Ok(())
}
