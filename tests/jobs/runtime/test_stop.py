"""When a job is told to stop: signals, AWS's and Google's notices over HTTP, and the exit code that follows."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from jobs.runtime import lines, platforms, stop
from tests.support.serving import QuietServer

ROOT = Path(__file__).resolve().parents[3]


class Metadata:
    """A machine's metadata server: what it answers by path, and what it was asked."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.changed = threading.Condition()
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                told.asked.append(("PUT", self.path))
                ttl = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
                self._say(200 if ttl else 400, "a-token")

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                told.asked.append(("GET", self.path))
                if path.startswith("/latest/") and self.headers.get("X-aws-ec2-metadata-token") != "a-token":
                    return self._say(401, "")
                if path.startswith("/computeMetadata/") and self.headers.get("Metadata-Flavor") != "Google":
                    return self._say(403, "")
                if "last_etag=" in query and "last_etag=0&" not in query:
                    before = told.values.get(path)
                    with told.changed:
                        told.changed.wait_for(lambda: told.values.get(path) != before, 60)
                return self._say(200, told.values[path]) if path in told.values else self._say(404, "")

            def _say(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("ETag", str(abs(hash(text))))
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = QuietServer(Handler)
        self.host = self.server.host

    def set(self, path: str, value: str) -> None:
        with self.changed:
            self.values[path] = value
            self.changed.notify_all()


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    made = Metadata()
    yield made
    with made.changed:
        made.values.clear()
        made.changed.notify_all()
    made.server.stop()


LOOP = """
import sys, time
sys.path.insert(0, {root!r})
from jobs import runtime
from jobs.runtime import notices
notices.EVERY_S = 0.05
print("platform", runtime.watch(), flush=True)
assert runtime.stop_reason() is None and runtime.seconds_left() is None and runtime.exit_code() == 0
print("ready", flush=True)
while not runtime.should_stop():
    time.sleep(0.01)
print("left", runtime.seconds_left(), flush=True)
runtime.finish()
"""


class Loop:
    """A training loop in a process of its own."""

    def __init__(self, code: str = LOOP, **env: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ACCEL_", "AWS_", "GCE_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code).format(root=str(ROOT))],
            env=clean | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ready(self) -> str:
        assert self.process.stdout
        platform = self.process.stdout.readline()
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()[1]
        return platform.split()[1]

    def end(self) -> tuple[int, list[str], str]:
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out.splitlines(), err


@pytest.mark.parametrize(
    "number, env, code, left",
    [
        (signal.SIGTERM, {}, 143, None),
        (signal.SIGINT, {}, 130, None),
        (signal.SIGTERM, {"ACCEL_STOP_EXIT_CODE": "75"}, 75, None),
        (signal.SIGINT, {"ACCEL_STOP_EXIT_CODE": "75"}, 130, None),
        (signal.SIGTERM, {"ACCEL_GRACE_S": "90"}, 143, 90.0),
        (signal.SIGTERM, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 143, 15.0),
    ],
)
def test_a_signal_ends_the_loop_with_a_code_that_is_no_success(
    number: int, env: dict[str, str], code: int, left: float | None
) -> None:
    loop = Loop(**env)
    loop.ready()
    loop.process.send_signal(number)
    ended, out, err = loop.end()
    assert (ended, err) == (code, "")
    told = out[0].split()[1]
    assert told == "None" if left is None else left - 5 < float(told) <= left
    event = lines.read(out[-1])
    assert event and (event["event"], event["said"]) == ("stop", f"{signal.Signals(number).name}; exit code {code}")


def test_aws_says_two_minutes_before_by_a_token(metadata: Metadata) -> None:
    loop = Loop(AWS_BATCH_JOB_ID="a-b", AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://{metadata.host}/")
    assert loop.ready() == "aws-batch"
    wait(lambda: len([1 for verb, _ in metadata.asked if verb == "GET"]) > 2)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))
    metadata.set("/latest/meta-data/spot/instance-action", json.dumps({"action": "terminate", "time": at}))
    code, out, err = loop.end()
    assert (code, err) == (143, "")
    assert 60 < float(out[0].split()[1]) <= 120
    assert "spot-interruption; exit code 143" in out[-1]
    assert [path for verb, path in metadata.asked if verb == "PUT"] == ["/latest/api/token"]


