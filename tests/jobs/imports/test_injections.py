"""The law of importers under chance: of a leaf that is put anywhere into a document the report speaks, and what is kept
of it is in the job."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from accel.diagnostics.errors import BadInput, BadInputs
from jobs.importers.kinds import KINDS, importer_of
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.jobs.imports.leaf_laws import objects
from tests.jobs.imports.test_mutations import DOCUMENTS
from tests.support.soak import SOAK

EACH = 10_000 if SOAK else 150
"""Injected leaves of a kind."""
OF_KIND: dict[str, list[Any]] = {}
for _kind, _document in DOCUMENTS.values():
    OF_KIND.setdefault(_kind, []).append(_document)


def names(value: Any) -> Iterator[str]:
    """The keys of all objects of a document: an injected leaf may be a known field in a wrong place."""
    if isinstance(value, dict):
        yield from map(str, value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names(inner)


KNOWN = {
    kind: sorted({name for document in documents for name in names(document)}) for kind, documents in OF_KIND.items()
}
OTHERS = sorted({name for known in KNOWN.values() for name in known})


def injected(document: Any, kind: str, token: str, chance: random.Random) -> tuple[Any, str, str] | None:
    """The document with one more key somewhere, the key, and what was put where; None where the key is there."""
    changed = copy.deepcopy(document)
    path = chance.choice(list(objects(changed)))
    inside: Any = changed
    for part in path:
        inside = inside[part]
    key = chance.choice([chance.choice(KNOWN[kind]), chance.choice(OTHERS), f"x{token}", f"x_{token}"])
    if key in inside:
        return None
    inside[key] = chance.choice([token, [token], {key: token}, {"name": token}, [{key: token}], f"pre-{token}"])
    return changed, key, f"{'.'.join(map(str, path))} {key}: {inside[key]}"


def fault(found: ImportResult, key: str, token: str) -> str:
    """What is wrong with what was said of a leaf with the token; empty where nothing is. Values of secrets are hidden,
    and so known by their key."""
    told = [(entry, json.dumps([entry.field, entry.old], default=str)) for entry in found.report.entries]
    said = [entry for entry, text in told if token in text] or [
        entry for entry, text in told if key in text and "***" in text
    ]
    if not said:
        return "nothing is said of it"
    out = json.dumps([found.values, found.body, found.queue, found.definition, found.region], default=str).lower()
    kept = [entry for entry in said if entry.kind == "kept" and not entry.why]
    return f"{kept[0].field} is kept, and nowhere" if kept and token not in out else ""


@pytest.mark.parametrize("kind", sorted(OF_KIND))
def test_a_leaf_that_is_put_in_is_never_lost(kind: str) -> None:
    chance = random.Random(f"injections of {kind}")
    read, faults = importer_of(kind), []
    for number in range(EACH):
        token = f"zq{number}qz"
        change = injected(chance.choice(OF_KIND[kind]), kind, token, chance)
        if change is None:
            continue
        document, key, place = change
        try:
            found = read("file", json.dumps(document).encode(), ImportOptions())
        except (BadInput, BadInputs):
            continue
        if wrong := fault(found, key, token):
            faults.append(f"{place}: {wrong}")
    assert faults == []


def test_every_kind_of_document_is_held() -> None:
    assert {*KINDS} - {*OF_KIND} == {"slurm", "xpk"}
