"""The sandbox's Google: what any of its APIs does."""

import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.google.world import Pending, World
from sandbox.keys import key
from tests.support.google_fake import COMPUTE, Fake, P

pytest_plugins = ["tests.support.google_fake"]


def test_a_token_is_made_once_however_many_ask(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: key(tmp_path), range(40)))
    assert len(made) == 1 and len(made.pop()) > 20
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


def test_who_looks_late_sees_what_happened_in_its_order(tmp_path: Path) -> None:
    """Each event has its time, whatever was planned first."""
    world, seen = World(tmp_path, "key", 0.1), list[str]()
    for name, due in (("later", 2.0), ("sooner", 1.0)):
        world.pending.append(Pending("", due, lambda name=name: seen.append(name)))
    world.tick()
    assert seen == ["sooner", "later"]


@pytest.mark.parametrize("bearer, said", [("", "is missing required"), ("another", "had invalid authentication")])
def test_nobody_is_let_in_without_the_token(fake: Fake, bearer: str, said: str) -> None:
    answer = fake.ask("GET", f"{COMPUTE}/global/networks", token=bearer)
    error = answer.json()["error"]
    assert answer.status_code == 401
    assert error["status"] == "UNAUTHENTICATED" and said in error["message"]


def test_the_token_endpoint_gives_out_the_token_for_a_proof_alone(fake: Fake) -> None:
    url = f"{fake.url}/oauth2.googleapis.com/token"
    answer = requests.post(url, data={"grant_type": "x"}, timeout=120)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    given = {"grant_type": "refresh_token", "refresh_token": fake.token}
    answer = requests.post(url, data=given, timeout=120)
    assert answer.json() == {"access_token": fake.token, "expires_in": 3599, "token_type": "Bearer"}


