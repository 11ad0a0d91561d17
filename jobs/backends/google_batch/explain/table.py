"""Every cause that can be named, and the words of Batch, Compute Engine, Batch's agent and docker for them.

docs/explain-google-batch.md is made of the causes.
"""

import re

from ...causes import THEN_RETRY, Cause, cause_row

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


_DEPLOY = "deploy the stack of the target again, and submit to the target of now"

# Where nothing else is said: https://docs.cloud.google.com/batch/docs/troubleshooting
EVENTS = (
    cause_row(
        r"quota checking process decides to delay",
        "quota-delay",
        "a quota of the project has no room for the job's VMs just now, and Batch waits for it",
        "wait until other machines are gone, or have the quota raised: `stacks quota --request` writes the request",
    ),
    # https://github.com/amnahsiddiqa/cloud_nfcore_pipelines
    cause_row(
        r"QUOTA_EXCEEDED|quota '?\S+ exceeded",
        "quota",
        "a quota of the project has no room for the job's VMs",
        "have it raised (`stacks quota --request` writes the request), or ask elsewhere: Spot and on demand have "
        f"quotas of their own, and so has each region; {THEN_RETRY}",
    ),
    # https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability
    cause_row(
        r"RESOURCE_POOL_EXHAUSTED|does not have enough resources available|stockout",
        "stockout",
        "its zones have no such machine just now",
        "Batch asks again by itself; more zones, another GPU, Spot or flex-start may be quicker: `accel-jobs offers`",
    ),
    cause_row(
        r"no VM has agent reporting correctly",
        "agent-silent",
        "its VMs have booted, and Batch's agent on them has not reported in time",
        "the account that jobs run as needs roles/batch.agentReporter; VMs without an address of their own need "
        "Private Google Access on the subnetwork; a boot image of your own must be made from a recent one of Batch's",
    ),
    cause_row(
        r"SERVICE_ACCOUNT_MISMATCH|does not have access to act as|serviceAccounts\.actAs",
        "service-account",
        "whoever asked for the job may not use the account that it runs as, or the instance template has another one",
        f"it takes roles/iam.serviceAccountUser on that account; {THEN_RETRY}",
    ),
    cause_row(
        r"service account .*(does not exist|not found)|serviceAccounts/\S+.* was not found",
        "account-missing",
        "the account that jobs run as is not there",
        _DEPLOY,
    ),
    cause_row(
        r"constraints/compute\.vmExternalIpAccess",
        "address-policy",
        "a policy of the organisation forbids VMs with addresses of their own",
        "have external_address switched off in the stack, with Cloud NAT for what jobs need of the internet; "
        f"{_DEPLOY}",
    ),
    cause_row(
        r"constraints/compute\.trustedImageProjects",
        "image-policy",
        "a policy of the organisation forbids the VMs' boot image",
        "give the target or the job a boot image that it allows, or have the project batch-custom-image allowed",
    ),
    cause_row(
        r"constraints?/",
        "policy",
        "a policy of the organisation forbids such VMs",
        "the evidence names the constraint; whoever owns the organisation can make an exception",
    ),
    cause_row(
        r"machine ?type\S* .*(does not exist in|was not found|is not available)|machineTypes/\S+ was not found"
        r"|accelerator ?type\S* .*(does not exist|was not found)|not supported in (zone|this zone)",
        "not-offered",
        "a zone does not have machines of that type",
        "`accel-jobs offers` shows the zones that have it; give those to the job (google_batch.zones) or to the target",
    ),
    cause_row(
        r"/(sub)?networks/\S+.* (was )?not found|(sub)?network .* (was )?not found",
        "network-missing",
        "the target's network or subnetwork is not there",
        _DEPLOY,
    ),
    cause_row(
        r"/images/\S+.* (was )?not found|image family .* not found",
        "boot-image-missing",
        "the VMs' boot image is not there: image families are given up after a while",
        "choose an image of now, for the job or in the stack",
    ),
    cause_row(
        r"reservation",
        "reservation",
        "the reservation cannot give the VMs",
        "look at what it holds and who uses it; spot: true, or a target without one, asks elsewhere",
    ),
    cause_row(
        r"INVALID_FIELD_VALUE,BACKEND_ERROR",
        "template",
        "the instance template makes no VM that Batch can use",
        "make a managed instance group of it by hand: its errors say more",
    ),
    cause_row(
        r"Batch Error: code|creation failed", "refused", "its VMs cannot be made", "the evidence has Google's words"
    ),
)
"""Of a job's events, the newest first; the first that fits counts."""

AGENT = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    cause_row(
        r"batch\.states\.report",
        "agent-permission",
        "the account that jobs run as may not report to Batch, so the job stays as it is and its VMs cost money",
        f"it needs roles/batch.agentReporter on the project: {_DEPLOY}; cancel this job",
    ),
    cause_row(
        r"outdated Batch (agent|image) version",
        "agent-outdated",
        "the VMs' boot image, or Batch's agent in it, is too old",
        "leave boot_image out, or make yours anew from a recent image of Batch's",
    ),
)
"""Of what Batch's agent says while a job does not begin."""

