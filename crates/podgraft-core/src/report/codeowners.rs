//! Finds the owners of a file: `CODEOWNERS` as GitHub and GitLab read it. The last line that matches decides.
//! Source: <https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners>

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// The lines of a `CODEOWNERS` file.
#[derive(Debug, Clone)]
pub struct Codeowners {
    /// The folder that file names are relative to, as a path from the root of the repository; empty at the root.
    prefix: String,
    rules: Vec<(GlobSet, Vec<String>)>,
}

impl Codeowners {
    /// Parses the file. Lines that cannot be parsed own nothing, as with GitHub. `prefix` is the path from the root of
    /// the repository to the folder that file names are relative to.
    pub fn read(text: &str, prefix: &str) -> Self {
        let rules = text.lines().filter_map(read_line).collect();
        Codeowners {
            prefix: prefix.trim_matches('/').to_owned(),
            rules,
        }
    }

    /// The owners of a file; empty if nobody owns it.
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
    // GitLab's section headings (`[Name]`, `^[Name]`) are no patterns.
    let mut words = words
        .split_whitespace()
        .filter(|_| !line.starts_with(['[', '^']));
    let pattern = words.next()?;
    let owners = words.map(str::to_owned).collect();
    let is_folder = pattern.ends_with('/');
    let bare = pattern.trim_end_matches('/');
    // As in gitignore, a pattern without a slash before its end matches at any depth.
    let is_rooted = bare.contains('/');
    let bare = bare.trim_start_matches('/');
    let whole = if is_rooted {
        bare.to_owned()
    } else {
        format!("**/{bare}")
    };
    let mut globs = GlobSetBuilder::new();
    if !is_folder {
        globs.add(glob(&whole)?);
    }
    // `docs/*` matches the files of that folder, but not those in folders below it.
    if is_folder || !(is_rooted && bare.ends_with("/*")) {
        globs.add(glob(&format!("{whole}/**"))?);
    }
    Some((globs.build().ok()?, owners))
}

fn glob(text: &str) -> Option<Glob> {
    crate::glob::check(text).ok()?;
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .ok()
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
