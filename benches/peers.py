#!/usr/bin/env python3
"""Measures podgraft beside other programs that do the same job, and prints the table of docs/benchmarks.md.

    peers.py PODGRAFT BENCH [--bin FOLDER] [--sizes 100,1000,10000] [--runs 3]

BENCH is a folder with `run.sh`, the jobs of the peers and what makes their input. FOLDER holds the peers' programs:

    GOBIN=FOLDER go install github.com/mikefarah/yq/v4@v4.47.2
    GOBIN=FOLDER go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
    GOBIN=FOLDER go install carvel.dev/ytt/cmd/ytt@v0.52.0
    (cd BENCH/peers/krm-go && go build -o FOLDER/krm-inject .)
    pip install ruamel.yaml pyyaml

What is not there is left out. A peer that takes longer than twenty seconds for a run is not tried with more
applications.
"""
import argparse
import os
import pathlib
import subprocess

PEERS = ["cat", "podgraft", "podgraft-diff", "yq", "ytt", "krm-go-stream", "kustomize", "ruamel"]
LIMIT = 60


def measure(arguments, size, peer):
    """The row that run.sh prints, as a list of its columns; none when the peer is not there."""
    environment = {
        **os.environ,
        "PODGRAFT": os.path.abspath(arguments.podgraft),
        "PEERBIN": os.path.abspath(arguments.bin),
        "LIMIT": str(LIMIT),
        # To compare the values of more takes minutes.
        **({"NOSEM": "1"} if size > 1000 else {}),
    }
    script = pathlib.Path(arguments.bench) / "run.sh"
    command = ["bash", str(script), str(size), str(arguments.runs), peer]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
    rows = [line.split("|") for line in shown.splitlines() if line.startswith(peer)]
    return [column.strip() for column in rows[0]] if rows else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("podgraft")
    parser.add_argument("bench")
    parser.add_argument("--bin", default="bin")
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    heads = [f"{size:,} applications" for size in sizes]
    print(f"| program | {' | '.join(f'{head}: s, MB/s' for head in heads)} | peak MB | beside the injection |")
    print("|" + "---|" * (len(sizes) + 3))
    for peer in PEERS:
        cells, memory, beside, is_slow = [], "", "", False
        for size in sizes:
            row = None if is_slow else measure(arguments, size, peer)
            if row is None:
                cells.append("")
            elif len(row) < 6:
                cells.append(row[1])
                is_slow = True
            else:
                _, wall, _, rate, memory, beside = row
                cells.append(f"{wall}, {rate}")
                is_slow = float(wall) > LIMIT / 3
        if any(cells):
            print(f"| {peer} | {' | '.join(cells)} | {memory} | {beside} |", flush=True)


if __name__ == "__main__":
    main()
