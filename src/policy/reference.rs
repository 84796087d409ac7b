//! What expressions know, in one table: `podgraft policy functions` and docs/expressions.md are made of it, and names are
//! checked against it.

mod values;

/// A function, a method or a macro.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// As it is called.
    pub name: &'static str,
    /// Its arguments, and what it is called on.
    pub signature: &'static str,
    /// What it comes to.
    pub text: &'static str,
    /// An expression that uses it.
    pub example: &'static str,
    /// What that comes to, as JSON.
    pub result: &'static str,
    /// It brings in names of its own.
    pub is_macro: bool,
}

/// One row of the table.
const fn of(
    name: &'static str,
    signature: &'static str,
    text: &'static str,
    example: &'static str,
    result: &'static str,
) -> Function {
    Function {
        name,
        signature,
        text,
        example,
        result,
        is_macro: false,
    }
}

const fn bringing_names(function: Function) -> Function {
    Function {
        is_macro: true,
        ..function
    }
}

/// All of them. What the CEL library has beyond them depends on the clock, or differs from Kubernetes' CEL.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().chain(values::FUNCTIONS)
}

const FUNCTIONS: &[Function] = &[
    bringing_names(of(
        "all",
        "list.all(x, condition), map.all(k, v, condition)",
        "Whether the condition holds for every entry",
        "[1, 2].all(x, x > 0)",
        "true",
    )),
    bringing_names(of(
        "exists",
        "list.exists(x, condition), map.exists(k, v, condition)",
        "Whether it holds for some entry",
        "['a', 'b'].exists(x, x == 'b')",
        "true",
    )),
    bringing_names(of(
        "exists_one",
        "list.exists_one(x, condition)",
        "Whether it holds for exactly one entry",
        "[1, 2, 2].exists_one(x, x == 1)",
        "true",
    )),
    bringing_names(of(
        "existsOne",
        "list.existsOne(x, condition)",
        "The same",
        "[1, 2, 2].existsOne(x, x == 2)",
        "false",
    )),
    bringing_names(of(
        "filter",
        "list.filter(x, condition)",
        "The entries, or keys of a map, for which it holds",
        "[1, 2, 3].filter(x, x > 1)",
        "[2,3]",
    )),
    bringing_names(of(
        "has",
        "has(a.b)",
        "Whether a field is there",
        "has(params.none)",
        "false",
    )),
    bringing_names(of(
        "map",
        "list.map(x, value), list.map(x, condition, value)",
        "A value for each entry",
        "[1, 2].map(x, x * 2)",
        "[2,4]",
    )),
    bringing_names(of(
        "sortBy",
        "list.sortBy(x, key)",
        "The entries in the order of their keys",
        "['bb', 'a'].sortBy(x, size(x))",
        "[\"a\",\"bb\"]",
    )),
    bringing_names(of(
        "transformList",
        "list.transformList(i, x, [condition,] value), map.transformList(k, v, [condition,] value)",
        "A value for each entry and its index or key",
        "['a', 'b'].transformList(i, x, x + string(i))",
        "[\"a0\",\"b1\"]",
    )),
    bringing_names(of(
        "transformMap",
        "map.transformMap(k, v, [condition,] value)",
        "A map with another value under each key",
        "{'a': 1, 'b': 2}.transformMap(k, v, v * 10)",
        "{\"a\":10,\"b\":20}",
    )),
    of(
        "bool",
        "bool(text)",
        "A text as a boolean",
        "bool('true')",
        "true",
    ),
    of(
        "bytes",
        "bytes(text)",
        "The bytes of a text",
        "size(bytes('é'))",
        "2",
    ),
    of(
        "double",
        "double(x)",
        "As a number with a fraction",
        "double('1.5')",
        "1.5",
    ),
    of(
        "dyn",
        "dyn(x)",
        "The same value of no stated type",
        "dyn(1) == 1.0",
        "true",
    ),
    of("int", "int(x)", "As a whole number", "int('9404')", "9404"),
    of(
        "size",
        "size(x), x.size()",
        "The length of a text, list or map",
        "size([1, 2, 3])",
        "3",
    ),
    of(
        "string",
        "string(x)",
        "As a text",
        "string(9404)",
        "\"9404\"",
    ),
    of(
        "type",
        "type(x)",
        "The type of a value",
        "type('a') == string",
        "true",
    ),
    of(
        "uint",
        "uint(x)",
        "As a whole number without a sign",
        "uint(1) == 1u",
        "true",
    ),
    of(
        "charAt",
        "text.charAt(i)",
        "The character at an index",
        "'abc'.charAt(1)",
        "\"b\"",
    ),
    of(
        "contains",
        "text.contains(part)",
        "Whether a text holds another",
        "'orders'.contains('der')",
        "true",
    ),
    of(
        "endsWith",
        "text.endsWith(end)",
        "Whether a text ends so",
        "'a.yaml'.endsWith('.yaml')",
        "true",
    ),
    of(
        "find",
        "text.find(pattern)",
        "The first that a regular expression fits; empty where none does",
        "'app-12'.find('[0-9]+')",
        "\"12\"",
    ),
    of(
        "findAll",
        "text.findAll(pattern), text.findAll(pattern, most)",
        "All that it fits",
        "'a1b2'.findAll('[0-9]')",
        "[\"1\",\"2\"]",
    ),
    of(
        "indexOf",
        "text.indexOf(part), text.indexOf(part, from), list.indexOf(x)",
        "Where it first stands, or -1",
        "['a', 'b'].indexOf('b')",
        "1",
    ),
    of(
        "join",
        "list.join(), list.join(separator)",
        "Texts as one",
        "['a', 'b'].join(',')",
        "\"a,b\"",
    ),
    of(
        "lastIndexOf",
        "text.lastIndexOf(part), list.lastIndexOf(x)",
        "Where it last stands, or -1",
        "'a/b/c'.lastIndexOf('/')",
        "3",
    ),
    of(
        "lowerAscii",
        "text.lowerAscii()",
        "In small letters",
        "'ABC'.lowerAscii()",
        "\"abc\"",
    ),
    of(
        "matches",
        "text.matches(pattern)",
        "Whether a regular expression fits somewhere",
        "'orders-2'.matches('-[0-9]$')",
        "true",
    ),
    of(
        "replace",
        "text.replace(from, to), text.replace(from, to, most)",
        "With one text in place of another",
        "'a.b.c'.replace('.', '-')",
        "\"a-b-c\"",
    ),
    of(
        "split",
        "text.split(separator), text.split(separator, most)",
        "The parts of a text",
        "'a,b'.split(',')",
        "[\"a\",\"b\"]",
    ),
    of(
        "startsWith",
        "text.startsWith(beginning)",
        "Whether a text begins so",
        "'orders'.startsWith('or')",
        "true",
    ),
    of(
        "substring",
        "text.substring(from), text.substring(from, to)",
        "A part by its place",
        "'orders'.substring(0, 3)",
        "\"ord\"",
    ),
    of(
        "trim",
        "text.trim()",
        "Without blanks around it",
        "'  a '.trim()",
        "\"a\"",
    ),
    of(
        "upperAscii",
        "text.upperAscii()",
        "In capitals",
        "'abc'.upperAscii()",
        "\"ABC\"",
    ),
    of(
        "hasValue",
        "optional.hasValue()",
        "Whether there is something in it",
        "optional.of(1).hasValue()",
        "true",
    ),
    of(
        "optional.none",
        "optional.none()",
        "An optional with nothing in it",
        "optional.none().orValue(1)",
        "1",
    ),
    of(
        "optional.of",
        "optional.of(x)",
        "An optional with x in it",
        "optional.of('a').value()",
        "\"a\"",
    ),
    of(
        "optional.ofNonZeroValue",
        "optional.ofNonZeroValue(x)",
        "Nothing for an empty x",
        "optional.ofNonZeroValue('').orValue('b')",
        "\"b\"",
    ),
    of(
        "or",
        "optional.or(optional)",
        "The first of two that has something in it; the second is evaluated only then",
        "optional.none().or(optional.of(2)).value()",
        "2",
    ),
    of(
        "orValue",
        "optional.orValue(x)",
        "What is in it, or x, which is evaluated only then",
        "{'a': 1}[?'b'].orValue(0)",
        "0",
    ),
    of(
        "value",
        "optional.value()",
        "What is in it",
        "optional.of(3).value()",
        "3",
    ),
    of(
        "distinct",
        "list.distinct()",
        "Each entry once",
        "[1, 2, 1].distinct()",
        "[1,2]",
    ),
    of(
        "flatten",
        "list.flatten(), list.flatten(depth)",
        "Lists within a list as one",
        "[[1], [2, 3]].flatten()",
        "[1,2,3]",
    ),
    of(
        "isSorted",
        "list.isSorted()",
        "Whether the entries are in their order",
        "[1, 3, 2].isSorted()",
        "false",
    ),
    of(
        "max",
        "list.max()",
        "The greatest entry",
        "[1, 3, 2].max()",
        "3",
    ),
    of(
        "min",
        "list.min()",
        "The least entry",
        "['b', 'a'].min()",
        "\"a\"",
    ),
    of(
        "reverse",
        "list.reverse()",
        "The other way round",
        "[1, 2].reverse()",
        "[2,1]",
    ),
    of(
        "slice",
        "list.slice(from, to)",
        "A part by its place",
        "[1, 2, 3].slice(1, 3)",
        "[2,3]",
    ),
    of(
        "sort",
        "list.sort()",
        "In order",
        "['b', 'a'].sort()",
        "[\"a\",\"b\"]",
    ),
    of(
        "sum",
        "list.sum()",
        "Numbers together",
        "[1, 2, 3].sum()",
        "6",
    ),
    of(
        "sets.contains",
        "sets.contains(list, list)",
        "Whether the first has all of the second",
        "sets.contains([1, 2], [2])",
        "true",
    ),
    of(
        "sets.equivalent",
        "sets.equivalent(list, list)",
        "Whether both have the same",
        "sets.equivalent([1, 2], [2, 1, 1])",
        "true",
    ),
    of(
        "sets.intersects",
        "sets.intersects(list, list)",
        "Whether they have something in common",
        "sets.intersects([1], [2])",
        "false",
    ),
    of(
        "json.parse",
        "json.parse(text)",
        "What a text of JSON says",
        "json.parse('{\"a\": [1]}').a",
        "[1]",
    ),
    of(
        "json.text",
        "json.text(x)",
        "A value as JSON",
        "json.text({'a': [1]})",
        "\"{\\\"a\\\":[1]}\"",
    ),
    of(
        "yaml.parse",
        "yaml.parse(text)",
        "What a text of YAML says, as Kubernetes reads it",
        "yaml.parse('a: [1]').a",
        "[1]",
    ),
    of(
        "yaml.text",
        "yaml.text(x)",
        "A value as YAML",
        "yaml.text({'a': [1]})",
        "\"a:\\n- 1\\n\"",
    ),
    of(
        "base64.decode",
        "base64.decode(text)",
        "The text of a base64 text",
        "base64.decode('YWJj')",
        "\"abc\"",
    ),
    of(
        "base64.encode",
        "base64.encode(text)",
        "A text in base64",
        "base64.encode('abc')",
        "\"YWJj\"",
    ),
    of(
        "dnsLabel",
        "dnsLabel(text)",
        "A text as a name of Kubernetes; what is too long ends in a checksum",
        "dnsLabel('Orders_v2')",
        "\"orders-v2\"",
    ),
    of(
        "firstPort",
        "firstPort(container, number)",
        "The container's first port, or the number",
        "firstPort({'ports': [{'containerPort': 80}]}, 8080)",
        "80",
    ),
    of(
        "imageName",
        "imageName(image)",
        "An image without tag and digest",
        "imageName('a/b:1.2')",
        "\"a/b\"",
    ),
    of(
        "imageTag",
        "imageTag(image)",
        "Its tag; of one by digest alone the digest; else `latest`",
        "imageTag('a/b:1.2')",
        "\"1.2\"",
    ),
    of(
        "lookup",
        "lookup(apiVersion, kind, [namespace,] name)",
        "Another object of the input or `--context`, an optional",
        "lookup('v1', 'ConfigMap', 'none').hasValue()",
        "false",
    ),
    of(
        "sha1",
        "sha1(text)",
        "The SHA-1 of a text, in hex: for names that other programs make of it",
        "sha1('abc')",
        "\"a9993e364706816aba3e25717850c26c9cd0d89d\"",
    ),
    of(
        "sha256",
        "sha256(text)",
        "The checksum of a text, in hex",
        "size(sha256('abc'))",
        "64",
    ),
];

