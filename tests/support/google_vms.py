"""Compute Engine's virtual machines in the sandbox's Google: bodies, a network for them, and what a test waits for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.google_fake import COMPUTE, Fake, P

ZONE = f"{COMPUTE}/zones/us-central1-a"
VMS = f"{ZONE}/instances"
PLACE = f"{P}/zones/us-central1-a"
LINK = f"https://www.googleapis.com/compute/v1/{PLACE}"
IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
NO_MIGRATION = "Instances with guest accelerators do not support live migration."


@pytest.fixture
def compute(fake: Fake) -> Iterator[Fake]:
    """A network `vms` with a subnetwork; whatever machines, disks and reservations a test leaves are deleted."""
    create_network(fake, "vms", "10.1.0.0/20")
    yield fake
    fake.well()
    # What another test has bought is paid to its end, and holds its reservation.
    bought = json.dumps(fake.call("GET", f"{COMPUTE}/regions/us-central1/commitments")["items"])
    for kind in ("instances", "disks", "futureReservations", "reservations"):
        for item in fake.call("GET", f"{COMPUTE}/zones/-/{kind}")["items"]:
            if item["selfLink"].partition("/v1/")[2] in bought:
                continue
            at = f"compute.googleapis.com/compute/v1/{item['selfLink'].partition('/v1/')[2]}"
            if item.get("deletionProtection"):
                fake.done("POST", f"{at}/setDeletionProtection", deletionProtection="false")
            fake.done("DELETE", at)
    delete_network(fake, "vms")


def create_network(fake: Fake, name: str, cidr: str) -> None:
    """With a subnetwork of the same name."""
    fake.done("POST", f"{COMPUTE}/global/networks", {"name": name, "autoCreateSubnetworks": False})
    body = {"name": name, "network": f"global/networks/{name}", "ipCidrRange": cidr}
    fake.done("POST", f"{COMPUTE}/regions/us-central1/subnetworks", body)


def delete_network(fake: Fake, name: str) -> None:
    fake.done("DELETE", f"{COMPUTE}/regions/us-central1/subnetworks/{name}")
    gone = fake.done("DELETE", f"{COMPUTE}/global/networks/{name}")
    assert "error" not in gone


def vm(name: str = "vm", kind: str = "e2-standard-2", **more: Any) -> dict[str, Any]:
    disk = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "20"}}
    nic = {"subnetwork": "regions/us-central1/subnetworks/vms"}
    machine = f"zones/us-central1-a/machineTypes/{kind}"
    return {"name": name, "machineType": machine, "disks": [disk], "networkInterfaces": [nic], **more}


def gpu(name: str = "vm", **more: Any) -> dict[str, Any]:
    return vm(name, "g2-standard-4", **{"scheduling": {"onHostMaintenance": "TERMINATE"}, **more})


def spot(name: str = "vm", action: str = "STOP") -> dict[str, Any]:
    return vm(name, scheduling={"provisioningModel": "SPOT", "instanceTerminationAction": action})


def status(fake: Fake, name: str = "vm") -> str:
    answer = fake.ask("GET", f"{VMS}/{name}")
    return answer.json()["status"] if answer.ok else ""


def message(answer: requests.Response) -> str:
    return answer.json()["error"]["message"]


def preempt(fake: Fake, name: str) -> requests.Response:
    return fake.ask("POST", "sandbox-api/preempt", {"name": f"{PLACE}/instances/{name}"})
