"""What Google puts on nodes, when a pod fits one, and what a container is given."""

import socket
from typing import Any

import pytest

from sandbox.kubernetes.environment import ConfigError, command, environment, expand, local
from sandbox.kubernetes.fit import AFFINITY, amounts, obstacles, quantity, requests
from sandbox.kubernetes.nodes import Group, groups_of
from sandbox.kubernetes.pool import Pool
from sandbox.loopback import address

GKE = "cloud.google.com/"


def pool(machine: str, config: dict[str, Any] | None = None, **fields: Any) -> Pool:
    cluster = {"name": "ml", "location": "us-central1", "locations": ["us-central1-a", "us-central1-b"]}
    return Pool(cluster, {"name": "p", "config": {"machineType": machine, **(config or {})}, **fields}, "project")


def gpus(kind: str = "nvidia-tesla-t4", count: int = 1, driver: str = "", **fields: Any) -> dict[str, Any]:
    installed = {"gpuDriverInstallationConfig": {"gpuDriverVersion": driver}} if driver else {}
    return {"accelerators": [{"acceleratorType": kind, "acceleratorCount": str(count), **installed, **fields}]}


@pytest.mark.parametrize(
    ("driver", "label"),
    [("", "default"), ("DEFAULT", "default"), ("LATEST", "latest"), ("INSTALLATION_DISABLED", None)],
)
def test_the_label_of_the_driver_is_there_where_gke_installs_it(driver: str, label: str | None) -> None:
    found = pool("n1-standard-4", gpus(driver=driver))
    assert found.labels.get(f"{GKE}gke-gpu-driver-version") == label
    assert found.labels[f"{GKE}gke-accelerator"] == "nvidia-tesla-t4"
    assert f"{GKE}gke-accelerator-count" not in found.labels
    assert found.taints == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]


def test_partitions_and_shares_are_counted_and_told() -> None:
    shared = {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "3"}
    found = pool("a2-highgpu-2g", gpus("nvidia-tesla-a100", 2, gpuPartitionSize="1g.5gb", gpuSharingConfig=shared))
    assert found.extended == {"nvidia.com/gpu": 42}
    told = {key.removeprefix(GKE): value for key, value in found.labels.items()}
    assert told["gke-gpu-partition-size"] == "1g.5gb"
    assert told["gke-gpu-sharing-strategy"] == "time-sharing"
    assert told["gke-max-shared-clients-per-gpu"] == "3"


def test_a_machine_brings_its_gpus_unasked() -> None:
    assert pool("a3-highgpu-8g").extended == {"nvidia.com/gpu": 8}
    assert pool("a3-highgpu-8g").labels[f"{GKE}gke-ephemeral-storage-local-ssd"] == "true"
    assert pool("e2-standard-4").extended == {}


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        ({"spot": True}, {"gke-spot": "true", "gke-provisioning": "spot"}),
        ({"flexStart": True}, {"gke-flex-start": "true", "gke-provisioning": "flex-start"}),
        ({}, {"gke-provisioning": "standard", "gke-os-distribution": "cos", "machine-family": "e2"}),
        ({"imageType": "UBUNTU_CONTAINERD"}, {"gke-os-distribution": "ubuntu"}),
        (
            {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["projects/a/b/r"]}},
            {"reservation-name": "r"},
        ),
    ],
)
def test_labels(config: dict[str, Any], labels: dict[str, str]) -> None:
    found = pool("e2-standard-4", config)
    assert {f"{GKE}{key}": value for key, value in labels.items()}.items() <= found.labels.items()
    assert found.taints == []  # Spot machines of a Standard cluster have none


