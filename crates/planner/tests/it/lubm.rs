//! Exact plans of LUBM Q1 to Q7 over the real statistics of LUBM-1.

use crate::common::{explained, lubm, lubm_query};

#[test]
fn plans_of_the_seven_queries() {
    let Some(snapshot) = lubm() else { return };
    let mut all = String::new();
    for name in ["q1", "q2", "q3", "q4", "q5", "q6", "q7"] {
        all.push_str(&format!("# {name}\n{}", explained(&lubm_query(name), &snapshot)));
    }
    let expected = include_str!("../lubm.plans");
    assert!(all == expected, "plans have changed; if for the better, put this into lubm.plans:\n{all}");
}
