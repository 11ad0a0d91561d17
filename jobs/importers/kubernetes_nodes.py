"""Nodes that a pod selects by labels. Sources: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus,
.../tpus, https://karpenter.sh/docs/concepts/scheduling/ and the labels of NVIDIA's GPU feature discovery."""

from dataclasses import dataclass
from typing import Any

from accel.catalog.tpu import NoSuchSlice, tpu
from accel.catalog.tpu_generations import GENERATIONS, Generation, Host
from accel.json_values import entries, object_at
from accel.rules.gcp.gpus import accelerator_name, find_accelerator

from .kubernetes_values import ManifestFields, at, gpus_of_machine
from .reading import Json
from .slurm_resources import catalog_gpu

GKE = "cloud.google.com/gke-"
SLICE = f"{GKE}tpu-slice-topology"
"""Annotation of a slice that is made of others. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing"""
_ACCELERATOR = (
    f"{GKE}accelerator",
    "nvidia.com/gpu.product",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/class",
    "gpu.nvidia.com/model",
)
_MACHINE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_SPOT = {
    f"{GKE}spot": {"true": True, "false": False},
    f"{GKE}preemptible": {"true": True, "false": False},
    f"{GKE}provisioning": {"spot": True, "preemptible": True, "standard": False},
    "karpenter.sh/capacity-type": {"spot": True, "on-demand": False},
    "eks.amazonaws.com/capacityType": {"SPOT": True, "ON_DEMAND": False},
    "kubernetes.azure.com/scalesetpriority": {"spot": True, "regular": False},
}
_OF_SPOT_ALONE = {f"{GKE}spot", f"{GKE}preemptible", "kubernetes.azure.com/scalesetpriority"}
"""Labels that only Spot nodes have."""
_OWN = "accelerator"
"""Label that people put on nodes themselves, and Azure with the value nvidia."""
_PLAIN = (
    "kubernetes.io/os",
    "beta.kubernetes.io/os",
    "nvidia.com/gpu.present",
    f"{GKE}gpu-driver-version",
)


