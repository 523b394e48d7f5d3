//! Bank transfers: each reads two accounts and writes both. The sum of all accounts is invariant.

use super::clients::{self, Load};
use super::graphs::{StorageLocation, TemporaryDatabase};
use super::options::TransactionOptions;
use crate::sections::{Section, SectionReport};
use crate::table::figure;
use vervet::{Database, Durability, Format, Isolation, TransactionOptions as Begin};
use vervet_generate::Random;
use vervet_model::{Error, Result};

const BALANCE: &str = "urn:vervet:key:balance";
const FIRST: i64 = 1000;

pub(super) fn run(options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let mut section = Section::new(
        "Bank transfers",
        "Each transaction reads the balances of two random accounts and transfers an amount if the balance permits \
         it, without a sync. Concurrent readers check the sum, and so does a check at the end. Refused transfers \
         are not repeated.",
        &["accounts", "isolation", "clients", "transfers/s", "p50 µs", "p99 µs", "aborted, %"],
    );
    for accounts in [10u32, 100_000] {
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            for &clients in &options.clients {
                let made = TemporaryDatabase::empty(StorageLocation::Directory(Durability::None), |_| {})?;
                open_accounts(&made.db, accounts)?;
                let load = Load { clients, time: options.time, warm_up: 100 };
                let outcome = clients::run(load, |client, number| {
                    if number % 10_000 == 9_999 {
                        check(&made.db, accounts)?;
                    }
                    transfer(&made.db, accounts, isolation, (client as u64) << 40 | number)
                })?;
                check(&made.db, accounts)?;
                section.row(vec![
                    accounts.to_string(),
                    format!("{isolation:?}").to_lowercase(),
                    clients.to_string(),
                    figure(outcome.rate()),
                    figure(outcome.quantile_us(0.5)),
                    figure(outcome.quantile_us(0.99)),
                    figure(100.0 * outcome.abort_share()),
                ]);
            }
        }
    }
    report.push(section);
    Ok(())
}

fn open_accounts(db: &Database, accounts: u32) -> Result<()> {
    let mut text = String::new();
    for account in 0..accounts {
        text += &format!("<urn:vervet:vertex:{account}> <{BALANCE}> {FIRST} .\n");
    }
    db.load_text(Format::Turtle, &text).map(drop)
}

fn transfer(db: &Database, accounts: u32, isolation: Isolation, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let (from, to) = (random.below(accounts), random.below(accounts));
    let amount = 1 + i64::from(random.below(100));
    if from == to {
        return Ok(());
    }
    let mut transaction = db.begin_with(Begin { isolation })?;
    let (from, from_has) = account(&transaction, from)?;
    let (to, to_has) = account(&transaction, to)?;
    if from_has >= amount {
        transaction.set_property(from, "balance", from_has - amount)?;
        transaction.set_property(to, "balance", to_has + amount)?;
    }
    transaction.commit().map(drop)
}

fn account(transaction: &vervet::Transaction, account: u32) -> Result<(vervet::Vertex, i64)> {
    let missing = || Error::internal(format!("account {account} has no balance"));
    transaction.read(|graph| {
        let vertex = graph.vertex(&account.to_string())?.ok_or_else(missing)?;
        match graph.property(vertex, "balance")? {
            Some(oxrdf::Term::Literal(has)) => Ok((vertex, has.value().parse().map_err(|_| missing())?)),
            _ => Err(missing()),
        }
    })
}

fn check(db: &Database, accounts: u32) -> Result<()> {
    let solutions =
        db.select(&format!("SELECT (SUM(?b) AS ?sum) (COUNT(?b) AS ?n) {{ ?a <{BALANCE}> ?b }}"))?;
    let row = solutions.rows().next().ok_or_else(|| Error::internal("a sum has no row"))?;
    let all = i64::from(accounts);
    let (sum, number) = (row.integer("sum")?, row.integer("n")?);
    if sum != Some(all * FIRST) || number != Some(all) {
        return Err(Error::internal(format!("{number:?} accounts hold {sum:?} instead of {}", all * FIRST)));
    }
    Ok(())
}
