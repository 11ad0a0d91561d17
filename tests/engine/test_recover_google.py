"""As test_recover.py, over Google Cloud. `make test` kills its runs in test_recover_kills.py."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from sandbox.environment import environment
from sandbox.google import PROJECT
from tests.support import killed, services
from tests.support.engine import WITHOUT_KUBERNETES, Engine, Sandbox, started
from tests.support.soak import soak_only

PROGRAM = """
import pulumi
import pulumi_gcp as gcp

on = gcp.Provider(
    "on", project="accel-sandbox", region="us-central1", zone="us-central1-a",
    default_labels={"accel-stack": pulumi.get_stack()}, add_pulumi_attribution_label=False,
)


class Ground(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:Ground", name, opts=pulumi.ResourceOptions(providers=[on]))
        own = pulumi.ResourceOptions(parent=self)
        network = gcp.compute.Network(name, auto_create_subnetworks=False, opts=own)
        for at in range(2):
            gcp.compute.Subnetwork(f"{name}-{at}", network=network.id, ip_cidr_range=f"10.8.{at}.0/24", opts=own)
        router = gcp.compute.Router(name, network=network.id, opts=own)
        gcp.compute.RouterNat(
            name, router=router.name, nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES", opts=own)
        gcp.compute.Firewall(
            name, network=network.id, allows=[{"protocol": "tcp"}], source_ranges=["10.8.0.0/16"], opts=own)
        gcp.compute.Address(name, opts=own)
        gcp.compute.Disk(name, size=20, type="pd-balanced", opts=own)
        account = gcp.serviceaccount.Account("account", account_id="ground-jobs", opts=own)
        gcp.projects.IAMMember(
            name, project="accel-sandbox", role="roles/logging.logWriter", member=account.member, opts=own)
        gcp.storage.Bucket(name, location="US", uniform_bucket_level_access=True, opts=own)
        gcp.pubsub.Topic(name, opts=own)
        self.register_outputs({})


Ground("ground")
"""
EVENTS = {"up": 33, "destroy": 33}
"""Of whole runs, about."""
POINTS = [(verb, at) for verb in EVENTS for at in range(1, 21)]
COMPUTE = f"compute.googleapis.com/compute/v1/projects/{PROJECT}"
SERVICES = ("compute", "iam", "storage", "pubsub", "cloudresourcemanager")
"""A new project has none of them on, and the program does not enable them."""
LISTS = {
    "items": (
        *(f"{COMPUTE}/global/{kind}" for kind in ("networks", "firewalls")),
        *(f"{COMPUTE}/regions/us-central1/{kind}" for kind in ("subnetworks", "routers", "addresses")),
        f"{COMPUTE}/zones/us-central1-a/disks",
        f"storage.googleapis.com/storage/v1/b?project={PROJECT}",
    ),
    "accounts": (f"iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts",),
    "topics": (f"pubsub.googleapis.com/v1/projects/{PROJECT}/topics",),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    for made in started(tmp_path_factory.mktemp("own"), WITHOUT_KUBERNETES):
        url, signed = signed_in(made)
        services.enable(url, signed, *SERVICES)
        yield made


def signed_in(own: Sandbox) -> tuple[str, dict[str, str]]:
    url = json.loads((own.home / "google.json").read_text())["url"]
    return url, {"Authorization": f"Bearer {own.variables['GOOGLE_OAUTH_ACCESS_TOKEN']}"}


def listing(own: Sandbox) -> dict[str, list[str]]:
    url, signed = signed_in(own)
    found: dict[str, list[str]] = {}
    for member, paths in LISTS.items():
        for path in paths:
            answer = requests.get(f"{url}/{path}", headers=signed, timeout=120)
            assert answer.ok, answer.text
            found[path] = sorted(each["name"] for each in answer.json().get(member) or ())
    return found


@soak_only
@pytest.mark.parametrize(("verb", "point"), POINTS)
def test_killed_at(verb: str, point: int, tmp_path: Path, own: Sandbox) -> None:
    before = listing(own)
    engine = Engine(tmp_path / "killed", own, PROGRAM, config={}, environ=environment(own.home))
    if verb == "destroy":
        engine.up()
    left = killed.run_and_check(engine, verb, after=max(1, EVENTS[verb] * point // 21))
    done = killed.recover(engine, "--yes", "--finish", "up")
    # An account has neither labels nor a time: a person says that the run made it.
    if asked := re.search(r"Account account: nothing proves that this run made ([^\s;]+)", done.stderr):
        assert done.returncode == 4
        done = killed.recover(engine, "--yes", "--finish", "up", "--adopt", f"account={asked[1]}")
    assert done.returncode == 0, left.stdout + done.stdout + done.stderr
    assert done.stdout.endswith("test: up has ended, and a preview is empty\n")
    engine.destroy()
    assert listing(own) == before, left.stdout + done.stdout
