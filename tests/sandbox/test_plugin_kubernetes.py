"""The kubernetes stand-in through the real engine, on the sandbox's own control plane."""

import base64
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import toolchain
from sandbox.kubernetes.client import Cluster, Refusal
from sandbox.kubernetes.nodes import PLAYED
from sandbox.plugins.kubernetes.plugin import KubernetesPlugin, moved_settings
from sandbox.plugins.mapping import UNKNOWN as UNKNOWN_VALUE
from sandbox.plugins.server import ProviderError, Servicer, serve
from tests.support.engine import Engine, Result, Sandbox
from tests.support.soak import soak_only

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def home(control_plane: Path) -> Path:
    return control_plane


@pytest.fixture(scope="module")
def cluster(home: Path) -> Cluster:
    return Cluster.of(home)


@pytest.fixture(scope="module")
def sandbox(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """What an engine needs to reach the stand-in, and no cloud beside it."""
    pulumi = tmp_path_factory.mktemp("pulumi")
    (pulumi / "backend").mkdir()
    server, port = serve(Servicer(lambda: KubernetesPlugin(home), moved_settings))
    engine = os.environ.get("ACCEL_PULUMI_BIN") or str(toolchain.engine())
    yield Sandbox(
        pulumi,
        {
            "PATH": os.pathsep.join([engine, str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PULUMI_HOME": str(pulumi),
            "PULUMI_BACKEND_URL": (pulumi / "backend").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "sandbox",
            "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
    )
    server.stop(0)


@pytest.fixture(scope="module")
def kubeconfig(home: Path) -> dict[str, Any]:
    told = json.loads((home / "kubernetes.json").read_text())
    where = {"server": told["url"], "certificate-authority-data": told["ca"]}
    return {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": where}],
        "users": [{"name": "it", "user": {"token": told["token"]}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }


HEAD = """
import json
import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs as Meta

VERSION = 1
config = json.loads({config!r})
provider = k8s.Provider("it", kubeconfig=json.dumps(config), namespace="test", **{settings})
mine = pulumi.ResourceOptions(provider=provider)

def after(*resources):
    return pulumi.ResourceOptions(provider=provider, depends_on=list(resources))
"""


@pytest.fixture
def engine(tmp_path: Path, sandbox: Sandbox, kubeconfig: dict[str, Any]) -> Iterator["Program"]:
    program = Program(Engine(tmp_path, sandbox, config={}), kubeconfig)
    yield program
    if program.engine.export():
        program.engine.destroy(check=False)


class Program:
    def __init__(self, engine: Engine, kubeconfig: dict[str, Any]) -> None:
        self.engine, self.kubeconfig = engine, kubeconfig

    def write(self, text: str, *, version: int = 1, config: dict[str, Any] | None = None, **settings: Any) -> Engine:
        head = HEAD.format(config=json.dumps(config or self.kubeconfig), settings=settings)
        return self.engine.write(head.replace("VERSION = 1", f"VERSION = {version}") + text)


LIFE = """
space = k8s.core.v1.Namespace("space", metadata=Meta(name="test"), opts=mine)
auto = k8s.core.v1.ConfigMap("auto", data={"a": str(VERSION)}, opts=after(space))
fixed = k8s.core.v1.ConfigMap("fixed", metadata=Meta(name="fixed"), data={"a": str(VERSION)}, opts=after(space))
quiet = k8s.core.v1.ServiceAccount("quiet", metadata=Meta(labels={"stage": str(VERSION)}), opts=after(space))
hidden = k8s.core.v1.Secret("hidden", string_data={"key": pulumi.Output.secret("very-hidden")}, opts=after(space))
service = k8s.core.v1.Service(
    "service",
    metadata=Meta(labels={"stage": str(VERSION)}),
    spec={"cluster_ip": "None", "selector": {"app": "a"}, "ports": [{"port": 80}]},
    opts=after(space),
)
limits = k8s.core.v1.ResourceQuota("limits", spec={"hard": {"limits.memory": "2048Mi", "pods": 7}}, opts=after(space))
pulumi.export("address", service.spec.cluster_ip)
pulumi.export("auto", auto.metadata["name"])
"""


def test_life(engine: Program, cluster: Cluster, sandbox: Sandbox) -> None:
    planned = engine.write(LIFE).preview()
    assert planned.ops() == {"create": 8}
    with pytest.raises(Refusal, match="not found"):
        cluster.get("/api/v1/namespaces/test")
    made = engine.engine.up()
    assert made.ops() == {"create": 8} and made.outputs["address"] == "None"
    assert made.outputs["auto"].startswith("auto-") and len(made.outputs["auto"]) == len("auto-") + 8
    assert engine.engine.up("--refresh").ops() == {"same": 8}
    assert "very-hidden" not in (text := engine.engine.run("stack", "export").stdout)
    assert base64.b64encode(b"very-hidden").decode() not in text

    changed = engine.write(LIFE, version=2).preview()
    assert {s.name: s.op for s in changed.steps if s.op in ("update", "replace")} == {
        "auto": "replace", "fixed": "replace", "quiet": "update", "service": "update",
    }  # fmt: skip
    assert changed.step("quiet", "update").diffs == ("metadata.labels.stage",)
    assert changed.step("fixed", "replace").replaces == ("data",)
    done = engine.engine.up()
    assert done.ops() == changed.ops()
    assert done.outputs["auto"] != made.outputs["auto"]  # made before the old one went
    maps = {each["metadata"]["name"]: each for each in cluster.list("/api/v1/namespaces/test/configmaps")}
    assert maps["fixed"]["data"] == {"a": "2"} and made.outputs["auto"] not in maps

    # Drift: only of what the inputs set, and put back against its new owner only by force.
    path = "/api/v1/namespaces/test/services/" + next(
        r["id"].partition("/")[2] for r in engine.engine.export() if r["type"].endswith(":Service")
    )
    other = {"metadata": {"labels": {"stage": "9", "more": "x"}}}
    cluster.patch(path, other, "merge", fieldManager="someone")
    cluster.delete("/api/v1/namespaces/test/configmaps/fixed")
    drifted = engine.engine.refresh()
    assert {s.name: s.op for s in drifted.steps if s.op in ("update", "delete")} == {
        "service": "update", "fixed": "delete",
    }  # fmt: skip
    refused = engine.engine.up(check=False)
    assert 'conflict with "someone"' in refused.text and "pulumi.com/patchForce" in refused.text
    assert engine.write(LIFE, version=2, enable_patch_force=True).up().ops("same")["update"] >= 1
    assert cluster.get(path)["metadata"]["labels"] == {"stage": "2", "more": "x"}

    assert engine.engine.destroy().ops()["delete"] == 8
    with pytest.raises(Refusal, match="not found"):
        cluster.get("/api/v1/namespaces/test")


NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "test-node",
        "annotations": {PLAYED: "yes"},
        "labels": {"only": "test", "kubernetes.io/hostname": "test-node"},
    },
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}},
}
READY = [{"type": "Ready", "status": "True"}]

AWAITED = """
def template(labels, **more):
    made = {"name": "it", "image": "some", "resources": {"requests": {"memory": "1024Mi", "cpu": "1000m"}}}
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [made], "node_selector": {"only": "test"}, **more},
    }

def labelled(app):
    return {"selector": {"match_labels": {"app": app}}}

nowhere = template({"app": "nowhere"}, node_selector={"only": "nobody"})
k8s.apps.v1.DaemonSet("nowhere", spec={**labelled("nowhere"), "template": nowhere}, opts=mine)
here = template({"app": "driver"})
driver = k8s.apps.v1.DaemonSet("driver", spec={**labelled("driver"), "template": here}, opts=mine)
k8s.apps.v1.Deployment(
    "web", spec={**labelled("web"), "replicas": VERSION, "template": template({"app": "web"})}, opts=mine
)
k8s.core.v1.Service("reached", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}, opts=mine)
job = k8s.batch.v1.Job("probe", spec={"template": template({}, restart_policy="Never")}, opts=mine)
late = k8s.storage.v1.StorageClass(
    "late", provisioner="none", volume_binding_mode="WaitForFirstConsumer", opts=mine
)
claim = k8s.core.v1.PersistentVolumeClaim(
    "claim",
    spec={
        "access_modes": ["ReadWriteOnce"],
        "storage_class_name": late.metadata["name"],
        "resources": {"requests": {"storage": "1024Gi"}},
    },
    opts=mine,
)
flavor = k8s.apiextensions.CustomResource(
    "flavor",
    api_version="kueue.x-k8s.io/v1beta1",
    kind="ResourceFlavor",
    spec={"nodeLabels": {"only": "test" + "x" * (VERSION - 1)}},
    opts=mine,
)
definition = k8s.apiextensions.v1.CustomResourceDefinition(
    "definition",
    metadata=Meta(name="widgets.example.com"),
    spec={
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"open_apiv3_schema": {
                "type": "object", "description": str(VERSION), "x_kubernetes_preserve_unknown_fields": True,
            }},
        }],
    },
    opts=mine,
)
widget = k8s.apiextensions.CustomResource(
    "widget", api_version="example.com/v1", kind="Widget", spec={"any": {"thing": 1}}, opts=after(definition)
)
pulumi.export("ready", driver.status.number_ready)
pulumi.export("succeeded", job.status.succeeded)
pulumi.export("flavor", flavor.metadata["name"])
"""


def play(cluster: Cluster, stop: threading.Event) -> None:
    """A kubelet: pods of the node run, those that are not restarted have ended, those that are deleted go."""
    while not stop.wait(0.1):
        for pod in cluster.list("/api/v1/pods", fieldSelector="spec.nodeName=test-node"):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            ends = pod["spec"]["restartPolicy"] == "Never"
            phase = "Succeeded" if ends else "Running"
            ready = [{"type": "Ready", "status": "False" if ends else "True"}]
            with contextlib.suppress(Refusal):  # it is gone meanwhile
                if "deletionTimestamp" in pod["metadata"]:
                    cluster.delete(path, gracePeriodSeconds="0")
                elif pod["status"]["phase"] != phase:
                    seen = {"phase": phase, "conditions": ready, "podIP": "10.9.0.1", "podIPs": [{"ip": "10.9.0.1"}]}
                    cluster.patch(f"{path}/status", {"status": seen}, "strategic")


@pytest.fixture
def node(cluster: Cluster) -> Iterator[None]:
    cluster.apply("/api/v1/nodes/test-node", NODE)
    cluster.patch("/api/v1/nodes/test-node/status", {"status": {**NODE["status"], "conditions": READY}})
    cluster.apply("/api/v1/namespaces/test", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test"}})
    stop = threading.Event()
    kubelet = threading.Thread(target=play, args=(cluster, stop))
    kubelet.start()
    yield
    stop.set()
    kubelet.join()
    cluster.delete("/api/v1/nodes/test-node")
    cluster.delete("/api/v1/namespaces/test")


@soak_only
@pytest.mark.usefixtures("node")
def test_what_is_waited_for(engine: Program, cluster: Cluster) -> None:
    made = engine.write(AWAITED).up()
    assert made.ops() == {"create": 11}
    assert made.outputs["ready"] == 1 and made.outputs["succeeded"] == 1
    assert engine.engine.up("--refresh").ops() == {"same": 11}  # 1024Mi is 1Gi, 1000m is 1
    flavor = f"/apis/kueue.x-k8s.io/v1beta1/resourceflavors/{made.outputs['flavor']}"
    assert cluster.get(flavor)["spec"]["nodeLabels"] == {"only": "test"}
    changed = engine.write(AWAITED, version=2).up()
    assert {s.name: s.diffs for s in changed.steps if s.op == "update"} == {
        "web": ("spec.replicas",),
        "flavor": ("spec.nodeLabels.only",),
        "definition": ("spec.versions[0].schema.openAPIV3Schema.description",),
    }
    (widget,) = cluster.list("/apis/example.com/v1/namespaces/test/widgets")  # an update keeps it
    assert widget["spec"] == {"any": {"thing": 1}}
    (web,) = cluster.list("/apis/apps/v1/namespaces/test/deployments")
    assert web["status"]["availableReplicas"] == 2
    engine.engine.destroy()
    assert not cluster.list("/api/v1/namespaces/test/pods")


def refused(result: Result, *words: str) -> None:
    """One line of the result says all the words."""
    assert result.exit_code != 0
    told = next((line for line in result.diagnostics if all(word in line for word in words)), None)
    assert told, result.text
    assert len([line for line in told.splitlines() if line.strip() not in ("", "1 error occurred:")]) == 1, told


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ('k8s.core.v1.Namespace("typo", spec={"finalisers": ["a"]}, opts=mine)', ['unknown field "spec.finalisers"']),
        (
            'k8s.helm.v3.Release("chart", chart="nginx", opts=mine)',
            ["kubernetes:helm.sh/v3:Release: the sandbox renders no Helm charts"],
        ),
        (
            'k8s.yaml.v2.ConfigGroup("manifests", yaml="a: b", opts=pulumi.ResourceOptions(providers=[provider]))',
            ["kubernetes:yaml/v2:ConfigGroup resource 'manifests' has a problem"],
        ),
    ],
)
def test_what_a_preview_refuses(engine: Program, program: str, words: list[str]) -> None:
    refused(engine.write(program).preview(check=False), *words)


FAILED = """
def meta(**annotations):
    return Meta(name="first", namespace="default", annotations={f"pulumi.com/{k}": v for k, v in annotations.items()})

pod = {"containers": [{"name": "it", "image": "some"}], "node_selector": {"only": "nobody"}, "restart_policy": "Never"}
k8s.batch.v1.Job("stuck", metadata=meta(timeoutSeconds="1"), spec={"template": {"spec": pod}}, opts=mine)
k8s.core.v1.ConfigMap("taken", metadata=Meta(name="taken", namespace="default"), data={"mine": "1"}, opts=mine)
"""
KEPT = """
held = Meta(name="held", namespace="default", finalizers=["example.com/held"],
            annotations={"pulumi.com/timeoutSeconds": "1"})
k8s.core.v1.ConfigMap("held", metadata=held, data={"a": "1"}, opts=mine)
k8s.core.v1.ConfigMap("ours", metadata=Meta(name="ours", namespace="default"), data={"a": "mine"}, opts=mine)
there = pulumi.ResourceOptions(provider=provider, import_="default/taken")
k8s.core.v1.ConfigMap("taken", metadata=Meta(name="taken", namespace="default"), data={"theirs": "1"}, opts=there)
read = k8s.core.v1.ConfigMap.get("read", "default/taken", opts=mine)
pulumi.export("read", read.data["theirs"])
"""


@pytest.fixture
def taken(cluster: Cluster) -> Iterator[str]:
    maps = "/api/v1/namespaces/default/configmaps"
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}, "data": {"theirs": "1"}}
    cluster.create(maps, theirs, fieldManager="someone")
    yield f"{maps}/taken"
    if any(each["metadata"]["name"] == "taken" for each in cluster.list(maps)):
        cluster.delete(f"{maps}/taken")


