"""What an earlier version left (tests/support/records.py), in a sandbox of this version: its resources, made again as
its states name them, its rows, documents and objects as they were stored, its jobs and machines, which run again.

What a cloud makes up (ids of VPCs and jobs) is another one, in whatever names it; times are those of today."""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox import keys
from sandbox.environment import environment
from sandbox.kubernetes.client import Cluster
from sandbox.plugins.aws.plugin import AwsPlugin
from sandbox.plugins.gcp.plugin import GcpPlugin
from sandbox.plugins.kubernetes.life import MANAGER
from sandbox.plugins.kubernetes.plugin import KubernetesPlugin
from sandbox.plugins.mapping import plain
from sandbox.processes import PARTS, stop

from . import records
from .engine import Sandbox, start
from .jobs_of_before import GO
from .records import CLUSTER_KINDS, COMPUTE, PROJECT, QUICK, REGION, SLOW, JobRecord, Json, Records, stockout
from .waiting import until

_TIME = re.compile(r"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d)(?=(?:\.\d+)?(?:Z|\+00:00))")
_SECONDS = re.compile(r"\b(1[789]\d{8})\b")
_MADE_UP = re.compile(r"[\w./:-]*\d[\w./:-]{5,}|[\w+/=]{500,}")
"""The last: a certificate."""
_SANDBOX = re.compile(r"http://127\.0\.0\.1:\d+")
"""Where an agent deletes its own machine: Google's address, as its client knew it."""
_REQUEST = "accel.dev/request"
"""Annotation of a job on GKE: the objects as they were sent."""
_OF_BATCH = ("name", "uid", "status", "createTime", "updateTime")
"""What Google Batch says of a job."""
_OF_INSTANCE = (
    *("name", "machineType", "guestAccelerators", "labels", "metadata", "scheduling", "serviceAccounts"),
    *("shieldedInstanceConfig", "tags"),
)


