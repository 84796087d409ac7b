//! Finds the files that the paths of the command line name: folders are walked, sorted and filtered. Nothing is parsed
//! here.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use podgraft_core::diagnostic::{Code, Diagnostic};
use walkdir::{DirEntry, WalkDir};

use crate::charts::command_with_chart;
use crate::path_filter::PathFilter;
use crate::paths::{is_kustomization, is_manifest_name, real, text_of};
use crate::problems::{not_read, unreadable};
use crate::settings::at_entry;
use crate::{args, kustomization};

/// One file to read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where to read it from.
    pub place: InputPlace,
    /// The path as the user wrote it, for messages. The names of one folder's files begin alike, although the user may have
    /// written the folder in several ways.
    pub name: Arc<str>,
}

/// Where an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPlace {
    /// The standard input.
    Stdin,
    /// A file that was named.
    Named(PathBuf),
    /// A file that was found in a folder of the command line.
    Found {
        /// The folder as it was named.
        folder: PathBuf,
        /// The path of the file relative to the folder.
        relative: PathBuf,
    },
}

impl Input {
    /// The standard input.
    pub fn stdin() -> Self {
        Input::new(InputPlace::Stdin)
    }

    fn new(place: InputPlace) -> Self {
        let name = match &place {
            InputPlace::Stdin => "<stdin>".into(),
            InputPlace::Named(path) => text_of(path).into(),
            InputPlace::Found { folder, relative } => text_of(&folder.join(relative)).into(),
        };
        Input { place, name }
    }

    /// The path of the file; `None` for stdin.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.place {
            InputPlace::Stdin => None,
            InputPlace::Named(path) => Some(path.clone()),
            InputPlace::Found { folder, relative } => Some(folder.join(relative)),
        }
    }

    /// Whether it was found in a folder rather than named.
    pub fn is_found(&self) -> bool {
        matches!(self.place, InputPlace::Found { .. })
    }

    /// The whole content.
    pub fn read(&self) -> Result<Vec<u8>, Diagnostic> {
        let read = match self.path() {
            Some(path) => fs::read(path),
            None => {
                let mut text = Vec::new();
                io::stdin().lock().read_to_end(&mut text).map(|_| text)
            }
        };
        read.map_err(|error| unreadable(&self.name, &error))
    }
}

/// The inputs that a directory walk found, and problems with the paths.
#[derive(Debug, Default)]
pub struct FileWalk {
    /// In the order of the command line; the files of a folder are sorted by path.
    pub inputs: Vec<Input>,
    /// Paths that cannot be read, and files that are passed over.
    pub problems: Vec<Diagnostic>,
    has_folders: bool,
    /// The real folder of each input; `None` for stdin.
    folders: Vec<Option<PathBuf>>,
    /// The real paths of `inputs`, so that a file is read once; `None` stands for stdin.
    seen: HashSet<Option<PathBuf>>,
}

/// Finds the files that the paths name. Without a path, it is stdin.
pub fn walk(paths: &[PathBuf], filter: &PathFilter) -> FileWalk {
    let mut walk = FileWalk::default();
    if paths.is_empty() {
        walk.add_stdin();
    }
    for path in paths {
        walk.add_path(path, filter);
    }
    if walk.has_folders {
        let unmet = filter.unmet();
        // The globs are why the folder seems empty, so this error replaces "no manifest in the folder".
        if unmet.iter().any(Diagnostic::is_error) {
            walk.problems
                .retain(|problem| problem.code != Code::NoManifests);
        }
        walk.problems.extend(unmet);
    }
    if paths.len() > 1 {
        walk.write_folders_alike();
    }
    walk
}

/// Finds the files of `--context`. For a path that comes from the configuration, problems have its place there.
pub fn walk_context(run: &args::RunArgs) -> FileWalk {
    let mut walk = FileWalk::default();
    let configured = &run.policies.configured.context;
    for path in &run.manifests.context {
        let known = walk.problems.len();
        walk.add_path(path, &PathFilter::default());
        let entry = configured.iter().find(|(named, _)| named == path);
        let found = walk.problems.split_off(known).into_iter();
        let found = found.map(|problem| at_entry(problem, entry.map(|(_, at)| at)));
        walk.problems.extend(found);
    }
    walk
}

/// Whether the run would wait for somebody to type manifests into the terminal.
pub fn reads_terminal(paths: &[PathBuf]) -> bool {
    paths.is_empty() && io::stdin().is_terminal()
}

