"""Words of Batch, Compute Engine, Batch's agent and docker, and what each means."""

import re
from typing import NamedTuple


class Row(NamedTuple):
    """Words that name a cause, what they mean, and what to do."""

    pattern: re.Pattern[str]
    cause: str
    reason: str
    next_step: str


def _row(pattern: str, cause: str, reason: str, next_step: str) -> Row:
    return Row(re.compile(pattern, re.IGNORECASE), cause, reason, next_step)


_AGAIN = "then `accel-jobs retry REF`"
_DEPLOY = "deploy the stack of the target again, and submit to the target of now"

# Where nothing else is said: https://docs.cloud.google.com/batch/docs/troubleshooting
EVENTS = (
    _row(
        r"quota checking process decides to delay",
        "quota-delay",
        "a quota of the project has no room for the job's VMs just now, and Batch waits for it",
        "wait until other machines are gone, or have the quota raised: `stacks quota --request` writes the request",
    ),
    # https://github.com/amnahsiddiqa/cloud_nfcore_pipelines
    _row(
        r"QUOTA_EXCEEDED|quota '?\S+ exceeded",
        "quota",
        "a quota of the project has no room for the job's VMs",
        "have it raised (`stacks quota --request` writes the request), or ask elsewhere: Spot and on demand have "
        f"quotas of their own, and so has each region; {_AGAIN}",
    ),
    # https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability
    _row(
        r"RESOURCE_POOL_EXHAUSTED|does not have enough resources available|stockout",
        "stockout",
        "its zones have no such machine just now",
        "Batch asks again by itself; more zones, another GPU, Spot or flex-start may be quicker: `accel-jobs offers`",
    ),
    _row(
        r"no VM has agent reporting correctly",
        "agent-silent",
        "its VMs have booted, and Batch's agent on them has not reported in time",
        "the account that jobs run as needs roles/batch.agentReporter; VMs without an address of their own need "
        "Private Google Access on the subnetwork; a boot image of your own must be made from a recent one of Batch's",
    ),
    _row(
        r"SERVICE_ACCOUNT_MISMATCH|does not have access to act as|serviceAccounts\.actAs",
        "service-account",
        "whoever asked for the job may not use the account that it runs as, or the instance template has another one",
        f"it takes roles/iam.serviceAccountUser on that account; {_AGAIN}",
    ),
    _row(
        r"service account .*(does not exist|not found)|serviceAccounts/\S+.* was not found",
        "account-missing",
        "the account that jobs run as is not there",
        _DEPLOY,
    ),
    _row(
        r"constraints/compute\.vmExternalIpAccess",
        "address-policy",
        "a policy of the organisation forbids VMs with addresses of their own",
        "have external_address switched off in the stack, with Cloud NAT for what jobs need of the internet; "
        f"{_DEPLOY}",
    ),
    _row(
        r"constraints/compute\.trustedImageProjects",
        "image-policy",
        "a policy of the organisation forbids the VMs' boot image",
        "give the target or the job a boot image that it allows, or have the project batch-custom-image allowed",
    ),
    _row(
        r"constraints?/",
        "policy",
        "a policy of the organisation forbids such VMs",
        "the evidence names the constraint; whoever owns the organisation can make an exception",
    ),
    _row(
        r"machine ?type\S* .*(does not exist in|was not found|is not available)|machineTypes/\S+ was not found"
        r"|accelerator ?type\S* .*(does not exist|was not found)|not supported in (zone|this zone)",
        "not-offered",
        "a zone does not have machines of that type",
        "`accel-jobs offers` shows the zones that have it; give those to the job (google_batch.zones) or to the target",
    ),
    _row(
        r"/(sub)?networks/\S+.* (was )?not found|(sub)?network .* (was )?not found",
        "network-missing",
        "the target's network or subnetwork is not there",
        _DEPLOY,
    ),
    _row(
        r"/images/\S+.* (was )?not found|image family .* not found",
        "boot-image-missing",
        "the VMs' boot image is not there: image families are given up after a while",
        "choose an image of now, for the job or in the stack",
    ),
    _row(
        r"reservation",
        "reservation",
        "the reservation cannot give the VMs",
        "look at what it holds and who uses it; spot: true, or a target without one, asks elsewhere",
    ),
    _row(
        r"INVALID_FIELD_VALUE,BACKEND_ERROR",
        "template",
        "the instance template makes no VM that Batch can use",
        "make a managed instance group of it by hand: its errors say more",
    ),
    _row(r"Batch Error: code|creation failed", "refused", "its VMs cannot be made", "the evidence has Google's words"),
)
"""Of a job's events, the newest first; the first that fits counts."""

