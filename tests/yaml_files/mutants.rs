//! Documents made from documents: lines deleted, moved and indented, characters swapped. The same every time.

/// xorshift64*: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(2) + 1)
    }

    /// Numbers that have nothing in common with those of the seeds beside this one.
    pub fn mixed(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            random.below(2);
        });
        random
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const CHARACTERS: &[&str] = &[
    " ", "  ", ":", ": ", "-", "- ", "#", " #", "\"", "'", "[", "]", "{", "}", ",", "|", ">", "\t",
    "\n", "\r\n", "\\", "?", "? ", "&a", "*a", "!t ", "%", "@", "`", "~", "=", "<<", "é", "😀",
    "\u{a0}", "\u{85}", "\u{2028}", "\u{feff}", "\0", "\u{1}", ".", "...", "---", "x", "0", "+",
    "''", "\\n", "\\u0041", "\r",
];

const LINES: &[&str] = &[
    "k: \"a",
    "k: 'a ",
    "  b\\",
    "  b\"",
    "  b'",
    "  \"b\": c",
    "  b # c",
    "  - b",
    "  \\ b\\n\" # c",
    "- 'a",
    "- \"a \\",
    "b\": c",
    "  [b",
    "  &b",
    "- a",
    "-",
    "- - a",
    "- k: v",
    "- |",
    "k:",
    "k: v",
    "k: |",
    "k: |-",
    "k: |+",
    "k: >",
    "k: >-",
    "k: >+",
    "# c",
    "---",
    "...",
    "k: [a, b]",
    "k: {a: b}",
    "k: []",
    "{}",
    "k: \"v\"",
    "'k': v",
    "\"a\\tb\": c",
    "k: 'it''s'",
    "k: # c",
    "- # c",
    "k: v # c",
    "text",
    "",
    "   ",
    "-  -  k:  v",
    "k : v",
    "[",
    "]",
    "}",
    "k: {",
    "\"a\": 1,",
    "k: v: w",
    "k: - a",
    "- {a: b, c: [d]}",
    "k: |2",
    "%YAML 1.1",
    "? a",
    ": b",
    "  text",
    "\ttext",
    "k: [a: b]",
    "k: {a, b}",
    "k: {\"a\":1,}",
    "a b: c d",
    "k: a#b",
    "http://x:80/",
    "k: a:b",
    "k: -",
    "k: :v",
    ":k: v",
    "k: ::",
    "k: ?x",
    "k: |x",
    "k: \"a\" b",
    "k: [a] b",
    "\"k\":v",
    "? |",
    "k: &a v",
    "k: *a",
    "k: ~",
    "k:v",
];

/// A handful of mutations of some lines of a text.
pub fn mutate(text: &str, random: &mut Random) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let length = 1 + random.below(30);
    let from = if random.below(3) == 0 {
        0
    } else {
        random.below(all.len().max(1))
    };
    let mut lines: Vec<String> = all
        .iter()
        .skip(from)
        .take(length)
        .map(|&line| line.to_owned())
        .collect();
    dedent(&mut lines);
    if random.below(8) == 0 {
        lines = (0..1 + random.below(8)).map(|_| invent(random)).collect();
    }
    for _ in 0..random.below(5) {
        mutate_once(&mut lines, random);
    }
    let mut mutant = lines.concat();
    if random.below(12) == 0 {
        mutant = mutant.replace('\n', "\r\n");
    }
    if random.below(4) == 0 {
        let end = mutant.trim_end().len();
        mutant.truncate(end);
    }
    mutant
}

/// So that a piece from the middle of a document is one.
fn dedent(lines: &mut [String]) {
    let spaces = |line: &String| line.len() - line.trim_start_matches(' ').len();
    let least = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(spaces)
        .min()
        .unwrap_or(0);
    for line in lines {
        let cut = spaces(line).min(least);
        line.drain(..cut);
    }
}

fn invent(random: &mut Random) -> String {
    format!("{}{}\n", " ".repeat(random.below(5)), random.pick(LINES))
}

fn mutate_once(lines: &mut Vec<String>, random: &mut Random) {
    let at = random.below(lines.len() + 1);
    if at == lines.len() {
        return lines.push(invent(random));
    }
    match random.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, invent(random)),
        2 => lines.insert(at, lines[random.below(lines.len())].clone()),
        3 => lines[at].insert_str(0, &" ".repeat(1 + random.below(4))),
        4 => {
            let spaces = lines[at].len() - lines[at].trim_start_matches(' ').len();
            let cut = random.below(spaces + 1);
            lines[at].drain(..cut);
        }
        _ => {
            let line = &mut lines[at];
            let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
            let Some(&place) = places.get(random.below(places.len().max(1))) else {
                return;
            };
            if random.below(2) == 0 {
                line.remove(place);
            }
            line.insert_str(place, random.pick(CHARACTERS));
        }
    }
}
