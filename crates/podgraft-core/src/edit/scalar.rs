//! Changes a part of a scalar and keeps its style, as when ` -javaagent:...` is appended to `-Xmx1g`.

use serde_json::Value;

use crate::yaml::parse::parse;
use crate::yaml::scalar::{double_quoted, is_raw_safe, resolve};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, NodeKind, Tree};

use super::lower::ParentContext;

/// Returns the edit that extends a scalar at one end so that it reads as `new`. `None` if `new` is no such extension,
/// or if the added text cannot be written in the scalar's style.
pub(super) fn extend_or_respell(
    tree: &Tree<'_>,
    node: NodeId,
    new: &str,
    around: ParentContext,
) -> Option<Edit> {
    if tree
        .tag(node)
        .is_some_and(|tag| tag != "tag:yaml.org,2002:str")
    {
        return None;
    }
    let old = tree.scalar(node)?;
    let body = old.trim_end_matches('\n');
    let added = new
        .strip_suffix(&old[body.len()..])
        .and_then(|rest| rest.strip_prefix(body));
    let edit = match added {
        Some(added) => append(tree, node, added, new, around),
        None => prepend(tree, node, new.strip_suffix(old)?, around),
    };
    edit.filter(|edit| reads_as(tree, node, edit, new))
}

/// Whether a scalar reads as `new` after the edit. A scalar that is written as it reads does, because the inserted text
/// is escaped for its style. For folded lines, escapes and block scalars, the result is parsed.
fn reads_as(tree: &Tree<'_>, node: NodeId, edit: &Edit, new: &str) -> bool {
    let (start, slice) = (tree.span(node).start, tree.slice(node));
    if verbatim(tree, node).is_some() {
        return true;
    }
    let header = slice.lines().next().unwrap_or_default();
    let is_block = matches!(tree.kind(node), NodeKind::Literal | NodeKind::Folded);
    // An indentation indicator is relative to the parent's column, so the scalar cannot be parsed alone.
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

/// The offset of the value within a scalar's text, if the text has the value byte for byte: 1 behind a quote, else 0.
fn verbatim(tree: &Tree<'_>, node: NodeId) -> Option<usize> {
    let text = tree.slice(node);
    let quote = match tree.kind(node) {
        NodeKind::Plain => 0,
        NodeKind::SingleQuoted | NodeKind::DoubleQuoted => 1,
        _ => return None,
    };
    let inner = text.get(quote..text.len().checked_sub(quote)?)?;
    (Some(inner) == tree.scalar(node)).then_some(quote)
}

/// Whether a text can be added to a scalar of this style. Only double quotes have escapes; a line feed would change how
/// the rest of the scalar is written.
fn can_hold(kind: NodeKind, added: &str) -> bool {
    match kind {
        NodeKind::DoubleQuoted => !added.contains(char::is_control),
        _ => added.chars().all(is_raw_safe),
    }
}

fn append(
    tree: &Tree<'_>,
    node: NodeId,
    added: &str,
    new: &str,
    around: ParentContext,
) -> Option<Edit> {
    let end = tree.span(node).end;
    let is_at_end = new.ends_with(added);
    if !can_hold(tree.kind(node), added) {
        return None;
    }
    match tree.kind(node) {
        NodeKind::Plain
            // The result must still read as a string: `1e` with `3` behind it is a number.
            if is_plain_tail(added, around) && resolve(new) == Value::String(new.to_owned()) =>
        {
            Some(Edit::insertion(end, added))
        }
        // The added text must come last. If the value ends with line ends, it would have to go before them.
        NodeKind::SingleQuoted if is_at_end => {
            Some(Edit::insertion(end - 1, added.replace('\'', "''")))
        }
        NodeKind::DoubleQuoted if is_at_end => Some(Edit::insertion(end - 1, escaped(added))),
        // YAML has no block scalars inside brackets.
        NodeKind::Literal | NodeKind::Folded if !matches!(around, ParentContext::Flow) => {
            let content = tree.slice(node);
            let last = content.trim_end_matches(['\n', '\r']);
            // If the last line has only blanks, the text does not end there.
            let is_text = last
                .rsplit('\n')
                .next()
                .is_some_and(|line| !line.trim().is_empty());
            let has_content = last.contains('\n') && is_text && !added.ends_with(' ');
            has_content.then(|| Edit::insertion(end - content.len() + last.len(), added))
        }
        _ => None,
    }
}

fn prepend(tree: &Tree<'_>, node: NodeId, added: &str, around: ParentContext) -> Option<Edit> {
    let begin = tree.span(node).start + 1;
    match tree.kind(node) {
        kind if !can_hold(kind, added) => None,
        NodeKind::SingleQuoted => Some(Edit::insertion(begin, added.replace('\'', "''"))),
        NodeKind::DoubleQuoted => Some(Edit::insertion(begin, escaped(added))),
        // The text begins at the first character of the first line, unless that line is blank or begins with a tab, or
        // the header has an indentation indicator.
        NodeKind::Literal | NodeKind::Folded if !matches!(around, ParentContext::Flow) => {
            let (header, body) = tree.slice(node).split_once('\n')?;
            let first = body.trim_start_matches(' ');
            let is_clear = !header
                .split('#')
                .next()?
                .contains(|char: char| char.is_ascii_digit())
                && !first.starts_with(char::is_whitespace)
                && !added.starts_with(' ');
            let at = tree.span(node).end - first.len();
            is_clear.then(|| Edit::insertion(at, added))
        }
        _ => None,
    }
}

/// Returns the edit that removes or replaces a piece of a scalar and leaves the rest as it is written. `None` if the
/// position of the piece in the text is not certain.
pub(super) fn replace_piece(
    tree: &Tree<'_>,
    node: NodeId,
    new: &str,
    around: ParentContext,
) -> Option<Edit> {
    let old = tree.scalar(node)?;
    let (at, removed, added) = changed_piece(old, new);
    let kind = tree.kind(node);
    if removed.is_empty()
        || tree.tag(node).is_some()
        || removed.contains(char::is_control)
        || !can_hold(kind, added)
    {
        return None;
    }
    let (raw, replacement) = match kind {
        NodeKind::Plain => {
            let is_plain = around_is_block(around)
                && resolve(new) == Value::String(new.to_owned())
                && is_plain_text(new);
            is_plain.then(|| (removed.to_owned(), added.to_owned()))?
        }
        NodeKind::SingleQuoted => (removed.replace('\'', "''"), added.replace('\'', "''")),
        NodeKind::DoubleQuoted => (escaped(removed), escaped(added)),
        NodeKind::Literal | NodeKind::Folded => {
            let is_safe =
                old.starts_with(new.get(..1)?) && !added.ends_with(' ') && !added.starts_with(' ')
                    || added.is_empty();
            is_safe.then(|| (removed.to_owned(), added.to_owned()))?
        }
        NodeKind::Absent
        | NodeKind::Alias
        | NodeKind::BlockMapping
        | NodeKind::FlowMapping
        | NodeKind::BlockSequence
        | NodeKind::FlowSequence => {
            return None;
        }
    };
    let (at, length) = match verbatim(tree, node) {
        // The text has the value byte for byte, so the position in the value is that in the text.
        Some(start) => (start + at, removed.len()),
        None => (only_place(tree.slice(node), &raw)?, raw.len()),
    };
    let start = tree.span(node).start + at;
    let edit = Edit {
        at: start..start + length,
        text: replacement.into(),
    };
    reads_as(tree, node, &edit, new).then_some(edit)
}

/// The offset of a piece that a text contains exactly once, overlapping matches counted, too.
fn only_place(text: &str, piece: &str) -> Option<usize> {
    let first = text.find(piece)?;
    let behind = first + piece.chars().next()?.len_utf8();
    (!text[behind..].contains(piece)).then_some(first)
}

/// The length of the common prefix in bytes, the piece of the old text that is gone behind it, and the piece of the new
/// text in its place.
pub(crate) fn changed_piece<'p>(old: &'p str, new: &'p str) -> (usize, &'p str, &'p str) {
    let same = old
        .char_indices()
        .zip(new.chars())
        .find(|((_, old_char), new_char)| old_char != new_char);
    let start = same.map_or(old.len().min(new.len()), |((at, _), _)| at);
    let (old, new) = (&old[start..], &new[start..]);
    let common = old
        .chars()
        .rev()
        .zip(new.chars().rev())
        .take_while(|(old_char, new_char)| old_char == new_char);
    let end: usize = common.map(|(old_char, _)| old_char.len_utf8()).sum();
    (start, &old[..old.len() - end], &new[..new.len() - end])
}

fn around_is_block(around: ParentContext) -> bool {
    !matches!(around, ParentContext::Flow)
}

/// Whether a text can be a plain scalar: it begins like one and has nothing that would end it.
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

/// Whether a text can be appended to a plain scalar: no `: `, no ` #`, no indicators of flow style, and no blank at the
/// end. A comma is allowed only outside of brackets.
fn is_plain_tail(text: &str, around: ParentContext) -> bool {
    let bytes = text.as_bytes();
    let is_comma = |byte: u8| byte == b',' && !matches!(around, ParentContext::Flow);
    let is_body =
        |byte: u8| byte.is_ascii_alphanumeric() || b"_./@%+=-$()".contains(&byte) || is_comma(byte);
    bytes.iter().enumerate().all(|(index, &byte)| match byte {
        b' ' | b':' => bytes.get(index + 1).is_some_and(|&next| is_body(next)),
        _ => is_body(byte),
    })
}
