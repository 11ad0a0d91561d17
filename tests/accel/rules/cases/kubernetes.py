"""Names, drivers, queues and volumes of Kubernetes."""

from accel.rules import Finding
from accel.rules.gke import drivers_daemonset, kueue, names, storage
from accel.rules.gke.kueue import PoolFacts, Share

from .case import Case

_NODE = {"cpu_m": 95_000, "memory_mib": 1_000_000, "gpus": 8}
SPOT = PoolFacts("spot", False, 4, _NODE, accelerator="nvidia-h100-80gb")
ON_DEMAND = PoolFacts("on-demand", False, 2, _NODE, accelerator="nvidia-h100-80gb")
QUEUED = PoolFacts("flex-start", True, 4, _NODE)
POOLS = {"spot": SPOT, "steady": ON_DEMAND, "flex": QUEUED}


def _queue(*shares: Share, cohort: str | None = None, **more: str | bool) -> list[Finding]:
    return kueue.queue(shares, POOLS, cohort=cohort, **more)


def _disk(disk_type: str, size_gib: int = 1024, **more: object) -> list[Finding]:
    given = {"many_readers": False, "existing": False, **more}
    return storage.disk(disk_type=disk_type, size_gib=size_gib, **given)


def _queues(**shares: list[Share]) -> list[Finding]:
    return kueue.queues(shares, POOLS, local_queues={})


def _tainted(taints: int) -> list[Finding]:
    pools = {"tainted": PoolFacts("spot", False, 1, _NODE, taints)}
    return kueue.queues({"q": [Share("tainted")]}, pools, local_queues={})


NAMES = [
    Case(
        "kubernetes.name.label", "namespace", ('"Team_A"',), "write team-a",
        lambda: names.label("Team_A", "namespace"), lambda: names.label("a" * 63),
    ),
    Case(
        "kubernetes.name.object", "claim", ('"data."',), "write data",
        lambda: names.subdomain("data.", "claim"), lambda: names.subdomain("data.v1"),
    ),
    Case(
        "kubernetes.name.config-key", "targets.a b", ('"a b"',), "write a-b",
        lambda: names.config_key("a b", "targets.a b"), lambda: names.config_key("A_b.c-d"),
    ),
]  # fmt: skip

DRIVERS = [
    Case(
        "gke.driver-installer.version", "version", ('"latest"', "ubuntu"), "default",
        lambda: drivers_daemonset.installer("ubuntu", "latest"),
        lambda: drivers_daemonset.installer("cos", "latest") + drivers_daemonset.installer("ubuntu", "R580"),
    ),
    Case(
        "gke.driver-installer.partition", "mig_partition", ("1g.24gb", "nvidia-rtx-pro-6000"), "driver: latest",
        lambda: drivers_daemonset.partition("1g.24gb", "nvidia-rtx-pro-6000"),
        lambda: drivers_daemonset.partition("1g.23gb", "nvidia-b200"),
    ),
    Case(
        "gke.driver-probe.gpu", "pools.cpu", ("no GPU",), "leave it out",
        lambda: drivers_daemonset.probe("cpu", gpus=0, queued=False, field="pools.cpu"),
        lambda: drivers_daemonset.probe("l4", gpus=1, queued=False, field="pools.l4"),
    ),
    Case(
        "gke.driver-probe.queued", "pools.flex", ("ProvisioningRequest",), "another pool",
        lambda: drivers_daemonset.probe("flex", gpus=8, queued=True, field="pools.flex"),
        lambda: drivers_daemonset.probe("l4", gpus=1, queued=False, field="pools.l4"),
    ),
]  # fmt: skip