impl FileWalk {
    /// Adds an input unless it is there already: a file that is named twice, or named and found, is one input.
    fn add(&mut self, place: InputPlace, real_path: Option<PathBuf>) {
        let folder = match (&place, &real_path) {
            (InputPlace::Named(path), _) if path.is_symlink() => Some(real_folder_of(path)),
            (_, real_path) => real_path.as_deref().map(folder_of).map(Path::to_path_buf),
        };
        if self.seen.insert(real_path) {
            self.inputs.push(Input::new(place));
            self.folders.push(folder);
        }
    }

    /// Names each folder as its first file does, or as the nearest folder above it that has files.
    fn write_folders_alike(&mut self) {
        let mut written: BTreeMap<&Path, PathBuf> = BTreeMap::new();
        for (folder, input) in self.folders.iter().zip(&self.inputs) {
            if let Some(folder) = folder {
                let written = written.entry(folder);
                written.or_insert_with(|| folder_of(Path::new(&*input.name)).to_path_buf());
            }
        }
        // A folder comes directly before those below it.
        let mut above: Vec<(&Path, PathBuf)> = Vec::new();
        for (folder, written) in &mut written {
            above.retain(|(above, _)| folder.starts_with(above));
            if let Some((above, as_written)) = above.last()
                && let Ok(below) = folder.strip_prefix(above)
            {
                *written = as_written.join(below);
            }
            above.push((folder, written.clone()));
        }
        for (input, folder) in self.inputs.iter_mut().zip(&self.folders) {
            let written = folder.as_deref().and_then(|folder| written.get(folder));
            if let Some((written, path)) = written.zip(input.path())
                && let Some(name) = path.file_name()
            {
                // Also where the paths are the same: `sub//a.yaml`.
                input.name = text_of(&written.join(name)).into();
            }
        }
    }

    fn add_path(&mut self, path: &Path, filter: &PathFilter) {
        if path.as_os_str() == "-" {
            return self.add_stdin();
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.add_folder(path, filter),
            Ok(_) => self.add(InputPlace::Named(path.to_path_buf()), Some(real(path))),
            Err(error) => self
                .problems
                .push(unreadable(&path.to_string_lossy(), &error)),
        }
    }

    fn add_stdin(&mut self) {
        self.add(InputPlace::Stdin, None);
    }

    fn add_folder(&mut self, folder: &Path, filter: &PathFilter) {
        self.has_folders = true;
        let (mut found, problems) = find_in_folder(folder, filter);
        self.problems.extend(problems);
        found.sort_by(|a, b| {
            a.as_os_str()
                .as_encoded_bytes()
                .cmp(b.as_os_str().as_encoded_bytes())
        });
        if found.is_empty() {
            self.problems.push(no_manifest(folder));
        }
        let root = real(folder);
        for relative in found {
            let real_path = root.join(&relative);
            let place = InputPlace::Found {
                folder: folder.to_path_buf(),
                relative,
            };
            self.add(place, Some(real_path));
        }
    }
}

/// The real folder of a file that may be a link to one elsewhere.
fn real_folder_of(path: &Path) -> PathBuf {
    // The canonical path of an empty one is an error.
    real(&Path::new(".").join(folder_of(path)))
}

/// The folder of a file, which is empty for one of the current folder.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The error for a folder without manifests.
pub fn no_manifest(folder: &Path) -> Diagnostic {
    Diagnostic::error(
        Code::NoManifests,
        format!("there is no manifest in the folder `{}`", folder.display()),
    )
    .help(
        "check the path, --include, and --exclude: podgraft reads .yaml, .yml, and .json files \
         that contain Kubernetes objects",
    )
}

fn find_in_folder(folder: &Path, filter: &PathFilter) -> (Vec<PathBuf>, Vec<Diagnostic>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let root = match fs::canonicalize(folder) {
        Ok(root) => root,
        Err(error) => return (found, vec![unreadable(&folder.to_string_lossy(), &error)]),
    };
    let (mut left_out, mut templates, mut kustomizations) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_links = false;
    let walked = WalkDir::new(folder)
        .follow_links(true)
        .into_iter()
        .filter_entry(|entry| {
            let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            has_links |= entry.path_is_symlink();
            let is_wanted =
                entry.depth() == 0 || !is_hidden(entry) && !filter.excludes(&root, relative);
            let aside = match is_wanted {
                true if is_templates_of_chart(entry) => &mut templates,
                true if is_link_outside(entry, &root) => &mut left_out,
                _ => return is_wanted,
            };
            aside.push(entry.path().to_path_buf());
            false
        });
    for entry in walked {
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let relative = entry.path().strip_prefix(folder);
                let relative = relative.unwrap_or(entry.path()).to_path_buf();
                if is_kustomization(&relative) {
                    kustomizations.push(entry.path().to_path_buf());
                } else if is_manifest_name(&relative) && filter.includes(&root, &relative) {
                    found.push(relative);
                }
            }
            Ok(_) => {}
            Err(error) => problems.extend(walk_problem(&error, folder, &root, filter)),
        }
    }
    if has_links {
        keep_each_file_once(&mut found, folder, &root);
    }
    problems.extend(pass_over_patches(&mut found, folder, &kustomizations));
    let wanted = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) || is_manifest_name(path)
    };
    problems.extend(passed_over(&templates, folder));
    let left_out = left_out.into_iter().filter(wanted);
    problems.extend(left_out.map(|path| link_outside_warning(&path)));
    (found, problems)
}

