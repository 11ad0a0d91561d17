"""Environment variables that every backend gives a job, in addition to those of the job file."""

JOB_NAME = "ACCEL_JOB_NAME"
TASK_COUNT = "ACCEL_TASK_COUNT"
"""Number of the job's tasks; 1 for a single one."""
TASK_INDEX = "ACCEL_TASK_INDEX"
"""0 to count - 1. On platforms that number tasks themselves, read the variable named by INDEX_FROM."""
INDEX_FROM = "ACCEL_TASK_INDEX_FROM"
"""Name of the variable that holds this task's index on this platform."""
ATTEMPT = "ACCEL_ATTEMPT"
"""1 for the first attempt, on platforms that do not number attempts themselves."""
SMOKE = "ACCEL_SMOKE"
"""1 in a smoke run (`submit --smoke`), absent otherwise."""
PLAN = "ACCEL_ON_DEMAND_PLAN"
"""Plan by which a Spot job continues when its deadline approaches. JSON in base64, for `accel-jobs tend` only."""

SWEEP = "ACCEL_SWEEP"
"""The sweep as JSON: docs/sweeps.md. Absent in other jobs."""
SWEEP_ONLY = "ACCEL_SWEEP_ONLY"
"""The sweep tasks of this job, such as 3,7,12-14, in the order of its own tasks; absent if it has all."""
SWEEP_OF = "ACCEL_SWEEP_OF"
"""Reference of the job whose tasks this job partly repeats."""

NODE_COUNT = "ACCEL_NODE_COUNT"
"""Number of the job's nodes; absent in a single-node job."""
NODE_INDEX = "ACCEL_NODE_INDEX"
"""This node's index, on platforms that do not number nodes themselves."""
NODE_INDEX_FROM = "ACCEL_NODE_INDEX_FROM"
"""Name of the variable that holds this node's index, 0 to count - 1; 0 is the main node. Absent in a single-node
job."""
MAIN_ADDRESS_FROM = "ACCEL_MAIN_ADDRESS_FROM"
"""Name of the variable that holds the main node's address. On the main node itself it may be unset: 127.0.0.1 there."""

RESERVED_PREFIXES = ("ACCEL_", "AWS_BATCH_")

NODE_VARIABLES = {
    "aws-batch": {
        NODE_INDEX_FROM: "AWS_BATCH_JOB_NODE_INDEX",
        MAIN_ADDRESS_FROM: "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS",
    },
    "gke": {NODE_INDEX_FROM: "JOB_COMPLETION_INDEX", MAIN_ADDRESS_FROM: "MASTER_ADDR"},
    "tpu-vm": {NODE_INDEX_FROM: NODE_INDEX, MAIN_ADDRESS_FROM: "MASTER_ADDR"},
    "gce": {NODE_INDEX_FROM: NODE_INDEX, MAIN_ADDRESS_FROM: "MASTER_ADDR"},
    "google-batch": {NODE_INDEX_FROM: NODE_INDEX, MAIN_ADDRESS_FROM: "MASTER_ADDR"},
    "vertex": {NODE_INDEX_FROM: "RANK", MAIN_ADDRESS_FROM: "MASTER_ADDR"},
}
"""The platform's own variables of a node by target kind; MASTER_ADDR, of torch.distributed, is set on every Google
node. Sources: https://docs.aws.amazon.com/batch/latest/userguide/mnp-env-vars.html,
https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode"""

INDEX_VARIABLE = {
    "aws-batch": "AWS_BATCH_JOB_ARRAY_INDEX",
    "gke": "JOB_COMPLETION_INDEX",
    "tpu-vm": TASK_INDEX,
    "gce": TASK_INDEX,
    "google-batch": "BATCH_TASK_INDEX",
    "vertex": TASK_INDEX,
    "local": TASK_INDEX,
}
"""The platform's own index variable by target kind. Sources:
https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html,
https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode"""
