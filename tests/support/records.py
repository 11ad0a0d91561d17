"""What an earlier version left: two stacks with the claims, ledgers, records and jobs that its own commands made, as
tests/golden/records keeps them.

`python -m tests.support.records COMMIT` makes another: it checks the commit out in a folder of its own, deploys an
environment of AWS and one of Google Cloud with the commit's own program on the commit's own sandbox, submits jobs with
the commit's own commands, kills some of these at their worst moment, and keeps what is then stored. Nothing is written
by hand. tests/support/restoration.py puts it into a sandbox again.
"""

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import requests
import yaml

from sandbox import keys
from sandbox.environment import project
from sandbox.kubernetes.client import Cluster

from .jobs_of_before import LATER, submit_all
from .project import KEY, put
from .states import UNKEPT, checkout_of, short_name

Json = dict[str, Any]

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "records"
STACKS = ("aws", "google")
TEAMS = {"you": {"usd": 1000, "unpriced": "warn"}}
PROJECT, REGION = "accel-sandbox", "us-central1"
COMPUTE = "compute.googleapis.com/compute/v1"
SLOW = {"minute_s": 3600}
"""Nothing is reconciled but by a command."""
QUICK = {"scale_up_s": 0.2, "driver_s": 0.1, "grace_s": 3}
"""Nodes of GKE come in moments."""
CLUSTER_KINDS = {
    "jobs": "/apis/batch/v1/namespaces/jobs/jobs",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/jobs/jobsets",
    "pods": "/api/v1/namespaces/jobs/pods",
    "services": "/api/v1/namespaces/jobs/services",
    "workloads": "/apis/kueue.x-k8s.io/v1beta1/namespaces/jobs/workloads",
}
"""What a cluster has of jobs: collections of the API."""
DECLARED = {
    "gcp.vms.tpu_queues": {"steady": {"zone": f"{REGION}-a", "accelerator_type": "v5litepod-4"}},
    "gcp.vms.queued_tpus": {
        "trainer": {
            "zone": f"{REGION}-a",
            "accelerator_type": "v5litepod-16",
            "capacity": "spot",
            "slices": 2,
            "valid_for_s": 86_400,
        },
        "later": {"zone": f"{REGION}-a", "accelerator_type": LATER},
    },
    "gcp.vms.gpu_groups": {"workers": {"zone": f"{REGION}-a", "machine_type": "g2-standard-4", "size": 2}},
}
"""Machines that the stack of Google Cloud declares besides."""

DEPLOY = """
set -eu -o pipefail
pulumi stack select --create "$1" >&2
pulumi up --stack "$1" --config-file "$2" --yes --skip-preview --non-interactive --color never >&2
pulumi stack export --stack "$1" --show-secrets
"""
DIES = """
import logging, os, runpy, signal, sys
logger, step, *arguments = sys.argv[1:]

class Dying(logging.Handler):
    def emit(self, record):
        if record.getMessage() == step:
            os.kill(os.getpid(), signal.SIGKILL)

log = logging.getLogger(logger)
log.setLevel(logging.DEBUG)
log.addHandler(Dying())
sys.argv = ["jobs", *arguments]
runpy.run_module("jobs", run_name="__main__")
"""
"""The command, killed where a logger says a step."""


@dataclass(frozen=True)
class JobRecord:
    """One job: how it was submitted, and what the version that did so printed of it. `died`: at which step, and of
    which logger, its client was killed."""

    name: str
    target: str
    document: Json
    ref: str = ""
    died: str = ""
    printed: Json = field(default_factory=dict[str, Any])
    """By `get -o json`."""


@dataclass(frozen=True)
class Records:
    """All that one version left. Times are those of `moment`, in Unix seconds."""

    commit: str
    moment: int
    stacks: dict[str, Json]
    """`environment` and `export` by stack, as tests/support/states.py has them."""
    jobs: dict[str, JobRecord]
    """By their --key."""
    spend: list[Json]
    """What `spend -o json` printed."""
    tables: dict[str, list[Json]]
    """Items of DynamoDB, by table."""
    documents: list[Json]
    """Of Firestore."""
    objects: dict[str, dict[str, str]]
    """Texts of Cloud Storage, by bucket and name."""
    generations: dict[str, str]
    """Of the objects by which a stack declares TPUs, by their paths below the API: records are named after them."""
    machines: list[Json]
    """Instances with their disks, groups of a job with their template, and queued resources of TPUs."""
    batch: list[Json]
    """Jobs of AWS Batch."""
    vertex: list[Json]
    """Jobs of Vertex AI."""
    google_batch: list[Json]
    """Jobs of Google Batch, each with its tasks."""
    cluster: dict[str, list[Json]]
    """Objects of Kubernetes, by CLUSTER_KINDS."""
    files: dict[str, str]
    """Of the client's folder, by path; those of SQLite as SQL."""


