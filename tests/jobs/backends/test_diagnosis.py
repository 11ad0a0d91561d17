"""The engine that names a cause, the table of causes, and words that several platforms write."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from accel.diagnostics.errors import CloudRefused, NotFound
from jobs.backends.base import Explanation
from jobs.backends.diagnosis import aws_batch, gke, google_batch, local, outcome, vertex, words
from jobs.backends.diagnosis.__main__ import page
from jobs.backends.diagnosis.aws_batch import environments
from jobs.backends.diagnosis.aws_batch.facts import AwsFacts
from jobs.backends.diagnosis.cause import PLATFORMS
from jobs.backends.diagnosis.causes import CAUSES, SECTIONS, of_platform
from jobs.backends.diagnosis.engine import Facts, LazyFacts, Row, diagnose, judge, match, newest, row, span, within
from jobs.backends.diagnosis.google_batch import BatchFacts
from jobs.backends.diagnosis.vertex import VertexFacts
from jobs.backends.diagnosis.vm import end as vm
from jobs.backends.diagnosis.vm.facts import VmFacts
from jobs.backends.gke.facts import GkeFacts

ROOT = Path(__file__).parents[3]
FACTS: dict[str, type[Facts]] = {
    "aws_batch": AwsFacts, "gke": GkeFacts, "google_batch": BatchFacts, "local": local.LocalFacts,
    "vertex": VertexFacts, "vm": VmFacts,
}  # fmt: skip
ROWS: dict[str, Sequence[Row]] = {
    "aws_batch": (*words.PULL, *aws_batch.STARTS, *environments.REFUSALS),
    "gke": (*gke.QUEUE, *gke.START, *gke.NODES, *gke.ENDED, *gke.FAILED, *words.TPU),
    "google_batch": (*google_batch.EVENTS, *google_batch.AGENT, *google_batch.NOT_STARTED),
    "local": (*local.ENDINGS, *local.DOCKER),
    "vertex": vertex.ERRORS,
    "vm": (*vm.REFUSALS, *vm.NOT_STARTED, *words.TPU),
}


class Texts(Facts):
    """A job of which these texts are known."""

    PLATFORM = "google_batch"

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    @property
    def unread(self) -> Iterator[str]:
        yield "logs: no"

    def texts(self, kind: str) -> Sequence[str]:
        return self._texts if kind == "event" else super().texts(kind)

    def context(self, kind: str) -> Sequence[str]:
        return ("task 3 of 8",)


QUOTA, CAPACITY = row("quota", "quota", kind="event"), row("no-capacity", "no room", "none", "wait", kind="event")


def test_the_first_rule_that_holds_names_the_cause() -> None:
    facts = Texts("no room", "no Quota")
    assert diagnose(facts, (QUOTA, CAPACITY)).cause == "quota"
    assert diagnose(facts, (CAPACITY, QUOTA)).cause == "no-capacity"
    assert judge(Texts("fine"), (CAPACITY, QUOTA)) is None


def test_the_newest_text_that_any_row_fits_decides() -> None:
    assert diagnose(Texts("fine", "no room", "no quota"), (newest("event", (QUOTA, CAPACITY)),)).cause == "no-capacity"
    assert match(Texts(), (QUOTA,), ("fine",)) is None


def test_an_explanation_has_the_tables_words_where_the_row_has_none() -> None:
    told = diagnose(Texts("no  quota\n"), (QUOTA,))
    table = CAUSES["quota"]
    assert told == Explanation("quota", table.reason, ("no quota", "task 3 of 8"), table.next_step, ("logs: no",))
    told = diagnose(Texts("no room"), (CAPACITY,))
    assert (told.reason, told.next_step) == ("none", "wait")


def test_a_platforms_own_next_step_stands_before_the_tables() -> None:
    assert BatchFacts.explanation("disk-full").next_step == BatchFacts.NEXT_STEPS["disk-full"]
    assert BatchFacts.explanation("disk-full", next_step="less").next_step == "less"


def test_nothing_fits() -> None:
    told = diagnose(Texts("fine"), (QUOTA,))
    assert (told.cause, told.unread) == ("unknown", ("logs: no",))


def test_a_cause_of_another_platform_is_a_fault() -> None:
    with pytest.raises(AssertionError, match="no cause of google_batch"):
        Texts.explanation("queue-silent")


def test_rows_within_a_context() -> None:
    (limited,) = within("docker", (QUOTA,))
    assert limited.fits("docker: no quota") and not limited.fits("no quota")


def test_what_is_refused_is_noted_once_and_what_is_missing_as_the_platform_wants_it() -> None:
    def refuse() -> str:
        raise CloudRefused("permission x is missing")

    def miss() -> str:
        raise NotFound("gone")

    class Quiet(LazyFacts):
        MISSING_IS_UNREAD = False

    for kind, unread in ((LazyFacts, ("log: permission x is missing", "log: gone")), (Quiet, None)):
        facts = kind()
        assert [facts.read("log", call) for call in (refuse, miss, refuse, lambda: "line")] == [
            None,
            None,
            None,
            "line",
        ]
        assert facts.unread == (unread or ("log: permission x is missing",))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Error response from daemon: manifest unknown", "image-missing"),
        ("failed to resolve reference x:1: x:1: not found", "image-missing"),
        ("failed to authorize: 403 Forbidden", "image-forbidden"),
        ("denied: requested access to the resource is denied", "image-forbidden"),
        ("no basic auth credentials", "image-forbidden"),
        ("dial tcp: lookup ghcr.io: no such host", "image-unreachable"),
        ("toomanyrequests: You have reached your pull rate limit.", "image-rate-limit"),
        ("no match for platform in manifest", "image-platform"),
        ("write /var/lib/docker/tmp/x: no space left on device", "disk-full"),
        # https://github.com/RafalWilinski/deploy-with-serverless/issues/11
        ("API error (404): repository x not found: does not exist or no pull access", "image-missing"),
        ("Error: image acme/train:latest not found", "image-missing"),
        ("unexpected status from HEAD request to https://us-docker.pkg.dev/v2/a/manifests/t: 404 Not Found",
         "image-missing"),
        # https://github.com/GoogleCloudPlatform/cloud-sql-proxy/issues/2490
        ("unexpected status from HEAD request to https://gcr.io/v2/a/manifests/2.14.1: 403 Forbidden",
         "image-forbidden"),
        # https://github.com/kubernetes-sigs/cri-tools/issues/421
        ("httpReaderSeeker: failed open: failed to do request: Get https://x/y: read tcp 192.168.1.112:49380->"
         "204.79.197.219:443: read: connection reset by peer", "image-unreachable"),
        ('Get "https://registry-1.docker.io/v2/": EOF', "image-unreachable"),
        ("tls: failed to verify certificate: x509: certificate signed by unknown authority", "image-unreachable"),
        # https://github.com/chainguard-images/images/issues/1267
        ("failed open: unexpected status code https://cgr.dev/v2/x: 503 Service Unavailable", "image-unreachable"),
        ("API error (500): manifest unknown", "image-missing"),
        ('denied: Permission "artifactregistry.repositories.downloadArtifacts" denied on resource', "image-forbidden"),
        # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html
        ("CannotPullContainerError: context canceled", "image-unreachable"),
        ("pull access denied for x, repository does not exist or may require 'docker login'", None),
    ],
)  # fmt: skip
def test_what_registries_say(text: str, cause: str | None) -> None:
    assert next((each.cause for each in words.PULL if each.fits(text)), None) == cause
    assert words.PULL_DENIED.fits(text) is (cause is None)


RUNC = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cannot-start-container.html
        (f'{RUNC}exec: "train": executable file not found in $PATH: unknown', "command-not-found"),
        (f'{RUNC}exec: "/run.sh": stat /run.sh: no such file or directory: unknown', "command-not-found"),
        (f'{RUNC}exec: "./run.sh": permission denied: unknown', "command-not-executable"),
        (f'{RUNC}exec: "./train": exec format error: unknown', "image-platform"),
        ("failed to generate container spec: failed to generate spec: no command specified", "command-not-found"),
        (f'{RUNC}error mounting "/a" to rootfs at "/b": stat /a: no such file or directory', None),
        (f'{RUNC}error mounting "/a" to rootfs at "/b": permission denied', None),
        (f"{RUNC}error running hook #0: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6",
         "container-gpu"),
        (f"{RUNC}error running hook #0: nvidia-container-cli: initialization error: load library failed: "
         "libnvidia-ml.so.1: cannot open shared object file: no such file or directory", "container-gpu"),
        (f"{RUNC}unable to init seccomp: fork/exec /proc/self/exe: cannot allocate memory", "out-of-memory"),
        ("Error response from daemon: mkdir /var/lib/docker/overlay2/a: no space left on device", "disk-full"),
        # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/CannotCreateContainerError.html
        ("API error (500): devmapper: Thin Pool has 4350 free data blocks which is less than minimum required 4454",
         "disk-full"),
    ],
)  # fmt: skip
def test_what_runc_says(text: str, cause: str | None) -> None:
    assert next((each.cause for each in words.START if each.fits(text)), None) == cause


DOCKER = "docker: Error response from daemon: "


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"{DOCKER}manifest for acme/train:9 not found: manifest unknown", "image-missing"),
        (f'{DOCKER}Head "https://ghcr.io/v2/a/manifests/b": unauthorized', "image-forbidden"),
        (f'{DOCKER}Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io: no such host', "image-unreachable"),
        (f"{DOCKER}no matching manifest for linux/arm64/v8 in the manifest list entries", "image-platform"),
        (f'{DOCKER}could not select device driver "" with capabilities: [[gpu]]', "container-gpu"),
        (f"{DOCKER}failed to pull image: something new", "image-pull"),
        (f"{DOCKER}Conflict. The container name is already in use", "not-started"),
    ],
)
def test_what_docker_says_on_this_machine(text: str, cause: str) -> None:
    told = match(local.LocalFacts, local.DOCKER, [text])  # type: ignore[arg-type]
    assert told and (told.cause, bool(told.next_step)) == (cause, True) and "roles/" not in told.next_step


def test_every_cause_is_once_in_the_table_and_has_a_page() -> None:
    ids = [cause.id for causes in SECTIONS.values() for cause in causes]
    assert len(ids) == len(set(ids)) == len(CAUSES)
    for cause in CAUSES.values():
        assert cause.sources and cause.sources.keys() <= PLATFORMS.keys(), cause.id
        assert all(url.startswith("https://") for name, url in cause.sources.items() if name != "local"), cause.id


@pytest.mark.parametrize("platform", ROWS)
def test_a_platforms_rows_and_next_steps_are_of_its_causes(platform: str) -> None:
    known = of_platform(platform)
    assert {row.cause for row in ROWS[platform]} | FACTS[platform].NEXT_STEPS.keys() <= known.keys()
    assert {each.cause for each in outcome.WORDS} | {*outcome.SHELL.values()} <= known.keys()
    assert {"killed", "exit-code", "unknown", "succeeded", "running"} <= known.keys()
    for each in ROWS[platform]:
        told = each.explanation(FACTS.get(platform, Facts), "text")  # type: ignore[arg-type]
        assert told.reason and told.next_step, each


def test_the_page_lists_every_cause() -> None:
    assert (ROOT / "docs" / "explain.md").read_text() == page(), "python -m jobs.backends.diagnosis > docs/explain.md"
    assert all(f"\n| `{cause}` | " in page() for cause in CAUSES)


def test_times_in_words() -> None:
    assert [span(each) for each in (3, 300, 12_000, 200_000)] == ["3 s", "5 min", "3 h 20 min", "2 days"]


FILES = {
    "aws_batch": ["diagnosis/aws_batch"], "gke": ["diagnosis/gke.py", "gke/facts.py"], "local": ["diagnosis/local.py"],
    "google_batch": ["diagnosis/google_batch.py"], "vertex": ["diagnosis/vertex.py"],
    "vm": ["diagnosis/vm"],
}  # fmt: skip


@pytest.mark.parametrize("platform", FILES)
def test_a_platform_has_no_cause_that_it_never_names(platform: str) -> None:
    """Its rules write the id out, or it is of a shared row or of the exit code."""
    paths = [ROOT / "jobs" / "backends" / path for path in FILES[platform]]
    sources = "".join(
        each.read_text() for path in paths for each in (sorted(path.glob("*.py")) if path.is_dir() else [path])
    )
    shared = {row.cause for row in ROWS[platform]} | {each.cause for each in outcome.WORDS}
    shared |= {*outcome.SHELL.values(), "killed", "exit-code", "unknown"}
    assert {cause for cause in of_platform(platform) if f'"{cause}"' not in sources} <= shared
