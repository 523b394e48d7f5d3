//! "Did you mean" hints: the nearest known word.

/// The candidate with the smallest edit distance from `word` (case-insensitive), if that is small enough for
/// a typing error; else a candidate with a common prefix (`addVertex`: `addV`).
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    const LETTERS_MAX: usize = 40;
    let letters: Vec<char> = word.chars().take(LETTERS_MAX).map(|c| c.to_ascii_lowercase()).collect();
    let allowed = (letters.len() / 3).clamp(1, 3);
    let slip = candidates
        .clone()
        .into_iter()
        .map(|candidate| (distance(&letters, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance);
    slip.map(|(_, candidate)| candidate).or_else(|| {
        let begins = |candidate: &&str| candidate.len() > 2 && word.starts_with(*candidate);
        candidates.into_iter().filter(begins).max_by_key(|candidate| candidate.len())
    })
}

/// Edit distance with insertions, deletions, substitutions and transpositions (optimal string alignment).
fn distance(word: &[char], candidate: &str) -> usize {
    let other: Vec<char> = candidate.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=word.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let change = usize::from(word[i - 1] != other[j - 1]);
            let mut best = (previous[j - 1] + change).min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[other.len()]
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