def commits() -> list[str]:
    """Those whose records are kept."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def read(commit: str) -> Records:
    """Those of a commit."""
    parts = {path.stem: json.loads(path.read_text()) for path in (FOLDER / commit).glob("*.json")}
    parts |= parts.pop("about")
    jobs = {key: JobRecord(**each) for key, each in parts.pop("jobs").items()}
    return Records(commit=commit, jobs=jobs, stacks={name: parts.pop(f"stack-{name}") for name in STACKS}, **parts)


def unpack(records: Records, folder: Path) -> None:
    """Puts the client's files into its folder for state."""
    for name, text in records.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".sqlite":
            path.write_text(text)
            continue
        with closing(sqlite3.connect(path)) as book:
            book.executescript(text)


def write(records: Records) -> Path:
    """A file a store; a line a resource, row, document or job, so that two can be compared."""
    folder = FOLDER / records.commit
    folder.mkdir(parents=True, exist_ok=True)
    values = {**vars(records), "jobs": {key: vars(each) for key, each in records.jobs.items()}}
    _write(folder / "about.json", {name: values.pop(name) for name in ("moment", "spend")})
    del values["commit"]
    for name, stack in values.pop("stacks").items():
        _write(folder / f"stack-{name}.json", stack)
    for name, value in values.items():
        _write(folder / f"{name}.json", value)
    return folder


def _write(path: Path, value: Any) -> None:
    path.write_text(_lines(value, 0) + "\n")


def _lines(value: Any, depth: int) -> str:
    """JSON, broken into lines where there is more than a row of it; a state is broken down to its resources."""
    flat = json.dumps(value, sort_keys=True)
    if len(flat) < 400 or depth > 3 or not isinstance(value, dict | list):
        return flat
    if isinstance(value, list):
        return "[\n" + ",\n".join(_lines(each, 4) for each in value) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(value[key], depth + 1)}" for key in sorted(value)) + "\n}"


class Old:
    """A checkout of the version, and a sandbox that it runs."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self.checkout, self.home = checkout, home
        self.base = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        self.base |= {"PYTHONPATH": str(checkout), "SANDBOX_HOME": str(home)}
        self.base["PATH"] = os.pathsep.join([str(checkout / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
        self.variables = self.base
        self.jobs: dict[str, JobRecord] = {}

    @contextmanager
    def running(self) -> Generator[None]:
        start = "import sys; from pathlib import Path; from sandbox.processes import PARTS, start, stop; "
        self.home.mkdir()
        (self.home / "nodes.json").write_text(json.dumps(QUICK))
        self.python("-c", start + "start(Path(sys.argv[1]), PARTS)", str(self.home))
        try:
            tell = "import json, sys; from pathlib import Path; from sandbox.environment import environment; "
            told = self.python("-c", tell + "print(json.dumps(environment(Path(sys.argv[1]))))", str(self.home))
            self.variables = {**self.base, **json.loads(told), "ACCEL_IMAGE_CHECK": "off"}
            self.variables |= {f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("STATE", "CACHE")}
            self.variables["ACCEL_TARGETS"] = str(self.home / "targets.json")
            yield
        finally:
            self.python("-c", start + "stop(Path(sys.argv[1]))", str(self.home))

    def python(self, *arguments: str, code: int | None = 0) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.checkout, env=self.variables, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert code is None or done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def cli(self, *arguments: str, code: int | None = 0) -> str:
        return self.python("-m", "jobs", *arguments, code=code)

    def deploy(self, name: str, values: Json) -> Json:
        file = self.home / f"Pulumi.{name}.yaml"
        file.write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))
        command = ["bash", "-c", DEPLOY, "deploy", name, str(file)]
        done = subprocess.run(
            command, cwd=self.checkout, env=self.variables, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
        export = json.loads(done.stdout)
        for each in export["deployment"]["resources"]:
            for unkept in UNKEPT:
                each.pop(unkept, None)
        return {"environment": values, "export": export}

    def submit(
        self, key: str, to: str, command: list[str], *options: str, dies: str = "", refused: str = "", **fields: Any
    ) -> None:
        """A job of that key. `dies`: `<logger> <step>`; `refused`: of Google, a method that fails from then on."""
        document = {"name": key, "image": "local/examples", "command": command, "timeout_s": 7200, **fields}
        (self.home / f"{key}.yaml").write_text(json.dumps(document))
        given = ("submit", str(self.home / f"{key}.yaml"), "--to", to, "--no-quota", "--key", key, "-o", "id", *options)
        ref = ""
        if dies:
            self.python("-c", DIES, *dies.split(), *given, code=-signal.SIGKILL)
        elif refused:
            self.google("POST", "sandbox-api/faults", {"method": refused, "code": 503, "count": 1000})
            self.cli(*given, code=None)
        else:
            ref = self.cli(*given)
        self.jobs[key] = JobRecord(key, to, document, ref, dies or refused)

    def got(self, key: str) -> Json:
        return json.loads(self.cli("get", self.jobs[key].ref, "-o", "json"))

    def pause(self) -> None:
        """Nothing is reconciled by itself, and what the stack wants later does not come."""
        self.google("POST", "sandbox-api/faults", SLOW)
        self.stockout(LATER)

    def stockout(self, *types: str) -> None:
        """No more TPUs of these types."""
        self.google("POST", "sandbox-api/faults", stockout(*types))

    def preempt(self, key: str) -> None:
        """Takes a job's machine away."""
        for item in instances(self):
            if self.jobs[key].ref.rpartition("/")[2] in item["name"]:
                self.google("POST", "sandbox-api/preempt", {"name": item["selfLink"].partition("/v1/")[2]})

    def google(self, http: str, path: str, body: Any = None, **query: Any) -> Any:
        url = json.loads((self.home / "google.json").read_text())["url"]
        head = {"Authorization": f"Bearer {keys.key(self.home)}"}
        answer = requests.request(http, f"{url}/{path}", json=body, params=query, headers=head, timeout=120)
        if answer.status_code == 404:
            return None
        assert answer.ok, f"{path}: {answer.text}"
        return answer.content if query.get("alt") == "media" else answer.json()

    def zone(self, zone: str, kind: str) -> list[Json]:
        """What Compute Engine has in a zone."""
        return (self.google("GET", f"{COMPUTE}/projects/{PROJECT}/zones/{REGION}-{zone}/{kind}") or {}).get("items", [])

    def aws(self, service: str) -> Any:
        url = self.variables["AWS_ENDPOINT_URL"]
        told = keys.boto(keys.key(self.home))
        return boto3.client(service, region_name="us-east-1", endpoint_url=url, **told)  # pyright: ignore