@pytest.mark.parametrize(
    "path, code, said",
    [
        ("compute.googleapis.com/compute/v1/projects/other/zones", 404, "The resource 'projects/other' was not found"),
        ("container.googleapis.com/v1/projects/other/locations/us-central1/clusters", 403,
         "Permission denied on resource project other."),
        ("cloudresourcemanager.googleapis.com/v1/projects/other", 403, "The caller does not have permission"),
        ("cloudresourcemanager.googleapis.com/v3/projects/other", 403, "The caller does not have permission"),
        ("storage.googleapis.com/storage/v1/b?project=other", 400, "Unknown project id: other"),
        ("compute.googleapis.com/compute/v1/projects/accel-sandbox/global/none", 404,
         "The requested URL /compute/v1/projects/accel-sandbox/global/none was not found on this server."),
        ("compute.googleapis.com/compute/v1/projects/accel-sandbox/global/snapshots", 501,
         "the sandbox does not serve compute.snapshots.list"),
        ("compute.googleapis.com/compute/v1/projects/accel-sandbox/zones?pagesize=3", 400,
         'Invalid JSON payload received. Unknown name "pagesize": Cannot bind query parameter. Field \'pagesize\' '
         "could not be found in request message."),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(fake: Fake, path: str, code: int, said: str) -> None:
    answer = fake.ask("GET", path)
    assert (answer.status_code, answer.json()["error"]["message"]) == (code, said)


@pytest.mark.parametrize(
    "body, faults",
    [
        ({"nme": "n"}, ['Invalid JSON payload received. Unknown name "nme": Cannot find field.']),
        (
            {"name": 3, "autoCreateSubnetworks": "no", "routingConfig": {"routingMode": "LOCAL", "mode": "x"}},
            [
                "Invalid value at 'name' (TYPE_STRING), 3",
                "Invalid value at 'auto_create_subnetworks' (TYPE_BOOL), \"no\"",
                "Invalid value at 'routing_config.routing_mode' (TYPE_ENUM), \"LOCAL\"",
                "Invalid JSON payload received. Unknown name \"mode\" at 'routing_config': Cannot find field.",
            ],
        ),
        ({"name": "n", "mtu": "many"}, ["Invalid value at 'mtu' (TYPE_INT32), \"many\""]),
        ({"name": "n", "peerings": {"a": 1}}, ["Invalid value at 'peerings' (TYPE_MESSAGE), Starting an object"]),
    ],
)
def test_a_body_is_held_against_the_schema(fake: Fake, body: dict[str, object], faults: list[str]) -> None:
    answer = fake.ask("POST", f"{COMPUTE}/global/networks", body)
    error = answer.json()["error"]
    said = [each["description"] for each in error["details"][0]["fieldViolations"]]
    assert answer.status_code == 400 and error["status"] == "INVALID_ARGUMENT"
    assert all(text.startswith(fault) for text, fault in zip(said, faults, strict=True)), said
    assert error["message"] == "\n".join(said)


def test_a_network_and_what_is_in_it(fake: Fake) -> None:
    fake.done("POST", f"{COMPUTE}/global/networks", {"name": "life", "autoCreateSubnetworks": False})
    again = fake.ask("POST", f"{COMPUTE}/global/networks", {"name": "life"}).json()["error"]
    assert (again["code"], again["errors"][0]["reason"]) == (409, "alreadyExists")
    assert again["message"] == f"The resource '{P}/global/networks/life' already exists"

    one = {"name": "one", "network": "global/networks/life", "ipCidrRange": "10.0.0.0/20"}
    fake.done("POST", f"{COMPUTE}/regions/us-central1/subnetworks", one)
    found = fake.call("GET", f"{COMPUTE}/regions/us-central1/subnetworks/one")
    assert found["network"] == f"https://www.googleapis.com/compute/v1/{P}/global/networks/life"
    assert (found["gatewayAddress"], found["region"].rpartition("/")[2]) == ("10.0.0.1", "us-central1")
    two = {"name": "two", "network": "global/networks/life", "ipCidrRange": "10.0.8.0/24"}
    clash = fake.ask("POST", f"{COMPUTE}/regions/us-east1/subnetworks", two)
    assert "conflicts with existing subnetwork 'one' in region 'us-central1'" in clash.text
    assert "was not found" in fake.ask("POST", f"{COMPUTE}/regions/us-east1/subnetworks", {**two, "network": "x"}).text
    assert fake.ask("POST", f"{COMPUTE}/regions/mars/subnetworks", two).status_code == 400

    used = fake.done("DELETE", f"{COMPUTE}/global/networks/life")
    (error,) = used["error"]["errors"]
    assert error["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE" and used["httpErrorStatusCode"] == 400
    user = f"{P}/regions/us-central1/subnetworks/one"
    assert error["message"] == (f"The network resource '{P}/global/networks/life' is already being used by '{user}'")
    fake.done("DELETE", f"{COMPUTE}/regions/us-central1/subnetworks/one")
    assert "error" not in fake.done("DELETE", f"{COMPUTE}/global/networks/life")
    assert fake.ask("GET", f"{COMPUTE}/global/networks/life").status_code == 404


def test_lists_come_in_pages_and_are_filtered(fake: Fake) -> None:
    zones = f"{COMPUTE}/zones"
    names: list[str] = []
    page: dict[str, str] = {}
    for _ in range(100):
        answer = fake.call("GET", zones, maxResults=7, **page)
        assert len(answer["items"]) <= 7
        names += [zone["name"] for zone in answer["items"]]
        if "nextPageToken" not in answer:
            break
        page = {"pageToken": answer["nextPageToken"]}
    assert names == sorted(set(names)) and "us-central1-a" in names and len(names) > 20
    of_region = fake.call("GET", zones, filter="region=us-central1 AND status=UP")["items"]
    assert {zone["name"] for zone in of_region} == {name for name in names if name.startswith("us-central1-")}
    assert fake.ask("GET", zones, filter="name~us-.*").status_code == 400
    assert "e2-standard-4" in {m["name"] for m in fake.call("GET", f"{zones}/us-central1-a/machineTypes")["items"]}


def test_faults_are_planned(fake: Fake) -> None:
    path = f"{COMPUTE}/global/networks"
    fake.fault(method="compute.networks.*", code=503, message="not now", count=2)
    first, second, third = (fake.ask("GET", path) for _ in range(3))
    assert [first.status_code, second.status_code, third.status_code] == [503, 503, 200]
    assert first.json()["error"] | {"errors": 0} == {
        "code": 503, "message": "not now", "status": "UNAVAILABLE", "errors": 0,
    }  # fmt: skip
    fake.fault(method="compute.networks.insert", code=500, after=True)
    assert fake.ask("POST", path, {"name": "made-all-the-same"}).status_code == 500
    assert fake.ask("GET", f"{path}/made-all-the-same").status_code == 200
    fake.fault(method="compute.networks.delete", delay_s=0.6)
    started = time.monotonic()
    fake.done("DELETE", f"{path}/made-all-the-same")
    assert time.monotonic() - started > 0.6
    fake.fault(method="compute.networks.insert", fails="INTERNAL_ERROR: planned")
    assert fake.done("POST", path, {"name": "broken"})["error"]["errors"][0]["message"] == "planned"
    (last,) = fake.fault(method="x.*", code=404)["plans"][-1:]
    assert last["count"] == 1 and last["fired"] == 0
    with pytest.raises(AssertionError, match="one of code, delay_s, fails"):
        fake.fault(method="x")
    fake.well()
    assert fake.call("GET", "sandbox-api/faults") == {
        "plans": [],
        "stockout": [],
        "quota": {},
        "log_lag_s": 0,
        "list_lag_s": 0,
        "minute_s": 1,
    }
    fake.done("DELETE", f"{path}/broken")


def test_rates_of_faults_are_drawn_from_a_seed(fake: Fake) -> None:
    def drawn() -> list[int]:
        fake.fault(method="compute.regions.list", code=429, rate=0.5, count=12, seed=4)
        return [fake.ask("GET", f"{COMPUTE}/regions").status_code for _ in range(12)]

    one = drawn()
    assert set(one) == {200, 429} and drawn() == one
    fake.well()


def test_policies_are_not_overwritten(fake: Fake) -> None:
    accounts = f"iam.googleapis.com/v1/{P}/serviceAccounts"
    email = fake.call("POST", accounts, {"accountId": "policy-1", "serviceAccount": {"displayName": "P"}})["email"]
    again = fake.ask("POST", accounts, {"accountId": "policy-1"}).json()["error"]
    assert again["message"] == f"Service account policy-1 already exists within project {P}."
    project = f"cloudresourcemanager.googleapis.com/v1/{P}"
    policy = fake.call("POST", f"{project}:getIamPolicy", {})
    bindings = [{"role": "roles/viewer", "members": [f"serviceAccount:{email}"]}]
    new = fake.call("POST", f"{project}:setIamPolicy", {"policy": {**policy, "bindings": bindings}})
    assert fake.call("POST", f"{project.replace('v1', 'v3')}:getIamPolicy", {}) == new
    late = fake.ask("POST", f"{project}:setIamPolicy", {"policy": {**policy, "bindings": []}})
    assert (late.status_code, late.json()["error"]["status"]) == (409, "ABORTED")
    nobody = [{"role": "roles/viewer", "members": ["serviceAccount:gone@accel-sandbox.iam.gserviceaccount.com"]}]
    refused = fake.ask("POST", f"{project}:setIamPolicy", {"policy": {"bindings": nobody}})
    assert "Service account gone@accel-sandbox.iam.gserviceaccount.com does not exist." in refused.text
    pool = [{"role": "roles/iam.workloadIdentityUser", "members": ["serviceAccount:none.svc.id.goog[a/b]"]}]
    refused = fake.ask("POST", f"{accounts}/{email}:setIamPolicy", {"policy": {"bindings": pool}})
    assert "Identity Pool does not exist (none.svc.id.goog)" in refused.text
    fake.call("POST", f"{project}:setIamPolicy", {"policy": {"bindings": []}})
    fake.call("DELETE", f"{accounts}/{email}")
    assert fake.ask("GET", f"{accounts}/{email}").status_code == 404


def test_objects_of_a_bucket(fake: Fake) -> None:
    root = "storage.googleapis.com/storage/v1/b"
    fake.call("POST", root, {"name": "some-data", "location": "us-central1"}, project="accel-sandbox")
    assert fake.ask("POST", root, {"name": "some-data"}, project="accel-sandbox").status_code == 409
    headers = {"Authorization": f"Bearer {fake.token}"}

    def put(name: str, data: bytes, **query: str) -> requests.Response:
        where = f"{fake.url}/storage.googleapis.com/upload/storage/v1/b/some-data/o"
        asked = {"uploadType": "media", "name": name, **query}
        return requests.post(where, params=asked, data=data, headers=headers, timeout=120)

    made = put("a/b c", b"one").json()
    assert (made["size"], made["name"], made["md5Hash"]) == (
        "3",
        "a/b c",
        b64encode(md5(b"one", usedforsecurity=False).digest()).decode(),
    )
    assert put("a/b c", b"two", ifGenerationMatch="0").status_code == 412
    assert put("a/b c", b"two", ifGenerationMatch=made["generation"]).ok
    assert fake.ask("GET", f"{root}/some-data/o/a%2Fb%20c", alt="media").content == b"two"
    put("z", b"")
    listed = fake.call("GET", f"{root}/some-data/o", delimiter="/")
    assert ([item["name"] for item in listed["items"]], listed["prefixes"]) == (["z"], ["a/"])
    copied = fake.call("POST", f"{root}/some-data/o/a%2Fb%20c/rewriteTo/b/some-data/o/y")
    assert (copied["done"], copied["resource"]["name"], copied["objectSize"]) == (True, "y", "3")
    assert fake.ask("GET", f"{root}/some-data/o/y", alt="media").content == b"two"
    assert fake.ask("POST", f"{root}/some-data/o/gone/rewriteTo/b/some-data/o/y").status_code == 404
    fake.call("POST", "sandbox-api/generations", {"b/some-data/o/z": "7"})
    assert fake.call("GET", f"{root}/some-data/o/z")["generation"] == "7"
    assert put("z", b"more", ifGenerationMatch="7").json()["generation"] != "7"
    refused = fake.ask("DELETE", f"{root}/some-data")
    assert (refused.status_code, "is not empty" in refused.text) == (409, True)
    for name in ("a%2Fb%20c", "y", "z"):
        fake.ask("DELETE", f"{root}/some-data/o/{name}")
    assert fake.ask("DELETE", f"{root}/some-data").status_code == 200
    assert fake.ask("GET", f"{root}/some-data").json()["error"]["message"] == "The specified bucket does not exist."


def test_services_and_file_servers_have_long_running_operations(fake: Fake) -> None:
    def end(host: str, operation: Any) -> Any:
        for _ in range(200):
            if operation["done"]:
                return operation
            time.sleep(0.02)
            operation = fake.call("GET", f"{host}/v1/{operation['name']}")
        raise AssertionError(operation)

    service = f"serviceusage.googleapis.com/v1/{P}/services/tpu.googleapis.com"
    end("serviceusage.googleapis.com", fake.call("POST", f"{service}:disable", {}))
    assert fake.call("GET", service)["state"] == "DISABLED"
    ended = end("serviceusage.googleapis.com", fake.call("POST", f"{service}:enable", {}))
    assert ended["response"]["state"] == "ENABLED" == fake.call("GET", service)["state"]

    fake.done("POST", f"{COMPUTE}/global/networks", {"name": "files"})
    at = f"file.googleapis.com/v1/{P}/locations/us-central1-a/instances"
    body = {"tier": "ZONAL", "fileShares": [{"name": "share", "capacityGb": 1024}], "networks": [{"network": "files"}]}
    ended = end("file.googleapis.com", fake.call("POST", at, body, instanceId="nfs"))
    assert ended["response"]["state"] == "READY" and ended["response"]["networks"][0]["ipAddresses"]
    larger = {"fileShares": [{"name": "share", "capacityGb": 2048}]}
    end("file.googleapis.com", fake.call("PATCH", f"{at}/nfs", larger, updateMask="fileShares"))
    assert fake.call("GET", f"{at}/nfs")["fileShares"][0]["capacityGb"] == 2048
    end("file.googleapis.com", fake.call("DELETE", f"{at}/nfs"))
    assert fake.call("GET", at) == {"instances": []}
    fake.done("DELETE", f"{COMPUTE}/global/networks/files")


@pytest.mark.parametrize("wrong", ["batch.jobs.cancel", "compute.instances.destroy", "resourcemanager.projects.list"])
def test_a_role_has_permissions_that_exist(fake: Fake, wrong: str) -> None:
    roles, right = f"iam.googleapis.com/v1/{P}/roles", {"includedPermissions": ["batch.jobs.delete"], "title": "Role"}
    refused = {**right, "includedPermissions": ["batch.jobs.delete", wrong]}
    name = f"role_{wrong.replace('.', '_')}"
    answer = fake.ask("POST", roles, {"roleId": name, "role": refused})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, f"Permission {wrong} is not valid.")
    assert fake.ask("GET", f"{roles}/{name}").status_code == 404
    fake.call("POST", roles, {"roleId": name, "role": right})
    assert fake.ask("PATCH", f"{roles}/{name}", refused).status_code == 400
