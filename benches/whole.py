#!/usr/bin/env python3
"""Measures whole runs on the four streams of streams.py, and prints the tables of docs/benchmarks.md and docs/scale.md.

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


def run(command, result, source=None):
    """Seconds on the clock, seconds of CPU and megabytes of memory of one run."""
    with open(result, "wb") as out:
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stdin=source)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
    child.returncode = status
    if status != 0:
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


def measure(command, path, runs, expected, result):
    """Megabytes a second on the clock (best and median), the same by CPU, and the most memory."""
    done = [run(command, result) for _ in range(runs)]
    if not filecmp.cmp(result, expected, shallow=False):
        sys.exit(f"{command}: a wrong result")
    size = path.stat().st_size / 1e6
    walls = sorted(wall for wall, _, _ in done)
    cpu = statistics.median(cpu for _, cpu, _ in done)
    return size / walls[0], size / statistics.median(walls), size / cpu, max(memory for _, _, memory in done)


def streams(arguments, folder):
    result = folder / "result.yaml"
    print("| stream | `cat` | one thread: best, median | two: best, median | MB a second of CPU | peak MB |")
    print("|---|---|---|---|---|---|")
    for kind, text in STREAMS.items():
        path = stream(folder, kind, arguments.megabytes)
        runs = arguments.runs if kind != "fallback" else min(arguments.runs, 3)
        cat = measure(["cat", path], path, arguments.runs, path, result)
        one, two = (
            measure([arguments.podgraft, *FLAGS, "--threads", threads, path], path, runs, f"{path}.expected", result)
            for threads in ("1", "2")
        )
        cells = [f"{cat[0]:.0f}", f"{one[0]:.0f}, {one[1]:.0f}", f"{two[0]:.0f}, {two[1]:.0f}", f"{one[2]:.0f}"]
        print(f"| `{kind}`: {text} | {' | '.join(cells)} | {max(one[3], two[3]):.0f} |", flush=True)


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
