"""Calls every operation by the client that openapi-python-client generated.

Arguments: the generated package's name, the address of the service, the token, the file of calls. Each call says what it is to answer.
"""

import enum
import importlib
import json
import pkgutil
import sys
import typing

package, base, token, calls = sys.argv[1:]
root = importlib.import_module(package)
modules = {m.name.rsplit(".", 1)[1]: m.name for m in pkgutil.walk_packages(root.__path__, package + ".")}
client = root.AuthenticatedClient(base_url=base, token=token)


def build(hint, value):
    """The value that a parameter with this type has in Python: a model, an enumeration, a list of them, or itself."""
    for kind in typing.get_args(hint) or (hint,):
        if hasattr(kind, "from_dict") and isinstance(value, dict):
            return kind.from_dict(value)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind(value)
        if typing.get_origin(kind) is list and isinstance(value, list):
            return [build(typing.get_args(kind)[0], item) for item in value]
    return value


def call(wanted):
    operation = importlib.import_module(modules[wanted["id"]])
    hints = typing.get_type_hints(operation.sync_detailed)
    named = dict(wanted.get("query", {}))
    for member in ("body", "form"):
        if member in wanted:
            named["body"] = wanted[member]
    # A name that Python keeps for itself has an underscore at its end.
    named = {name if name in hints else name + "_": value for name, value in named.items()}
    named = {name: build(hints[name], value) for name, value in named.items()}
    answer = operation.sync_detailed(*wanted.get("path", []), client=client, **named)
    status = wanted.get("status", 200)
    if answer.status_code != status or answer.parsed is None and not wanted.get("text"):
        return f"{wanted['id']}: {answer.status_code}, want {status}: {answer.content.decode()[:300]}"


faults = [fault for fault in map(call, json.load(open(calls))) if fault]
print("\n".join(faults))
sys.exit(bool(faults))