NOT_STARTED = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    cause_row(
        r"could not select device driver|nvidia-container|unknown or invalid runtime name: nvidia",
        "container-gpu",
        "docker cannot give GPUs to the container: the driver or the NVIDIA Container Toolkit is missing on the VM",
        "leave install_drivers and boot_image out, and `--gpus` out of docker_options: Batch sets it itself",
    ),
    # The first are Cloud Life Sciences' (https://github.com/DataBiosphere/dsub/issues/229) and the installer's
    # (https://github.com/GoogleCloudPlatform/cos-gpu-installer/issues/80); Batch's own words for it were not found.
    cause_row(
        r"install\w* (nvidia |gpu )*drivers?.*(exit status [1-9]|fail|error(?!: ?<nil>))"
        r"|fail\w* to (download|install|load|build).*(driver|gpu_default_version|nvidia)",
        "driver",
        "the GPU driver was not installed on the VM",
        "retry: a download may have failed; VMs without an address of their own reach it by Cloud NAT and Private "
        "Google Access; leave driver_version and boot_image out, so that Batch takes a driver that fits",
    ),
    cause_row(
        r"no matching manifest|no match for platform|exec format error",
        "image-platform",
        "the image has no version for the VM's CPU",
        "build it for linux/amd64, or for arm64 where the machine is one",
    ),
    cause_row(
        r"(docker|pull|manifest|image|registry|pkg\.dev|gcr\.io).*(access denied|denied:|unauthorized|forbidden"
        r"|Permission .*denied|unauthenticated)|pull access denied",
        "image-forbidden",
        "the VM may not read the image, or there is none",
        "the account that jobs run as needs roles/artifactregistry.reader on the repository; a registry elsewhere must "
        "be open; a name that is wrong is answered the same",
    ),
    cause_row(
        r"manifest unknown|manifest for \S+ not found|(docker|pull|image).*(: not found|repository .* not found)",
        "image-missing",
        "the image or its tag is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    cause_row(
        r"(docker|pull|registry|pkg\.dev|gcr\.io|registry-1\.docker\.io).*(timeout|timed out|no such host"
        r"|connection refused|unreachable|request canceled)",
        "image-unreachable",
        "the VM cannot reach the registry",
        "VMs without an address of their own need Cloud NAT for registries outside Google, and Private Google Access "
        "on the subnetwork for Google's",
    ),
    cause_row(
        r"secret\w*.*(denied|not found|disabled|destroyed)",
        "secret-unreadable",
        "a secret cannot be read",
        "the account that jobs run as needs roles/secretmanager.secretAccessor on it, and the version must be enabled",
    ),
    cause_row(
        r"(gcsfuse|mount\b).*(fail|error(?!: ?<nil>)|denied|exit status [1-9]|not exist|timed out)|fail\w* to mount",
        "mount",
        "a volume cannot be mounted",
        "of a bucket: is it there, and has the account that jobs run as roles/storage.objectUser on it? of NFS: "
        "server, path, and a firewall that lets the VMs to it",
    ),
)
"""Of the end of a log and of the agent's, where the command was not started."""

DOCKER_WORDS = re.compile(r"\bdocker\b|error response from daemon", re.IGNORECASE)
"""What docker says, or the agent for it."""

OWN_CODES = {
    50001: (
        "spot-reclaim",
        "its Spot VM was taken away, and the attempts that it had were used up",
        "give lost_retries (at most 10 in all), save and resume, or `spot: false`, which asks for VMs that stay",
    ),
    50002: (
        "vm-silent",
        "Batch heard no more from its VM: it crashed, or was out of memory or network",
        "retry; if it comes again, look at the job's use of memory, and give it a larger machine",
    ),
    50003: ("vm-rebooted", "its VM rebooted while it ran", "retry, with lost_retries"),
    50004: (
        "vm-unresponsive",
        "its task did not answer, and could not be stopped",
        "retry, with lost_retries; if it comes again, look at the job's use of memory and disk",
    ),
    50005: (
        "timeout",
        "it ran longer than timeout_s, or a step of it longer than its own timeout_s",
        "raise it, or save and resume; the evidence does not tell which of the two it was",
    ),
    50006: ("vm-recreated", "its VM was made anew while it ran", "retry, with lost_retries"),
}
"""By exit codes of Batch's own: cause, reason and next step."""

OF_BATCH = {
    "gpu-not-visible": "the image's CUDA must not be newer than the driver that Batch installs: leave driver_version "
    "and boot_image out, and build the image for an older CUDA if that is not enough",
    "gpu-not-requested": "accelerator: {type: l4} in the job file",
    "disk-full": "write to a bucket, or give disk_gib or a disk of its own (google_batch.disks)",
    "killed": "look at how much memory the job uses: the kernel ends what uses the most when it is short; memory_mib "
    "in the job file chooses a larger machine",
    "command-not-executable": "give it execute permission in the image, or name its interpreter; a binary must be for "
    "the VM's CPU",
}
"""What to do where the words of outcome.py are of another platform."""
