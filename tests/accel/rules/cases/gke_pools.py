"""Node pools of GKE: one breach and one near miss for each rule."""

from accel.rules.gke import capacity, drivers, labels, nodes, sharing, tpus

from .case import Case

G2, A2 = "g2-standard-8", "a2-highgpu-4g"
FLEX = {"min_nodes": 0, "initial_nodes": 0, "auto_repair": None, "location_policy": None, "upgrade": None}
SLICE = {"min_nodes": 0, "initial_nodes": 0, "zone_count": 1, "policy": None}

LABELS = [
    Case(
        "gke.pool.name", "pools", ("33 characters", "32"), "shorten",
        lambda: labels.pool_name("a" * 33), lambda: labels.pool_name("a" * 32),
    ),
    Case(
        "gke.label.key", "labels.a b", ('"a b"',), "company.com/team",
        lambda: labels.labels({"a b": "1"}), lambda: labels.labels({"company.com/a.b": "1"}),
    ),
    Case(
        "gke.label.value", "labels.team", ('"ml!"',), "63 letters",
        lambda: labels.labels({"team": "ml!"}), lambda: labels.labels({"team": ""}),
    ),
    Case(
        "gke.label.kubelet", "labels.node-role.kubernetes.io/gpu", ("reserved",), "company.com/gpu",
        lambda: labels.labels({"node-role.kubernetes.io/gpu": "1"}),
        lambda: labels.labels({"notkubernetes.io/gpu": "1"}),
    ),
    Case(
        "gke.label.system", "labels.cloud.google.com/compute-class", ("GKE may set",), "a domain of your own",
        lambda: labels.labels({"cloud.google.com/compute-class": "gpu"}),
        lambda: labels.labels({"cloud.company.com/class": "gpu"}),
    ),
    Case(
        "gke.label.size", "labels", ("1025 characters", "1024"), "leave some out",
        lambda: labels.labels({"a" * 5: "v", **{f"k{i:02}": "v" * 60 for i in range(16)}, "b" * 5: "v" * 6}),
        lambda: labels.labels({"a" * 5: "v", **{f"k{i:02}": "v" * 60 for i in range(16)}, "b" * 5: "v" * 5}),
    ),
    Case(
        "gke.taint.twice", "taints[1]", ("second team", "NO_SCHEDULE"), "one of the two",
        lambda: labels.taints([("team", "a", "NO_SCHEDULE"), ("team", "b", "NO_SCHEDULE")]),
        lambda: labels.taints([("team", "a", "NO_SCHEDULE"), ("team", "a", "NO_EXECUTE")]),
    ),
    Case(
        "gke.taint.own", "taints[0]", ("nvidia.com/gpu", "itself"), "no other pool",
        lambda: labels.taints([("nvidia.com/gpu", "present", "NO_SCHEDULE")]),
        lambda: labels.taints([("team", "ml", "NO_SCHEDULE")]),
    ),
]  # fmt: skip

DRIVERS = [
    Case(
        "gke.driver.latest-ubuntu", "driver", ("UBUNTU_CONTAINERD",), "COS_CONTAINERD",
        lambda: drivers.driver("latest", "UBUNTU_CONTAINERD"),
        lambda: drivers.driver("default", "UBUNTU_CONTAINERD"),
    ),
    Case(
        "gke.driver.operator-cos", "driver", ("COS_CONTAINERD",), "UBUNTU_CONTAINERD",
        lambda: drivers.driver("operator", "COS_CONTAINERD"),
        lambda: drivers.driver("daemonset", "COS_CONTAINERD"),
    ),
    Case(
        "gke.driver.operator-sharing", "driver", ("mig_partition is GKE's",), "leave out mig_partition",
        lambda: drivers.driver("operator", "UBUNTU_CONTAINERD", partition="1g.5gb"),
        lambda: drivers.driver("daemonset", "UBUNTU_CONTAINERD", partition="1g.5gb"),
    ),
    Case(
        "gke.driver.secure-boot", "secure_boot", ("operator on UBUNTU_CONTAINERD",), "secure_boot: false",
        lambda: drivers.driver("operator", "UBUNTU_CONTAINERD", secure_boot=True),
        lambda: drivers.driver("daemonset", "COS_CONTAINERD", secure_boot=True),
    ),
    Case(
        "gke.driver.label", f"labels.{drivers.VERSION_LABEL}", ("is daemonset",), "leave the label out",
        lambda: drivers.driver("daemonset", "COS_CONTAINERD", labels=(drivers.VERSION_LABEL,)),
        lambda: drivers.driver("daemonset", "COS_CONTAINERD", labels=("team",)),
    ),
]  # fmt: skip

