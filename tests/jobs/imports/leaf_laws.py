"""The law of importers, for documents of any kind: every leaf is in one class, and what is kept is in the job."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from jobs.importers.outcome import ImportResult

Json = dict[str, Any]
Importer = Callable[[Json], ImportResult]
UNKNOWN = "zzUnknown"


def parts(keys: st.SearchStrategy[str], text: str) -> st.SearchStrategy[Any]:
    """Values of any form, with objects of these keys and a text among others."""
    scalars = st.one_of(st.sampled_from(["", "x", "7200s", text]), st.integers(0, 9), st.booleans(), st.none())
    return st.recursive(
        scalars | st.lists(scalars, max_size=2),
        lambda inner: (
            st.dictionaries(keys, inner, max_size=3) | st.lists(st.dictionaries(keys, inner, max_size=2), max_size=2)
        ),
        max_leaves=8,
    )


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every object of a document."""
    if isinstance(value, dict):
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from objects(inner, (*path, key))


def lost(found: ImportResult, stated: tuple[str, ...] = ()) -> list[str]:
    """Leaves of which nothing is said, and those that are kept while the job does not hold them. `stated`: ends of
    fields that a job says in other words."""
    entries = {entry.field: entry for entry in found.report.entries}
    out = json.dumps(found.values, ensure_ascii=False).lower()
    faults = [name for name in found.report.fields if name not in entries]
    for entry in found.report.of("kept"):
        texts = entry.old if isinstance(entry.old, list) else [entry.old]
        plain = [str(text) for text in texts if text not in (None, "", True, False) and "***" not in str(text)]
        words = [word for text in plain for word in re.split(r"[:=,\s]+", text.removeprefix("docker:"))]
        carried = all(json.dumps(word, ensure_ascii=False)[1:-1].lower() in out for word in words)
        words_of_it = re.search(r": (\S+)$", str(entry.new or ""))
        carried = carried or bool(words_of_it and words_of_it[1].lower() in out) or entry.field.endswith(stated)
        if entry.given and not carried and not entry.why:
            faults.append(f"{entry.field} is kept, and nowhere")
    return faults


def unread(importer: Importer, document: Json, free: tuple[str, ...] = ()) -> list[str]:
    """Objects in which an unknown key is kept while the job is the same. `free`: names of objects with keys of the
    author's own."""
    faults: list[str] = []
    before = importer(copy.deepcopy(document)).values
    for path in objects(document):
        if path and any(part in free for part in path):
            continue
        changed = copy.deepcopy(document)
        inside: Any = changed
        for part in path:
            inside = inside[part]
        inside[UNKNOWN] = "zzValue"
        found = importer(changed)
        said = [entry for entry in found.report.entries if UNKNOWN in entry.field]
        if not said or (said[0].kind == "kept" and found.values == before):
            faults.append(f"{path}: {said[0].kind if said else 'lost'}")
    return faults
