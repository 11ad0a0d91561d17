"""The client of Google's REST APIs: what it sends, what it sends again, and what answers mean."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from accel.clouds.google import rest as signing
from accel.clouds.google.api import Conflict, Google, Throttled, Unreached, object_path
from accel.clouds.google.rest import GarbledAnswer, Unmet
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from tests.support.serving import QuietServer

QUICK = Timing(connect_s=1, read_s=0.5, attempts=3, backoff_s=0.01, longest_wait_s=0.02)
PATH = "v2/projects/p/locations/z/nodes"
FOUND = {"name": "n"}
MAKES = ("post", "patch", "put", "get", "delete")


def told(code: int, status: str, message: str, **more: Any) -> tuple[int, dict[str, Any]]:
    return code, {"error": {"code": code, "status": status, "message": message, **more}}


class Server:
    """Answers as it is told: a status, a body and headers, or a fault by its name. The last one is given again."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                if answer == "reset at once":  # before the request has been read
                    server.calls.append((self.command, self.path, dict(self.headers), b""))
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.calls.append((self.command, self.path, dict(self.headers), body))
                if answer in ("reset", "slow"):
                    if answer == "slow":
                        server.over.wait(20)
                    self.close_connection = True
                    return
                self.reply(*answer)

            def reply(self, code: int, body: Any, headers: dict[str, str] | None = None, missing: int = 0) -> None:
                """`missing` bytes of the body never come."""
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                if code != 204:
                    self.send_header("Content-Length", str(len(data) + missing))
                self.end_headers()
                self.wfile.write(data if code != 204 else b"")
                self.close_connection = missing > 0

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments: Any) -> None: ...

        self.http = QuietServer(Handler)
        self.url = self.http.url

    def methods(self) -> list[str]:
        return [call[0] for call in self.calls]

    def paths(self) -> list[str]:
        return [call[1] for call in self.calls]

    def close(self) -> None:
        self.over.set()
        self.http.stop()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU", f"{made.url}/tpu/")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", f"{made.url}/storage.googleapis.com/storage/v1/")
    yield made
    made.close()


def call(verb: str, google: Google) -> Any:
    body = [{"id": 1}] if verb in ("post", "patch", "put") else []
    return getattr(google, verb)("tpu", PATH, *body)


DISABLED = {"reason": "SERVICE_DISABLED", "metadata": {"service": "tpu.googleapis.com", "consumer": "projects/7"}}


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (told(400, "INVALID_ARGUMENT", "Unknown name"), CloudRefused, "Unknown name"),
        (told(400, "FAILED_PRECONDITION", "the stored version"), Unmet, "the stored version"),
        (told(401, "UNAUTHENTICATED", "expired"), NoCredentials, "expired"),
        (told(403, "PERMISSION_DENIED", "no", details=[DISABLED]), CloudRefused, "enable tpu.googleapis.com --project"),
        (told(403, "PERMISSION_DENIED", "Quota", errors=[{"reason": "rateLimitExceeded"}]), Throttled, "Quota"),
        (told(404, "NOT_FOUND", "no such node"), NotFound, "no such node"),
        (told(409, "ALREADY_EXISTS", "there is one"), Conflict, "there is one"),
        (told(412, "FAILED_PRECONDITION", "another generation"), Conflict, "another generation"),
        (told(429, "RESOURCE_EXHAUSTED", "Quota exceeded"), Throttled, "Quota exceeded"),
        (told(499, "CANCELLED", "the client has gone"), CloudSilent, "the client has gone"),
        (told(500, "INTERNAL", "internal"), CloudSilent, "internal"),
        (told(503, "UNAVAILABLE", "try later"), CloudSilent, "try later"),
        ((502, b"<html>a proxy</html>"), CloudSilent, "HTTP 502"),
        ((403, b"<html>a proxy</html>"), GarbledAnswer, "HTTP 403 without an error of Google's"),
        ((302, b""), GarbledAnswer, "HTTP 302"),
        ((200, b"<html>sign in</html>"), GarbledAnswer, "not a JSON object"),
        ((200, b"[]"), GarbledAnswer, "not a JSON object"),
        ((200, FOUND, {}, 10), CloudSilent, "IncompleteRead"),
        ("reset at once", CloudSilent, ""),
        ("reset", CloudSilent, ""),
        ("slow", CloudSilent, "timed out"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["get", "post"])
def test_what_an_answer_means(server: Server, verb: str, answer: Any, error: type[JobsError], words: str) -> None:
    server.answers = [answer]
    with pytest.raises(JobsError) as caught:
        call(verb, Google(QUICK))
    assert type(caught.value) is error
    assert words in caught.value.message and "\n" not in caught.value.message
    assert caught.value.message.startswith(f"tpu {'post ' if verb == 'post' else ''}{PATH}: ")
    # Only what may pass is asked again, and only where that does no harm; a token is renewed once.
    again = issubclass(error, CloudSilent) and verb == "get"
    assert len(server.calls) == (3 if again else 2 if error is NoCredentials else 1)


