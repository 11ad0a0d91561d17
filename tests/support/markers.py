"""A password in every form in which people write one into places that are not for it."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

MARKER = "hunter2Marker93"
FORMS = (
    f"https://someone:{MARKER}@host.example/x",
    f"https://{MARKER}@host.example/x",
    f"someone:{MARKER}@registry.example/team/image:1",
    f"gs://someone:1/{MARKER}@bucket/x",
    f"https://host.example/x?X-Amz-Credential=a&X-Amz-Signature={MARKER}&b=c",
    f"https://host.example/x?X-Goog-Signature={MARKER}",
    f"https://host.example/{'long/' * 20}x?access_token={MARKER}#y",
    f"redis://:{MARKER}{'0' * 90}@host.example",
)


def planted(document: Any) -> Iterator[tuple[tuple[str | int, ...], Any, str]]:
    """Copies of a document, each with the marker at another of its texts: the place, the copy, the form."""
    for at, path in enumerate(texts(document)):
        form = FORMS[at % len(FORMS)]
        copy = deepcopy(document)
        inside = copy
        for part in path[:-1]:
            inside = inside[part]
        inside[path[-1]] = form
        yield path, copy, form


def texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all texts, in lists and mappings."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, inside in cast(dict[str, Any], value).items():
            yield from texts(inside, (*path, key))
    elif isinstance(value, list):
        for key, inside in enumerate(cast(list[Any], value)):
            yield from texts(inside, (*path, key))
