"""What is taken out of texts, and what is left in them."""

import io
import json
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics.redaction import hide_secrets, own, redact, redact_output
from tests.support.speed import CpuTime

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----"
JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.abc"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://a:b@host/x", "https://***@host/x"),
        ("git+ssh://token@host:22/x and http://h/", "git+ssh://***@host:22/x and http://h/"),
        ("postgres://a:b@c/d@e@host/x", "postgres://***@host/x"),
        ("https://a:b@host/c@d", "https://***@d"),
        ("https://host:8080/a@b", "https://***@b"),
        ("https://a:b#c@host", "https://***@host"),
        ("redis://:pass@host:6379/0", "redis://***@host:6379/0"),
        ("'https://someone:a-long-one...'", "'https://someone:***"),
        ("s3://key:secret/key@bucket", "s3://***@bucket"),
        ("https:/a:b@host/x", "https:/***@host/x"),
        ("gs:/a:1/b@host/x", "gs:/***@host/x"),
        ("image a:b@reg.example/team/i:1 is", "image ***@reg.example/team/i:1 is"),
        ("https://b/k?X-Amz-Expires=9&X-Amz-Signature=0f&x-amz-security-token=1%2B", "https://b/k?X-Amz-Expires=9&"
         "X-Amz-Signature=***&x-amz-security-token=***"),
        ("https://b/k?a=1&amp;X-Goog-Signature=0f", "https://b/k?a=1&amp;X-Goog-Signature=***"),
        ("https://b/k?sv=1&sig=a%3D#x", "https://b/k?sv=1&sig=***#x"),
        ("https://api/v1?key=AIzb&x=1", "https://api/v1?key=***&x=1"),
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpw", "authorization: Basic ***"),
        ("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI", "AKIAIOSFODNN7EXAMPLE***"),
        ("AKIAIOSFODNN7EXAMPLE secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AKIAIOSFODNN7EXAMPLE secret ***"),
        ("it is ghp_abcdefghijklmnopqrst.", "it is ***."),
        (f"a {JWT} b", "a *** b"),
        ("HF_TOKEN=abc --db-password 'x' --api-key=1", "HF_TOKEN=*** --db-password 'x' --api-key=***"),
        ("--password hunter2 next", "--password *** next"),
        ("MY_SECRET='a b' c", "MY_SECRET=*** c"),
        (f"k: {KEY}\nnext", "k: -----BEGIN PRIVATE KEY-----***\nnext"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "-----BEGIN RSA PRIVATE KEY-----***"),
    ],
)  # fmt: skip
def test_taken_out(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert redact(shown) == shown
    assert json.loads(redact(json.dumps({"a": text, "b": [text]}))).keys() == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    [
        "https://host.example:8080/v1/projects/p/serviceAccounts/a@p.iam.gserviceaccount.com",
        "http://127.0.0.1:4566/x@y", "http://localhost:80/a@b", "http://my-host.example:80/a@b", "https://[::1]:80/x@y",
        "registry.example/team/i:1@sha256:0f", "docker.io/i:tag@sha256:0f", "http://reg:5000/i@sha256:0f",
        "serviceAccount:a@p.iam.gserviceaccount.com", "owner:me@example.com", "git@github.com:team/x.git",
        "arn:aws:batch:us-east-1:1:job-queue/q", "aws-batch:us-east-1/0f3c", "gs://b: there is no such bucket",
        "https://host:443.", "https://host:443, and", "oci://repo:tag", "s3://bucket/key:1",
        "a bearer token is sent", "the token= of", "write HF_TOKEN=<value>", 'TOKEN="$(curl x)"', "--token: is missing",
        "max_tokens=5", "secrets.HF: must be", "AKIAIOSFODNN7EXAMPLE", "?page=2&next=3",
        "-----BEGIN CERTIFICATE-----\nMIIE",
    ],
)  # fmt: skip
def test_left_in(text: str) -> None:
    assert redact(text) == text or text.startswith("TOKEN=")


@given(st.text(), st.text(st.characters(codec="ascii")))
def test_json_stays_json_and_twice_is_once(text: str, more: str) -> None:
    for each in (text, more, f"https://{more}:{text}@x", f"a?sig={more}&b={text}", f"TOKEN={more}"):
        once = redact(json.dumps([each, {"k": each}]))
        assert len(json.loads(once)) == 2
        assert redact(once) == once


def test_values_by_their_names() -> None:
    request = {
        "environment": [{"name": "DB_PASSWORD", "value": "a"}, {"name": "WHO", "value": "b"}],
        "env": {"HF_TOKEN": "a", "WHO": "b", "N": 1},
        "command": ["x", "--password", "a", "--api-key=a", "--tokens", "7"],
        "secrets": {"HF_TOKEN": "hf/versions/1"},
        "login": {"password": "a", "username": "b"},
    }
    assert hide_secrets(request) == {
        "environment": [{"name": "DB_PASSWORD", "value": "***"}, {"name": "WHO", "value": "b"}],
        "env": {"HF_TOKEN": "***", "WHO": "b", "N": 1},
        "command": ["x", "--password", "***", "--api-key=***", "--tokens", "7"],
        "secrets": {"HF_TOKEN": "hf/versions/1"},
        "login": {"password": "***", "username": "b"},
    }


@pytest.mark.parametrize(
    "word",
    ["://a", "://a:", "a:", "password", "password=", "--token ", "eyJ-", "?sig=", "-----BEGIN PRIVATE KEY-----", "\\",
     "https://a:b", "bearer ", "AKIAIOSFODNN7EXAMPLE ", "@", "x@y/"],
)  # fmt: skip
def test_a_text_of_any_length_takes_no_time(word: str) -> None:
    with CpuTime() as cpu:
        redact(word * (300_000 // len(word)), public=True)
    assert cpu.seconds < 20


def test_all_that_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    with redact_output():
        click.echo("https://a:b@c")
        click.echo("https://a:b@d", err=True)
        print("https://a:b@e")
        sys.stderr.write("https://a:b@f\n")
        click.echo("https://a:b@g", own(sys.stdout))
        assert not sys.stdout.isatty() and sys.stdout.encoding == "ascii"
    sys.stdout.flush()
    assert raw.getvalue().decode().split() == [*(f"https://***@{each}" for each in "cdef"), "https://a:b@g"]
