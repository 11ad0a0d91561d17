"""What a machine's metadata server knows: a tree of values, as it is now."""

import re
from typing import Any

from .. import PROJECT, PROJECT_NUMBER
from .machine import Machine

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_BELOW = ("attributes", "guest-attributes")  # whose names are their authors'


def tree(machine: Machine, metadata: dict[str, str], guest: dict[str, dict[str, str]], preempted: bool) -> Any:
    """Directories as dicts and lists, values as strings and numbers.

    Source: https://docs.cloud.google.com/compute/docs/metadata/predefined-metadata-keys
    """
    account = {"aliases": "default", "email": machine.account, "scopes": "\n".join(SCOPES)}
    return {
        "instance": {
            "attributes": {**metadata, **machine.more},
            "guest-attributes": guest,
            "hostname": f"{machine.name}.{machine.zone}.c.{PROJECT}.internal",
            "id": int(machine.id or 0),
            "machine-type": f"projects/{PROJECT_NUMBER}/machineTypes/{machine.machine_type}",
            "maintenance-event": "NONE",
            "name": machine.name,
            "network-interfaces": [{"ip": machine.ip}],
            "preempted": "TRUE" if preempted else "FALSE",
            "service-accounts": {name: account for name in (machine.account, "default") if machine.account},
            "zone": f"projects/{PROJECT_NUMBER}/zones/{machine.zone}",
        },
        "project": {"attributes": {}, "numeric-project-id": int(PROJECT_NUMBER), "project-id": PROJECT},
    }


def at(found: Any, path: str) -> Any:
    """The directory or value at a path. Raises KeyError."""
    for part in filter(None, path.split("/")):
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            raise KeyError(path)
    return found


def is_directory(found: Any) -> bool:
    return isinstance(found, (dict, list))


def listing(found: Any) -> str:
    """A directory's entries, a line each; those that are directories end in a slash."""
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    return "".join(f"{name}{'/' if is_directory(item) else ''}\n" for name, item in entries)


def as_json(found: Any, place: str = "") -> Any:
    """As `alt=json` has it: the platform's own names in camel case."""
    if isinstance(found, list):
        return [as_json(item) for item in found]
    if not isinstance(found, dict):
        return found
    own = place in _BELOW
    return {
        name if own else re.sub(r"-(\w)", lambda each: each[1].upper(), name): item if own else as_json(item, name)
        for name, item in found.items()
    }


def as_text(found: Any, below: str = "") -> str:
    """As `recursive=true&alt=text` has it: path and value, a line each."""
    if not is_directory(found):
        return f"{below} {found}\n"
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    return "".join(as_text(item, f"{below}/{name}" if below else str(name)) for name, item in entries)