@soak_only
def test_what_fails_is_kept_or_left_alone(engine: Program, cluster: Cluster, taken: str) -> None:
    failed = engine.write(FAILED).up("--continue-on-error", check=False)
    refused(failed, "Job (default/first) was made, but is not ready: timed out, it is not complete; [Pod first-")
    refused(failed, "creating ConfigMap (default/taken): ", '"taken" already exists')
    assert cluster.get(taken)["data"] == {"theirs": "1"}
    (kept,) = (r for r in engine.engine.export() if r["type"].endswith(":Job"))
    assert kept["initErrors"] and kept["id"] == "default/first"

    # What the sandbox itself put there is no hindrance.
    ours = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ours"}, "data": {"a": "b"}}
    cluster.apply("/api/v1/namespaces/default/configmaps/ours", ours)
    # The job is gone, what was there is taken in, and what has a finalizer stays until that is gone.
    done = engine.write(KEPT).up()
    assert done.ops()["import"] == 1 and done.ops()["delete"] == 1 and done.outputs["read"] == "1"
    assert cluster.get("/api/v1/namespaces/default/configmaps/ours")["data"] == {"a": "mine"}
    left = engine.engine.destroy(check=False)
    refused(left, "deleting ConfigMap (default/held): it is still there after 1 s", "(example.com/held)")
    cluster.patch("/api/v1/namespaces/default/configmaps/held", {"metadata": {"finalizers": None}})
    engine.engine.destroy()
    with pytest.raises(Refusal, match="not found"):
        cluster.get(taken)