AGENT = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    _row(
        r"batch\.states\.report",
        "agent-permission",
        "the account that jobs run as may not report to Batch, so the job stays as it is and its VMs cost money",
        f"it needs roles/batch.agentReporter on the project: {_DEPLOY}; cancel this job",
    ),
    _row(
        r"outdated Batch (agent|image) version",
        "agent-outdated",
        "the VMs' boot image, or Batch's agent in it, is too old",
        "leave boot_image out, or make yours anew from a recent image of Batch's",
    ),
)
"""Of what Batch's agent says while a job does not begin."""

NOT_STARTED = (
    # https://github.com/nextflow-io/nextflow/issues/3273
    _row(
        r"could not select device driver|nvidia-container|unknown or invalid runtime name: nvidia",
        "container-gpu",
        "docker cannot give GPUs to the container: the driver or the NVIDIA Container Toolkit is missing on the VM",
        "leave install_drivers and boot_image out, and `--gpus` out of docker_options: Batch sets it itself",
    ),
    # The first are Cloud Life Sciences' (https://github.com/DataBiosphere/dsub/issues/229) and the installer's
    # (https://github.com/GoogleCloudPlatform/cos-gpu-installer/issues/80); Batch's own words for it were not found.
    _row(
        r"install\w* (nvidia |gpu )*drivers?.*(exit status [1-9]|fail|error(?!: ?<nil>))"
        r"|fail\w* to (download|install|load|build).*(driver|gpu_default_version|nvidia)",
        "driver",
        "the GPU driver was not installed on the VM",
        "retry: a download may have failed; VMs without an address of their own reach it by Cloud NAT and Private "
        "Google Access; leave driver_version and boot_image out, so that Batch takes a driver that fits",
    ),
    _row(
        r"no matching manifest|no match for platform|exec format error",
        "image-platform",
        "the image has no version for the VM's CPU",
        "build it for linux/amd64, or for arm64 where the machine is one",
    ),
    _row(
        r"(docker|pull|manifest|image|registry|pkg\.dev|gcr\.io).*(access denied|denied:|unauthorized|forbidden"
        r"|Permission .*denied|unauthenticated)|pull access denied",
        "image-forbidden",
        "the VM may not read the image, or there is none",
        "the account that jobs run as needs roles/artifactregistry.reader on the repository; a registry elsewhere must "
        "be open; a name that is wrong is answered the same",
    ),
    _row(
        r"manifest unknown|manifest for \S+ not found|(docker|pull|image).*(: not found|repository .* not found)",
        "image-missing",
        "the image or its tag is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    _row(
        r"(docker|pull|registry|pkg\.dev|gcr\.io|registry-1\.docker\.io).*(timeout|timed out|no such host"
        r"|connection refused|unreachable|request canceled)",
        "image-unreachable",
        "the VM cannot reach the registry",
        "VMs without an address of their own need Cloud NAT for registries outside Google, and Private Google Access "
        "on the subnetwork for Google's",
    ),
    _row(
        r"secret\w*.*(denied|not found|disabled|destroyed)",
        "secret-unreadable",
        "a secret cannot be read",
        "the account that jobs run as needs roles/secretmanager.secretAccessor on it, and the version must be enabled",
    ),
    _row(
        r"(gcsfuse|mount\b).*(fail|error(?!: ?<nil>)|denied|exit status [1-9]|not exist|timed out)|fail\w* to mount",
        "mount",
        "a volume cannot be mounted",
        "of a bucket: is it there, and has the account that jobs run as roles/storage.objectUser on it? of NFS: "
        "server, path, and a firewall that lets the VMs to it",
    ),
)
"""Of the end of a log and of the agent's, where the command was not started."""

DOCKER = re.compile(r"\bdocker\b|error response from daemon", re.IGNORECASE)
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