@pytest.mark.parametrize(
    "said",
    [
        "caller does not have access to act as the specified service account: a@p.iam.gserviceaccount.com",
        "You do not have permission to act as service_account: a@p.iam.gserviceaccount.com. ",
        "The user does not have access to service account 'a@p.iam.gserviceaccount.com'.",
        "Permission 'iam.serviceAccounts.actAs' denied on resource",
    ],
)
def test_a_missing_permission_to_act_as_an_account_names_its_role(server: Server, said: str) -> None:
    server.answers = [told(403, "PERMISSION_DENIED", said)]
    with pytest.raises(CloudRefused) as caught:
        call("post", Google(QUICK))
    assert "roles/iam.serviceAccountUser" in str(caught.value.hint)


FAULTS = ["reset at once", "reset", "slow", told(503, "UNAVAILABLE", "x"), told(429, "RESOURCE_EXHAUSTED", "x")]


@pytest.mark.parametrize("fault", [*FAULTS, (200, FOUND, {}, 5)])
@pytest.mark.parametrize("verb", ["get", "patch", "put", "delete"])
def test_what_may_be_made_twice_is_tried_again(server: Server, verb: str, fault: Any) -> None:
    server.answers = [fault, (200, FOUND)]
    assert call(verb, Google(QUICK)) == FOUND
    assert server.methods() == [verb.upper()] * 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_post_is_sent_once_unless_it_may_be_made_twice(server: Server, fault: Any) -> None:
    server.answers = [fault, (200, FOUND)]
    with pytest.raises(CloudSilent):
        Google(QUICK).post("tpu", PATH, {"id": 1})
    assert server.methods() == ["POST"]
    server.answers = [fault, (200, FOUND)]
    assert Google(QUICK).post("tpu", PATH, {"id": 1}, repeat=True, force=True, nodeId="a b", page=None) == FOUND
    assert server.paths()[1:] == [f"/tpu/{PATH}?force=true&nodeId=a+b"] * 2
    assert json.loads(server.calls[-1][3]) == {"id": 1}
    assert server.calls[-1][2]["Content-Type"] == "application/json"


def test_what_was_never_sent_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU", "http://127.0.0.1:9")
    with pytest.raises(Unreached, match="refused"):
        Google(QUICK).post("tpu", PATH, {})


def test_deleting_what_is_not_there_is_no_error(server: Server) -> None:
    server.answers = [told(404, "NOT_FOUND", "no such node")]
    assert Google(QUICK).delete("tpu", PATH, force=True) == {}
    server.answers = [(204, b"")]
    assert Google(QUICK).delete("tpu", PATH) == {}


def test_a_token_that_has_expired_is_renewed_once_and_the_call_made_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = iter(["old", "new"])
    monkeypatch.setattr("accel.clouds.google.api.auth_headers", lambda: {"Authorization": f"Bearer {next(tokens)}"})
    server.answers = [told(401, "UNAUTHENTICATED", "expired"), (200, FOUND)]
    google = Google(QUICK)
    assert google.post("tpu", PATH, {}) == google.get("tpu", PATH) == FOUND
    assert [each[2]["Authorization"] for each in server.calls] == ["Bearer old", "Bearer new", "Bearer new"]


def test_threads_share_a_token(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(
        "accel.clouds.google.api.auth_headers", lambda: made.append(1) or {"Authorization": "Bearer one"}
    )
    server.answers = [(200, FOUND)]
    google = Google(QUICK)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: google.get("tpu", PATH), range(40))) == [FOUND] * 40
    assert made == [1] and len(server.calls) == 40


def test_a_list_has_pages(server: Server) -> None:
    server.answers = [
        (200, {"nodes": [{"name": "a"}, {"name": "b"}], "nextPageToken": "t/1"}),
        told(500, "INTERNAL", "x"),
        (200, {"nextPageToken": "t2"}),
        (200, {"nodes": [{"name": "c"}]}),
    ]
    found = list(Google(QUICK).pages("tpu", PATH, "nodes", pageSize=2))
    assert [each["name"] for each in found] == ["a", "b", "c"]
    root = f"/tpu/{PATH}?pageSize=2"
    assert server.paths() == [root, *[f"{root}&pageToken=t%2F1"] * 2, f"{root}&pageToken=t2"]


