"""What each Kubernetes component sends for the values that it is given."""

from collections.abc import Callable
from typing import Any

import pytest

from accel.catalog.xids import cordoning, xids
from accel.diagnostics.faults import find
from components.kubernetes.drivers import DriverInstaller, DriverInstallerArgs, DriverInstallerSpec
from components.kubernetes.health import GpuHealth, GpuHealthSpec
from components.kubernetes.namespace import JobNamespace, JobNamespaceArgs, JobNamespaceSpec
from components.kubernetes.operator import OperatorNamespaceSpec
from components.kubernetes.probe import DriverProbe, DriverProbeArgs, DriverProbeSpec
from components.kubernetes.target_map import MOST_BYTES, PublishedTargets, PublishedTargetsArgs, PublishedTargetsSpec
from components.kubernetes.target_map import check_size as bounded_targets
from tests.support import memory

from . import makers


def inputs(program: Callable[[], Any], kind: str) -> dict[str, Any]:
    return memory.run(program).one(f":{kind}").inputs


def pod(program: Callable[[], Any], kind: str = "DaemonSet") -> dict[str, Any]:
    return inputs(program, kind)["spec"]["template"]["spec"]


def terms(spec: dict[str, Any]) -> list[dict[str, tuple[str, list[str]]]]:
    found = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [
        {one["key"]: (one["operator"], one.get("values", [])) for one in term["matchExpressions"]} for term in found
    ]


