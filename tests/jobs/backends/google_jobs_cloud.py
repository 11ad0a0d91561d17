"""What tests of jobs on Google Batch and Vertex AI share: a cloud behind a proxy that breaks calls, and its faults."""

import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound, NotSent
from jobs.backends.base import Concurrent, JobRef, Logs, Request, Status
from jobs.backends.google_batch import GoogleBatchBackend
from jobs.backends.google_regional import Region
from jobs.backends.vertex import VertexBackend
from tests.support.google_fake import Fake
from tests.support.proxy import BODIES, Chance, GoogleProxy
from tests.support.soak import sampled
from tests.support.waiting import PATIENCE_S

ACCEPTED = [f"accept+{how}" for how in ("reset", "close", "hang", "truncate", "500", "drip")]
GARBLED = [*(f"body:{name}" for name in BODIES), *(f"accept+body:{name}" for name in BODIES)]
ANSWERS = ["429", "403 throttle", "400", "403", "401", "404", "500", "502", "503", "504"]
FAULTS = [*ANSWERS, "reset", "close", "hang", *ACCEPTED, *GARBLED]
DEFINITE = {"400": CloudRefused, "403": CloudRefused, "404": NotFound}
TIMES = (1, 9)


ProxyT = TypeVar("ProxyT", bound=GoogleProxy)
BackendT = TypeVar("BackendT", GoogleBatchBackend, VertexBackend)


class GoogleJobsCloud(Generic[ProxyT]):
    fake: Fake
    proxy: ProxyT
    point: Callable[[str], None]

    def backend(self) -> GoogleBatchBackend | VertexBackend:
        raise NotImplementedError

    def request(self, text: str, **fields: Any) -> Request:
        """For a job under the key of a text."""
        raise NotImplementedError

    def left(self, name: str) -> list[str]:
        """The ids of the jobs that there are with this name."""
        raise NotImplementedError

    def submit(self, request: Request) -> JobRef | JobsError:
        try:
            return self.backend().submit(request)
        except JobsError as error:
            return error

    def settled(self, request: Request) -> JobRef | JobsError:
        """As a user does it who is told to run the same command again."""
        answers = (self.submit(request) for _ in range(5))
        return next((each for each in answers if not isinstance(each, CloudSilent)), CloudSilent("five times"))

    def check(
        self, text: str, faults: dict[str, list[str]], chance: Chance | None = None
    ) -> tuple[JobRef | JobsError, JobRef]:
        """Submits with faults, and then without: one job, and what was answered first was true. The first answer, and
        the job."""
        request = self.request(text)
        self.proxy.faults.update({call: list(each) for call, each in faults.items()})
        self.proxy.chance = chance
        answer = self.submit(request)
        self.proxy.heal()
        if not isinstance(answer, JobRef | CloudSilent):
            assert isinstance(answer, CloudRefused | NotFound | NoCredentials), (text, answer)
            assert self.left(request.name) == [], text
        ref = self.settled(request)
        assert isinstance(ref, JobRef), (text, ref)
        assert answer == ref or not isinstance(answer, JobRef), text
        assert self.left(request.name) == [ref.id], text
        return answer, ref

    def killed(self, step: int, begin: Callable[[], subprocess.Popen[Any]], call: str = "") -> int:
        """The end of a client, which is killed at this step of its calls, or of those of one kind."""
        count, known = 0, threading.Event()
        process: list[subprocess.Popen[Any]] = []

        def watch(operation: str, after: bool) -> None:
            nonlocal count
            counts = call in ("", operation)
            count += counts
            if counts and count == step:
                assert known.wait(60)
                process[0].kill()
                process[0].wait(60)
                if not after:
                    raise ConnectionAbortedError("it is not handed on")

        self.proxy.watch = watch
        process.append(begin())
        known.set()
        process[0].communicate(timeout=120)
        self.proxy.watch = lambda operation, after: None
        return process[0].returncode

    def becomes(self, ref: JobRef, wanted: Callable[[Status], bool]) -> Status:
        """The status once it is so."""
        give_up = time.monotonic() + PATIENCE_S
        while not wanted(found := self.backend().status(ref)):
            assert time.monotonic() < give_up, found
            time.sleep(0.02)
        return found

    def printed(
        self, ref: JobRef, *, follow: bool = True, task: int | None = None, tail: int | None = None
    ) -> list[tuple[str, str]]:
        backend = self.backend()
        assert isinstance(backend, Logs)
        return [(line.source, line.text) for line in backend.logs(ref, follow=follow, task=task, tail=tail)]


UNREACHABLE = pytest.mark.parametrize(
    "where", sampled(["http://127.0.0.1:9", "http://nohost.invalid:80", "tls"], ["http://127.0.0.1:9"])
)


def check_unreachable(cloud: GoogleJobsCloud[Any], where: str) -> None:
    """A submit there makes nothing. The cloud can be reached afterwards."""
    request = cloud.request(where)
    cloud.point(where.replace("tls", cloud.proxy.endpoint.replace("http:", "https:")))
    assert isinstance(cloud.submit(request), CloudSilent)
    cloud.point(cloud.proxy.endpoint)
    assert cloud.left(request.name) == []


def check_scopes(kind: type[BackendT], scope: type[Region]) -> BackendT:
    """A reference has a project and a region, and leads nowhere else. Gives a backend of one."""
    name = kind.KIND
    assert scope.parse("a.b.c.us-central1") == scope("a.b.c", "us-central1")
    for wrong in ("us-central1", ".us-central1", "acme."):
        with pytest.raises(BadInput, match=f"{name}:{wrong}/...: expected {name}:<project>.<region>/"):
            kind.of_scope(wrong)
    backend = kind.of_scope("acme.us-central1")
    with pytest.raises(BadInput, match=f"is not a job of {name}:acme"):
        backend.status(JobRef(name, "acme.us-west1", "1"))
    return backend


def check_submits_stop(cloud: GoogleJobsCloud[Any]) -> None:
    backend = cloud.backend()
    assert isinstance(backend, Concurrent)
    assert backend.threads(1000) > 1
    backend.submit(cloud.request("one"))
    backend.stop()
    with pytest.raises(NotSent):
        backend.submit(cloud.request("two"))
    assert cloud.left(cloud.request("two").name) == []
