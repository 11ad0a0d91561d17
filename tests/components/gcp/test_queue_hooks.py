"""The hook that lets a queued resource go with its TPU, against a server that answers as it is told."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pulumi
import pytest

from accel.clouds.google.rest import GIVEN, KEY_FILE
from components.gcp.queue_hooks import delete
from tests.support.serving import QuietServer

NAME = "projects/p/locations/us-central1-a/queuedResources/q"


class Answers:
    """Statuses to answer with, one after the other, and what was asked."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.asked: list[str] = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers.asked.append(f"{self.command} {self.path} {self.headers['Authorization']}")
                self.send_response(answers.statuses.pop(0))
                self.end_headers()
                self.wfile.write(b'{"error": {"message": "what Google says"}}')

            def do_DELETE(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = QuietServer(Handler)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    made = Answers()
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU", f"{made.server.url}/")
    monkeypatch.setenv(GIVEN, "token")
    monkeypatch.setattr("components.gcp.queue_hooks.PAUSE_S", 0.0)
    yield made
    made.server.stop()


def test_it_is_forced_and_waited_for(answers: Answers) -> None:
    answers.statuses = [503, 200, 200, 503, 404]
    delete(NAME)
    forced, looked = f"DELETE /v2/{NAME}?force=true Bearer token", f"GET /v2/{NAME} Bearer token"
    assert answers.asked == [forced, forced, looked, looked, looked]


def test_what_is_gone_is_no_fault(answers: Answers) -> None:
    answers.statuses = [404]
    delete(NAME)


def test_a_refusal_is_told(answers: Answers) -> None:
    answers.statuses = [403]
    with pytest.raises(pulumi.RunError, match=r"queuedResources/q could not be deleted: HTTP 403: .*what Google says"):
        delete(NAME)


def test_the_token_is_the_callers(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not what a .netrc holds for the host."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("default login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    answers.statuses = [404]
    delete(NAME)
    assert answers.asked == [f"DELETE /v2/{NAME}?force=true Bearer token"]


def test_credentials_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text("[]")
    monkeypatch.delenv(GIVEN, raising=False)
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "key.json"))
    with pytest.raises(pulumi.RunError, match=r"key\.json"):
        delete(NAME)


def test_it_is_not_waited_for_for_ever(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.gcp.queue_hooks.PATIENCE_S", 0.5)
    monkeypatch.setattr("components.gcp.queue_hooks.PAUSE_S", 0.1)
    answers.statuses = [200] * 100
    with pytest.raises(pulumi.RunError, match="is still there after"):
        delete(NAME)