SHARING = [
    Case(
        "gke.mig.gpu", "mig_partition", ("nvidia-l4 cannot",), "A100",
        lambda: sharing.partition("1g.5gb", "nvidia-l4", 1),
        lambda: sharing.partition("1g.5gb", "nvidia-tesla-a100", 1),
    ),
    Case(
        "gke.mig.profile", "mig_partition", ('"1g.5gb"', "nvidia-a100-80gb"), "1g.10gb, 2g.20gb",
        lambda: sharing.partition("1g.5gb", "nvidia-a100-80gb", 1),
        lambda: sharing.partition("1g.10gb", "nvidia-a100-80gb", 1),
    ),
    Case(
        "gke.mig.profile-plugin", "mig_partition", ("4g.20gb",), "1g.5gb, 2g.10gb, 3g.20gb, 7g.40gb",
        lambda: sharing.partition("4g.20gb", "nvidia-tesla-a100", 1),
        lambda: sharing.partition("3g.20gb", "nvidia-tesla-a100", 1),
    ),
    Case(
        "gke.mig.fraction", "mig_partition", ("0.5 of a GPU",), "larger machine",
        lambda: sharing.partition("1g.24gb", "nvidia-rtx-pro-6000", 0.5),
        lambda: sharing.partition("1g.24gb", "nvidia-rtx-pro-6000", 1),
    ),
    Case(
        "gke.sharing.clients", "sharing.clients", ("2 to 48", "is 49"), "48 or less",
        lambda: sharing.sharing("time-sharing", 49, units=1), lambda: sharing.sharing("mps", 48, units=1),
    ),
    Case(
        "gke.sharing.mps-mig", "sharing.strategy", ("mig_partition is 1g.5gb",), "time-sharing",
        lambda: sharing.sharing("mps", 2, units=7, partition="1g.5gb"),
        lambda: sharing.sharing("time-sharing", 2, units=7, partition="1g.5gb"),
    ),
    Case(
        "gke.sharing.mps-host-ipc", "sharing.strategy", ("hostIPC: true",), "time-sharing",
        lambda: sharing.sharing("mps", 2, units=1), lambda: sharing.sharing("time-sharing", 2, units=1),
    ),
    Case(
        "gke.sharing.several", "sharing.strategy", ("4 GPUs",), "one GPU a container",
        lambda: sharing.sharing("time-sharing", 2, units=4),
        lambda: sharing.sharing("time-sharing", 2, units=1),
    ),
]  # fmt: skip