def refused(program: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        memory.run(program)


# Drivers. The facts are those of nvidia-driver-installer/cos/daemonset-preloaded-latest.yaml of
# GoogleCloudPlatform/container-engine-accelerators.


def test_the_installer_lands_on_its_pools_and_never_beside_gkes_own() -> None:
    without, disabled = terms(pod(lambda: makers.installer("driver")))
    for term in (without, disabled):
        assert term["cloud.google.com/gke-nodepool"] == ("In", ["a-1", "b-2"])
        assert term["cloud.google.com/gke-accelerator"] == ("Exists", [])
        assert term["cloud.google.com/gke-confidential-nodes-instance-type"] == ("DoesNotExist", [])
    assert without["cloud.google.com/gke-gpu-driver-version"] == ("DoesNotExist", [])
    assert disabled["cloud.google.com/gke-gpu-driver-version"] == ("In", ["disabled"])


def test_the_cos_installer_is_googles() -> None:
    made = inputs(lambda: makers.installer("driver", version="latest"), "DaemonSet")
    assert made["metadata"]["name"] == "nvidia-driver-installer"
    assert made["metadata"]["namespace"] == "kube-system"
    spec = made["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["hostNetwork"] is True and spec["hostPID"] is True
    driver, partitions = spec["initContainers"]
    assert (driver["image"], driver["imagePullPolicy"]) == ("cos-nvidia-installer:fixed", "Never")
    assert driver["securityContext"] == {"privileged": True}
    assert "/cos-gpu-installer install --version=latest" in driver["command"][-1]
    assert partitions["image"].startswith("gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85e"), "knows B200"
    assert [one["name"] for one in spec["containers"]] == ["pause"]
    assert {one["hostPath"]["path"] for one in spec["volumes"]} == {
        "/dev",
        "/home/kubernetes/bin/nvidia/vulkan/icd.d",
        "/home/kubernetes/bin/nvidia",
        "/",
        "/var/lib/cos-tools",
        "/etc/nvidia",
    }


def test_every_mount_has_its_volume() -> None:
    for make in (makers.MAKERS["driver-installer-cos"], makers.MAKERS["driver-installer-ubuntu"]):
        spec = pod(lambda make=make: make("driver"))
        mounts = {one["name"] for each in spec["initContainers"] for one in each["volumeMounts"]}
        assert mounts == {one["name"] for one in spec["volumes"]}


def test_two_versions_are_two_daemon_sets_with_selectors_of_their_own() -> None:
    def program() -> None:
        makers.installer("one")
        makers.installer("two", version="latest")

    made = [one.inputs for one in memory.run(program).of(":DaemonSet")]
    assert len({one["metadata"]["name"] for one in made}) == 2
    assert len({str(one["spec"]["selector"]) for one in made}) == 2
    for one in made:
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert labels == one["spec"]["selector"]["matchLabels"]
        assert labels["k8s-app"] == "nvidia-driver-installer"


def test_ubuntu_has_its_own_installer_and_branch() -> None:
    spec = pod(lambda: makers.installer("driver", node_image="ubuntu", version="R580"))
    (driver,) = spec["initContainers"]
    assert driver["image"] == "gke-nvidia-installer:fixed"
    assert driver["env"] == [{"name": "NVIDIA_DRIVER_VERSION", "value": "580.65.06"}]
    assert "hostNetwork" not in spec


def test_an_installer_without_pools_is_refused() -> None:
    args = DriverInstallerArgs(spec=DriverInstallerSpec(), pool_names=[])
    refused(lambda: DriverInstaller("driver", args), "pool_names: is empty")


def test_latest_is_not_ubuntus_and_the_operator_not_for_cos() -> None:
    (fault,) = find(DriverInstallerSpec, {"node_image": "ubuntu", "version": "latest"})
    assert fault.path == ("version",)
    (fault,) = find(OperatorNamespaceSpec, {"node_image": "cos"})
    assert fault.path == ("node_image",)


def test_critical_pods_of_the_operator_have_a_quota() -> None:
    spec = inputs(lambda: makers.MAKERS["operator-namespace"]("operator"), "ResourceQuota")["spec"]
    (selector,) = spec["scopeSelector"]["matchExpressions"]
    assert (selector["scopeName"], selector["operator"]) == ("PriorityClass", "In")
    assert "system-node-critical" in selector["values"]


def test_a_probe_is_one_gpu_on_one_pool_that_the_engine_waits_for() -> None:
    jobs = memory.run(lambda: makers.MAKERS["driver-probe"]("probe")).of(":Job")
    spot = next(one.inputs for one in jobs if one.name == "probe-spot")
    assert spot["metadata"]["annotations"] == {"pulumi.com/timeoutSeconds": "1800"}
    assert (spot["spec"]["activeDeadlineSeconds"], spot["spec"]["ttlSecondsAfterFinished"]) == (1860, 600)
    spec = spot["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"cloud.google.com/gke-nodepool": "spot-0a1b2c3"}
    assert [one["key"] for one in spec["tolerations"]] == ["nvidia.com/gpu", "cloud.google.com/gke-spot"]
    (container,) = spec["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert container["command"] == ["nvidia-smi", "-L"] and "@sha256:" in container["image"]


@pytest.mark.parametrize(
    ("key", "driver", "named"),
    [
        ("l4", "operator", "driver-probe-l4-operator"),
        ("a" * 32, "daemonset", f"driver-probe-{'a' * 32}-daemonse"),  # 63 with what Pulumi appends
    ],
)
def test_a_probe_is_named_after_pool_and_driver(key: str, driver: str, named: str) -> None:
    pools = {key: makers.pool(key, driver=driver)}
    args = DriverProbeArgs(spec=DriverProbeSpec(timeout_s=10), namespace="ml", pools=pools)
    made = memory.run(lambda: DriverProbe("driver-probe", args)).one(":Job")
    assert made.name == named and len(f"{named}-0a1b2c3d") <= 63


@pytest.mark.parametrize("key, says", [("cpu", "no GPU"), ("flex", "ProvisioningRequest")])
def test_a_pool_that_cannot_be_probed_is_refused(key: str, says: str) -> None:
    args = DriverProbeArgs(spec=DriverProbeSpec(), namespace="ml", pools={key: makers.POOLS[key]})
    refused(lambda: DriverProbe("probe", args), f"pools.{key}: .*{says}")


# Health and metrics.


def test_the_default_list_is_what_nvidia_answers_with_a_reset() -> None:
    known = xids()
    assert {48, 79, 95, 119} <= set(cordoning())
    assert not {13, 31, 43, 45, 63, 94} & set(cordoning())
    assert all(known[number].action != "RESTART_APP" for number in cordoning())


def test_the_list_and_the_script_lie_in_the_config_map() -> None:
    data = inputs(lambda: GpuHealth("health", GpuHealthSpec(xids=[79, 48, 79, 9999])), "ConfigMap")["data"]
    assert data["xids"] == "48 # uncorrectable memory error\n79 # GPU fell off the bus\n9999\n"
    assert data["cordon.py"].startswith('"""Cordon the node that')


def test_the_health_account_may_read_and_change_nodes_and_nothing_else() -> None:
    (rule,) = inputs(lambda: GpuHealth("health", GpuHealthSpec()), "ClusterRole")["rules"]
    assert (rule["apiGroups"], rule["resources"], rule["verbs"]) == ([""], ["nodes"], ["get", "patch"])


def test_another_list_starts_no_pod_anew_and_cordon_can_be_off() -> None:
    one, other = (
        inputs(lambda spec=spec: GpuHealth("health", spec), "DaemonSet")["spec"]["template"]
        for spec in (GpuHealthSpec(xids=[79]), GpuHealthSpec(xids=[48], cordon=False))
    )
    assert one["metadata"] == other["metadata"]
    off = {each["name"]: each.get("value") for each in other["spec"]["containers"][0]["env"]}
    assert off["CORDON"] == "no"


def test_the_exporter_reads_its_counters_and_is_collected() -> None:
    seen = memory.run(lambda: makers.MAKERS["dcgm-exporter"]("dcgm"))
    config = seen.one(":ConfigMap").inputs
    assert "DCGM_FI_DEV_XID_ERRORS, gauge, number of the last XID error\n" in config["data"]["counters.csv"]
    spec = seen.one(":DaemonSet").inputs["spec"]["template"]
    assert spec["spec"]["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]
    environment = {one["name"]: one["value"] for one in spec["spec"]["containers"][0]["env"]}
    assert environment["DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE"] == "device-name"
    assert environment["DCGM_EXPORTER_INTERVAL"] == "30000"
    monitoring = seen.one(":PodMonitoring").inputs
    assert monitoring["spec"]["selector"]["matchLabels"].items() <= spec["metadata"]["labels"].items()
    assert monitoring["metadata"]["namespace"] == config["metadata"]["namespace"]


# Namespaces and targets.


def test_a_namespace_has_its_account_and_pod_security() -> None:
    seen = memory.run(lambda: makers.namespace("ml", pod_security="privileged"))
    labels = seen.one(":Namespace").inputs["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    account = seen.one(":ServiceAccount").inputs["metadata"]
    assert account["annotations"] == {"iam.gke.io/gcp-service-account": "jobs@p.iam.gserviceaccount.com"}
    assert (account["namespace"], account["name"]) == ("ml", "jobs")
    assert not seen.of(":ResourceQuota")


def test_a_namespace_is_closed_unless_it_is_opened() -> None:
    seen = memory.run(lambda: makers.namespace("ml"))
    labels = seen.one(":Namespace").inputs["metadata"]["labels"]
    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn")} == {"restricted"}
    assert seen.one(":NetworkPolicy").inputs["spec"]["policyTypes"] == ["Ingress"]
    opened = memory.run(lambda: makers.namespace("ml", pod_security="baseline", network="open"))
    assert opened.one(":Namespace").inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert not opened.of(":NetworkPolicy")


def test_without_a_google_account_there_is_no_annotation() -> None:
    args = JobNamespaceArgs(spec=JobNamespaceSpec(namespace="ml"))
    assert "annotations" not in inputs(lambda: JobNamespace("ml", args), "ServiceAccount")["metadata"]


def test_the_default_account_is_kubernetes_own() -> None:
    (fault,) = find(JobNamespaceSpec, {"namespace": "ml", "service_account": "default"})
    assert fault.path == ("service_account",)


def test_targets_lie_under_their_names() -> None:
    args = PublishedTargetsArgs(
        spec=PublishedTargetsSpec(namespace="ml"), targets={"train": '{"kind": "gke"}', "b": "{}"}
    )
    made = inputs(lambda: PublishedTargets("targets", args), "ConfigMap")
    assert made["metadata"] == {"name": "accel-targets", "namespace": "ml"}
    assert made["data"] == {"train": '{"kind": "gke"}', "b": "{}"}


def test_targets_that_no_config_map_holds_are_refused() -> None:
    assert bounded_targets({"a": "x" * (MOST_BYTES - 1)})
    with pytest.raises(ValueError, match=f"have {MOST_BYTES + 1} bytes"):
        bounded_targets({"a": "x" * MOST_BYTES})
