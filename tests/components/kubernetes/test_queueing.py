"""What Queueing sends to Kueue."""

from typing import Any

import pytest

from accel.contract.gke import Taint
from components.kubernetes.queueing import Queueing, QueueingArgs, QueueingSpec, flavor, quantity
from tests.support import memory

from . import makers


def bodies(changes: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    document = {**makers.QUEUES, **(changes or {})}
    args = QueueingArgs(spec=QueueingSpec.model_validate(document), pools=makers.POOLS)
    seen = memory.run(lambda: Queueing("q", args)).registrations
    return {
        f"{one.inputs['kind']}/{one.inputs['metadata']['name']}": one.inputs for one in seen if ":kueue" in one.type
    }


def test_a_flavor_is_a_pool_with_its_labels_and_tolerations() -> None:
    spec = bodies()["ResourceFlavor/spot"]["spec"]
    assert spec["nodeLabels"] == {
        "cloud.google.com/gke-nodepool": "spot-0a1b2c3",
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
    }
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule", "operator": "Equal", "value": "present"},
        {"key": "cloud.google.com/gke-spot", "effect": "NoSchedule", "operator": "Equal", "value": "true"},
    ]


def test_a_queue_covers_all_that_pods_request_in_one_order() -> None:
    (group,) = bodies()["ClusterQueue/train"]["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"]
    for each in group["flavors"]:
        assert [one["name"] for one in each["resources"]] == group["coveredResources"]
    spot, steady, _ = group["flavors"]
    assert spot["resources"][0] == {"name": "cpu", "nominalQuota": "413740m", "lendingLimit": "206870m"}
    assert spot["resources"][3] == {
        "name": "nvidia.com/gpu",
        "nominalQuota": "16",
        "borrowingLimit": "8",
        "lendingLimit": "8",
    }
    assert steady["resources"][3] == {"name": "nvidia.com/gpu", "nominalQuota": "32"}


def test_a_pool_without_tpus_has_none_of_them() -> None:
    (group,) = bodies()["ClusterQueue/batch"]["spec"]["resourceGroups"]
    quotas = {
        one["name"]: {each["name"]: each["nominalQuota"] for each in one["resources"]} for one in group["flavors"]
    }
    assert (quotas["cpu"]["google.com/tpu"], quotas["tpu"]["google.com/tpu"]) == ("0", "16")


def test_only_queued_pools_are_asked_for() -> None:
    made = bodies()
    checks = made["ClusterQueue/train"]["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert checks == [{"name": "accel-q", "onFlavors": ["flex"]}]
    assert "admissionChecksStrategy" not in made["ClusterQueue/batch"]["spec"]
    config = made["ProvisioningRequestConfig/accel-q"]["spec"]
    assert config["managedResources"] == ["nvidia.com/gpu"]
    assert config["provisioningClassName"] == "queued-provisioning.gke.io"


def test_only_namespaces_with_a_local_queue_may_submit() -> None:
    (expression,) = bodies()["ClusterQueue/train"]["spec"]["namespaceSelector"]["matchExpressions"]
    assert (expression["key"], expression["values"]) == ("kubernetes.io/metadata.name", ["ml"])


def test_a_queue_goes_before_what_it_names() -> None:
    seen = memory.run(lambda: makers.queueing("q"))
    train = next(one for one in seen.of(":ClusterQueue") if one.name == "q-queue-train")
    names = {urn.rpartition("::")[2] for urn in train.dependencies}
    assert {"q-spot", "q-steady", "q-flex", "q-check"} <= names


def test_priorities_have_their_value_beside_the_spec() -> None:
    made = bodies()["WorkloadPriorityClass/urgent"]
    assert (made["value"], "spec" in made) == (1000, False)


def test_rules_over_pools_stop_the_component() -> None:
    wrong = {"queues": {"train": {"pools": [{"pool": "spto"}]}}, "local_queues": {}, "provisioning": None}
    with pytest.raises(ValueError, match=r'queues.train.pools\[0\].pool: is "spto".*use spot'):
        bodies(wrong)


def test_amounts_are_whole_nodes_with_single_resources_replaced() -> None:
    amounts = (
        QueueingSpec.model_validate(
            {"queues": {"q": {"pools": [{"pool": "spot", "nominal": {"nodes": 2, "gpus": 3}}]}}}
        )
        .queues["q"]
        .pools[0]
        .nominal
    )
    assert amounts is not None
    assert amounts.of({"cpu_m": 1000, "gpus": 8}) == {"cpu_m": 2000, "gpus": 3}


@pytest.mark.parametrize(
    "name, amount, text",
    [
        ("cpu_m", 95_890, "95890m"),
        ("cpu_m", 96_000, "96"),
        ("memory_mib", 2048, "2Gi"),
        ("memory_mib", 100, "100Mi"),
        ("gpus", 8, "8"),
        ("memory_mib", 0, "0"),
    ],
)
def test_quantities_are_kubernetes(name: str, amount: int, text: str) -> None:
    assert quantity(name, amount) == text


def test_a_taint_without_value_is_tolerated_by_its_key() -> None:
    one = makers.pool("odd", taints=[Taint(key="team", effect="NO_EXECUTE")])
    assert flavor(one)["tolerations"] == [{"key": "team", "effect": "NoExecute", "operator": "Exists"}]