class Restoration:
    """A running sandbox with all of it. `go`: the file for which jobs wait, instead of that of the records."""

    def __init__(self, home: Path, commit: str, go: Path) -> None:
        self.home, self.go = home, go
        self._renamed: dict[str, str] = {}
        self._whole = records.read(commit)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SANDBOX_SETTLE_S", "0.05")
            (home / "nodes.json").write_text(json.dumps(QUICK))
            start(home, PARTS)
        self.sandbox = Sandbox(home, environment(home))
        self.google("POST", "sandbox-api/faults", SLOW)
        with ThreadPoolExecutor() as pool:
            self.exports = dict(zip(records.STACKS, pool.map(self._made, records.STACKS), strict=True))
        self._send_jobs()
        self.records = self._translated()
        self._store()

    @cached_property
    def targets(self) -> Json:
        """Of both stacks."""
        return {name: each for export in self.exports.values() for name, each in _outputs(export)["targets"].items()}

    def job(self, key: str) -> JobRecord:
        return self.records.jobs[key]

    def google(self, http: str, path: str, body: Any = None, data: bytes | None = None, **query: Any) -> Any:
        url = json.loads((self.home / "google.json").read_text())["url"]
        head = {"Authorization": f"Bearer {keys.key(self.home)}"}
        answer = requests.request(
            http, f"{url}/{path}", json=body, data=data, params=query, headers=head, timeout=120
        )  # fmt: skip
        assert answer.ok, f"{path}: {answer.text}"
        return answer.json()

    def _made(self, name: str) -> Json:
        """Every resource of a stack, created by its provider; the state, with the ids that they have now."""
        told = json.loads((self.home / "google.json").read_text())
        cluster = KubernetesPlugin(self.home)
        providers = {
            "aws": AwsPlugin(self.sandbox.variables["AWS_ENDPOINT_URL"], keys.key(self.home)),
            "gcp": GcpPlugin(told["url"], self.home),
            "kubernetes": cluster,
        }
        export, renamed = self._whole.stacks[name]["export"], dict[str, str]()
        for each in export["deployment"]["resources"]:
            inputs = plain(_plaintext(_renamed(each.get("inputs", {}), renamed)))
            if each["type"] == "pulumi:providers:kubernetes":
                cluster.configured({key: value for key, value in inputs.items() if key != "version"})
            provider = providers.get(each["type"].partition(":")[0])
            if each.get("custom") and provider:
                id, outputs = provider.create(each["type"], inputs, False)
                old = plain(each.get("outputs", {}))
                if MANAGER in outputs:
                    renamed[old[MANAGER]] = outputs[MANAGER]
                _note(each["id"], id, renamed)
                _note(old, outputs, renamed)
        self._renamed |= renamed
        return _renamed(export, renamed)

    def _send_jobs(self) -> None:
        """Those of AWS Batch and Vertex AI, under whatever ids they get."""
        batch = self.sandbox.client("batch")
        for old in _renamed(self._whole.batch, self._renamed):
            container = old["container"]
            new = batch.submit_job(
                jobName=old["jobName"],
                jobQueue=old["jobQueue"],
                jobDefinition=old["jobDefinition"],
                tags=old["tags"],
                propagateTags=old["propagateTags"],
                retryStrategy=old["retryStrategy"],
                timeout=old["timeout"],
                containerOverrides={
                    name: container[name] for name in ("command", "environment", "resourceRequirements")
                },
            )
            self._renamed[old["jobId"]] = new["jobId"]
        at = f"aiplatform.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/customJobs"
        for old in _renamed(self._whole.vertex, self._renamed):
            new = self.google("POST", at, {name: old[name] for name in ("displayName", "jobSpec", "labels")})
            self._renamed[old["name"].rpartition("/")[2]] = new["name"].rpartition("/")[2]
        for each in self._in_place(self._whole.google_batch):
            at, _, name = each["job"]["name"].rpartition("/")
            body = {field: value for field, value in each["job"].items() if field not in _OF_BATCH}
            body["taskGroups"] = [{**group, "name": None} for group in body["taskGroups"]]
            self.google("POST", f"batch.googleapis.com/v1/{at}", body, jobId=name)
        self._send_to_cluster()

    def _send_to_cluster(self) -> None:
        """Its jobs as their clients sent them, in the order in which they came, with what the cluster then had of them
        beside their specs."""
        cluster = Cluster.of(self.home)
        whole = self._in_place(self._whole.cluster)
        jobs = [(kind, each) for kind in ("jobs", "jobsets") for each in whole[kind]
                if _REQUEST in each["metadata"].get("annotations", {})]  # fmt: skip
        for kind, old in sorted(jobs, key=lambda job: job[1]["metadata"]["creationTimestamp"]):
            *others, sent = json.loads(old["metadata"]["annotations"][_REQUEST])
            metadata = {name: old["metadata"][name] for name in ("name", "namespace", "labels", "annotations")}
            made = cluster.create(CLUSTER_KINDS[kind], {**sent, "metadata": metadata})
            owner = {name: made[name] for name in ("apiVersion", "kind")}
            owner |= {name: made["metadata"][name] for name in ("name", "uid")}
            for other in others:
                other["metadata"]["ownerReferences"] = [owner]
                cluster.create(CLUSTER_KINDS["services"], other)
            if not old["spec"].get("suspend"):  # Kueue had admitted it before the next came
                path = f"{CLUSTER_KINDS[kind]}/{old['metadata']['name']}"
                until(lambda path=path: not cluster.get(path)["spec"].get("suspend"))

    def _in_place(self, values: Any) -> Any:
        """With this sandbox's ids and addresses, and with the file that this test has for GO."""
        here = json.loads((self.home / "google.json").read_text())["url"]
        return json.loads(_SANDBOX.sub(here, json.dumps(_renamed(values, self._renamed))).replace(GO, str(self.go)))

    def _translated(self) -> Records:
        """The records with the new ids, of now, and with the file that this test has for GO."""
        whole = self._whole
        names = [name for name in vars(whole) if name not in ("commit", "moment", "stacks", "jobs")]
        kept = {name: getattr(whole, name) for name in names}
        kept["jobs"] = {key: vars(each) for key, each in whole.jobs.items()}
        kept = _renamed(kept, self._renamed)
        text = shift_times(json.dumps(kept), whole.moment)
        values = json.loads(text)
        jobs = {key: JobRecord(**each) for key, each in values.pop("jobs").items()}
        return replace(whole, jobs=jobs, **values)

    def _store(self) -> None:
        dynamodb = self.sandbox.client("dynamodb")
        for table, items in self.records.tables.items():
            for item in items:
                dynamodb.put_item(TableName=table, Item=item)
        for document in self.records.documents:
            self.google("PATCH", f"firestore.googleapis.com/v1/{document['name']}", {"fields": document["fields"]})
        upload = "storage.googleapis.com/upload/storage/v1/b"
        for bucket, texts in self.records.objects.items():
            for name, text in texts.items():
                self.google(
                    "POST",
                    f"{upload}/{bucket}/o",
                    data=text.replace(GO, str(self.go)).encode(),
                    uploadType="media",
                    name=name,
                )
        machines: list[Json] = self._in_place(self.records.machines)
        self.google("POST", "sandbox-api/generations", self._whole.generations)
        for each in machines:
            if "instance" in each:
                self._boot(each)
            elif "group" in each:
                self._boot_group(**each)
        self._queue([each["queued"] for each in machines if "queued" in each])

    def _queue(self, requests: list[Json]) -> None:
        """Those that the state names are there already. What waits, waits for TPUs that are not to be had."""
        waiting = [each for each in requests if each["state"]["state"] != "ACTIVE"]
        for each in [*(each for each in requests if each not in waiting), *waiting]:
            at, _, name = each["name"].rpartition("/")
            if each in waiting:
                types = [spec["node"]["acceleratorType"] for one in waiting for spec in one["tpu"]["nodeSpec"]]
                self.google("POST", "sandbox-api/faults", stockout(*types))
            there = self.google("GET", f"tpu.googleapis.com/v2/{at}").get("queuedResources", [])
            if each["name"] not in [one["name"] for one in there]:
                body = {name: value for name, value in each.items() if name not in ("name", "createTime", "state")}
                self.google("POST", f"tpu.googleapis.com/v2/{at}", body, queuedResourceId=name)
            path = f"tpu.googleapis.com/v2/{each['name']}"
            until(lambda path=path, each=each: self.google("GET", path)["state"]["state"] == each["state"]["state"])

    def _boot_group(self, group: Json, template: Json, names: list[str]) -> None:
        """The template of a job, its group, and instances of the same names."""
        (place, links) = (group["selfLink"].partition("/v1/")[2].rpartition("/")[0], ("name", "description"))
        body = {name: template[name] for name in (*links, "properties")}
        self._done(f"projects/{PROJECT}/global/instanceTemplates", body)
        wanted = (*links, "baseInstanceName", "instanceTemplate", "instanceLifecyclePolicy", "updatePolicy")
        self._done(place, {"targetSize": 0, **{name: group[name] for name in wanted}})
        self._done(f"{place}/{group['name']}/createInstances", {"instances": [{"name": name} for name in names]})

    def _done(self, path: str, body: Json) -> None:
        """A call of Compute Engine, once its operation is over."""
        operation = self.google("POST", f"{COMPUTE}/{path}", body)
        at = f"{COMPUTE}/{operation['selfLink'].partition('/v1/')[2]}"
        until(lambda: self.google("GET", at)["status"] == "DONE")

    def _boot(self, machine: Json) -> None:
        instance, (disk,) = machine["instance"], machine["disks"]
        (nic,) = instance["networkInterfaces"]
        image = {"sourceImage": disk["sourceImage"], "diskSizeGb": disk["sizeGb"], "diskType": disk["type"]}
        body = {name: instance[name] for name in _OF_INSTANCE if name in instance}
        body["metadata"] = {"items": instance["metadata"]["items"]}
        body["tags"] = {"items": instance["tags"]["items"]}
        body["disks"] = [{"boot": True, "autoDelete": True, "initializeParams": image}]
        body["networkInterfaces"] = [{name: nic[name] for name in ("network", "subnetwork")}]
        self.google("POST", f"{COMPUTE}/{instance['zone'].partition('/v1/')[2]}/instances", body)


