#!/usr/bin/env python3
"""Measures whole runs on the streams of streams.py, and prints the tables of docs/benchmarks.md and docs/scale.md.

    whole.py PODGRAFT FOLDER [--runs 7] [--megabytes 100] [--scale]

The streams are written to FOLDER where they are not there, and read once before. Each result goes to a file there and
is compared with the expected one: a figure of a wrong result is not printed. `--scale` measures workloads that are all
changed instead: 1,000, 100,000 and, through a pipe, 1,000,000. Leave the machine alone meanwhile.
"""
import argparse
import filecmp
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STREAMS = {
    "none": "no workload at all",
    "fleet": "charts of four documents whose workloads have variables of ConfigMaps, a third of the workloads changed",
    "mixed": "workloads are a quarter of the bytes, a third of them changed",
    "changed": "every document changed, verified",
    "fallback": "every document on the complete parser, changed",
}
FLAGS = ["apply", "-q", "--no-marker", "--no-config", "-p", str(HERE / "policy.yaml")]


def run(command, result, source=None, expected_status=0):
    """Seconds on the clock, seconds of CPU and megabytes of memory of one run."""
    with open(result, "wb") as out:
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stdin=source)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
    child.returncode = status
    if os.waitstatus_to_exitcode(status) != expected_status:
        sys.exit(f"{command}: status {status}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def blocks(path):
    """The bytes of a file, a little at a time: what this process holds would count as its children's memory."""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            yield block


def stream(folder, kind, megabytes):
    """The file of a stream, in the page cache."""
    path = folder / f"{kind}.yaml"
    if not path.exists():
        subprocess.run([sys.executable, HERE / "streams.py", kind, str(megabytes), path], check=True)
    for _ in blocks(path):
        pass
    return path


def in_turn(commands, path, runs, expected, result):
    """The runs of each command, one after the other in each round, so that all meet the same machine."""
    rounds = []
    for _ in range(runs):
        done = []
        for name, command in commands.items():
            done.append(run(command, result))
            if name != "wc" and not filecmp.cmp(result, path if name == "cat" else expected, shallow=False):
                sys.exit(f"{command}: a wrong result")
        rounds.append(dict(zip(commands, done)))
    return rounds


def best(size, rounds, name):
    """Megabytes a second on the clock in the best run."""
    return f"{size / min(round[name][0] for round in rounds):.0f}"


def best_and_median(size, rounds, name):
    """Megabytes a second on the clock: the best run, and the median."""
    median = statistics.median(round[name][0] for round in rounds)
    return f"{best(size, rounds, name)}, {size / median:.0f}"


def times(rounds, name, other):
    """How many times as long as `other` a command takes: the median of the rounds."""
    return f"{statistics.median(round[name][0] / round[other][0] for round in rounds):.1f}"


def streams(arguments, folder):
    result = folder / "result.yaml"
    print("| stream | `cat`, `wc -l` | one thread: best, median | two: best, median | times `cat`: one, two | times `wc -l` |", end="")
    print(" MB a second of CPU | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, text in STREAMS.items():
        path = stream(folder, kind, arguments.megabytes)
        size = path.stat().st_size / 1e6
        program = [arguments.podgraft, *FLAGS, "--threads"]
        commands = {
            "cat": ["cat", path],
            "wc": ["wc", "-l", path],
            "one": [*program, "1", path],
            "two": [*program, "2", path],
        }
        runs = arguments.runs if kind != "fallback" else min(arguments.runs, 3)
        rounds = in_turn(commands, path, runs, f"{path}.expected", result)
        cells = [
            ", ".join(best(size, rounds, name) for name in ("cat", "wc")),
            best_and_median(size, rounds, "one"),
            best_and_median(size, rounds, "two"),
            ", ".join(times(rounds, name, "cat") for name in ("one", "two")),
            ", ".join(times(rounds, name, "wc") for name in ("one", "two")),
            f"{size / statistics.median(round['one'][1] for round in rounds):.0f}",
            f"{max(round[name][2] for round in rounds for name in ('one', 'two')):.0f}",
        ]
        print(f"| `{kind}`: {text} | {' | '.join(cells)} |", flush=True)


def scale(arguments, folder):
    """Many workloads in one run; a million are the same hundred thousand ten times, with --stream."""
    result = folder / "result.yaml"
    print("| workloads in one run, each changed | text, MB | seconds, two threads | seconds of CPU | peak MB |")
    print("|---|---|---|---|---|")
    for count, megabytes in ((1_000, 3.4), (100_000, 340)):
        path = folder / f"scale-{count}.yaml"
        subprocess.run([sys.executable, HERE / "streams.py", "changed", str(megabytes), path], check=True)
        size = path.stat().st_size / 1e6
        found = int(subprocess.run(["grep", "-c", "^kind: Deployment$", path], capture_output=True, check=True).stdout)
        wall, cpu, memory = run([arguments.podgraft, *FLAGS, "--threads", "2", path], result)
        if not filecmp.cmp(result, f"{path}.expected", shallow=False):
            sys.exit("a wrong result")
        print(f"| {found:,} | {size:,.1f} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |", flush=True)
    feeder = subprocess.Popen(["cat", *[path] * 10], stdout=subprocess.PIPE)
    wall, cpu, memory = run([arguments.podgraft, *FLAGS, "--threads", "2", "--stream"], os.devnull, feeder.stdout)
    feeder.wait()
    print(f"| {found * 10:,}, by a pipe, `--stream` | {size * 10:,.0f} | {wall:.1f} | {cpu:.1f} | {memory:.0f} |")
    for path in folder.glob("scale-*"):
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("podgraft", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--scale", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    (scale if arguments.scale else streams)(arguments, arguments.folder)


if __name__ == "__main__":
    main()
