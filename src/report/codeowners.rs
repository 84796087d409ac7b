//! Who owns a file: `CODEOWNERS` as GitHub and GitLab read it. The last line that fits decides.
//! Source: <https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners>

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The lines of a `CODEOWNERS` file.
#[derive(Debug, Clone)]
pub struct Codeowners {
    /// From the repository's root to where the files' names begin; empty at the root.
    prefix: String,
    rules: Vec<(GlobSet, Vec<String>)>,
}

impl Codeowners {
    /// Reads the file. Lines that cannot be read own nothing, as with GitHub. `prefix` is the way from the repository's
    /// root to where the files' names begin.
    pub fn read(text: &str, prefix: &str) -> Self {
        let rules = text.lines().filter_map(read_line).collect();
        Codeowners {
            prefix: prefix.trim_matches('/').to_owned(),
            rules,
        }
    }

    /// The owners of a file; empty when nobody owns it.
    pub fn of(&self, file: &str) -> &[String] {
        let name = file.trim_start_matches("./");
        let path = match self.prefix.as_str() {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        let rule = self
            .rules
            .iter()
            .rev()
            .find(|(globs, _)| globs.is_match(&path));
        rule.map_or(&[], |(_, owners)| owners)
    }
}

fn read_line(line: &str) -> Option<(GlobSet, Vec<String>)> {
    let words = line.split('#').next().unwrap_or_default();
    // GitLab's sections are headings.
    let mut words = words
        .split_whitespace()
        .filter(|_| !line.starts_with(['[', '^']));
    let pattern = words.next()?;
    let owners = words.map(str::to_owned).collect();
    let is_folder = pattern.ends_with('/');
    let bare = pattern.trim_end_matches('/');
    // Without a slash before its end a pattern fits at any depth.
    let is_rooted = bare.contains('/');
    let bare = bare.trim_start_matches('/');
    let whole = if is_rooted {
        bare.to_owned()
    } else {
        format!("**/{bare}")
    };
    let mut globs = GlobSetBuilder::new();
    let mut add = |glob: &str| {
        crate::glob::check(glob).ok()?;
        let built = GlobBuilder::new(glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .ok()?;
        globs.add(built);
        Some(())
    };
    if !is_folder {
        add(&whole)?;
    }
    // `docs/*` is the files of that folder and not those below it.
    if is_folder || !(is_rooted && bare.ends_with("/*")) {
        add(&format!("{whole}/**"))?;
    }
    Some((globs.build().ok()?, owners))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_fits_decides() {
        let text = "* @all\n*.json @json # all of them\n/deploy/ @ops @sre\napps/ @apps\ndocs/* @docs\n/deploy/free\n";
        let owners = Codeowners::read(text, "");
        let of = |file: &str| owners.of(file).join(" ");
        assert_eq!(of("x.yaml"), "@all");
        assert_eq!(of("a/b/x.json"), "@json");
        assert_eq!(of("deploy/a/x.json"), "@ops @sre");
        assert_eq!(of("a/deploy/x.yaml"), "@all");
        assert_eq!(of("a/apps/b/x.yaml"), "@apps");
        assert_eq!(of("docs/x.yaml"), "@docs");
        assert_eq!(of("docs/a/x.yaml"), "@all");
        assert_eq!(of("deploy/free/x.yaml"), "");
        assert_eq!(
            Codeowners::read(text, "deploy/").of("./x.yaml").join(" "),
            "@ops @sre"
        );
    }
}
