"""The maximum of each resource: accelerators, and USD per hour on demand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from accel import cost
from accel.catalog import accelerator as accelerator_named
from accel.catalog import expand, machine
from accel.catalog.gke_machines import node_machine
from accel.catalog.node_prices import find_price, slice_host, with_gpus
from accel.catalog.prices import Price
from accel.catalog.tpu import Slice, tpu, tpu_pool
from accel.cost import UNKNOWN, Amount
from accel.rules.aws.types import BUNDLES
from accel.rules.gcp.vms import gpu_machine_name

from .resource import Resource, View

SPOT = ("spot", "flex-start")
"""Capacities of a spec that count as Spot."""


@dataclass(frozen=True)
class Capacity:
    """Maximum content of one resource: GPUs and TPU chips, USD per hour on demand, and whether it is Spot."""

    accelerators: int
    worst: Amount
    spot: bool


def capacities(resource: Resource) -> Iterator[Capacity]:
    """Yield nothing for a type that holds no machines, nor for reservations: what runs in them is counted where it is
    created. Raise UnknownValue, and LookupError for a machine that the catalogue does not have."""
    maker = MAKERS.get(resource.type)
    if maker:
        yield from maker(resource)


def _region(place: str) -> str:
    return place.rpartition("-")[0] if place.count("-") == 2 else place  # us-central1-a, us-central1


def _batch(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    own = view.inside("computeResources")
    kind = own.text("type")
    if kind not in ("EC2", "SPOT"):
        return
    limit = own.number("minVcpus" if view.text("state") == "DISABLED" else "maxVcpus") or 0
    types = own.texts("instanceTypes")
    machines = expand([each for each in types if each not in BUNDLES])
    region = _aws_region(resource)
    options = [cost.Option(each.name, each.vcpus, find_price("aws", region, each.name).on_demand) for each in machines]
    counts = [cost.instances(round(limit), each.vcpus) * each.whole_accelerators for each in machines]
    worst = cost.pool(options, min_vcpus=0, max_vcpus=round(limit), utilisation=1, on_spot=False).worst
    if limit and set(types) & set(BUNDLES):  # of machines without GPUs, which AWS chooses
        worst = Amount(worst.usd, at_least=True)
    yield Capacity(max(counts, default=0), worst, kind == "SPOT")


def _aws_region(resource: Resource) -> str:
    return resource.view.text("region") or View(resource.provider or {}, "provider").text("region")


def _ec2(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    own = machine("aws", view.text("instanceType"))
    spot = view.text("instanceMarketOptions.marketType") == "spot"
    yield _times(1, own.whole_accelerators, find_price("aws", _aws_region(resource), own.name), spot)


def _node_pool(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    nodes = view.number("autoscaling.totalMaxNodeCount")
    if nodes is None:
        # A regional cluster has three zones unless it names them:
        # https://docs.cloud.google.com/kubernetes-engine/docs/concepts/regional-clusters
        zones = len(view.texts("nodeLocations")) or (1 if view.text("location").count("-") == 2 else 3)
        sizes = (view.number(path) for path in ("autoscaling.maxNodeCount", "nodeCount", "initialNodeCount"))
        nodes = next((size for size in sizes if size is not None), 0.0) * zones
    config = view.inside("nodeConfig")
    name, topology = config.text("machineType"), view.text("placementPolicy.tpuTopology")
    region = _region(view.text("location"))
    if topology:
        host = tpu_pool(name, topology)
        yield _times(nodes, host.chips_per_host, slice_host(region, host), _spot(config))
    else:
        yield _times(nodes, *_gpus(region, name, config), _spot(config))


def _spot(config: View) -> bool:
    return config.true("spot") or config.true("preemptible") or config.true("flexStart")


def _gpus(region: str, name: str, view: View) -> tuple[int, Price]:
    """Return the GPUs of one machine, built in or attached to it, and its price."""
    own = node_machine(name)
    attached = [(gpu.text("type"), round(gpu.number("count") or 0)) for gpu in view.each("guestAccelerators")]
    if own.accelerator or not attached:
        return own.whole_accelerators, find_price("gcp", region, name)
    kind, count = attached[0]
    return count, with_gpus(region, name, accelerator_named(kind.rpartition("/")[2]).name, count)


def _times(count: float, accelerators: int, price: Price, spot: bool) -> Capacity:
    usd = UNKNOWN if price.on_demand is None and count else Amount((price.on_demand or 0.0) * count)
    return Capacity(round(count * accelerators), usd, spot)


def _instance(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    name, region = view.text("machineType").rpartition("/")[2], _region(view.text("zone"))
    spot = view.text("scheduling.provisioningModel") in ("SPOT", "FLEX_START") or view.true("scheduling.preemptible")
    yield _times(1, *_gpus(region, name, view), spot)


def _group(resource: Resource) -> Iterator[Capacity]:
    """Read the component's spec: the template is not known before the update."""
    spec = resource.view.inside("spec")
    zone, accelerator = spec.text("zone"), spec.text("accelerator")
    number = round(spec.number("accelerator_count") or 1)
    name = gpu_machine_name(spec.text("machine_type"), accelerator, number, zone)
    count, price = _gpus(_region(zone), name, View({}))
    if accelerator and not count:
        count, price = number, with_gpus(_region(zone), name, accelerator_named(accelerator).name, number)
    yield _times(spec.number("size") or 0, count, price, spec.text("capacity") in SPOT)


