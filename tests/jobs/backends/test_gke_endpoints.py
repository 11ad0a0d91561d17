"""A target's file does not decide where a token goes: Google says where a cluster is, or the user has said so once."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.clouds.kubernetes.clusters import Clusters
from accel.contract.targets import write
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from tests.jobs.backends.gke_cluster import QUICK, SCOPE, Cluster
from tests.jobs.backends.gke_target import IMAGE, make_target
from tests.jobs.backends.test_gke_clusters import CA, PEM
from tests.jobs.test_kubernetes import Server

Invoke = Callable[..., Result]
TOKEN = "given"
REFUSED = (403, {"error": {"message": "Required container.clusters.get permission", "status": "PERMISSION_DENIED"}})
OTHER_CA = base64.b64encode(PEM.replace("MA==", "MQ==").encode()).decode()


@pytest.fixture
def google(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER", f"{made.url}/container.googleapis.com/")
    monkeypatch.setattr("accel.clouds.kubernetes.clusters.Timing", lambda: QUICK)
    yield made
    made.http.stop()


@pytest.fixture
def theirs(google: Server) -> Iterator[Server]:
    """What a foreign endpoint hears."""
    made = Server()
    made.answers = [(200, {"kind": "List", "items": [], "metadata": {}})]
    yield made
    made.http.stop()


@pytest.fixture
def known(home: Path) -> Callable[..., None]:
    """Writes the one target of the usual file."""

    def write_targets(**changes: Any) -> None:
        (home / ".accel").mkdir(exist_ok=True)
        target = make_target(**{"ca_certificate": CA, **changes})
        (home / ".accel" / "targets.json").write_text(json.dumps(write({"gpu": target})))
        (home / "job.yaml").write_text(f"name: a\nimage: {IMAGE}\ncommand: [x]\ncpus: 1\nmemory_mib: 512\n")

    return write_targets


def says(endpoint: str, **more: Any) -> list[Any]:
    return [(200, {"endpoint": endpoint, "masterAuth": {"clusterCaCertificate": CA}, **more})]


VERBS = [
    ("ls", "--to", "gpu"),
    ("targets", "-o", "wide"),
    ("submit", "job.yaml", "--to", "gpu"),
    ("doctor",),
]


@pytest.mark.parametrize("verb", VERBS, ids=[verb[0] for verb in VERBS])
def test_a_rewritten_endpoint_gets_no_token(
    verb: tuple[str, ...], google: Server, theirs: Server, known: Callable[..., None], invoke: Invoke
) -> None:
    known(endpoint=theirs.url)
    google.answers = [REFUSED]
    told = invoke(*verb)
    assert theirs.calls == [], "the token went to whoever wrote the file"
    said = told.output
    assert "no credentials were sent" in said and "container.clusters.get" in said, said
    if verb[0] in ("ls", "submit"):
        assert told.exit_code == 4 and "accel-jobs targets --confirm" in told.stderr


def test_google_says_where_the_cluster_is(google: Server, theirs: Server, known: Any, invoke: Invoke) -> None:
    cluster = Cluster()
    google.answers = says(cluster.api().url)
    known(endpoint=theirs.url)
    assert invoke("submit", "job.yaml", "--to", "gpu").exit_code == 0
    assert cluster.calls["POST jobs"] == 1 and theirs.calls == []
    assert f"Bearer {TOKEN}" in google.calls[0][2]["Authorization"]
    cluster.stop()


def test_google_is_asked_once_an_hour_and_the_cluster_is_not_tried_before(google: Server) -> None:
    google.answers = says("203.0.113.10")
    for _ in range(3):
        made = Clusters(SCOPE, make_target(ca_certificate=CA), timing=QUICK)
        assert made.api.url == "https://203.0.113.10"
    assert len(google.calls) == 1


def test_a_target_may_name_any_address_that_google_has_of_the_cluster(google: Server) -> None:
    endpoints = {
        "dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"},
        "ipEndpointsConfig": {"enabled": True, "publicEndpoint": "203.0.113.10", "privateEndpoint": "10.0.0.2"},
    }
    google.answers = says("203.0.113.10", controlPlaneEndpointsConfig=endpoints)
    addresses = {
        "203.0.113.10": "203.0.113.10",
        "10.0.0.2": "10.0.0.2",
        "10.0.0.2:443": "10.0.0.2",
        "gke-1.us-central1.gke.goog": "gke-1.us-central1.gke.goog",
        "198.51.100.1": "203.0.113.10",
        "gke-1.us-central1.gke.goog.evil.example": "203.0.113.10",
    }
    for named, used in addresses.items():
        made = Clusters(SCOPE, make_target(endpoint=named, ca_certificate=CA), timing=QUICK)
        assert made.api.url == f"https://{used}", named


def test_the_certificate_is_googles(google: Server) -> None:
    google.answers = says("203.0.113.10")
    made = Clusters(SCOPE, make_target(ca_certificate=OTHER_CA), timing=QUICK)
    assert Path(str(made.api._verify)).read_text() == PEM


@pytest.mark.parametrize(
    ("answer", "error"),
    [((404, {"error": {"message": "no"}}), NotFound), ((200, {"status": "PROVISIONING"}), CloudSilent)],
)
def test_where_google_does_not_know_nothing_is_sent_either(answer: Any, error: type[Exception], google: Server) -> None:
    google.answers = [answer]
    with pytest.raises(error):
        _ = Clusters(SCOPE, make_target(ca_certificate=CA), timing=QUICK).api


def fingerprint(told: Result) -> str:
    return next(word for word in told.stderr.split() if word.startswith("SHA256:"))


def test_an_endpoint_is_confirmed_once(
    google: Server, known: Any, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    google.answers = [REFUSED]
    known(endpoint=cluster.api().url)
    monkeypatch.setattr("jobs.cli.targets.interactive", lambda: True)
    assert invoke("targets", "--confirm", "gpu", text="n\n").exit_code == 8
    assert invoke("submit", "job.yaml", "--to", "gpu").exit_code == 4
    told = invoke("targets", "--confirm", "gpu", text="y\n")
    assert told.exit_code == 0 and cluster.api().url in told.stderr and "cluster gpu" in told.stderr
    made = invoke("submit", "job.yaml", "--to", "gpu", "-o", "id")
    assert made.exit_code == 0 and cluster.calls["POST jobs"] == 1
    assert invoke("get", made.stdout.strip()).exit_code == 0, "a reference finds it too"
    other = Cluster()
    for changes in ({"endpoint": other.api().url}, {"endpoint": cluster.api().url, "ca_certificate": OTHER_CA}):
        known(**changes)
        again = invoke("submit", "job.yaml", "--to", "gpu", "--key", "other")
        assert again.exit_code == 4 and "is not confirmed" in again.stderr, "what was confirmed is that pair"
    cluster.stop()
    other.stop()


def test_without_a_terminal_the_fingerprint_is_named(google: Server, known: Any, invoke: Invoke) -> None:
    google.answers = [REFUSED]
    known(endpoint="198.51.100.1")
    told = invoke("targets", "--confirm", "gpu", "--yes")
    assert told.exit_code == 2 and "--fingerprint" in told.stderr
    wrong = invoke("targets", "--confirm", "gpu", "--fingerprint", "SHA256:0")
    assert wrong.exit_code == 2 and "is not" in wrong.stderr
    assert invoke("targets", "--confirm", "gpu", "--fingerprint", fingerprint(told)).exit_code == 0
    assert Clusters(SCOPE, make_target(endpoint="198.51.100.1", ca_certificate=CA)).api.url == "https://198.51.100.1"
    elsewhere = make_target(endpoint="198.51.100.1", ca_certificate=CA, project="other")
    with pytest.raises(CloudRefused, match="is not confirmed"):
        _ = Clusters(replace(SCOPE, project="other"), elsewhere).api


def test_only_a_cluster_has_an_endpoint_to_confirm(home: Path, invoke: Invoke) -> None:
    told = invoke("targets", "--confirm", "local")
    assert told.exit_code == 2 and "local" in told.stderr and "names no endpoint" in told.stderr
