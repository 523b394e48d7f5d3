//! `profile DATA QUERY-FILE [RUNS]`: runs a query many times and shows the profile of the last run, when
//! everything is warm.

use vervet::{Answer, Database, QueryOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(data), Some(query)) = (arguments.next(), arguments.next()) else {
        return Err("usage: profile DATA QUERY-FILE [RUNS]".into());
    };
    let runs: usize = arguments.next().map_or(Ok(50), |runs| runs.parse())?;
    let database = Database::in_memory();
    database.load_file(data)?;
    let prepared = database.prepare(&std::fs::read_to_string(query)?)?;
    let options = QueryOptions { profile: true, ..QueryOptions::default() };
    for run in 1..=runs {
        if let Answer::Solutions(solutions) = prepared.run_with(&options)?
            && run == runs
        {
            println!("{}", solutions.profile().unwrap_or("no profile"));
        }
    }
    Ok(())
}
