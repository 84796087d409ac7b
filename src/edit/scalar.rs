//! A scalar that gets longer at one end, in the style in which it is written: `-Xmx1g` and ` -javaagent:...` behind it.

use serde_json::Value;

use crate::yaml::parse::parse;
use crate::yaml::scalar::{double_quoted, resolve};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{Kind, NodeId, Tree};

use super::lower::Around;

/// The edit that makes a scalar read as `new` and touches only what is new; `None` where its style has no room for that.
pub(super) fn restyle(tree: &Tree<'_>, of: NodeId, new: &str, around: Around) -> Option<Edit> {
    if tree
        .tag(of)
        .is_some_and(|tag| tag != "tag:yaml.org,2002:str")
    {
        return None;
    }
    let old = tree.scalar(of)?;
    let body = old.trim_end_matches('\n');
    let added = new
        .strip_suffix(&old[body.len()..])
        .and_then(|rest| rest.strip_prefix(body));
    let edit = match added {
        Some(added) => append(tree, of, added, new, around),
        None => prepend(tree, of, new.strip_suffix(old)?, around),
    };
    edit.filter(|edit| reads_as(tree, of, edit, new))
}

/// Whether a scalar reads as `new` once the edit is made. Text that stands there as it reads does: what is put in is
/// written for its style. Of folded lines, escapes and blocks only the parser knows.
fn reads_as(tree: &Tree<'_>, of: NodeId, edit: &Edit, new: &str) -> bool {
    let (start, slice) = (tree.span(of).start, tree.slice(of));
    if verbatim(tree, of).is_some() {
        return true;
    }
    let header = slice.lines().next().unwrap_or_default();
    let is_block = matches!(tree.kind(of), Kind::Literal | Kind::Folded);
    // An indentation indicator counts from what is around the scalar.
    let from_around = |header: &str| header.contains(|sign: char| sign.is_ascii_digit());
    if is_block && from_around(header.split('#').next().unwrap_or_default()) {
        return true;
    }
    let (before, behind) = (
        &slice[..edit.at.start - start],
        &slice[edit.at.end - start..],
    );
    let alone = ["k: ", before, &edit.text, behind].concat();
    let is_new = |tree: Tree<'_>| {
        let root = *tree.roots().first()?;
        Some(tree.scalar(tree.get(root, "k")?)? == new)
    };
    parse(&alone).ok().and_then(is_new).unwrap_or(false)
}

/// Where the value of a scalar begins that stands in the text byte for byte.
fn verbatim(tree: &Tree<'_>, of: NodeId) -> Option<usize> {
    let text = tree.slice(of);
    let quote = match tree.kind(of) {
        Kind::Plain => 0,
        Kind::SingleQuoted | Kind::DoubleQuoted => 1,
        _ => return None,
    };
    let inner = text.get(quote..text.len().checked_sub(quote)?)?;
    (Some(inner) == tree.scalar(of)).then_some(quote)
}

fn append(tree: &Tree<'_>, of: NodeId, added: &str, new: &str, around: Around) -> Option<Edit> {
    let end = tree.span(of).end;
    let insert = |at: usize, text: String| {
        Some(Edit {
            at: at..at,
            text: text.into(),
        })
    };
    let is_at_end = new.ends_with(added);
    if added.chars().any(char::is_control) {
        return None;
    }
    match tree.kind(of) {
        Kind::Plain
            if is_plain_tail(added, around) && resolve(new) == Value::String(new.to_owned()) =>
        {
            insert(end, added.to_owned())
        }
        // What goes before a line end at the end has no place behind the text.
        Kind::SingleQuoted if is_at_end => insert(end - 1, added.replace('\'', "''")),
        Kind::DoubleQuoted if is_at_end => insert(end - 1, escaped(added)),
        // Inside brackets there are no block scalars, so a block scalar's line ends at its end.
        Kind::Literal | Kind::Folded if !matches!(around, Around::Flow) => {
            let content = tree.slice(of);
            let last = content.trim_end_matches(['\n', '\r']);
            // Kept blank lines at the end may have blanks of their own, and are not where the text ends.
            let is_text = last
                .rsplit('\n')
                .next()
                .is_some_and(|line| !line.trim().is_empty());
            let has_content = last.contains('\n') && is_text && !added.ends_with(' ');
            has_content.then(|| Edit {
                at: end - content.len() + last.len()..end - content.len() + last.len(),
                text: added.into(),
            })
        }
        _ => None,
    }
}

