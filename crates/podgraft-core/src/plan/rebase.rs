//! Makes the change that a kept policy made to a value again, where another value stands now: the record has only what the
//! policy made of the old one. Where that does not say what becomes of the new one, it is an error and no guess.

use serde_json::{Map, Value};

use crate::record::{identities, is_aligned};
use crate::yaml::value::{field_in, is_equal};

use super::reconcile::in_order;

/// The characters that a policy joins texts with. Others may be part of a word that was replaced as a whole.
const SEPARATORS: [char; 5] = [',', ';', '|', ' ', '\n'];

/// The change cannot be told from the value that was there before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entangled;

/// Returns the value that the change from `was` to `value` makes of what `exists` under a key. `None` if nothing is left.
pub(super) fn rebased(
    key: &str,
    was: Option<&Value>,
    value: Option<&Value>,
    exists: Option<&Value>,
) -> Result<Option<Value>, Entangled> {
    if is_same(exists, was) || is_same(exists, value) {
        return Ok(value.cloned());
    }
    if is_same(was, value) {
        return Ok(exists.cloned());
    }
    let result = match (was, value) {
        (_, None) => return Ok(None),
        // Both have put something there.
        (None, Some(_)) => return Err(Entangled),
        (Some(Value::String(was)), Some(Value::String(value))) => {
            Value::from(text(was, value, exists)?)
        }
        (Some(Value::Array(was)), Some(Value::Array(value))) => match is_aligned(key) {
            true => list(key, was, value, items(exists)?)?,
            false => words(was, value, items(exists)?)?,
        },
        (Some(Value::Object(was)), Some(Value::Object(value))) => fields(was, value, exists)?,
        (Some(_), Some(value)) => value.clone(),
    };
    Ok(Some(result))
}

fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => is_equal(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn items(list: Option<&Value>) -> Result<&[Value], Entangled> {
    match list {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Entangled),
    }
}

/// A text without the line feeds at its end, and these. A text is joined in front of them.
fn split_tail(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end_matches('\n').len())
}

fn text(was: &str, value: &str, exists: Option<&Value>) -> Result<String, Entangled> {
    let ((was, _), (body, _)) = (split_tail(was), split_tail(value));
    if !was.is_empty() && !body.contains(was) {
        // Nothing of the old text is in it, so it does not depend on that.
        return Ok(value.to_owned());
    }
    let exists = match exists {
        None => "",
        Some(Value::String(exists)) => exists,
        Some(_) => return Err(Entangled),
    };
    let (rest, tail) = split_tail(exists);
    let Some((front, back)) = joined_around(was, body) else {
        let is_free = rest.is_empty();
        return is_free.then(|| value.to_owned()).ok_or(Entangled);
    };
    if rest.is_empty() {
        let back = match front.is_empty() {
            true => back.trim_start_matches(SEPARATORS),
            false => back,
        };
        let front = match back.is_empty() {
            true => front.trim_end_matches(SEPARATORS),
            false => front.strip_suffix(SEPARATORS).unwrap_or(front),
        };
        return Ok([front, back, tail].concat());
    }
    let own = [front, back].map(|text| text.trim_matches(SEPARATORS));
    let is_there = |own: &&str| !own.is_empty() && places(own, rest).next().is_some();
    // What would be joined is there already.
    if own.iter().any(is_there) {
        return Err(Entangled);
    }
    Ok([front, rest, back, tail].concat())
}

/// What was joined to a text in front of it and behind it. `None` if that is not clear.
fn joined_around<'t>(was: &str, value: &'t str) -> Option<(&'t str, &'t str)> {
    let mut found = places(was, value);
    let place = found.next().filter(|_| !was.is_empty());
    place.filter(|_| found.next().is_none())
}

/// What stands in front of a part of a text and behind it, at each place where separators are around the part.
fn places<'t>(part: &str, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let found = text.match_indices(part);
    let around = found.map(|(at, found)| (&text[..at], &text[at + found.len()..]));
    around.filter(|(front, back)| {
        (front.is_empty() || front.ends_with(SEPARATORS))
            && (back.is_empty() || back.starts_with(SEPARATORS))
    })
}

/// Items without a name, such as arguments: what was put in front of all or behind them is put there again.
fn words(was: &[Value], value: &[Value], exists: &[Value]) -> Result<Value, Entangled> {
    if !was.is_empty() && !was.iter().any(|word| value.contains(word)) {
        return Ok(Value::from(value));
    }
    let (added, words) = match (value.strip_prefix(was), value.strip_suffix(was)) {
        _ if was.is_empty() && !exists.is_empty() => return Err(Entangled),
        (Some(back), _) => (back, [exists, back]),
        (_, Some(front)) => (front, [front, exists]),
        (None, None) => return Err(Entangled),
    };
    // What would be added is there already, so the list may have been replaced as a whole.
    match added.iter().any(|word| exists.contains(word)) {
        true => Err(Entangled),
        false => Ok(Value::from(words.concat())),
    }
}

