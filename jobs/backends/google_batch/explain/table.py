"""Every cause that can be named. docs/explain-google-batch.md is made of this."""

from ...causes import Cause

CLOUD = "https://docs.cloud.google.com/"
BATCH = f"{CLOUD}batch/docs/"
TROUBLE = f"{BATCH}troubleshooting"
STATES = f"{BATCH}reference/rest/v1/projects.locations.jobs#State"
QUOTAS = f"{CLOUD}batch/quotas"
STOCKOUT = f"{CLOUD}compute/docs/troubleshooting/troubleshooting-resource-availability"
DRIVERS = f"{BATCH}create-run-job-gpus"
DOCKER = "https://docs.docker.com/reference/cli/docker/container/run/#exit-status"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"
TORCH = "https://docs.pytorch.org/docs/stable/"
NETWORK = f"{BATCH}networking-overview"
RETRIES = f"{BATCH}automate-task-retries"
LOGIN = f"{CLOUD}artifact-registry/docs/docker/authentication"

CAUSES = {
    # The job cannot be looked at
    "unknown-job": Cause("Batch has no such job", f"{BATCH}view-jobs-tasks"),
    # It waits
    "quota-delay": Cause("Batch holds it back until a quota has room", f"{TROUBLE}#insufficient-quota"),
    "quota": Cause("A quota of the project has no room for its VMs", f"{TROUBLE}#insufficient-quota"),
    "stockout": Cause("Its zones have no such machines just now", STOCKOUT),
    "queued": Cause("Batch has taken it and has not begun with it, without a word", STATES),
    "starting": Cause("Its VMs are being made, or boot", STATES),
    "new": Cause("It was made a moment ago, and nothing stands against it", STATES),
    "stopping": Cause("Someone cancelled it, and its VMs are being cleaned up", STATES),
    # Its VMs cannot be made, or do not do what they should
    "not-offered": Cause("A zone does not have machines of the type at all", f"{CLOUD}compute/docs/regions-zones"),
    "service-account": Cause(
        "Whoever asked may not use the account that jobs run as, or it is not the instance template's",
        f"{TROUBLE}#insufficient-permissions",
    ),
    "account-missing": Cause("The account that jobs run as is not there", f"{BATCH}get-started"),
    "network-missing": Cause("The network or subnetwork of the target is not there", NETWORK),
    "address-policy": Cause(
        "A policy of the organisation forbids VMs with addresses of their own",
        f"{TROUBLE}#constraint-violated-external-ip",
    ),
    "image-policy": Cause(
        "A policy of the organisation forbids the VMs' boot image", f"{TROUBLE}#constraint-violated-trusted-images"
    ),
    "policy": Cause(
        "A policy of the organisation forbids such VMs",
        f"{CLOUD}resource-manager/docs/organization-policy/org-policy-constraints",
    ),
    "reservation": Cause(
        "The reservation is not there, or has nothing left that fits",
        f"{CLOUD}compute/docs/instances/reservations-overview",
    ),
    "boot-image-missing": Cause("The VMs' boot image is not there", f"{BATCH}view-os-images"),
    "template": Cause("The instance template makes no VM that Batch can use", f"{TROUBLE}#instance-template-failure"),
    "agent-silent": Cause(
        "VMs are there, and Batch's agent on them does not report", f"{TROUBLE}#no-service-agent-reporting"
    ),
    "agent-permission": Cause(
        "The account that jobs run as may not report to Batch", "https://github.com/nextflow-io/nextflow/issues/3273"
    ),
    "agent-outdated": Cause(
        "The boot image, or Batch's agent in it, is too old", f"{TROUBLE}#no-service-agent-reporting"
    ),
    "refused": Cause("VMs cannot be made, with another reason", TROUBLE),
    # It does not wait, and has not failed
    "parallelism": Cause("It runs, and its other tasks wait for their turn", QUOTAS),
    "again": Cause("It runs, and a task whose VM was lost waits for another", RETRIES),
    "running": Cause("It runs", STATES),
    "succeeded": Cause("It has succeeded", STATES),
    # Its command was not started
    "driver": Cause("The GPU driver was not installed", DRIVERS),
    "container-gpu": Cause(
        "Docker cannot give GPUs to the container", "https://github.com/nextflow-io/nextflow/issues/3273"
    ),
    "image-missing": Cause("The image or its tag is not there", LOGIN),
    "image-forbidden": Cause("The image may not be read", LOGIN),
    "image-unreachable": Cause(
        "The registry cannot be reached: no address of its own, NAT or Private Google Access", NETWORK
    ),
    "image-platform": Cause("The image is for another kind of CPU", LOGIN),
    "container": Cause(
        "Docker did not start the container (125)", "https://github.com/broadinstitute/cromwell/pull/7515"
    ),
    "mount": Cause("A volume cannot be mounted", f"{BATCH}create-run-job-storage"),
    "secret-unreadable": Cause("A secret cannot be read", f"{BATCH}create-run-job-secret-manager"),
    # It failed
    "stopped": Cause("Someone cancelled it", f"{BATCH}cancel-job"),
    "deleted": Cause("Someone deletes it", f"{BATCH}delete-job"),
    "spot-reclaim": Cause("Its Spot VM was taken away too often (50001)", f"{TROUBLE}#vm_preemption_50001"),
    "vm-silent": Cause("Batch heard no more from its VM (50002)", f"{TROUBLE}#vm_reporting_timeout_50002"),
    "vm-rebooted": Cause("Its VM rebooted (50003)", f"{TROUBLE}#vm_rebooted_during_execution_50003"),
    "vm-unresponsive": Cause("Its task could not be stopped (50004)", f"{TROUBLE}#vm_and_task_are_unresponsive_50004"),
    "timeout": Cause(
        "It ran longer than timeout_s, or a step longer than its own (50005)",
        f"{TROUBLE}#task_runs_over_the_maximum_runtime_50005",
    ),
    "vm-recreated": Cause("Its VM was made anew (50006)", f"{TROUBLE}#vm_recreated_during_execution_50006"),
    "waited-too-long": Cause("It waited for two days, after which Batch gives a job up", QUOTAS),
    "cuda-out-of-memory": Cause("The GPU's memory was full", f"{TORCH}notes/faq.html"),
    "shared-memory": Cause("Shared memory was full", f"{TORCH}multiprocessing.html"),
    "gpu-not-visible": Cause("The program sees no GPU, though the VM has one", DRIVERS),
    "gpu-not-requested": Cause("The program wants a GPU, and the VM has none", DRIVERS),
    "disk-full": Cause("A disk was full", f"{BATCH}create-run-job-storage"),
    "killed": Cause("SIGKILL ended it, and nothing says why", EXIT_STATUS),
    "command-not-found": Cause("A command was not found (127)", EXIT_STATUS),
    "command-not-executable": Cause("A command cannot be run (126)", EXIT_STATUS),
    "exit-code": Cause("The command ended by itself with another exit code", DOCKER),
    "unknown": Cause("None of these fits; what was looked at is listed", TROUBLE),
}
"""By id; the order is the documentation's."""