def test_a_slice_of_tpus() -> None:
    found = pool("ct5lp-hightpu-4t", placementPolicy={"tpuTopology": "4x4"})
    assert (found.hosts, found.extended) == (4, {"google.com/tpu": 4})
    assert found.labels[f"{GKE}gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
    assert found.labels[f"{GKE}gke-accelerator-count"] == "4"
    assert [taint["key"] for taint in found.taints] == ["google.com/tpu"]
    assert found.labels[f"{GKE}gke-tpu-topology"] == "4x4"


@pytest.mark.parametrize(
    ("machine", "topology"), [("ct5lp-hightpu-8t", "2x4"), ("ct6e-standard-4t", "2x2"), ("ct5lp-hightpu-1t", "1x1")]
)
def test_one_host_of_tpus_has_the_topology_of_its_chips(machine: str, topology: str) -> None:
    found = pool(machine)
    assert found.hosts == 1 and found.labels[f"{GKE}gke-tpu-topology"] == topology


def test_queued_pools_keep_other_pods_off() -> None:
    found = pool("g2-standard-4", queuedProvisioning={"enabled": True})
    assert found.labels[f"{GKE}gke-queued"] == "true"
    assert [taint["key"] for taint in found.taints] == ["nvidia.com/gpu", f"{GKE}gke-queued"]


def test_an_own_taint_is_not_doubled() -> None:
    own = {"key": "nvidia.com/gpu", "value": "mine", "effect": "NO_SCHEDULE"}
    found = pool("n1-standard-4", gpus() | {"taints": [own, {"key": "a", "effect": "PREFER_NO_SCHEDULE"}]})
    assert found.taints == [
        {"key": "nvidia.com/gpu", "value": "mine", "effect": "NoSchedule"},
        {"key": "a", "value": "", "effect": "PreferNoSchedule"},
    ]


def test_bounds() -> None:
    zonal = pool("e2-standard-4", autoscaling={"enabled": True, "minNodeCount": 1, "maxNodeCount": 3})
    assert (zonal.least, zonal.most) == (2, 6)
    total = pool("e2-standard-4", autoscaling={"enabled": True, "totalMinNodeCount": 1, "totalMaxNodeCount": 3})
    assert (total.least, total.most) == (1, 3)
    assert pool("e2-standard-4", autoscaling={"enabled": False, "maxNodeCount": 3}).autoscaling == {}


def test_names_of_nodes_are_short_enough() -> None:
    cluster = {"name": "a" * 40, "location": "us-central1-a"}
    (group,) = groups_of(Pool(cluster, {"name": "b" * 40, "config": {}}, "project"))
    assert group.name.startswith(f"gke-{'a' * 16}-{'b' * 16}-")
    assert group.url.endswith(f"/zones/us-central1-a/instanceGroups/{group.name}-grp")


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("2", 2), ("1Gi", 2**30), ("1500Mi", 1500 * 2**20), ("1k", 1000), ("1e3", 1000), (3, 3)],
)
def test_quantities(text: str, value: float) -> None:
    assert quantity(text) == value


def node(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "n", "labels": labels}, "spec": {"taints": pool("n1-standard-4", gpus()).taints}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, ["node(s) had untolerated taint {nvidia.com/gpu: present}"]),
        ({"tolerations": [{"operator": "Exists"}]}, []),
        ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}, []),
        ({"tolerations": [{"key": "nvidia.com/gpu", "value": "present"}]}, []),
        (
            {"tolerations": [{"key": "nvidia.com/gpu", "value": "other"}]},
            ["node(s) had untolerated taint {nvidia.com/gpu: present}"],
        ),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "2"}}, [AFFINITY]),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "1"}}, []),
    ],
)
def test_selectors_and_taints(spec: dict[str, Any], why: list[str]) -> None:
    assert obstacles({"containers": [], **spec}, node(a="1"), amounts({"pods": "1"})) == why


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["1"], True),
        ("NotIn", ["1"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["0"], True),
        ("Lt", ["1"], False),
    ],
)
def test_affinity(operator: str, values: list[str], fits: bool) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"containers": [], "affinity": {"nodeAffinity": required}, "tolerations": [{"operator": "Exists"}]}
    assert (obstacles(spec, node(a="1"), amounts({"pods": "1"})) == []) is fits


