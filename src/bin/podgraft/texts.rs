//! Which texts are read as a whole, and which go through a pipe.

use std::num::NonZeroUsize;

use clap::error::ErrorKind;
use podgraft::diagnostic::Diagnostic;
use podgraft::inventory::Needs;
use podgraft::policy::Policy;

use crate::args;
use crate::pipeline::Release;
use crate::policies::InputText;
use crate::run::usage;
use crate::threads::map_in_order;
use crate::walk::Input;

/// An input and its bytes.
pub type Text = (Input, Vec<u8>);

/// Every file with its text; one text that can go through a pipe stays where it is for now.
pub fn texts_of(
    run: &args::Run,
    inputs: Vec<Input>,
    wish: Option<Release>,
    problems: &mut Vec<Diagnostic>,
) -> Result<(Vec<Text>, Option<Release>), clap::Error> {
    if run.manifests.shard.is_some() && is_one_text(&inputs) {
        return Err(usage(
            ErrorKind::ArgumentConflict,
            "--shard divides files: name a folder, or several files",
        ));
    }
    let pipe = wish.filter(|_| is_one_text(&inputs) && !reads_policies(run));
    match (wish, pipe) {
        (Some(Release::Immediately), None) => Err(usage(
            ErrorKind::ArgumentConflict,
            "--stream takes one file or stdin, and no policy from it",
        )),
        (_, Some(_)) => Ok((
            inputs
                .into_iter()
                .map(|input| (input, Vec::new()))
                .collect(),
            pipe,
        )),
        (_, None) => Ok((read_texts(inputs, run.output.threads, problems), pipe)),
    }
}

/// Facts may stand anywhere in a text, so where policies ask for some it is read as a whole first. A stream cannot wait.
pub fn keep_for_facts(
    texts: Vec<Text>,
    pipe: Option<Release>,
    policies: &[Policy],
    threads: Option<NonZeroUsize>,
    problems: &mut Vec<Diagnostic>,
) -> (Vec<Text>, Option<Release>) {
    // What is asked for only because of a few words can wait until one of them is met.
    let asks_for_nothing = || Needs::of(policies).with(std::iter::empty()).is_nothing();
    if pipe != Some(Release::AtTheEnd) || asks_for_nothing() {
        return (texts, pipe);
    }
    (
        read_texts(
            texts.into_iter().map(|(input, _)| input).collect(),
            threads,
            problems,
        ),
        None,
    )
}

/// The whole of every file.
pub fn read_texts(
    inputs: Vec<Input>,
    threads: Option<NonZeroUsize>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Text> {
    let read: Vec<_> = map_in_order(&inputs, threads, Input::read);
    let mut texts = Vec::new();
    for (input, text) in inputs.into_iter().zip(read) {
        match text {
            Ok(text) => texts.push((input, text)),
            Err(problem) => problems.push(problem),
        }
    }
    texts
}

/// The texts with their names.
pub fn named(texts: &[Text]) -> Vec<InputText<'_>> {
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

fn reads_policies(run: &args::Run) -> bool {
    run.policies
        .given
        .iter()
        .any(|given| given.as_os_str() == "@input")
}
