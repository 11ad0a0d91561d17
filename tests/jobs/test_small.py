"""Keys, durations, words and the presence of processes."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from accel.diagnostics.errors import BadInput, JobsError
from accel.diagnostics.messages import display, printable_name
from accel.duration import seconds
from jobs.backends.base import JobRef
from jobs.backends.local_programs import process
from jobs.backends.registry import of_ref
from jobs.model import keys


@pytest.mark.parametrize(
    "text, expected",
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("4h", 14_400),
        ("2d", 172_800),
        (" 5m ", 300),
        ("0", 0),
        ("", None),
        ("h", None),
        ("-5", None),
        ("1.5h", None),
        ("4 h", None),
        ("٣", None),
        ("5w", None),
        ("9" * 13, None),
    ],
)
def test_durations(text: str, expected: int | None) -> None:
    assert seconds(text) == expected


def test_keys() -> None:
    assert keys.submission_key("a", "k") == keys.submission_key("a", "k")
    assert (
        len({keys.submission_key(*pair) for pair in [("a", "k"), ("b", "k"), ("a", "l"), ("ak", ""), ("", "ak")]}) == 5
    )
    assert keys.random_key() != keys.random_key()
    assert keys.platform_name("a", "0123456789abcdef") == "a-0123456789ab"
    assert keys.content_hash({"a": 1, "b": [1, 2]}) == keys.content_hash({"b": [1, 2], "a": 1})
    assert keys.content_hash({"b": [1, 2]}) != keys.content_hash({"b": [2, 1]})


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "empty"),
        (True, "true"),
        (1.5, "1.5"),
        (3, "3"),
        ("a", "'a'"),
        ([1], "a list"),
        ({}, "a mapping"),
        (10**100, "a number of many digits"),
        ("x" * 23, repr("x" * 23)),
        ("token", "text"),
    ],
)
def test_values_in_words(value: object, text: str) -> None:
    assert display(value) == text


def test_names_are_printable() -> None:
    assert (
        printable_name("a\x1b[31m").isprintable()
        and printable_name("") == "''"
        and len(printable_name("x" * 999)) == 60
    )


def test_error_codes_are_as_documented() -> None:
    import accel.diagnostics.errors

    for error in JobsError.__subclasses__():
        assert f"{error.__name__} " in (accel.diagnostics.errors.__doc__ or "")
        assert f" {error.exit_code} " in (accel.diagnostics.errors.__doc__ or "")


def test_presence() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    noted = process.identity(sleeper.pid)
    assert process.presence(noted) == "there"
    assert process.presence(noted | {"started": "1"}) == "gone"
    assert process.presence(noted | {"boot": "other"}) == "gone"
    assert process.presence(noted | {"boot": None}) == "there"
    assert process.presence(noted | {"host": "other", "boot": "other"}) == "unknown"
    assert process.presence(noted | {"namespace": "pid:[1]"}) == "unknown"
    assert process.presence(noted | {"started": None}) == "unknown"
    sleeper.kill()
    end = time.monotonic() + 60
    while process.presence(noted) != "gone":  # a zombie is gone too
        assert time.monotonic() < end
    sleeper.wait()
    assert process.presence(noted) == "gone"
    assert process.presence(process.identity(os.getpid())) == "there"


@pytest.mark.parametrize("text", ["", "x", "local", "local:", "local:x", "local:/", ":/x", "/x", "a/b:c"])
def test_bad_references(text: str) -> None:
    with pytest.raises(BadInput, match="expected <kind>:<scope>/<id>"):
        JobRef.parse(text)


def test_backends_by_reference() -> None:
    assert type(of_ref(JobRef.parse("local:/x"))).__name__ == "LocalBackend"
    assert type(of_ref(JobRef.parse("aws-batch:us-east-1/x"))).__name__ == "AwsBatchBackend"
    with pytest.raises(BadInput, match="unknown kind; did you mean aws-batch"):
        of_ref(JobRef.parse("aws-bach:us-east-1/x"))
