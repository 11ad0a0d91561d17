"""The client of a Kubernetes API server: what it sends, what it sends again, and what answers mean."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from accel.clouds.kubernetes.client import Api, Timing
from accel.clouds.kubernetes.responses import AlreadyExists, Conflict, Throttled
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from tests.support.serving import QuietServer

QUICK = Timing(connect_s=1, read_s=0.5, attempts=3, backoff_s=0.01, longest_wait_s=0.02, poll_s=0.02, silence_s=0.5)
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
JOBS = "/apis/batch/v1/namespaces/ml/jobs"


def told(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


class Server:
    """Answers as it is told: a status and a body, or a fault by its name. The last answer is given again."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                server.calls.append((self.command, self.path, dict(self.headers), body))
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                self.reply(answer)

            def reply(self, answer: Any) -> None:
                if answer == "reset":
                    self.connection.close()
                    self.close_connection = True
                    return
                if answer == "hang":
                    threading.Event().wait(1)
                    self.close_connection = True
                    return
                code, body = answer
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments: Any) -> None: ...

        self.http = QuietServer(Handler)
        self.url = self.http.url

    def methods(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = Server()
    yield made
    made.http.stop()


def api_of(server: Server, sign: Callable[[], str] = lambda: "token") -> Api:
    return Api(server.url, None, sign, timing=QUICK)


@pytest.mark.parametrize(
    "answer, error, words",
    [
        (told(401, "Unauthorized", "Unauthorized"), NoCredentials, "get jobs ml/a: Unauthorized"),
        (told(403, "Forbidden", 'jobs.batch is forbidden: User "x" cannot get'), CloudRefused, "cannot get"),
        (told(404, "NotFound", 'jobs.batch "a" not found'), NotFound, 'jobs.batch "a" not found'),
        (told(409, "AlreadyExists", 'jobs.batch "a" already exists'), AlreadyExists, "already exists"),
        (told(409, "Conflict", "the object has been modified"), Conflict, "modified"),
        (told(422, "Invalid", "spec.template: Required value"), CloudRefused, "spec.template: Required value"),
        (told(400, "BadRequest", "strict decoding error"), CloudRefused, "strict decoding error"),
        (told(429, "TooManyRequests", "too many requests"), Throttled, "too many requests"),
        (told(500, "InternalError", "etcdserver: timeout"), CloudSilent, "etcdserver"),
        (told(503, "ServiceUnavailable", "no endpoints"), CloudSilent, "no endpoints"),
        (told(504, "Timeout", "timed out"), CloudSilent, "timed out"),
        (told(410, "Expired", "too old resource version"), CloudSilent, "too old"),
        ((403, "<html>a proxy</html>"), CloudSilent, "HTTP 403"),
        ((502, "<html>a proxy</html>"), CloudSilent, "HTTP 502"),
        ((301, ""), CloudSilent, "HTTP 301"),
        ((200, "<html>sign in here</html>"), CloudSilent, "not a Kubernetes object"),
        ((200, '{"kind": "Jo'), CloudSilent, "not a Kubernetes object"),
        ((200, "[]"), CloudSilent, "not a Kubernetes object"),
        ("reset", CloudSilent, "get jobs ml/a"),
        ("hang", CloudSilent, "timed out"),
    ],
)
def test_what_an_answer_means(server: Server, answer: Any, error: type[JobsError], words: str) -> None:
    server.answers = [answer]
    with pytest.raises(JobsError) as caught:
        api_of(server).get(f"{JOBS}/a")
    assert type(caught.value) is error
    assert words in caught.value.message and "\n" not in caught.value.message
    # Only what may pass is asked again; a token is renewed once.
    expected = 3 if issubclass(error, CloudSilent) else 2 if error is NoCredentials else 1
    assert len(server.calls) == expected


@pytest.mark.parametrize("fault", ["reset", "hang", told(503, "ServiceUnavailable", "x"), told(429, "TooMany", "x")])
def test_a_get_and_a_patch_are_tried_again(server: Server, fault: Any) -> None:
    server.answers = [fault, (200, JOB)]
    assert api_of(server).get(f"{JOBS}/a") == JOB
    server.answers = [fault, (200, JOB)]
    assert api_of(server).patch(f"{JOBS}/a", {"spec": {"suspend": True}}) == JOB
    assert server.methods() == ["GET", "GET", "PATCH", "PATCH"]
    assert server.calls[-1][2]["Content-Type"] == "application/merge-patch+json"


@pytest.mark.parametrize("fault", ["reset", "hang", told(503, "ServiceUnavailable", "x"), told(429, "TooMany", "x")])
def test_a_create_is_sent_once(server: Server, fault: Any) -> None:
    server.answers = [fault, (201, JOB)]
    with pytest.raises(CloudSilent):
        api_of(server).create(JOBS, JOB)
    assert server.methods() == ["POST"]


def test_a_token_that_has_ended_is_renewed_once_and_the_call_made_again(server: Server) -> None:
    tokens = iter(["old", "new"])
    server.answers = [told(401, "Unauthorized", "Unauthorized"), (201, JOB)]
    assert api_of(server, lambda: next(tokens)).create(JOBS, JOB) == JOB
    assert [call[2]["Authorization"] for call in server.calls] == ["Bearer old", "Bearer new"]


def test_a_list_has_pages(server: Server) -> None:
    def page(names: list[str], token: str) -> tuple[int, dict[str, Any]]:
        items = [{"metadata": {"name": name}} for name in names]
        return 200, {"kind": "JobList", "metadata": {"continue": token}, "items": items}

    server.answers = [page(["a", "b"], "next"), told(500, "InternalError", "x"), page(["c"], "")]
    found = list(api_of(server).items(JOBS, labelSelector="a=b"))
    assert [each["metadata"]["name"] for each in found] == ["a", "b", "c"]
    assert [call[1] for call in server.calls] == [
        f"{JOBS}?limit=500&labelSelector=a%3Db",
        f"{JOBS}?limit=500&labelSelector=a%3Db&continue=next",
        f"{JOBS}?limit=500&labelSelector=a%3Db&continue=next",
    ]


def test_a_list_whose_rest_is_too_old_continues(server: Server) -> None:
    """The server's answer then has the token of the rest as it is now."""
    code, status = told(410, "Expired", "The provided continue parameter is too old")
    page = {"kind": "JobList", "metadata": {"continue": "t1"}, "items": [JOB]}
    server.answers = [
        (200, page),
        (code, {**status, "metadata": {"continue": "t2"}}),
        (200, {"kind": "JobList", "metadata": {}, "items": [JOB]}),
    ]
    assert len(list(api_of(server).items(JOBS))) == 2
    assert [call[1].partition("continue=")[2] for call in server.calls] == ["", "t1", "t2"]
    server.answers = [(200, page), (code, status)]
    with pytest.raises(CloudSilent, match="too old"):
        list(api_of(server).items(JOBS))


def test_deleting_what_is_gone_is_no_error(server: Server) -> None:
    server.answers = [told(404, "NotFound", "not found")]
    api_of(server).delete(f"{JOBS}/a")
    assert server.calls[0][1] == f"{JOBS}/a?propagationPolicy=Background"


def test_a_netrc_does_not_replace_the_token(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.answers = [(200, JOB)]
    api_of(server).get(f"{JOBS}/a")
    assert server.calls[0][2]["Authorization"] == "Bearer token"


@pytest.mark.parametrize("endpoint", ["http://203.0.113.1", "https://h/path", "ftp://h", "", "https://"])
def test_an_endpoint_that_cannot_be_right(endpoint: str) -> None:
    with pytest.raises(BadInput, match="endpoint"):
        Api(endpoint, None, lambda: "token")


def test_only_the_clusters_own_authority_is_trusted(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where REQUESTS_CA_BUNDLE names another file."""
    mine, other = tmp_path / "mine.pem", tmp_path / "other.pem"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(mine))
    _certificate(other)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    server.answers = [(200, JOB)]
    endpoint = server.url.removeprefix("http://")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
    assert Api(endpoint, mine.read_text(), lambda: "token", timing=QUICK).get(f"{JOBS}/a") == JOB
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(mine))
    calls = len(server.calls)
    with pytest.raises(CloudSilent, match="certificate verify failed"):
        Api(endpoint, other.read_text(), lambda: "token", timing=QUICK).get(f"{JOBS}/a")
    assert len(server.calls) == calls


def _certificate(path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, signed by itself."""
    import subprocess

    key = path.with_suffix(".key")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", f"/CN={path.stem}", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", path], check=True, capture_output=True)
    return path, key
