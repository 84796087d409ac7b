//! Which texts are read as a whole, and which go through a pipe.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::error::ErrorKind;
use podgraft::diagnostic::Diagnostic;
use podgraft::inventory::{InMemoryText, InventoryNeeds, SourceText};
use podgraft::policy::Policy;

use crate::args;
use crate::pipeline::{IN_MEMORY, OpenedInput, OutputTiming, open};
use crate::policies::InputText;
use crate::reread::OriginalFile;
use crate::run::usage;
use crate::spool::{Spool, temporary_file_problem_or};
use crate::threads::map_in_order;
use crate::walk::{Input, unreadable};

/// An input file and its bytes.
pub type InputBytes = (Input, Arc<Vec<u8>>);

/// A text that is read for facts.
pub fn source_text((input, text): &InputBytes) -> Arc<dyn SourceText> {
    Arc::new(InMemoryText {
        name: Arc::clone(&input.name),
        text: Arc::clone(text),
    })
}

/// Every file with its text; one text that can go through a pipe stays where it is for now.
pub fn texts_of(
    run: &args::RunArgs,
    inputs: Vec<Input>,
    request: Option<OutputTiming>,
    problems: &mut Vec<Diagnostic>,
) -> Result<(Vec<InputBytes>, Option<OutputTiming>), clap::Error> {
    if run.manifests.shard.is_some() && is_one_text(&inputs) {
        return Err(usage(
            ErrorKind::ArgumentConflict,
            "--shard divides files: name a folder, or several files",
        ));
    }
    let pipe = request.filter(|_| is_one_text(&inputs) && !reads_policies(run));
    match (request, pipe) {
        (Some(OutputTiming::Immediately), None) => Err(usage(
            ErrorKind::ArgumentConflict,
            "--stream takes one file or stdin, and no policy from it",
        )),
        (_, Some(_)) => Ok((
            inputs
                .into_iter()
                .map(|input| (input, Arc::default()))
                .collect(),
            pipe,
        )),
        (_, None) => Ok((read_texts(inputs, run.output.threads, problems), pipe)),
    }
}

/// Opens the text that goes through a pipe. Facts may stand anywhere in a text, so where policies ask for some, what can
/// be read only once is kept first, and where they generate objects beside workloads, the text is read as a whole. A
/// stream cannot wait.
///
/// # Errors
/// When it cannot be read or kept.
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

/// The whole of every file.
pub fn read_texts(
    inputs: Vec<Input>,
    threads: Option<NonZeroUsize>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<InputBytes> {
    let read: Vec<_> = map_in_order(&inputs, threads, Input::read);
    let mut texts = Vec::new();
    for (input, text) in inputs.into_iter().zip(read) {
        match text {
            Ok(text) => texts.push((input, Arc::new(text))),
            Err(problem) => problems.push(problem),
        }
    }
    texts
}

/// The texts with their names.
pub fn named(texts: &[InputBytes]) -> Vec<InputText<'_>> {
    texts
        .iter()
        .map(|(input, text)| InputText {
            name: &input.name,
            text,
        })
        .collect()
}

/// One text that a stream holds as a whole.
fn is_one_text(inputs: &[Input]) -> bool {
    matches!(inputs, [only] if !only.is_found())
}

fn reads_policies(run: &args::RunArgs) -> bool {
    run.policies
        .given
        .iter()
        .any(|given| given.as_os_str() == "@input")
}
