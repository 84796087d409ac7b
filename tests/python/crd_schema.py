"""Checks objects against the schema of a CustomResourceDefinition, as an API server with strict field validation does.

    crd_schema.py CRD OBJECT...

Fields that the schema does not know are errors unless it says `x-kubernetes-preserve-unknown-fields`.
"""
import sys

import jsonschema
import yaml


def strict(schema):
    """The same schema as JSON Schema in which unknown fields are errors."""
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if "properties" in schema:
        result["properties"] = {name: strict(value) for name, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
            result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = strict(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = strict(schema["additionalProperties"])
    return result


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        crd = yaml.safe_load(file)
    versions = {version["name"]: version["schema"]["openAPIV3Schema"] for version in crd["spec"]["versions"]}
    kind = crd["spec"]["names"]["kind"]
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            thing = yaml.safe_load(file)
        group, _, version = thing["apiVersion"].partition("/")
        if (group, thing["kind"]) != (crd["spec"]["group"], kind):
            sys.exit(f"{name} is no {kind} of {crd['spec']['group']}")
        schema = strict(versions[version])
        # The server's own fields.
        schema["properties"]["metadata"] = {"type": "object"}
        for field in ("apiVersion", "kind"):
            schema["properties"].setdefault(field, {"type": "string"})
        errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(thing), key=str)
        for error in errors:
            print(f"{name}: {error.json_path}: {error.message}", file=sys.stderr)
        if errors:
            sys.exit(1)
        print(f"{name}: {kind} is valid")


main()
