//! Decides which texts are read as a whole, and which go through a pipe.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::error::ErrorKind;
use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::inventory::{InMemoryText, InventoryNeeds, SourceText};
use podgraft_core::policy::Policy;

use crate::args;
use crate::args::relevant_flags::usage;
use crate::pipeline::{IN_MEMORY, OpenedInput, OutputTiming, open};
use crate::problems::unreadable;
use crate::reread::OriginalFile;
use crate::spool::{Spool, temporary_file_problem_or};
use crate::threads::map_in_order;
use crate::walk::Input;

/// An input file and its bytes.
pub type InputBytes = (Input, Arc<Vec<u8>>);

/// The text as a source of the inventory.
pub fn source_text((input, text): &InputBytes) -> Arc<dyn SourceText> {
    Arc::new(InMemoryText {
        name: Arc::clone(&input.name),
        text: Arc::clone(text),
    })
}

/// Reads every file. A single text that can go through a pipe is not read yet: its bytes are empty.
pub fn texts_of(
    run: &args::RunArgs,
    inputs: Vec<Input>,
    request: Option<OutputTiming>,
    problems: &mut Vec<Diagnostic>,
) -> Result<(Vec<InputBytes>, Option<OutputTiming>), clap::Error> {
    if run.manifests.shard.is_some() && is_one_text(&inputs) {
        let message = "--shard splits the input by file: pass a folder, or several files";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    let pipe = request.filter(|_| is_one_text(&inputs) && !run.policies.reads_input());
    if request == Some(OutputTiming::Immediately) && pipe.is_none() {
        let message = "--stream accepts only one file or stdin, and no policy from it";
        return Err(usage(ErrorKind::ArgumentConflict, message));
    }
    let texts = match pipe {
        Some(_) => inputs
            .into_iter()
            .map(|input| (input, Arc::default()))
            .collect(),
        None => read_texts(inputs, run.output.threads, problems),
    };
    Ok((texts, pipe))
}

/// Opens the text that goes through a pipe. The objects that policies look up may be anywhere in it. So if policies
/// look anything up, a read-once text is first kept in a spool; and if policies generate objects beside workloads, the
/// text is read as a whole. `--stream` does neither, as it must not wait for the end of the text.
pub fn open_pipe(
    texts: &mut [InputBytes],
    pipe: Option<OutputTiming>,
    policies: &[Policy],
) -> Result<Option<(OutputTiming, OpenedInput)>, Diagnostic> {
    let (Some(release), [(input, text)]) = (pipe, texts) else {
        return Ok(None);
    };
    let needs = InventoryNeeds::of(policies);
    if release == OutputTiming::AtTheEnd && !needs.generated.is_empty() {
        *text = Arc::new(input.read()?);
        return Ok(None);
    }
    let opened = open(input)?;
    let OpenedInput::Once(mut source) = opened else {
        return Ok(Some((release, opened)));
    };
    if release == OutputTiming::Immediately || needs.is_nothing() {
        return Ok(Some((release, OpenedInput::Once(source))));
    }
    let mut hold = Spool::in_memory_up_to(IN_MEMORY);
    let kept = io::copy(&mut source, &mut hold).and_then(|_| match hold.finish()? {
        Ok(content) => {
            *text = Arc::new(content);
            Ok(None)
        }
        Err(file) => Ok(OriginalFile::of(&input.name, file)?.ok()),
    });
    let kept = kept
        .map_err(|error| temporary_file_problem_or(&error, || unreadable(&input.name, &error)))?;
    Ok(kept.map(|original| (release, OpenedInput::Original(Arc::new(original)))))
}

/// Reads every file as a whole.
pub fn read_texts(
    inputs: Vec<Input>,
    threads: Option<NonZeroUsize>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<InputBytes> {
    let read = map_in_order(&inputs, threads, Input::read);
    let mut texts = Vec::new();
    for (input, text) in inputs.into_iter().zip(read) {
        match text {
            Ok(text) => texts.push((input, Arc::new(text))),
            Err(problem) => problems.push(problem),
        }
    }
    texts
}

/// Whether the only input is stdin or a named file. Of a file found in a folder, only the manifests go into a stream.
fn is_one_text(inputs: &[Input]) -> bool {
    matches!(inputs, [only] if !only.is_found())
}
