//! Spelling suggestions ("did you mean"): the nearest known word by edit distance.

/// The candidate with the least edit distance from `word` (case-insensitive), if that is small enough for a
/// typing error: one for short words, a third of the letters for long ones.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LETTERS_MAX: usize = 40;
    let letters: Vec<char> = word.chars().take(LETTERS_MAX).map(|c| c.to_ascii_lowercase()).collect();
    let allowed = (letters.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&letters, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and transpositions of adjacent
/// letters.
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
    fn near_misspellings_are_suggested() {
        let words = ["STRLEN", "SUBSTR", "foaf", "rdf", "rdfs", "FILTER"];
        for (word, expected) in [
            ("strlne", Some("STRLEN")),
            ("substring", Some("SUBSTR")),
            ("fof", Some("foaf")),
            ("rfd", Some("rdf")),
            ("FLTER", Some("FILTER")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