def _tpu(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    nodes = [spec.inside("node") for spec in view.each("tpu.nodeSpecs")] or [view]
    for node in nodes:
        spot = node.true("schedulingConfig.spot") or node.true("schedulingConfig.preemptible")
        yield _slice(_region(view.text("zone")), _asked(node), spot)


def _asked(node: View) -> Slice:
    topology = node.text("acceleratorConfig.topology")
    if not topology:
        return tpu(node.text("acceleratorType"))
    # The API's types of generations, such as V5LITE_POD, by the catalogue's names.
    name = {"V5LITE_POD": "v5litepod", "V2": "v2", "V3": "v3", "V4": "v4", "V5P": "v5p", "V6E": "v6e"}
    return tpu(name[node.text("acceleratorConfig.type")], topology)


def _slice(region: str, own: Slice, spot: bool) -> Capacity:
    return _times(1, own.chips, find_price("gcp", region, own.name), spot)


def _queued(resource: Resource) -> Iterator[Capacity]:
    """Yield the TPUs that are declared in a bucket, from the component's spec."""
    spec = resource.view.inside("spec")
    own = tpu(spec.text("accelerator_type"), spec.text("topology") or None)
    price, count = find_price("gcp", _region(spec.text("zone")), own.name), spec.number("slices") or 1
    yield _times(count, own.chips, price, spec.text("capacity") in SPOT)


def _persistent(resource: Resource) -> Iterator[Capacity]:
    view = resource.view
    for pool in view.each("resourcePools"):
        count = pool.number("autoscalingSpec.maxReplicaCount") or pool.number("replicaCount") or 1
        own = node_machine(pool.text("machineSpec.machineType"))
        kind, region = pool.text("machineSpec.acceleratorType"), view.text("location")
        gpus = own.whole_accelerators or round(pool.number("machineSpec.acceleratorCount") or 0)
        attached = kind and not own.accelerator
        price = (
            with_gpus(region, own.name, accelerator_named(kind).name, gpus)
            if attached
            else find_price("gcp", region, own.name)
        )
        yield _times(count, gpus, price, spot=False)


MAKERS: dict[str, Callable[[Resource], Iterator[Capacity]]] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": _batch,
    "aws:ec2/instance:Instance": _ec2,
    "gcp:container/nodePool:NodePool": _node_pool,
    "gcp:compute/instance:Instance": _instance,
    "accel:gcp:GpuVmGroup": _group,
    "gcp:tpu/v2Vm:V2Vm": _tpu,
    "gcp:tpu/v2QueuedResource:V2QueuedResource": _tpu,
    "accel:gcp:QueuedTpu": _queued,
    "gcp:vertex/aiPersistentResource:AiPersistentResource": _persistent,
}