UNKNOWN = """
import asyncio
from pulumi.runtime import settings

def unknown(value):
    made, known = asyncio.Future(), asyncio.Future()
    made.set_result(value)
    known.set_result(not settings.is_dry_run())
    return pulumi.Output(set(), made, known)

later = pulumi.ResourceOptions(provider=k8s.Provider("later", kubeconfig=unknown(json.dumps(config))))
space = k8s.core.v1.Namespace("space", metadata=Meta(name="later"), opts=later)
k8s.core.v1.ConfigMap("inside", metadata=Meta(namespace=space.metadata["name"]), data={"a": "b"}, opts=later)
"""


@soak_only
def test_a_cluster_that_is_not_there_yet_or_no_longer(engine: Program, kubeconfig: dict[str, Any]) -> None:
    assert engine.write(UNKNOWN).preview().ops() == {"create": 4}
    gone = json.loads(json.dumps(kubeconfig))
    gone["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    failed = engine.write('k8s.core.v1.Namespace("space", opts=mine)', config=gone).up(check=False)
    refused(failed, "creating Namespace (space-", "): configured Kubernetes cluster is unreachable: ")


def test_a_credential_is_fetched(engine: Program, kubeconfig: dict[str, Any], home: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "fetch"
    (user,) = kubeconfig["users"]
    answer = {"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": user["user"]}
    plugin.write_text(
        f"#!/bin/sh\ntest \"$ONE\" = 1 || {{ echo no account >&2; exit 3; }}\necho '{json.dumps(answer)}'\n"
    )
    plugin.chmod(0o755)
    run = {"apiVersion": answer["apiVersion"], "command": str(plugin), "env": [{"name": "ONE", "value": "1"}]}

    def asking(**changes: Any) -> dict[str, Any]:
        return {**kubeconfig, "users": [{"name": "it", "user": {"exec": {**run, **changes}}}]}

    text = 'k8s.core.v1.Namespace("typo", spec={"finalisers": ["a"]}, opts=mine)'
    refused(engine.write(text, config=asking()).preview(check=False), 'unknown field "spec.finalisers"')
    assert reason(home, asking()) == ""
    assert reason(home, asking(env=[])) == f"exec: executable {plugin} failed with exit code 3: no account"
    assert reason(home, asking(command="absent-plugin", installHint="get it\nthere")) == (
        "exec: executable absent-plugin not found; get it; there"
    )
    assert "answered in client.authentication.k8s.io/v1beta1" in reason(home, asking(apiVersion="v1"))


def reason(home: Path, config: dict[str, Any]) -> str:
    """Why a provider with this kubeconfig makes nothing; "" where it can."""
    plugin = KubernetesPlugin(home)
    plugin.configured({"kubeconfig": json.dumps(config)})
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    try:
        plugin.read("kubernetes:core/v1:Namespace", "default", body, {}, {})
    except ProviderError as error:
        return str(error).partition("unreachable: ")[2].partition("; if it was deleted")[0]
    return ""


def test_a_kubeconfig_leads_to_this_machine_only(home: Path, kubeconfig: dict[str, Any]) -> None:
    far = {**kubeconfig, "clusters": [{"name": "it", "cluster": {"server": "https://192.0.2.1"}}]}
    assert "https://192.0.2.1: the sandbox reaches its own cluster only" in reason(home, far)
    assert reason(home, {**kubeconfig, "current-context": "b"}) == 'context "b" does not exist in the kubeconfig'
    assert "no token, tokenFile or exec" in reason(home, {**kubeconfig, "users": [{"name": "it", "user": {}}]})


def test_another_cluster_replaces_all(kubeconfig: dict[str, Any]) -> None:
    old = {"kubeconfig": json.dumps(kubeconfig)}
    token = {**kubeconfig, "users": [{"name": "it", "user": {"token": "other"}}]}
    far = {**kubeconfig, "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:2"}}]}
    assert moved_settings(old, {"kubeconfig": json.dumps(token)}) == set()
    assert moved_settings(old, {"kubeconfig": json.dumps(far)}) == {"kubeconfig"}
    assert moved_settings(old, {"kubeconfig": UNKNOWN_VALUE}) == {"kubeconfig"}
    named = {"clusterIdentifier": "a"}
    assert moved_settings({**old, **named}, {"kubeconfig": UNKNOWN_VALUE, **named}) == set()
    assert moved_settings({**old, **named}, {**old, "clusterIdentifier": "b"}) == {"clusterIdentifier"}
