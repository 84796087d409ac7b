#!/usr/bin/env python3
"""Measures whole runs of several commands on inputs of several shapes, and prints the second table of docs/benchmarks.md.

    shapes.py PODGRAFT FOLDER [--runs 5] [NAME...]

In each round, `cat` copies the input to a file (`cp -r` for a run that writes as many files), and podgraft works on it
with one thread and with two. Each result is compared with the expected one: a figure of a wrong result is not printed. The
inputs go to FOLDER, which should be on a warm file system. Leave the machine alone meanwhile.
"""
import argparse
import itertools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import streams
from whole import HERE, run, times

POLICY = HERE / "policy.yaml"
# What a run adds that the expected results do not have: the marker, and the results of a function.
ADDED = re.compile(rb"\s+podgraft\.dev/applied: |results:$|- \{\"message\":")
FILES = 10_000


def write_files(folder, is_expected):
    """Each document of charts in a file of its own, as `helm template --output-dir` writes them."""
    for number in range(FILES // 4):
        for document in streams.piece("fleet", number, is_expected).split("---\n")[1:]:
            name = document.split("templates/")[1].split("\n")[0]
            path = folder / f"team-{number % 23:02}/svc-{number:06}/{name}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document)


def items(count, is_expected):
    """Workloads that change, as the items of a list."""
    for number in range(count):
        document = streams.piece("changed", number, is_expected)
        lines = document.splitlines(keepends=True)[2:]
        yield "- " + "".join(line if line == "\n" else f"  {line}" for line in lines)[2:]


def write_list(count, head):
    def write(folder, is_expected):
        with open(folder / "in.yaml", "w") as file:
            file.write(f"{head}items:\n")
            file.writelines(items(count, is_expected))

    return write


def resource_list():
    config = "".join(f"  {line}" for line in POLICY.read_text().splitlines(keepends=True))
    return f"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n{config}"


def write_stream(kind, count):
    def write(folder, is_expected):
        with open(folder / "in.yaml", "w") as file:
            file.writelines(streams.piece(kind, number, is_expected) for number in range(count))

    return write


def write_long_document(folder, is_expected):
    """One workload with a container of a hundred thousand variables."""
    names = (f"            - name: KEY_{at}\n              value: 'the value of variable {at}, as long as usual'\n" for at in range(100_000))
    document = streams.piece("changed", 0, is_expected)
    (folder / "in.yaml").write_text(document.replace("          env:\n", "          env:\n" + "".join(names)))


def write_policies(path):
    """The policy, and 99 others for workloads that are not there."""
    text = POLICY.read_text()
    others = [text.replace("name: jvm-agent\nspec", f"name: agent-{at}\nspec").replace("runtime: java", f"runtime: java-{at}") for at in range(99)]
    path.write_text("\n---\n".join([*others, text]))


# What each run is: its text, what writes its input and the expected result, the arguments, and the exit status. The
# input is the file or folder INPUT, and results are in the file or folder RESULT.
ONE = "INPUT/in.yaml"
APPLY = ["apply", "-q", "--no-marker"]
SHAPES = {
    "output-dir": (f"{FILES:,} files, `apply --output-dir`; `cp -r` in place of `cat`", write_files, [*APPLY, "-p", POLICY, "--output-dir", "RESULT", "INPUT"], 0),
    "in-place": (f"{FILES:,} files, `apply --in-place`", write_files, ["apply", "-q", "-p", POLICY, "--in-place", "RESULT"], 0),
    "diff": (f"{FILES:,} files, `diff`", write_files, ["diff", "-q", "--no-marker", "-p", POLICY, "INPUT"], 1),
    "check": (f"{FILES:,} files, `check`", write_files, ["check", "-q", "-p", POLICY, "INPUT"], 1),
    "fn": ("a ResourceList of 1,000 items, all changed, `fn`", write_list(1_000, resource_list()), ["fn", "-q"], 0),
    "policies": ("`mixed`, with 100 policies of which one selects something", write_stream("mixed", 2_000), [*APPLY, "-p", "policies.yaml", ONE], 0),
    "list": ("a List of 50,000 items, all changed", write_list(50_000, "apiVersion: v1\nkind: List\n"), [*APPLY, "-p", POLICY, ONE], 0),
    "document": ("a workload of 100,000 variables, changed", write_long_document, [*APPLY, "-p", POLICY, ONE], 0),
}


def is_same(result, expected):
    """Whether a file is as expected."""
    with open(result, "rb") as file, open(expected, "rb") as wanted:
        lines = (line for line in file if not ADDED.match(line))
        return all(line == other for line, other in itertools.zip_longest(lines, wanted))


def is_right(name, place):
    """Whether the result is what the policy makes of the input."""
    result = place / "RESULT"
    if name == "check":
        return True
    if name == "diff":
        shutil.copytree(place / "INPUT", place / "patched")
        subprocess.run(["patch", "-s", "-p2", "-i", place / "RESULT"], cwd=place / "patched", check=True)
        result = place / "patched"
    if result.is_file():
        return is_same(result, place / "expected/in.yaml")
    paths = [path.relative_to(place / "expected") for path in (place / "expected").rglob("*.yaml")]
    return all(is_same(result / path, place / "expected" / path) for path in paths)


def removed(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def measured(podgraft, name, place, threads):
    """One run: seconds on the clock, seconds of CPU, and megabytes."""
    _, _, arguments, status = SHAPES[name]
    result = place / "RESULT"
    removed(result)
    if name == "in-place":
        shutil.copytree(place / "INPUT", result)
        subprocess.run(["git", "init", "-q", result], check=True)
    out = "out" if "RESULT" in arguments else "RESULT"
    command = [podgraft, *arguments, "--threads", str(threads), *(["--no-config"] if name != "fn" else [])]
    with open(place / "INPUT/in.yaml" if name == "fn" else os.devnull) as source:
        return run(command, out, source, status)


def rounds(arguments, name, place):
    files = sorted((place / "INPUT").rglob("*.yaml"))
    found = []
    for _ in range(arguments.runs):
        removed(place / "copies")
        copies = ["cp", "-r", "INPUT", "copies"] if name == "output-dir" else ["cat", *files]
        done = {"cat": run(copies, "copy")}
        for thread, threads in (("one", 1), ("two", 2)):
            done[thread] = measured(arguments.podgraft, name, place, threads)
            if not is_right(name, place):
                sys.exit(f"{name}: a wrong result")
            removed(place / "patched")
        found.append(done)
    return sum(path.stat().st_size for path in files) / 1e6, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("podgraft", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=SHAPES)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| input and command | MB | `cat`, s | one thread, two, s | times `cat`: one, two | MB a second of CPU | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.names:
        place = arguments.folder / name
        removed(place)
        for part, is_expected in (("INPUT", False), ("expected", True)):
            (place / part).mkdir(parents=True)
            SHAPES[name][1](place / part, is_expected)
        write_policies(place / "policies.yaml")
        place = place.absolute()
        os.chdir(place)
        size, found = rounds(arguments, name, place)
        cells = [
            f"{size:.1f}",
            f"{statistics.median(done['cat'][0] for done in found):.3f}",
            ", ".join(f"{statistics.median(done[thread][0] for done in found):.3f}" for thread in ("one", "two")),
            ", ".join(times(found, thread, "cat") for thread in ("one", "two")),
            f"{size / statistics.median(done['one'][1] for done in found):.0f}",
            f"{max(done[thread][2] for done in found for thread in ('one', 'two')):.0f}",
        ]
        print(f"| {SHAPES[name][0]} | {' | '.join(cells)} |", flush=True)
        os.chdir(place.parent)
        removed(place)


if __name__ == "__main__":
    main()