/// Drops links to files that the folder holds anyway. A file that is in a patch twice makes the patch fail.
fn keep_each_file_once(found: &mut Vec<PathBuf>, folder: &Path, root: &Path) {
    let real = |relative: &PathBuf| {
        fs::canonicalize(folder.join(relative)).unwrap_or_else(|_| root.join(relative))
    };
    let is_direct = |relative: &&PathBuf| real(relative) == root.join(relative);
    let direct = found.iter().filter(is_direct);
    let direct: HashSet<PathBuf> = direct.map(|relative| root.join(relative)).collect();
    let mut linked = HashSet::new();
    found.retain(|relative| {
        let target = real(relative);
        target == root.join(relative) || (!direct.contains(&target) && linked.insert(target))
    });
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// Drops the files that kustomizations name as patches, with a note for each.
fn pass_over_patches(
    found: &mut Vec<PathBuf>,
    folder: &Path,
    kustomizations: &[PathBuf],
) -> Vec<Diagnostic> {
    let patches: HashSet<PathBuf> = kustomizations
        .iter()
        .flat_map(|path| kustomization::patches_of(path))
        .collect();
    let mut notes = Vec::new();
    if patches.is_empty() {
        return notes;
    }
    found.retain(|relative| {
        let path = folder.join(relative);
        let is_patch = fs::canonicalize(&path).is_ok_and(|path| patches.contains(&path));
        if is_patch {
            notes.push(kustomization::passed_over(&path));
        }
        !is_patch
    });
    notes
}

/// Whether the entry is the `templates` folder of a Helm chart. Templates are no manifests, and a chart is often kept
/// beside what was rendered from it.
fn is_templates_of_chart(entry: &DirEntry) -> bool {
    entry.depth() > 0
        && entry.file_type().is_dir()
        && entry.file_name() == "templates"
        && entry.path().with_file_name("Chart.yaml").is_file()
}

fn passed_over(templates: &[PathBuf], folder: &Path) -> Option<Diagnostic> {
    let first = templates.first()?;
    let more = match templates.len() - 1 {
        0 => String::new(),
        1 => " and those of one more chart".to_owned(),
        more => format!(" and those of {more} more charts"),
    };
    let templates = first.display();
    let message = format!("the templates in `{templates}`{more} are skipped");
    let note = Diagnostic::note(Code::NotRendered, message);
    let command = command_with_chart(first.parent(), &[folder.to_path_buf()]);
    Some(match command {
        Some(command) => note.help(format!("render the chart first: {command}")),
        None => note,
    })
}

fn is_link_outside(entry: &DirEntry, root: &Path) -> bool {
    entry.depth() > 0
        && entry.path_is_symlink()
        && fs::canonicalize(entry.path()).is_ok_and(|real| !real.starts_with(root))
}

fn link_outside_warning(path: &Path) -> Diagnostic {
    let path = path.display();
    let message =
        format!("`{path}` is a symbolic link that points outside the folder; it is not read");
    Diagnostic::warning(Code::File, message)
        .help("pass its target to read it, or exclude it with --exclude")
}

/// The error for an entry that cannot be read; `None` if nothing is lost. A link that leads to one of its parent
/// folders holds nothing new, and an entry that the walk would leave out is no loss.
fn walk_problem(
    error: &walkdir::Error,
    folder: &Path,
    root: &Path,
    filter: &PathFilter,
) -> Option<Diagnostic> {
    if error.loop_ancestor().is_some() {
        return None;
    }
    let path = error.path().unwrap_or(folder);
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let is_link = path.is_symlink();
    let is_hidden = relative
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    if is_hidden
        || filter.excludes(root, relative)
        || is_link && !(is_manifest_name(relative) && filter.includes(root, relative))
    {
        return None;
    }
    let name = path.to_string_lossy();
    Some(match error.io_error() {
        Some(reason) => unreadable(&name, reason),
        None => not_read(name, error),
    })
}

pub fn reads_stdin(paths: &[PathBuf]) -> bool {
    paths.is_empty() || paths.iter().any(|path| path.as_os_str() == "-")
}