@dataclass
class Machines:
    """Facts known about the machines. `kind` is an accelerator by any of its names."""

    count: int = 0
    count_at: str = ""
    is_tpu: bool = False
    kind: str = ""
    kind_at: str = ""
    topology: str = ""
    tpu_label: str = ""
    tpu_at: str = ""
    partition: str = ""
    sharing: str = ""
    spot: bool | None = None

    def put(self, given: ManifestFields, values: Json) -> None:
        if self.spot is not None:
            values["spot"] = self.spot
        if self.partition:
            values.setdefault("gke", {})["gpu_partition"] = self.partition
        if self.sharing:
            values.setdefault("gke", {})["gpu_sharing"] = self.sharing
        if self.is_tpu or self.tpu_label:
            self._slice(given, values)
        elif self.count:
            values["accelerator"] = {**({"type": self.kind} if self.kind else {}), "count": self.count}
        elif self.kind:
            why = "names nodes with GPUs, and the container asks for none: write nvidia.com/gpu into its limits"
            given.report.decide(given.name(self.kind_at), why, is_open=False)

    def hosts(self) -> int:
        """Return the number of hosts of the slice, or 1 if it is not known."""
        generation = _generation(self.tpu_label)
        try:
            found = tpu(generation.prefix, self.topology) if generation and self.topology else None
        except (NoSuchSlice, LookupError):
            return 1
        return max(1, found.chips // (self.count or found.chips_per_host)) if found else 1

    def _slice(self, given: ManifestFields, values: Json) -> None:
        report = given.report
        generation = _generation(self.tpu_label)
        at_ = self.tpu_at or self.count_at
        if generation is None or not self.topology:
            said = f"needs the labels {GKE}tpu-accelerator and {GKE}tpu-topology, which say which slice it is"
            report.decide(given.name(at_), said)
            return
        try:
            found = tpu(generation.prefix, self.topology)
        except (NoSuchSlice, LookupError) as error:
            report.refuse(given.name(f"{at_}"), str(error)[:200])
            return
        name = found.name
        if found.topology != _default(name):
            name = f"{generation.prefix}-{found.topology}"
        accelerator: Json = {"type": name}
        values["accelerator"] = accelerator
        if self.count and self.count != found.chips_per_host:
            accelerator["count"] = self.count
            if self.hosts() > 1:
                values["nodes"] = self.hosts()


def _generation(label: str) -> Generation | None:
    """Return the TPU generation of a GKE label, or None. A generation older than GKE's has no label."""
    if not label:
        return None
    return next((each for each in GENERATIONS if any(host.gke_label == label for host in _hosts(each))), None)


def _hosts(generation: Generation) -> list[Host]:
    return [generation.several, *generation.single, *generation.devices]


def _default(name: str) -> str:
    try:
        return tpu(name).topology
    except (NoSuchSlice, LookupError):
        return ""


def machines(given: ManifestFields, document: Any, spec: str, found: Machines) -> None:
    """Read the nodeSelector and the affinity of a pod, and the annotation of a slice that GKE makes of several."""
    for key, value in object_at(at(document, f"{spec}.nodeSelector")).items():
        path = f"{spec}.nodeSelector.{key}"
        if path in given.values:
            _label(given, path, key, [value], found)
    path = f"{spec.removesuffix('spec')}metadata.annotations.{SLICE}"
    if topology := given.text(path):
        found.topology = topology
        given.report.changed(given.name(path), "accelerator.type", "is part of a slice's name")
    base = f"{spec}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = entries(at(document, base))
    for number, term in enumerate(terms):
        if len(terms) > 1:
            given.settle(f"{base}[{number}]", "is one of several choices of nodes; a target has its pools")
            continue
        for index, each in enumerate(entries(object_at(term).get("matchExpressions"))):
            path = f"{base}[{number}].matchExpressions[{index}]"
            key, operator = object_at(each).get("key"), object_at(each).get("operator")
            values = entries(object_at(each).get("values"))
            if isinstance(key, str) and operator == "In" and len(values) == 1:
                _label(given, f"{path}.values", key, values, found)
                for part in ("key", "operator"):
                    _as(given, f"{path}.{part}", f"{path}.values")
            elif operator in ("Exists", "DoesNotExist") and key in _OF_SPOT_ALONE:
                found.spot = operator == "Exists"
                new, why = ("spot: true", "is a node of Spot") if found.spot else ("spot: false", "is a node on demand")
                for part in ("key", "operator"):
                    given.report.changed(given.name(f"{path}.{part}"), new, why)
            else:
                given.settle(path, "chooses nodes by a label; a target has its pools: gke.pools")
    given.settle(f"{spec}.affinity.podAffinity", "says where pods stand to others; a target places them")
    given.settle(f"{spec}.affinity.podAntiAffinity", "says where pods stand to others; a target places them")
    for path in given.paths(f"{spec}.affinity"):
        if not given.report.is_settled(given.name(path)):
            if ".preferredDuringSchedulingIgnoredDuringExecution" in path:
                given.report.changed(given.name(path), None, "is a wish, and a target has its pools")
            elif ".matchFields" in path:
                given.report.decide(given.name(path), "names a node; a target has pools", is_open=False)


def _as(given: ManifestFields, path: str, other: str) -> None:
    """Report a part of a condition in the same way as its value."""
    report = given.report
    if report.stopped_by(given.name(other)):
        report.refuse(given.name(path), "is of a label whose value cannot be had")
    else:
        report.changed(given.name(path), None, "its value says which nodes")


def _label(given: ManifestFields, path: str, key: str, values: list[Any], found: Machines) -> None:
    report, name = given.report, given.name(path)
    value = values[0]
    if not isinstance(value, str):
        if isinstance(value, bool):
            value = str(value).lower()
        else:
            report.refuse(name, "must be text")
            return
    if key in _ACCELERATOR or (key == _OWN and (find_accelerator(value) or catalog_gpu(value))):
        _accelerator(given, path, value, found)
    elif key in _MACHINE:
        _machine(given, path, value, found)
    elif key in _SPOT:
        spot = _SPOT[key].get(value)
        if spot is None:
            report.decide(name, "says how nodes are had; see spot", is_open=False)
        else:
            found.spot = spot
            report.changed(name, f"spot: {str(spot).lower()}", "says how nodes are had")
    elif key == f"{GKE}tpu-accelerator":
        found.tpu_label, found.tpu_at = value, path
        if value and _generation(value):
            report.changed(name, "accelerator.type", "is part of a slice's name")
        else:
            report.refuse(name, "is no TPU of GKE")
    elif key == f"{GKE}tpu-topology":
        found.topology = value
        report.changed(name, "accelerator.type", "is part of a slice's name")
    elif key == f"{GKE}gpu-partition-size":
        found.partition = value
        report.changed(name, "gke.gpu_partition", "has this name in a job file")
    elif key == f"{GKE}gpu-sharing-strategy" and value in ("time-sharing", "mps"):
        found.sharing = value
        report.changed(name, "gke.gpu_sharing", "has this name in a job file")
    elif key in _PLAIN or (key, value) in ((_OWN, "nvidia"), ("kubernetes.io/arch", "amd64")):
        report.changed(name, None, "the target's pools are so")
    elif key in (f"{GKE}accelerator-count", "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count"):
        report.changed(name, None, "a machine is chosen that has what the job asks for")
    else:
        report.decide(name, "chooses nodes by a label; a target has its pools: gke.pools", is_open=False)


def _accelerator(given: ManifestFields, path: str, value: str, found: Machines) -> None:
    report, name = given.report, given.name(path)
    kind = value if find_accelerator(value) else catalog_gpu(value)
    if not kind:
        report.findings(name, accelerator_name(value, "accelerator", cloud="aws"))
        return
    if found.kind and find_accelerator(found.kind) != find_accelerator(kind):
        report.refuse(name, f"is another accelerator than {found.kind}")
        return
    found.kind, found.kind_at = found.kind or kind, found.kind_at or path
    if kind == value:
        given.keep(path, "accelerator.type")
    else:
        report.changed(name, f"accelerator.type: {kind}", "has this name in the catalogue")


def _machine(given: ManifestFields, path: str, value: str, found: Machines) -> None:
    report, name = given.report, given.name(path)
    own = gpus_of_machine(value)
    if own is None:
        report.decide(name, "is a machine of another cloud, or not known; a target has its own", is_open=False)
    elif not own[0]:
        report.decide(name, "is a machine type; a target has its own: gke.pools", is_open=False)
    else:
        found.kind, found.kind_at = found.kind or own[0], found.kind_at or path
        report.changed(name, f"accelerator.type: {own[0]}", f"is a machine with {own[1]} of them")
