"""A bill of materials is valid CycloneDX, names no folder, and has each crate of standard input ("name vVERSION").

    bill.py BILL
"""
import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1]).read()
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
assert error is None, error
assert "file:" not in text, text[text.index("file:") :][:80]
bill = json.loads(text)
own = bill["metadata"]["component"]
listed = {(part["name"], part["version"]) for part in [own, *bill["components"]]}
compiled = {tuple(line.strip().split(" v")) for line in sys.stdin}
assert len(compiled) > 50, compiled
assert not compiled - listed, f"not in the bill: {sorted(compiled - listed)}"
