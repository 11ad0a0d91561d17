"""Cases of the policies of money."""

from policy.resource import UNSEEN

from .shapes import COMPUTE, DECLARED, EC2, GCE, POOL, QUEUED, TPU, Case, batch, one, pool

PERSISTENT = "gcp:vertex/aiPersistentResource:AiPersistentResource"
L4S = {"config": {"guestAccelerators": [{"type": "nvidia-l4", "count": 1}]}}
SLICE = {"placementPolicy": {"tpuTopology": "4x4"}}
T4S = {"type": "nvidia-tesla-t4", "count": 2}
KEPT = one(
    PERSISTENT,
    "kept",
    location="us-central1",
    resourcePools=[
        {"machineSpec": {"machineType": "a2-highgpu-1g"}, "autoscalingSpec": {"maxReplicaCount": "8"}},
        {"machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}},
    ],
)
GPU_GROUP = one(
    "accel:gcp:GpuVmGroup", "group", spec={"machine_type": "a2-highgpu-8g", "zone": "us-central1-a", "size": 2}
)
L4_GROUP = one(
    "accel:gcp:GpuVmGroup",
    "group",
    spec={
        "machine_type": None,
        "accelerator": "nvidia-l4",
        "accelerator_count": 2,
        "zone": "us-central1-a",
        "size": 9,
        "capacity": "spot",
    },
)
"""Its machine is the smallest with its accelerators."""
L4_VM = {"zone": "us-central1-a", "machineType": "g2-standard-8"}
ATTACHED = one(GCE, "n1", zone="us-central1-a", machineType="n1-standard-8", guestAccelerators=[T4S])


CASES: dict[str, Case] = {
    "accelerators-maximum": Case(
        passes=[
            [batch("SPOT", ["g5.xlarge"], 32), pool("g2-standard-8", 8, **L4S)],
            [batch("FARGATE", [], 4000), pool("ct5lp-hightpu-4t", 4, **SLICE)],
            [one(TPU, zone="us-central1-a", acceleratorType="v5litepod-16")],
            [GPU_GROUP],
            [
                one(
                    COMPUTE,
                    state="DISABLED",
                    computeResources={"type": "EC2", "instanceTypes": ["p5"], "maxVcpus": 9999},
                )
            ],
            [batch("EC2", ["optimal"], 4000), one(EC2, instanceType="p5.48xlarge")],
        ],
        fails=[
            (
                [batch("EC2", ["g5.xlarge", "g5.48xlarge"], 68)],
                "can come to 17 GPUs and TPU chips, more than 16: pool 17",
            ),
            ([pool("g2-standard-8", 17, **L4S)], "can come to 17"),
            (
                [pool("ct5lp-hightpu-4t", 4, **SLICE), ATTACHED],
                "can come to 18 GPUs and TPU chips, more than 16: pool 16, n1 2",
            ),
            (
                [one(QUEUED, zone="us-central1-a", tpu={"nodeSpecs": [{"node": {"acceleratorType": "v5litepod-32"}}]})],
                "32",
            ),
            (
                [one(DECLARED, spec={"zone": "us-central1-a", "accelerator_type": "v5litepod-16", "slices": 2})],
                "32",
            ),
            ([GPU_GROUP, KEPT], "can come to 25"),
            ([L4_GROUP], "can come to 18"),
            (
                [one(POOL, location="us-central1", nodeConfig={"machineType": "a2-highgpu-1g"}, initialNodeCount=6)],
                "to 18",
            ),
            (
                [one(EC2, instanceType="p5.48xlarge"), one(EC2, "b", instanceType="p4d.24xlarge"), KEPT],
                "can come to 25",
            ),
            (
                [batch("SPOT", ["z99"], 8, "odd")],
                "cannot be told, since the catalogue does not have the machines of odd",
            ),
            (
                [batch("EC2", ["g5.xlarge"], 80), batch("SPOT", ["z99"], 8, "odd")],
                "not counted: odd (unknown instance type",
            ),
        ],
        unknown=[
            ([batch("EC2", [UNSEEN], 8)], "pool: computeResources.instanceTypes"),
            ([batch("EC2", ["g5"], UNSEEN)], "pool: computeResources.maxVcpus"),
        ],
        settings={"most": 16},
    ),
    "hourly-cost-maximum": Case(
        passes=[[batch("SPOT", ["g5.xlarge"], 8)], [pool("e2-standard-4", 3)]],
        fails=[
            ([batch("SPOT", ["p5.48xlarge"], 768)], "USD an hour on demand, more than 20.00: pool"),
            ([GPU_GROUP, batch("EC2", ["g5.xlarge"], 8)], "more than 20.00: group"),
            ([L4_GROUP, batch("EC2", ["g5.xlarge"], 40)], "more than 20.00: group"),
            ([batch("EC2", ["optimal"], 8, "any")], "no price is known for all machines of any"),
        ],
        unknown=[([batch("EC2", ["g5"], UNSEEN)], "pool: computeResources.maxVcpus")],
        settings={"usd_hour": 20},
    ),
    "spot-first": Case(
        passes=[
            [batch("SPOT", ["g5.xlarge"], 64), batch("EC2", ["g5.xlarge"], 64, "rest")],
            [pool("g2-standard-8", 4, config={"spot": True}), pool("e2-standard-4", 9, "cpus")],
            [L4_GROUP, pool("g2-standard-8", 4)],
            [one(GCE, scheduling={"provisioningModel": "FLEX_START"}, **L4_VM)],
            [one(GCE, scheduling={"provisioningModel": "SPOT"}, **L4_VM)],
        ],
        fails=[
            (
                [batch("EC2", ["g5.xlarge"], 64)],
                "16 of 16 GPUs and TPU chips are on demand, more than a share of 0.5: pool 16",
            ),
            ([pool("g2-standard-8", 4), pool("g2-standard-8", 3, "spot", config={"spot": True})], "4 of 7"),
            ([one(GCE, scheduling={"provisioningModel": "STANDARD"}, **L4_VM)], "1 of 1"),
        ],
        unknown=[([pool("g2-standard-8", 4, config={"spot": UNSEEN})], "pool: nodeConfig.spot")],
        settings={"on_demand_share": 0.5},
    ),
}