def test_an_object_is_read_with_its_generation(server: Server) -> None:
    server.answers = [(200, b"\x00bytes", {"X-Goog-Generation": "17"})]
    assert Google(QUICK).read("storage", object_path("b", "jobs/a b.json")) == (b"\x00bytes", "17")
    assert server.paths() == ["/storage.googleapis.com/storage/v1/b/b/o/jobs%2Fa%20b.json?alt=media"]
    server.answers = [(404, b"No such object: b/x", {"X-GUploader-UploadID": "u"})]
    with pytest.raises(NotFound, match="No such object: b/x"):
        Google(QUICK).read("storage", object_path("b", "x"))
    server.answers = [(403, b"me@x does not have storage.objects.get access", {"X-GUploader-UploadID": "u"})]
    with pytest.raises(CloudRefused, match=r"does not have storage\.objects\.get"):
        Google(QUICK).read("storage", object_path("b", "x"))
    server.answers = [(200, b"of a proxy")]
    with pytest.raises(GarbledAnswer):
        Google(QUICK).read("storage", object_path("b", "x"))


UPLOAD = "/storage.googleapis.com/upload/storage/v1/b/b/o?uploadType=media&name=jobs%2Fa.json"


def test_an_object_is_written_under_the_uploads_path(server: Server) -> None:
    server.answers = [(200, {"generation": "18"})]
    google = Google(QUICK)
    assert google.write("b", "jobs/a.json", b"{}", generation=0) == "18"
    assert google.write("b", "jobs/a.json", b"x\n", generation=None, kind="text/plain") == "18"
    assert server.paths() == [f"{UPLOAD}&ifGenerationMatch=0", UPLOAD]
    assert [(each[0], each[2]["Content-Type"], each[3]) for each in server.calls] == [
        ("POST", "application/json", b"{}"),
        ("POST", "text/plain", b"x\n"),
    ]


CONFLICT = told(412, "", "At least one of the pre-conditions you specified did not hold.")


def test_somebody_else_wrote_first(server: Server) -> None:
    server.answers = [CONFLICT]
    with pytest.raises(Conflict):
        Google(QUICK).write("b", "jobs/a.json", b"mine", generation="17")
    assert server.methods() == ["POST"]


@pytest.mark.parametrize("there, ours", [(b"mine", True), (b"theirs", False), (None, False)])
def test_a_write_whose_answer_was_lost_is_known_again(server: Server, there: bytes | None, ours: bool) -> None:
    read = told(404, "", "gone") if there is None else (200, there, {"X-Goog-Generation": "19"})
    server.answers = ["reset", CONFLICT, read]
    google = Google(QUICK)
    if ours:
        assert google.write("b", "jobs/a.json", b"mine", generation=0) == "19"
    else:
        with pytest.raises(Conflict):
            google.write("b", "jobs/a.json", b"mine", generation=0)
    assert server.methods() == ["POST", "POST", "GET"]


def test_a_write_that_is_refused_after_one_whose_answer_was_lost_is_not_refused(server: Server) -> None:
    """The first may have been carried out."""
    server.answers = ["reset", *[told(403, "", "no")] * (QUICK.attempts - 1)]
    with pytest.raises(CloudSilent, match="no"):
        Google(QUICK).write("b", "jobs/a.json", b"mine", generation=0)
    server.answers = [told(403, "", "no")]
    with pytest.raises(CloudRefused):
        Google(QUICK).write("b", "jobs/a.json", b"mine", generation=0)


def test_a_write_that_is_answered_without_a_generation_is_made_again(server: Server) -> None:
    server.answers = [(200, {"foo": 1}), (200, {"generation": "18"})]
    assert Google(QUICK).write("b", "jobs/a.json", b"{}", generation="17") == "18"


def test_a_netrc_does_not_replace_the_token(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.answers = [(200, FOUND)]
    Google(QUICK).get("tpu", PATH)
    assert server.calls[0][2]["Authorization"] == "Bearer token"


def test_every_api_has_a_root_that_a_variable_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    for api, root in signing.ROOTS.items():
        assert root.startswith("https://") and signing.root_of(api) == root.rstrip("/")
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", "http://127.0.0.1:1/")
        assert signing.root_of(api) == "http://127.0.0.1:1"


@pytest.mark.parametrize(("date", "clock"), [("Thu, 01 Jan 1970 00:01:40 GMT", 100), ("yesterday", None), ("", None)])
def test_the_clock_is_the_servers(
    server: Server, monkeypatch: pytest.MonkeyPatch, date: str, clock: float | None
) -> None:
    """Of the last answer to this thread, a refusal too; where it does not say, this machine's."""
    google = Google(QUICK)
    assert abs(google.clock - time.time()) < 60
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda self: date)
    server.answers = [told(404, "NOT_FOUND", "no such node")]
    with pytest.raises(NotFound):
        google.get("tpu", PATH)
    assert google.clock == clock if clock else abs(google.clock - time.time()) < 60
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: google.clock).result() > 100