CAPACITY = [
    Case(
        "gke.capacity.reservation-missing", "reservation", ("missing",), "name it",
        lambda: capacity.capacity("reservation", machine_type=G2),
        lambda: capacity.capacity("reservation", machine_type=G2, reservation="r"),
    ),
    Case(
        "gke.capacity.reservation-beside", "reservation", ("is r", "spot"), "capacity reservation",
        lambda: capacity.capacity("spot", machine_type=G2, reservation="r"),
        lambda: capacity.capacity("spot", machine_type=G2),
    ),
    Case(
        "gke.capacity.reservation-zone", "zones", ("are 2",), "zone alone",
        lambda: capacity.capacity("reservation", machine_type=G2, reservation="r", zones=2),
        lambda: capacity.capacity("reservation", machine_type=G2, reservation="r", zones=1),
    ),
    Case(
        "gke.capacity.duration", "max_run_duration_s", ("is 60", "spot"), "flex-start",
        lambda: capacity.capacity("spot", machine_type=G2, max_run_duration_s=60),
        lambda: capacity.capacity("flex-start", machine_type=G2, max_run_duration_s=600),
    ),
    Case(
        "gke.spot.location-policy", "location_policy", ("BALANCED", "spot"), "ANY",
        lambda: capacity.capacity("spot", machine_type=G2, location_policy="BALANCED", zones=2),
        lambda: capacity.capacity("spot", machine_type=G2, location_policy="BALANCED", zones=1),
    ),
    Case(
        "gke.flex-start.duration", "max_run_duration_s", ("604801", "604800"), "604800",
        lambda: capacity.capacity("flex-start", machine_type=G2, max_run_duration_s=604_801),
        lambda: capacity.capacity("flex-start", machine_type=G2, max_run_duration_s=604_800),
    ),
    Case(
        "gke.flex-start.series", "machine_type", ("a4x-highgpu-4g", "does not describe flex-start"), "on-demand",
        lambda: capacity.capacity("flex-start", machine_type="a4x-highgpu-4g"),
        lambda: capacity.capacity("flex-start", machine_type="a4-highgpu-8g"),
    ),
    Case(
        "gke.flex-start.machine", "machine_type", ("a3-edgegpu-8g",), "a3-highgpu-8g",
        lambda: capacity.capacity("flex-start", machine_type="a3-edgegpu-8g"),
        lambda: capacity.capacity("flex-start", machine_type="a3-highgpu-8g"),
    ),
    Case(
        "gke.flex-start.tpu", "machine_type", ("ct4p-hightpu-4t",), "ct6e-standard-4t",
        lambda: capacity.capacity("flex-start", machine_type="ct4p-hightpu-4t"),
        lambda: capacity.capacity("flex-start", machine_type="ct6e-standard-4t"),
    ),
    Case(
        "gke.flex-start.auto-repair", "auto_repair", ("is true",), "leave it out",
        lambda: capacity.flex_start(**{**FLEX, "auto_repair": True}),
        lambda: capacity.flex_start(**{**FLEX, "auto_repair": False}),
    ),
    Case(
        "gke.flex-start.location-policy", "location_policy", ("BALANCED",), "ANY",
        lambda: capacity.flex_start(**{**FLEX, "location_policy": "BALANCED"}),
        lambda: capacity.flex_start(**{**FLEX, "location_policy": "ANY"}),
    ),
    Case(
        "gke.flex-start.upgrade", "upgrade", ("is surge",), "leave it out",
        lambda: capacity.flex_start(**{**FLEX, "upgrade": "surge"}), lambda: capacity.flex_start(**FLEX),
    ),
    Case(
        "gke.flex-start.nodes", "initial_nodes", ("is 1",), "write 0",
        lambda: capacity.flex_start(**{**FLEX, "initial_nodes": 1}), lambda: capacity.flex_start(**FLEX),
    ),
    Case(
        "gke.flex-start.slice", "topology", ("4 hosts",), "make sure",
        lambda: capacity.flex_start(**FLEX, hosts=4), lambda: capacity.flex_start(**FLEX, hosts=1),
    ),
    Case(
        "gke.queued.flex-start", "queued_provisioning", ("capacity is spot",), "flex-start",
        lambda: capacity.queued_provisioning("spot"), lambda: capacity.queued_provisioning("flex-start"),
    ),
]  # fmt: skip