def environments(checkout: Path) -> dict[str, Json]:
    """Those of the two stacks, out of the commit's own."""
    whole = yaml.safe_load((checkout / "Pulumi.sandbox.yaml").read_text())["config"][KEY]
    shared = {name: whole[name] for name in ("owner", "labels")} | {"allowances": {"teams": TEAMS}}
    google: Json = {**shared, "gcp": {name: each for name, each in whole["gcp"].items() if name != "images"}}
    more = {"gcp.vms.reconcile": {"every_min": 5}, **DECLARED}
    google = reduce(lambda made, field: put(*field, made), more.items(), google)
    return {"aws": put("aws.claims.protect", True, {**shared, "aws": whole["aws"]}), "google": google}


def stockout(*types: str) -> Json:
    """A fault: TPUs of these types that cannot be had."""
    return {"stockout": [f"{REGION}-a/{each}" for each in types]}


def make(commit: str) -> Records:
    """Deploys, submits and reads."""
    with checkout_of(commit) as (checkout, home):
        old = Old(checkout, home)
        with old.running():
            return _made(short_name(commit), old)


def _made(commit: str, old: Old) -> Records:
    old.pause()
    stacks = {name: old.deploy(name, values) for name, values in environments(old.checkout).items()}
    outputs = [each["export"]["deployment"]["resources"][0]["outputs"]["targets"] for each in stacks.values()]
    (old.home / "targets.json").write_text(json.dumps(reduce(lambda all, more: {**all, **more}, outputs)))
    submit_all(old)
    jobs = {
        key: JobRecord(**{**vars(each), "printed": old.got(key) if each.ref else {}}) for key, each in old.jobs.items()
    }
    buckets = [each["id"] for stack in stacks.values() for each in stack["export"]["deployment"]["resources"]
               if each["type"] == "gcp:storage/bucket:Bucket"]  # fmt: skip
    return _checked(old, Records(
        commit=commit,
        moment=int(time.time()),
        stacks=stacks,
        jobs=jobs,
        spend=json.loads(old.cli("spend", "-o", "json")),
        tables=_tables(old),
        documents=[*_documents(old)],
        objects={bucket: _objects(old, bucket) for bucket in buckets},
        generations={path: each for bucket in buckets for path, each in _generations(old, bucket)},
        machines=[*_machines(old)],
        batch=_batch(old),
        vertex=_vertex(old),
        google_batch=[*_google_batch(old)],
        cluster=_cluster(old),
        files=_files(old.home / "state"),
    ))  # fmt: skip


def _tables(old: Old) -> dict[str, list[Json]]:
    dynamodb = old.aws("dynamodb")
    return {name: dynamodb.scan(TableName=name)["Items"] for name in dynamodb.list_tables()["TableNames"]}