@pytest.mark.parametrize(
    "key, value, reason, most",
    [
        ("preempted", "TRUE", "preempted", 30),
        ("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE", "maintenance", 60),
    ],
)
def test_google_says_so_as_soon_as_its_metadata_changes(
    metadata: Metadata, key: str, value: str, reason: str, most: float
) -> None:
    root = "/computeMetadata/v1/instance"
    metadata.set(f"{root}/preempted", "FALSE")
    metadata.set(f"{root}/maintenance-event", "NONE")
    loop = Loop(BATCH_JOB_UID="u", GCE_METADATA_HOST=metadata.host)
    assert loop.ready() == "google-batch"
    wait(lambda: len([1 for _, path in metadata.asked if "last_etag=0&" not in path]) == 2)
    metadata.set(f"{root}/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
    wait(lambda: len(metadata.asked) >= 5)
    metadata.set(f"{root}/{key}", value)
    code, out, _ = loop.end()
    assert code == 143
    assert 0 < float(out[0].split()[1]) <= most
    assert f"{reason}; exit code 143" in out[-1]


def test_a_metadata_server_that_nobody_reaches_is_given_up_and_signals_remain() -> None:
    code = LOOP.replace('print("ready"', 'stop._state.watch.threads[0].join(50); print("ready"').replace(
        "from jobs.runtime import", "from jobs.runtime import stop,"
    )
    loop = Loop(code, AWS_BATCH_JOB_ID="a", AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9")
    loop.ready()
    loop.process.send_signal(signal.SIGTERM)
    ended, out, _ = loop.end()
    assert ended == 143 and float(out[0].split()[1]) <= 30


def test_forked_workers_die_of_sigterm_as_before() -> None:
    loop = Loop(
        """
        import os, signal, sys, time
        sys.path.insert(0, {root!r})
        from jobs import runtime
        runtime.watch()
        here, there = os.pipe()
        child = os.fork()
        if not child:
            os.write(there, b".")
            time.sleep(60)
        os.read(here, 1)
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), runtime.should_stop())
        """
    )
    assert loop.end() == (0, ["-15 False"], "")


def test_a_handler_that_was_there_is_called_too_and_the_second_interrupt_interrupts() -> None:
    loop = Loop(
        """
        import os, signal, sys
        sys.path.insert(0, {root!r})
        from jobs import runtime
        signal.signal(signal.SIGTERM, lambda *_: print("the other"))
        runtime.watch()
        os.kill(os.getpid(), signal.SIGTERM)
        print(runtime.stop_reason())
        os.kill(os.getpid(), signal.SIGINT)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            print("interrupted", runtime.exit_code())
            runtime.finish(done=True)
        """
    )
    assert loop.end() == (0, ["the other", "SIGTERM", "interrupted 143"], "")


@pytest.mark.parametrize("value", ["0", "256", "-1", "x", "", "1.5"])
def test_an_exit_code_that_would_be_success_is_refused(value: str) -> None:
    code, _, err = Loop(ACCEL_STOP_EXIT_CODE=value).end()
    assert code == 1
    assert f"ACCEL_STOP_EXIT_CODE: must be a whole number from 1 to 255, is {value!r}" in err


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_seconds_that_are_none_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_GRACE_S", value)
    with pytest.raises(ValueError, match="ACCEL_GRACE_S: must be a number of seconds"):
        platforms.grace_s(platforms.ELSEWHERE)


def test_only_the_main_thread_can_begin_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "_state", stop._State())
    found: list[str] = []

    def ask() -> None:
        try:
            stop.should_stop()
        except RuntimeError as error:
            found.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found and "main thread" in found[0]


def test_the_first_reason_and_the_earliest_end_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "_state", stop._State())
    stop.ask_to_stop("of its own", 100)
    stop.ask_to_stop("preempted", 20)
    stop.ask_to_stop("late", 500)
    left = stop.seconds_left()
    assert stop.should_stop() and stop.stop_reason() == "of its own" and left is not None and 0 < left <= 20


@pytest.mark.parametrize("row", platforms.PLATFORMS, ids=lambda row: row.name)
def test_each_platform_is_recognised_and_has_its_source(
    row: platforms.Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for other in platforms.PLATFORMS:
        monkeypatch.delenv(other.variable or "-", raising=False)
    monkeypatch.setattr(platforms, "MACHINE", f"{tmp_path}/")
    assert platforms.here() == platforms.ELSEWHERE
    if row.variable:
        monkeypatch.setenv(row.variable, "x")
    else:
        (tmp_path / "sys_vendor").write_text(f"{row.maker}\n")
    assert platforms.here() == row
    assert row.source.startswith("https://") and (row.notice_s or 0) <= 120
    assert bool(row.notice) == bool(row.notice_s)


def wait(met: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not met():
        assert time.monotonic() < until
        time.sleep(0.01)
