"""Jobs on Google Batch: one breach and one near miss for each rule of what a job is."""

from accel.rules.batch import jobs as rules

from .case import Case

CASES = [
    Case(
        "google-batch.tasks", "tasks", ("is 100001", "at most 100000"), "several jobs",
        lambda: rules.tasks(100_001, None), lambda: rules.tasks(100_000, None),
    ),
    Case(
        "google-batch.parallelism", "parallelism", ("is 5001", "at most 5000"), "leave it out",
        lambda: rules.tasks(6_000, 5_001), lambda: rules.tasks(6_000, 5_000),
    ),
    Case(
        "google-batch.vms", "parallelism", ("needs 2001 VMs", "2000 in one zone"), "tasks_per_vm",
        lambda: rules.vms(4_001, 2, 1),
        lambda: rules.vms(4_000, 2, 1) + rules.vms(4_000, 1, 0) + rules.vms(4_000, 1, 3),
    ),
    Case(
        "google-batch.in-order", "parallelism", ("is 2", "one at a time"), "write 1",
        lambda: rules.tasks(9, 2, in_order=True),
        lambda: rules.tasks(9, 1, in_order=True) + rules.tasks(9, None, in_order=True) + rules.tasks(9, 2),
    ),
    Case(
        "google-batch.hosts", "nodes", ("is 1001", "at most 1000"), "at most 1000",
        lambda: rules.hosts(1_001), lambda: rules.hosts(1_000),
    ),
    Case(
        "google-batch.node-alone", "nodes", ("is 4", "alone"), "--max-restarts",
        lambda: rules.retries(1, None, 4), lambda: rules.retries(1, None, 1) + rules.retries(None, None, 4),
    ),
    Case(
        "google-batch.run-time", "timeout_s", ("is 1209601 s", "a job after 14 days"), "1209600",
        lambda: rules.run_time(14 * 86_400 + 1),
        lambda: rules.run_time(14 * 86_400) + rules.run_time(None) + rules.run_time(7 * 86_400, flex_start=True),
    ),
    Case(
        "google-batch.retries", "retries", ("is 6 beside lost_retries 5", "at most 10"), "10 in all",
        lambda: rules.retries(6, 5), lambda: rules.retries(10, None) + rules.retries(None, 10),
    ),
    Case(
        "google-batch.retries-added", "lost_retries", ("is 3 beside retries 2", "5 serve both"), "either kind",
        lambda: rules.retries(2, 3), lambda: rules.retries(2, 0) + rules.retries(0, 3) + rules.retries(2, None),
    ),
    Case(
        "google-batch.exit-codes", "exit_codes", ("have 3 under retry and under fail",), "one of the two",
        lambda: rules.exit_codes([1, 3], [3], 2),
        lambda: rules.exit_codes([1, 3], [4], 2) + rules.exit_codes([], [4], 1) + rules.exit_codes([], [], None),
    ),
    Case(
        "google-batch.retry-after-timeout", "exit_codes", ("have 50005 under retry",), "longer timeout_s",
        lambda: rules.exit_codes([50005], [], 2), lambda: rules.exit_codes([50001, 50006], [50005], 2),
    ),
    Case(
        "google-batch.env", "env.BATCH_TASK_INDEX", ("set by the platform",), "another name",
        lambda: rules.environment({"BATCH_TASK_INDEX": "1"}),
        lambda: rules.environment({"MASTER_PORT": "1", "BATCHES": "3"}),
    ),
    Case(
        "google-batch.size", "request", ("has 1000001 bytes", "1 MB"), "mounted bucket",
        lambda: rules.size(1_000_001), lambda: rules.size(1_000_000),
    ),
    Case(
        "google-batch.one-group", "taskGroups", ("has 2 entries",), "several jobs",
        lambda: rules.one(2), lambda: rules.one(1, "allocationPolicy.instances"),
    ),
    Case(
        "google-batch.priority", "priority", ("is 100", "0 to 99"), "0 to 99",
        lambda: rules.priority(100), lambda: rules.priority(99) + rules.priority(0),
    ),
    Case(
        "google-batch.preemptible", "provisioningModel", ("is PREEMPTIBLE",), "write SPOT",
        lambda: rules.provisioning("PREEMPTIBLE"), lambda: rules.provisioning("SPOT"), "SPOT",
    ),
]  # fmt: skip