def _documents(old: Old) -> Iterator[Json]:
    at = f"firestore.googleapis.com/v1/projects/{PROJECT}/databases"
    for database in old.google("GET", at)["databases"]:
        root = f"firestore.googleapis.com/v1/{database['name']}/documents"
        for team in TEAMS:
            for of in ("accel-claims", f"accel-teams/{team}/accel-balances", f"accel-teams/{team}/accel-holds"):
                yield from (old.google("GET", f"{root}/{of}", pageSize=300) or {}).get("documents", [])


def _objects(old: Old, bucket: str) -> dict[str, str]:
    at = f"storage.googleapis.com/storage/v1/b/{bucket}/o"
    texts: dict[str, str] = {}
    for item in old.google("GET", at).get("items", []):
        data: bytes = old.google("GET", f"{at}/{quote(item['name'], safe='')}", alt="media")
        if not item["name"].endswith(".zip"):
            texts[item["name"]] = data.decode()
    return texts


def instances(old: Old) -> list[Json]:
    return [each for zone in "ab" for each in old.zone(zone, "instances")]


def _generations(old: Old, bucket: str) -> Iterator[tuple[str, str]]:
    at = f"storage.googleapis.com/storage/v1/b/{bucket}/o"
    for item in old.google("GET", at, matchGlob="accel-queues/*.json").get("items", []):
        yield f"b/{bucket}/o/{quote(item['name'], safe='')}", item["generation"]


def _machines(old: Old) -> Iterator[Json]:
    grouped: set[str] = set()
    for zone in "ab":
        for group in old.zone(zone, "instanceGroupManagers"):
            if not group.get("instanceTemplate"):  # one of GKE's
                continue
            at = f"{COMPUTE}/{group['selfLink'].partition('/v1/')[2]}/listManagedInstances"
            names = [each["name"] for each in old.google("POST", at, {})["managedInstances"]]
            grouped.update(names)
            if group.get("description"):  # a job's; of the stack's the state tells
                template = old.google("GET", f"{COMPUTE}/{group['instanceTemplate'].partition('/v1/')[2]}")
                yield {"group": group, "template": template, "names": names}
    for item in instances(old):
        if item["name"] not in grouped:
            disks = [old.google("GET", f"{COMPUTE}/{each['source'].partition('/v1/')[2]}") for each in item["disks"]]
            yield {"instance": item, "disks": disks}
    at = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/{REGION}-a/queuedResources"
    yield from ({"queued": each} for each in old.google("GET", at).get("queuedResources", []))


def _batch(old: Old) -> list[Json]:
    batch, found = old.aws("batch"), list[Json]()
    for queue in batch.describe_job_queues()["jobQueues"]:
        for status in ("RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED"):
            ids = [each["jobId"] for each in batch.list_jobs(jobQueue=queue["jobQueueName"], jobStatus=status)
                   ["jobSummaryList"]]  # fmt: skip
            found += batch.describe_jobs(jobs=ids)["jobs"] if ids else []
    return found


def _vertex(old: Old) -> list[Json]:
    at = f"aiplatform.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/customJobs"
    return old.google("GET", at).get("customJobs", [])


def _google_batch(old: Old) -> Iterator[Json]:
    at = f"batch.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/jobs"
    for job in old.google("GET", at).get("jobs", []):
        tasks = f"batch.googleapis.com/v1/{job['name']}/taskGroups/group0/tasks"
        yield {"job": job, "tasks": old.google("GET", tasks).get("tasks", [])}


def _cluster(old: Old) -> dict[str, list[Json]]:
    cluster = Cluster.of(old.home)
    found = {kind: cluster.list(path) for kind, path in CLUSTER_KINDS.items()}
    for each in (each for objects in found.values() for each in objects):
        each["metadata"].pop("managedFields", None)
    return found


def _files(state: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted(state.rglob("*")):
        name = str(path.relative_to(state))
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as book:
                texts[name] = "\n".join(book.iterdump())
        elif path.is_file() and path.stat().st_size:
            texts[name] = path.read_text()
    return texts


def _checked(old: Old, records: Records) -> Records:
    text = json.dumps({**vars(records), "jobs": {key: vars(each) for key, each in records.jobs.items()}})
    assert '"ciphertext"' not in text and keys.key(old.home) not in text, "a secret is in it"
    found = [each for each in (str(old.home), str(old.checkout), str(project()), sys.prefix) if each in text]
    for each in found:
        at = text.index(each)
        print(f"a path of this machine: ...{text[max(0, at - 200) : at + 200]}...", file=sys.stderr)
    return records


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.support.records", description=__doc__)
    parser.add_argument("commit")
    print(write(make(parser.parse_args().commit)))