def restore(home: Path, commit: str) -> Iterator[Restoration]:
    """For a fixture."""
    try:
        yield Restoration(home, commit, home / "go")
    finally:
        stop(home)


def shift_times(text: str, moment: int) -> str:
    """A text whose times are those of `moment`, as if that were now: no lease and no wait is over, no row expired."""
    now = int(datetime.now(UTC).timestamp())

    def iso(found: re.Match[str]) -> str:
        then = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()
        return f"{datetime.fromtimestamp(then + now - moment, UTC):%Y-%m-%dT%H:%M:%S}"

    month, today = (f"{datetime.fromtimestamp(each, UTC):%Y-%m}" for each in (moment, now))
    text = _SECONDS.sub(lambda found: str(int(found[1]) + now - moment), _TIME.sub(iso, text))
    return re.sub(rf"(?<![\d-]){month}(?![\d-])", today, text)


def _note(old: Any, new: Any, renamed: dict[str, str]) -> None:
    """What the cloud has made up anew."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() & new.keys():
            _note(old[name], new[name], renamed)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for pair in zip(old, new, strict=True):
            _note(*pair, renamed)
    elif isinstance(old, str) and isinstance(new, str) and old != new and _MADE_UP.fullmatch(old):
        renamed.setdefault(old, new)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A copy with other names, the longest first."""
    if not names:
        return value
    wanted = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return json.loads(wanted.sub(lambda found: names[found[0]], json.dumps(value)))


def _plaintext(value: Any) -> Any:
    """A copy of a state's value with what secrets hold in their places."""
    match value:
        case {"plaintext": str(text)}:
            return json.loads(text)
        case dict():
            return {name: _plaintext(each) for name, each in value.items()}
        case list():
            return [_plaintext(each) for each in value]
        case _:
            return value


def _outputs(export: Mapping[str, Any]) -> Json:
    return plain(export["deployment"]["resources"][0]["outputs"])