/// Names and what they stand for.
pub const NAMES: &[(&str, &str)] = &[
    ("params", "the parameters, texts all: `params.NAME`"),
    ("variables", "the variables above: `variables.NAME`"),
    (
        "workload",
        "the workload: `name`, `kind`, `apiVersion`, `namespace`, `labels`, `annotations`, `selector`",
    ),
    ("pod", "its pod template: `labels`, `annotations`, `spec`"),
    ("object", "the whole object"),
    (
        "container",
        "the chosen container, with all fields of a Container and its `type`: `Container`, `InitContainer` or `Sidecar`",
    ),
    (
        "containers",
        "`containers.first`, the first container of the pod",
    ),
    ("namespaceObject", "the Namespace of the workload, or null"),
    (
        "source",
        "the resource that the policy is for, where it has a `source`",
    ),
    (
        "sources",
        "all resources that the policy is for, by name; with `scope: Namespaced` those of the resource's namespace",
    ),
    (
        "ref",
        "in `annotation` of `checksums`: `kind` and `name` of an object that the pod refers to",
    ),
];

/// The page docs/expressions.md.
pub fn page() -> String {
    let mut page = "# Expressions\n\nExpressions are [CEL](https://cel.dev), as in Kubernetes. `podgraft policy functions` prints \
        this page; it is made of\nthe table that the program checks names against.\n\n## Names\n\n| name | what it stands for \
        |\n|---|---|\n"
        .to_owned();
    for (name, text) in NAMES {
        page.push_str(&format!("| `{name}` | {text} |\n"));
    }
    page.push_str(
        "\n## Functions\n\n| function | what it comes to | example | result |\n|---|---|---|---|\n",
    );
    for function in functions() {
        let Function {
            signature,
            text,
            example,
            result,
            ..
        } = function;
        page.push_str(&format!(
            "| `{signature}` | {text} | `{example}` | `{result}` |\n"
        ));
    }
    page.push_str(
        "\n## Bounds\n\n`orValue`, `or`, `&&`, `||` and `?:` evaluate only what they need. An expression has at most 16,384 \
        characters, a list that\nis walked at most 1,024 entries, lists are walked within lists two deep (a list that the policy \
        writes out, or makes of its own text, aside),\nand all expressions of a policy over one container take at most two \
        million steps, about a second: an expression always ends.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::expression::{Evaluator, Expression, Facts, Outcome, Wanted};
    use crate::policy::template::Fault;
    use crate::policy::vocabulary::Vocabulary;
    use serde_json::Value;

    struct Nothing;

    impl Facts for Nothing {
        fn fact(&self, _: &str, _: &str) -> Result<Option<Value>, Fault> {
            Ok(None)
        }

        fn lookup(&self, _: &Wanted) -> Result<Option<Value>, Fault> {
            Ok(None)
        }
    }

    #[test]
    fn every_example_comes_to_what_the_table_says() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.params.insert("none".to_owned(), None);
        for function in functions() {
            let expression = Expression::compile(function.example, &vocabulary)
                .unwrap_or_else(|faults| panic!("{}: {faults:?}", function.example));
            let outcome = Evaluator::new(&vocabulary.params, &[], &Nothing).evaluate(&expression);
            let Ok(Outcome::Value(value)) = outcome else {
                panic!("{}: {outcome:?}", function.example);
            };
            assert_eq!(value.to_string(), function.result, "{}", function.example);
            let word = function.name.rsplit('.').next().unwrap_or_default();
            assert!(function.example.contains(word), "{}", function.name);
        }
    }
}