def test_what_a_pod_asks_for() -> None:
    spec = {
        "containers": [
            {"resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}},
            {"resources": {"limits": {"cpu": "500m"}}},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "4"}}}],
        "tolerations": [{"operator": "Exists"}],
    }
    assert requests(spec) == {"pods": 1, "cpu": 4, "nvidia.com/gpu": 2}
    free = amounts({"cpu": "3", "nvidia.com/gpu": "2"})
    assert obstacles(spec, node(), free) == ["Too many pods", "Insufficient cpu"]


def headless(name: str, address: str = "None") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"clusterIP": address}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("train-0.train", "{0}"),
        ("tcp://train-0.train.team.svc.cluster.local:29500", "tcp://{0}:29500"),
        ("train-0.train,train-1.train", "{0},{1}"),
        ("train-0.other", "train-0.other"),
        ("train-0.train.elsewhere", "train-0.train.elsewhere"),
        ("train-0.trainer", "train-0.trainer"),
        ("web-0.web", "web-0.web"),
        ("train.py", "train.py"),
    ],
)
def test_names_of_pods_mean_this_machine(text: str, found: str) -> None:
    found = found.format(*(address("uid-train", f"train-{index}") for index in range(2)))
    assert local([text], [headless("train"), headless("web", "10.96.0.7")], "team") == [found]


def test_addresses_of_this_machine() -> None:
    found = {address("job", index) for index in range(200)}
    assert len(found) == 200 and found == {address("job", index) for index in range(200)}
    with (
        socket.create_server((address("job", 0), 0)) as one,
        socket.create_server((address("job", 1), one.getsockname()[1])),
    ):
        pass


def test_references() -> None:
    assert expand("$(A) $$(A) $(B) $C", {"A": "1"}) == "1 $(A) $(B) $C"
    assert command({"command": ["a", "$(X)"], "args": ["b"]}, {"X": "x"}) == ["a", "x", "b"]


def test_an_environment() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": {"a/b": "7"}, "labels": {"l": "8"}},
        "spec": {"nodeName": "node"},
    }
    kept = {("configmaps", "c"): {"data": {"k": "v"}}, ("secrets", "s"): {"data": {"k": "dw=="}}}

    def source(kind: str, **fields: Any) -> dict[str, Any]:
        return {"name": f"X{len(fields)}{kind}", "valueFrom": {kind: fields}}

    container = {
        "envFrom": [{"prefix": "C_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "no", "optional": True}}],
        "env": [
            source("secretKeyRef", name="s", key="k"),
            source("fieldRef", fieldPath="metadata.annotations['a/b']"),
            source("configMapKeyRef", name="c", key="no", optional=True),
            {"name": "LAST", "value": "$(C_k)"},
        ],
        "resources": {"limits": {"memory": "1500Mi"}},
    }
    found = environment(pod, container, lambda kind, name: kept.get((kind, name)))
    expected = {"HOSTNAME": "p", "C_k": "v", "X2secretKeyRef": "w", "X1fieldRef": "7", "LAST": "v"}
    assert found == expected
    for env, why in (
        (source("secretKeyRef", name="s", key="no"), "couldn't find key no in Secret n/s"),
        (source("configMapKeyRef", name="no", key="k"), 'configmap "no" not found'),
    ):
        with pytest.raises(ConfigError, match=why):
            environment(pod, {"env": [env]}, lambda kind, name: kept.get((kind, name)))
    rounded = source("resourceFieldRef", resource="limits.memory", divisor="1Gi")
    assert (
        environment(pod, {**container, "env": [rounded]}, lambda kind, name: kept.get((kind, name)))[rounded["name"]]
        == "2"
    )


def test_a_group_is_the_same_at_the_next_look() -> None:
    first, second = (groups_of(pool("e2-standard-4")) for _ in range(2))
    assert first == second
    assert len({*first, *second}) == 2
    assert first[0] != Group(pool("e2-standard-4"), "us-central1-c")
