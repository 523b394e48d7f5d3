//! "Did you mean" hints: the nearest known word.

/// The candidate with the smallest edit distance from `word` (case-insensitive), if that is small enough for
/// a typing error; else a candidate with a common prefix (`addVertex`: `addV`).
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    vervet_model::nearest(word, candidates.clone()).or_else(|| {
        let begins = |candidate: &&str| candidate.len() > 2 && word.starts_with(*candidate);
        candidates.into_iter().filter(begins).max_by_key(|candidate| candidate.len())
    })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspellings_are_corrected_and_unrelated_words_are_not() {
        let words = ["addV", "dedup", "order", "by", "outE", "valueMap"];
        for (word, expected) in [
            ("dedupe", Some("dedup")),
            ("oute", Some("outE")),
            ("horder", Some("order")),
            ("bye", Some("by")),
            ("vlaueMap", Some("valueMap")),
            ("addVertex", Some("addV")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
