//! A file with its result.

use std::ops::Range;
use std::sync::Arc;

use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::Options;
use podgraft_core::graft::verify_undo::prune_proven;
use podgraft_core::outcome::FileReport;
use podgraft_core::record::lock::LockSet;
use podgraft_core::yaml::splice::{Edit, splice, splice_part};

use crate::grafting::GraftedText;
use crate::texts::InputBytes;
use crate::walk::Input;

/// One file with its result.
pub struct GraftedFile {
    /// Where the file was found.
    pub input: Input,
    /// Its name in a patch, as bytes: a path need not be UTF-8.
    pub path: Vec<u8>,
    /// The text as it was read.
    pub text: Arc<Vec<u8>>,
    /// The edits, and what was done to each workload.
    pub report: FileReport,
    /// The byte ranges of its manifests, which go into a stream of documents. A file that was named is one range; in a
    /// file found in a folder, other documents are left out.
    pub parts: Vec<Range<usize>>,
}

impl GraftedFile {
    /// A text with its report and its parts.
    pub fn of((input, text): InputBytes, (report, parts): GraftedText) -> Self {
        let path = input.path().map_or_else(
            || b"stdin".to_vec(),
            |path| path.as_os_str().as_encoded_bytes().to_vec(),
        );
        GraftedFile {
            input,
            path,
            text,
            report,
            parts,
        }
    }

    /// Whether the whole text goes into a stream.
    pub fn is_whole(&self) -> bool {
        matches!(&self.parts[..], [only] if *only == (0..self.text.len()))
    }

    /// The whole text with its edits applied.
    pub fn spliced(&self) -> Vec<u8> {
        splice(&self.text, &self.report.edits)
    }

    /// The manifests of the text with their edits applied.
    pub fn stream_text(&self) -> Vec<u8> {
        if self.is_whole() {
            return self.spliced();
        }
        let mut stream = Vec::new();
        for part in &self.parts {
            let edits = self.report.edits.iter();
            let edits: Vec<&Edit> = edits.filter(|edit| is_inside(edit, part)).collect();
            stream.extend(splice_part(&self.text, part, &edits));
        }
        stream
    }
}

/// Removes the generated objects that no workload of the run needs any more, and proves that the run can be undone.
pub fn prune_files(
    files: &mut [GraftedFile],
    options: &Options,
    locks: &Arc<LockSet>,
) -> Option<Diagnostic> {
    let files = files.iter_mut().map(|file| {
        let name = Arc::clone(&file.input.name);
        (name, file.text.as_slice(), &mut file.report)
    });
    prune_proven(&mut files.collect::<Vec<_>>(), options, locks)
}

/// Whether the edit belongs to the part. An insertion at the boundary of two documents belongs to the first: nothing is
/// inserted before a `---` line.
fn is_inside(edit: &Edit, part: &Range<usize>) -> bool {
    match edit.at.start {
        start if !edit.at.is_empty() || start == 0 => part.contains(&start),
        start => part.start < start && start <= part.end,
    }
}
