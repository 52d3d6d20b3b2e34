//! Names that are much alike, for "did you mean".

/// The name among `known` that `word` most likely means: spelled with a few letters apart, or in another case.
pub(crate) fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // A word of hostile length would be compared letter by letter with each name.
    if word.chars().count() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .take(10_000)
        .filter(|name| name.len() <= 256 && *name != word)
        .map(|name| {
            let far = strsim::damerau_levenshtein(&lower, &name.to_lowercase());
            (far, name)
        })
        .filter(|(far, name)| {
            let length = name.chars().count();
            *far < length && *far <= 1 + length.saturating_sub(1) / 4
        })
        .min()
        .map(|(_, name)| name)
}

/// `did you mean X?`, where a name is much like it.
pub(crate) fn did_you_mean<'n>(
    word: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    nearest(word, known).map(|name| format!("did you mean `{name}`?"))
}