NODES = [
    Case(
        "gke.pool.machine", "machine_type", ('"e2-standard-3"',), "e2-standard-2",
        lambda: nodes.machine("e2-standard-3", "cpu"), lambda: nodes.machine("e2-standard-32", "cpu"),
    ),
    Case(
        "gke.pool.kind", "machine_type", ("n1-standard-8", "has no GPU"), "accelerator_count",
        lambda: nodes.machine("n1-standard-8", "gpu"), lambda: nodes.machine("n1-standard-8", "gpu", True),
    ),
    Case(
        "gke.pool.initial-zones", "initial_nodes", ("each of 3 zones", "6 together"), "write 1",
        lambda: nodes.initial(2, 5, 3), lambda: nodes.initial(2, 6, 3),
    ),
    Case(
        "gke.pool.unused", "pools", ("no queue and no target",), "leave it out",
        lambda: nodes.unused_pool("h100", {"l4"}), lambda: nodes.unused_pool("l4", {"l4"}),
    ),
    Case(
        "gke.pool.disk-size", "disk.size_gib", ("at least 15", "is 14"), "write 100",
        lambda: nodes.disk(14, None, G2), lambda: nodes.disk(15, None, G2),
    ),
    Case(
        "gke.pool.disk-type",
        "disk.type",
        ("pd-ssd", "a4-highgpu-8g takes hyperdisk-balanced"),
        "leave it out",
        lambda: nodes.disk(100, "pd-ssd", "a4-highgpu-8g"),
        lambda: nodes.disk(100, "pd-ssd", "a3-highgpu-8g"),
    ),
    Case(
        "gke.pool.local-ssds", "local_ssds.count", ("is 2", "takes 4, 8"), "use one of 4, 8",
        lambda: nodes.local_ssds(2, A2), lambda: nodes.local_ssds(4, A2),
    ),
    Case(
        "gke.pool.local-ssds-none", "local_ssds.count", ("e2-standard-4 takes none",), "another series",
        lambda: nodes.local_ssds(1, "e2-standard-4"), lambda: nodes.local_ssds(1, "n2-standard-4"),
    ),
    Case(
        "gke.pool.preloaded", "preloaded_images", ("image_streaming is false",), "image_streaming: true",
        lambda: nodes.preloaded_images(False), lambda: nodes.preloaded_images(True),
    ),
    Case(
        "gke.pool.auto-upgrade", "auto_upgrade", ("release channel",), "window",
        lambda: nodes.management(False, None), lambda: nodes.management(True, None),
    ),
    Case(
        "gke.compact.series", "compact_placement", ("n1-standard-8",), "a2, a3",
        lambda: nodes.compact("n1-standard-8", 4, 1), lambda: nodes.compact(A2, 4, 1),
    ),
    Case(
        "gke.compact.zone", "zones", ("are 2",), "one zone",
        lambda: nodes.compact(A2, 4, 2), lambda: nodes.compact(A2, 4, None),
    ),
    Case(
        "gke.compact.nodes", "max_nodes", ("is 1501", "1500"), "several pools",
        lambda: nodes.compact(A2, 1501, 1), lambda: nodes.compact(A2, 1500, 1),
    ),
    Case(
        "gke.compact.blue-green", "upgrade", ("blue-green",), "surge",
        lambda: nodes.compact(A2, 4, 1, upgrade="blue-green"),
        lambda: nodes.compact(A2, 4, 1, upgrade="surge"),
    ),
    Case(
        "gke.compact.queued", "compact_placement", ("queued_provisioning",), "one of the two",
        lambda: nodes.compact(A2, 4, 1, queued=True), lambda: nodes.compact(A2, 4, 1),
    ),
    Case(
        "gke.compact.flex-start", "compact_placement", (A2, "capacity flex-start"), "a3-ultragpu-8g, a4-highgpu-8g",
        lambda: nodes.compact(A2, 4, 1, flex_start=True),
        lambda: nodes.compact("a4-highgpu-8g", 4, 1, flex_start=True),
    ),
    Case(
        "gke.upgrade.surge", "max_surge", ("1 to 20", "0 and 0"), "max_unavailable: 1",
        lambda: nodes.surge(0, 0), lambda: nodes.surge(0, 20),
    ),
    Case(
        "gke.upgrade.batch", "batch_nodes", ("batch_percent",), "one of the two",
        lambda: nodes.blue_green(2, 10), lambda: nodes.blue_green(None, 10),
    ),
]  # fmt: skip

TPUS = [
    Case(
        "gke.tpu.whole-slice", "min_nodes", ("is 2", "4 nodes"), "0 or 4",
        lambda: tpus.slice_pool("ct5lp-hightpu-4t", "4x4", **{**SLICE, "min_nodes": 2}),
        lambda: tpus.slice_pool("ct5lp-hightpu-4t", "4x4", **{**SLICE, "min_nodes": 4}),
    ),
    Case(
        "gke.tpu.zone", "zones", ("are 2", "one slice"), "a pool for each slice",
        lambda: tpus.slice_pool("ct5lp-hightpu-4t", "4x4", **{**SLICE, "zone_count": 2}),
        lambda: tpus.slice_pool("ct5lp-hightpu-4t", "2x2", **{**SLICE, "zone_count": 2}),
    ),
    Case(
        "gke.tpu.policy", "placement_policy", ("missing", "2x2x2"), "HIGH_THROUGHPUT",
        lambda: tpus.slice_pool("tpu7x-standard-4t", "2x2x2", **SLICE),
        lambda: tpus.slice_pool("ct5p-hightpu-4t", "2x2x2", **SLICE),
    ),
]  # fmt: skip

CASES = LABELS + DRIVERS + SHARING + CAPACITY + NODES + TPUS