QUEUES = [
    Case(
        "kueue.queue.pool", "pools[0].pool", ('"spott"',), "use spot",
        lambda: _queue(Share("spott")), lambda: _queue(Share("spot")),
    ),
    Case(
        "kueue.queue.duplicate-pool", "pools[1].pool", ("second time",), "once",
        lambda: _queue(Share("spot"), Share("spot")), lambda: _queue(Share("spot"), Share("steady")),
    ),
    Case(
        "kueue.queue.order", "pools[1].pool", ("spot (Spot)", "behind steady"), "first",
        lambda: _queue(Share("steady"), Share("spot")), lambda: _queue(Share("spot"), Share("steady")),
    ),
    Case(
        "kueue.queue.preemption", "preemption.borrow_in_cohort", ("LowerPriority",), "reclaim_in_cohort",
        lambda: _queue(Share("spot"), borrows="LowerPriority"),
        lambda: _queue(Share("spot"), borrows="LowerPriority", reclaims="Any"),
    ),
    Case(
        "kueue.quota.missing", "pools[0].nominal.memory_mib", ("spot has it",), "write it",
        lambda: _queue(Share("spot", {"gpus": 8, "cpu_m": 1000})), lambda: _queue(Share("spot", _NODE)),
    ),
    Case(
        "kueue.quota.no-accelerator", "pools", ("no gpus", "spot"), "give gpus",
        lambda: _queue(Share("spot", {**_NODE, "gpus": 0})),
        lambda: _queue(Share("spot", {**_NODE, "gpus": 0}, borrowing={"gpus": 8}), cohort="all"),
    ),
    Case(
        "kueue.quota.over-capacity", "queues", ("64 gpus of spot", "32"), "divide",
        lambda: _queues(one=[Share("spot")], two=[Share("spot")]),
        lambda: _queues(
            one=[Share("spot", {name: amount * 2 for name, amount in _NODE.items()})],
            two=[Share("spot", {name: amount * 2 for name, amount in _NODE.items()})],
        ),
    ),
    Case(
        "kueue.quota.limit-without-cohort", "pools[0].borrowing", ("no cohort",), "name a cohort",
        lambda: _queue(Share("spot", borrowing={"gpus": 8})),
        lambda: _queue(Share("spot", borrowing={"gpus": 8}), cohort="all"),
    ),
    Case(
        "kueue.quota.lending", "pools[0].lending.gpus", ("is 33", "32"), "at most 32",
        lambda: _queue(Share("spot", lending={"gpus": 33}), cohort="all"),
        lambda: _queue(Share("spot", lending={"gpus": 32}), cohort="all"),
    ),
    Case(
        "kueue.provisioning.missing", "pools[0].pool", ("flex", "ProvisioningRequest"), "add provisioning",
        lambda: _queue(Share("flex")), lambda: _queue(Share("flex"), provisioning=True),
    ),
    Case(
        "kueue.provisioning.no-pool", "provisioning", ("no pool",), "queued",
        lambda: kueue.queues({"q": [Share("spot")]}, POOLS, local_queues={}, provisioning=True),
        lambda: kueue.queues({"q": [Share("flex")]}, POOLS, local_queues={}, provisioning=True),
    ),
    Case(
        "kueue.local-queue.queue", "local_queues.ml.queue", ('"trian"',), "use train",
        lambda: kueue.queues({"train": [Share("spot")]}, POOLS, local_queues={"ml": "trian"}),
        lambda: kueue.queues({"train": [Share("spot")]}, POOLS, local_queues={"ml": "train"}),
    ),
    Case(
        "kueue.flavor.taints", "queues", ("tainted", "9 taints"), "drop taints",
        lambda: _tainted(9), lambda: _tainted(8),
    ),
]  # fmt: skip

VOLUMES = [
    Case(
        "gke.volume.disk-type", "type", ('"hyperdisk-balance"',), "use hyperdisk-balanced",
        lambda: _disk("hyperdisk-balance"), lambda: _disk("pd-balanced"),
    ),
    Case(
        "gke.volume.disk-machine", "type", ("g2-standard-8", "hyperdisk-balanced"), "hyperdisk-ml",
        lambda: storage.machines("hyperdisk-balanced", ["a3-highgpu-8g", "g2-standard-8"]),
        lambda: storage.machines("hyperdisk-balanced", ["a3-ultragpu-8g", "no-such-machine"]),
    ),
    Case(
        "gke.volume.disk-size", "size_gib", ("is 100", "2048"), "write 2048",
        lambda: _disk("hyperdisk-throughput", 100), lambda: _disk("hyperdisk-throughput", 2048),
    ),
    Case(
        "gke.volume.performance", "iops", ("is 5000", "hyperdisk-ml"), "hyperdisk-balanced",
        lambda: _disk("hyperdisk-ml", iops=5000), lambda: _disk("hyperdisk-ml", throughput_mib_s=500),
    ),
    Case(
        "gke.volume.read-only-new", "access", ("empty",), "existing disk",
        lambda: _disk("hyperdisk-ml", many_readers=True),
        lambda: _disk("hyperdisk-ml", many_readers=True, existing=True),
    ),
    Case(
        "gke.volume.filestore-size", "size_gib", ("is 1024", "basic-ssd", "2560"), "write 2560",
        lambda: storage.filestore("basic-ssd", 1024), lambda: storage.filestore("zonal", 1024),
    ),
]  # fmt: skip

CASES = NAMES + DRIVERS + QUEUES + VOLUMES
