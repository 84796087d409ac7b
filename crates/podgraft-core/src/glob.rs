//! Compiles globs within limits: `globset` recurses at every brace, and panics if the regular expression that it makes
//! is too large.

use globset::{GlobBuilder, GlobMatcher};

/// Longest glob, in bytes.
const MAX_LENGTH: usize = 4096;
/// The most braces, which may all nest. In practice, people write two.
const MAX_BRACES: usize = 16;
/// Characters of a glob that an error shows.
const SHOWN: usize = 200;

/// What a glob is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobSubject {
    /// Any text: `*` also matches `/`.
    Text,
    /// Any text, case-insensitive.
    TextOfAnyCase,
    /// A path: `*` does not match `/`.
    Path,
}

/// Compiles a glob.
///
/// # Errors
/// Why the text is no glob.
pub fn compile(text: &str, subject: GlobSubject) -> Result<GlobMatcher, String> {
    let built = check(text).and_then(|()| {
        let mut builder = GlobBuilder::new(text);
        builder.literal_separator(subject == GlobSubject::Path);
        builder.case_insensitive(subject == GlobSubject::TextOfAnyCase);
        builder.build().map_err(|error| error.kind().to_string())
    });
    let glob = built.map_err(|reason| {
        let shown: String = text.chars().take(SHOWN).collect();
        let dots = if shown.len() < text.len() { "..." } else { "" };
        format!("`{shown}{dots}` is not a valid glob: {reason}")
    })?;
    Ok(glob.compile_matcher())
}

/// Whether a glob matches a text. Many globs are plain names, and a plain name matches itself.
pub(crate) fn is_match(glob: &GlobMatcher, text: &str) -> bool {
    let written = glob.glob().glob();
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    written == text && text.bytes().all(is_of_name) || glob.is_match(text)
}

/// Checks that a glob is within the limits.
///
/// # Errors
/// The limit that it exceeds.
pub fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    if text.matches('{').count() > MAX_BRACES {
        return Err(format!("it has more than {MAX_BRACES} braces"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_name_matches_itself_for_sure() {
        let is_match = |glob: &str, text: &str| {
            let glob = compile(glob, GlobSubject::Text).unwrap();
            assert_eq!(super::is_match(&glob, text), glob.is_match(text));
            super::is_match(&glob, text)
        };
        assert!(is_match(
            "registry.example.net/app:1",
            "registry.example.net/app:1"
        ));
        assert!(is_match("a*", "a*") && is_match("a*", "ab"));
        assert!(!is_match("[a]", "[a]") && !is_match("a", "A") && is_match("", ""));
    }

    #[test]
    fn braces_are_few() {
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(
            compile(&nested(MAX_BRACES), GlobSubject::Text).is_ok_and(|glob| glob.is_match("a"))
        );
        for depth in [MAX_BRACES + 1, 300, 100_000] {
            assert!(
                compile(&nested(depth), GlobSubject::Text).is_err(),
                "{depth}"
            );
        }
    }

    /// The crate panics where it cannot compile what it made.
    #[test]
    fn whatever_is_within_bounds_compiles() {
        let deep = |inner: &str| {
            format!(
                "{}{inner}{}",
                "{".repeat(MAX_BRACES),
                "}".repeat(MAX_BRACES)
            )
        };
        for part in [
            "a",
            "?",
            "*",
            "**/",
            "[!a]",
            "[a-z]",
            "é",
            "[!é]",
            ",",
            "\u{10ffff}",
        ] {
            let text = part.repeat((MAX_LENGTH - 2 * MAX_BRACES) / part.len());
            for text in [deep(&text), text] {
                for of in [
                    GlobSubject::Text,
                    GlobSubject::TextOfAnyCase,
                    GlobSubject::Path,
                ] {
                    let _ = compile(&text, of);
                }
            }
        }
    }

    #[test]
    fn a_star_goes_over_slashes_in_texts_alone() {
        let fits = |of| compile("a*", of).is_ok_and(|glob| glob.is_match("a/b"));
        assert!(
            fits(GlobSubject::Text) && fits(GlobSubject::TextOfAnyCase) && !fits(GlobSubject::Path)
        );
    }
}
