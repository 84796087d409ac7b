#!/usr/bin/env python3
"""msrv.py VERSION < `cargo metadata`: fails when a dependency states a newer rust-version than VERSION."""
import json, sys


def number(version):
    return tuple(int(part) for part in (version.split(".") + ["0", "0"])[:3])


stated = number(sys.argv[1])
packages = json.load(sys.stdin)["packages"]
newer = [f'{p["name"]} {p["version"]} wants {p["rust_version"]}' for p in packages
         if p.get("rust_version") and number(p["rust_version"]) > stated]
print(f"{len(packages)} packages, {len(newer)} newer than {sys.argv[1]}")
sys.exit("\n".join(newer) or 0)