fn prepend(tree: &Tree<'_>, of: NodeId, added: &str, around: Around) -> Option<Edit> {
    let start = tree.span(of).start;
    let insert = |text: String| {
        Some(Edit {
            at: start + 1..start + 1,
            text: text.into(),
        })
    };
    match tree.kind(of) {
        _ if added.chars().any(char::is_control) => None,
        Kind::SingleQuoted => insert(added.replace('\'', "''")),
        Kind::DoubleQuoted => insert(escaped(added)),
        // Only a first line without blanks of its own says by itself where its text begins.
        Kind::Literal | Kind::Folded if !matches!(around, Around::Flow) => {
            let (header, body) = tree.slice(of).split_once('\n')?;
            let first = body.trim_start_matches(' ');
            let is_clear = !header
                .split('#')
                .next()?
                .contains(|char: char| char.is_ascii_digit())
                && !first.starts_with(char::is_whitespace)
                && !added.starts_with(' ');
            let at = tree.span(of).end - first.len();
            is_clear.then(|| Edit {
                at: at..at,
                text: added.into(),
            })
        }
        _ => None,
    }
}

/// The edit that takes a piece out of a scalar's text, or puts another in its place, and leaves the rest as it is
/// written; `None` where it is not certain where the piece stands.
pub(super) fn respell(tree: &Tree<'_>, of: NodeId, new: &str, around: Around) -> Option<Edit> {
    let old = tree.scalar(of)?;
    let (gone, added) = piece(old, new);
    let kind = tree.kind(of);
    if gone.is_empty()
        || tree.tag(of).is_some()
        || [gone, added]
            .iter()
            .any(|text| text.contains(char::is_control))
    {
        return None;
    }
    let (raw, replacement) = match kind {
        Kind::Plain => {
            let is_plain = around_is_block(around)
                && resolve(new) == Value::String(new.to_owned())
                && is_plain_text(new);
            is_plain.then(|| (gone.to_owned(), added.to_owned()))?
        }
        Kind::SingleQuoted => (gone.replace('\'', "''"), added.replace('\'', "''")),
        Kind::DoubleQuoted => (escaped(gone), escaped(added)),
        Kind::Literal | Kind::Folded => {
            let is_safe =
                old.starts_with(new.get(..1)?) && !added.ends_with(' ') && !added.starts_with(' ')
                    || added.is_empty();
            is_safe.then(|| (gone.to_owned(), added.to_owned()))?
        }
        Kind::Absent
        | Kind::Alias
        | Kind::BlockMapping
        | Kind::FlowMapping
        | Kind::BlockSequence
        | Kind::FlowSequence => {
            return None;
        }
    };
    let (at, length) = match verbatim(tree, of) {
        // Where the text stands as it reads, its place is that in the value.
        Some(start) => (start + prefix(old, new), gone.len()),
        None => (only_place(tree.slice(of), &raw)?, raw.len()),
    };
    let start = tree.span(of).start + at;
    let edit = Edit {
        at: start..start + length,
        text: replacement.into(),
    };
    reads_as(tree, of, &edit, new).then_some(edit)
}

/// Where a piece stands that stands in a text once, and does not overlap with itself.
fn only_place(text: &str, piece: &str) -> Option<usize> {
    let first = text.find(piece)?;
    let behind = first + piece.chars().next()?.len_utf8();
    (!text[behind..].contains(piece)).then_some(first)
}

/// How many bytes both begin with.
fn prefix(old: &str, new: &str) -> usize {
    let same = old
        .char_indices()
        .zip(new.chars())
        .find(|((_, one), other)| one != other);
    same.map_or(old.len().min(new.len()), |((at, _), _)| at)
}

/// What of the old text is gone, and what stands in its place.
fn piece<'p>(old: &'p str, new: &'p str) -> (&'p str, &'p str) {
    let start = prefix(old, new);
    let (old, new) = (&old[start..], &new[start..]);
    let twins = old
        .chars()
        .rev()
        .zip(new.chars().rev())
        .take_while(|(one, other)| one == other);
    let end: usize = twins.map(|(one, _)| one.len_utf8()).sum();
    (&old[..old.len() - end], &new[..new.len() - end])
}

fn around_is_block(around: Around) -> bool {
    !matches!(around, Around::Flow)
}

/// Text that is plain by its first character and holds nothing that ends plain text.
fn is_plain_text(text: &str) -> bool {
    let first = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_./$".contains(&byte));
    let is_flag = text.starts_with('-')
        && text
            .as_bytes()
            .get(1)
            .is_some_and(u8::is_ascii_alphanumeric);
    (first || is_flag)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([' ', ':'])
}

fn escaped(text: &str) -> String {
    let quoted = double_quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// Text that may follow plain text and stays plain: no `: `, no ` #`, nothing that flow style uses, no blank at the end.
/// A comma only where there are no brackets around it.
fn is_plain_tail(text: &str, around: Around) -> bool {
    let bytes = text.as_bytes();
    let is_comma = |byte: u8| byte == b',' && !matches!(around, Around::Flow);
    let is_body =
        |byte: u8| byte.is_ascii_alphanumeric() || b"_./@%+=-$()".contains(&byte) || is_comma(byte);
    bytes.iter().enumerate().all(|(at, &byte)| match byte {
        b' ' | b':' => bytes.get(at + 1).is_some_and(|&next| is_body(next)),
        _ => is_body(byte),
    })
}