fn fields(
    was: &Map<String, Value>,
    value: &Map<String, Value>,
    exists: Option<&Value>,
) -> Result<Value, Entangled> {
    let empty = Map::new();
    // What is put there anew has all its fields, such as its name.
    let is_gone = exists.is_none();
    let exists = match exists {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(exists)) => exists,
        Some(_) => return Err(Entangled),
    };
    let mut result = Map::new();
    for (key, field) in value {
        let (was, now) = (field_in(was, key), field_in(exists, key));
        let field = match is_gone && is_same(was, Some(field)) {
            true => Some(field.clone()),
            false => rebased(key, was, Some(field), now)?,
        };
        result.extend(field.map(|field| (key.clone(), field)));
    }
    for (key, field) in exists {
        if field_in(value, key).is_none() && field_in(was, key).is_none() {
            result.insert(key.clone(), field.clone());
        }
    }
    Ok(Value::Object(result))
}

/// A list whose items have identities. What the policy left alone is as it is now, and new items stand behind those that
/// they stand behind now.
fn list(key: &str, was: &[Value], value: &[Value], exists: &[Value]) -> Result<Value, Entangled> {
    let names = [was, value, exists].map(|items| identities(key, items));
    let [old, wanted, current] = &names;
    let find = |names: &[String], name: &String| names.iter().position(|other| other == name);
    let items: Vec<(String, &Value)> = old.iter().cloned().zip(was).collect();
    let in_place = in_order(&items, wanted);
    let mut result: Vec<(&String, Value)> = Vec::new();
    for (name, item) in wanted.iter().zip(value) {
        let before = find(old, name).map(|at| &was[at]);
        let now = find(current, name).map(|at| &exists[at]);
        let is_moved = find(old, name).is_some_and(|at| !in_place.contains(&at));
        // It may have been taken out and put there anew, so it may not depend on what was there.
        if is_moved && is_same(before, Some(item)) && !is_same(before, now) {
            return Err(Entangled);
        }
        let item = rebased("", before, Some(item), now)?;
        result.extend(item.map(|item| (name, item)));
    }
    for (at, name) in current.iter().enumerate() {
        if find(old, name).is_none() && find(wanted, name).is_none() {
            let mut behind = current[..at].iter().rev();
            let place =
                behind.find_map(|before| result.iter().position(|(name, _)| *name == before));
            let place = place.map_or(0, |place| place + 1);
            result.insert(place, (name, exists[at].clone()));
        }
    }
    Ok(result.into_iter().map(|(_, item)| item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(key: &str, [was, value, exists]: [Value; 3]) -> Option<Value> {
        rebased(key, Some(&was), Some(&value), Some(&exists)).unwrap_or(None)
    }

    #[test]
    fn a_text_that_was_joined_is_joined_to_another() {
        let text = |was: &str, value: &str, exists: &str| {
            let made = made("owners", [was, value, exists].map(Value::from))?;
            made.as_str().map(str::to_owned)
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(text("s,a", "s,a,b", "s"), is("s,b"));
        assert_eq!(text("a s", "b a s", "c s"), is("b c s"));
        assert_eq!(text("s", "b,s,c", "t"), is("b,t,c"));
        assert_eq!(text("s\n", "s,b\n", "t\n"), is("t,b\n"));
        assert_eq!(text("a", "a, b", ""), is("b"));
        assert_eq!(text("a", "b,a", ""), is("b"));
        assert_eq!(text("a", "b,a,c", ""), is("b,c"));
        // It was replaced.
        assert_eq!(text("a", "x", "c"), is("x"));
        for unclear in [
            ["1", "10", "2"],
            ["", "x", "y"],
            ["a", "a,a", "b"],
            ["s", "s,b", "t,b"],
        ] {
            let [was, value, exists] = unclear;
            assert_eq!(text(was, value, exists), None, "{unclear:?}");
        }
    }

    #[test]
    fn words_that_were_put_at_an_end_are_put_there_again() {
        let words = |was: &str, value: &str, exists: &str| {
            made(
                "args",
                [was, value, exists].map(|text| text.split(' ').collect()),
            )
        };
        assert_eq!(
            words("s -a", "s -a -b", "s -c"),
            Some(json!(["s", "-c", "-b"]))
        );
        assert_eq!(words("s -a", "-b s -a", "s"), Some(json!(["-b", "s"])));
        assert_eq!(words("s", "x y", "t"), Some(json!(["x", "y"])));
        assert_eq!(words("s t", "s -b t", "s u"), None);
        assert_eq!(words("s", "s -b -a", "s -a -b"), None);
    }

    #[test]
    fn items_that_were_left_alone_are_as_they_are_now() {
        let list = |text: &str| -> Value {
            let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
            pairs
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect()
        };
        let env = |was, value, exists| made("env", [was, value, exists].map(list));
        assert_eq!(
            env("M=1 A=1 B=1", "A=1 B=1 M=2", "M=1 A=2 N=1"),
            Some(list("A=2 N=1 M=2"))
        );
        assert_eq!(env("M=1 A=1 B=1", "A=1 B=1 M=1", "M=3 A=1 B=1"), None);
        assert_eq!(env("M=1 A=1", "A=1 M=2", ""), Some(list("M=2")));
        assert_eq!(env("M=1", "M=1 B=1", "M=1 B=2"), None);
    }
}
