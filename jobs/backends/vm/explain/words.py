"""Words of Google, docker and what runs on TPUs, and what each means."""

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

REFUSED = (
    _row(
        r"quota limit|quota '|quota_exceeded|quota exceeded",
        "quota",
        "a quota of the project has no room for the job's machines",
        f"ask for more (`stacks quota --request` writes the request), or wait until other machines are gone; {_AGAIN}. "
        "Spot and on demand have quotas of their own, and so has each region; suspended requests hold quota too",
    ),
    # https://docs.cloud.google.com/compute/docs/access/create-enable-service-accounts-for-instances
    _row(
        r"does not have access to service account|serviceAccounts\.actAs",
        "service-account",
        "whoever asked for the machines may not give them the account that jobs run as",
        f"it takes roles/iam.serviceAccountUser on that account; {_AGAIN}",
    ),
    _row(
        r"service account .*(does not exist|not found)|serviceAccounts/\S+.* was not found",
        "account-missing",
        "the account that jobs run as is not there",
        f"deploy the stack of the target again, and submit to the target of now; {_AGAIN}",
    ),
    _row(
        r"API is not enabled|has not been used in project|accessNotConfigured|SERVICE_DISABLED",
        "api-disabled",
        "an API is not enabled in the project",
        f"enable it as the evidence says, or deploy the stack again, which does; {_AGAIN}",
    ),
    _row(
        r"reservation",
        "reservation",
        "the target's reservation cannot give the machines",
        f"look at what it holds and who uses it; spot: true or a target without one asks elsewhere; {_AGAIN}",
    ),
    _row(
        r"constraints?/",
        "policy",
        "a policy of the organisation forbids such machines",
        "the evidence names the constraint; whoever owns the organisation can make an exception",
    ),
    _row(
        r"permission .* is missing|required '[\w.]+' permission|permission denied|does not have permission",
        "permission",
        "whoever asked for the machines lacks a permission",
        f"of jobs on TPUs it takes roles/tpu.admin, on VMs roles/compute.instanceAdmin.v1; {_AGAIN}",
    ),
    _row(
        r"/(sub)?networks/\S+.* (was )?not found|subnetwork .* not found",
        "network-missing",
        "the target's network or subnetwork is not there",
        f"deploy the stack of the target again, and submit to the target of now; {_AGAIN}",
    ),
    _row(
        r"/images/\S+.* (was )?not found|image family .* not found",
        "boot-image-missing",
        "the target's boot image is not there: image families are given up after a while",
        "choose an image of now in the stack (`image` of the target), deploy it, and submit to the target of now",
    ),
    _row(
        r"invalid acceleratortype|was not found in zone|does not exist in zone|zonal accelerator",
        "not-offered",
        "the zone does not have machines of that type",
        "`accel-jobs offers` shows the zones that have it; give those to the job or to the target",
    ),
)
"""Of a request that Google refused; the first that fits counts."""

UNREADY = (
    _row(
        r"^driver-not-ready",
        "driver-not-ready",
        "the driver did not find the machine's GPUs in time, or not all of them",
        "the target's boot image must bring a driver (or install one at the first boot) that knows the GPU; Secure "
        "Boot must be off for a driver that is built on the machine",
    ),
    _row(
        r"^not-met",
        "hosts-did-not-meet",
        "not all machines of the job came in time",
        "one of them did not boot, or its agent could not reach the bucket: the evidence names them. Machines meet in "
        "the bucket; once they run, the firewall must let them talk: a stack's rule is for the tag accel-jobs",
    ),
    _row(
        r"^timeout$",
        "timeout",
        "the time of the job was over before its command was started",
        "raise timeout_s",
    ),
    _row(
        r"No such file or directory: '?docker",
        "docker-missing",
        "the machine has no docker",
        "use a boot image or a TPU runtime that has docker, or leave `image` out and run the command on the machine",
    ),
    _row(
        r"could not select device driver|nvidia-container|unknown or invalid runtime name: nvidia",
        "container-gpu",
        "docker cannot give GPUs to a container: the NVIDIA Container Toolkit is missing, or docker does not know it",
        "use a boot image that has it, as Deep Learning VM images do",
    ),
    _row(
        r"no matching manifest|no match for platform|exec format error",
        "image-platform",
        "the image has no version for the machine's CPU",
        "build it for linux/amd64, or for arm64 where the machine is one",
    ),
    _row(
        r"docker login|docker(:| pull).*(denied|unauthorized|forbidden|\b40[13]\b)",
        "image-forbidden",
        "the machine may not read the image, or there is none",
        "the account that jobs run as needs roles/artifactregistry.reader on the repository; a registry elsewhere must "
        "be open; a name that is wrong is answered the same",
    ),
    _row(
        r"docker(:| pull).*(not found|manifest unknown|does not exist|no such image)",
        "image-missing",
        "the image or its tag is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    _row(
        r"docker(:| pull).*(timeout|timed out|no such host|connection refused|unreachable|Client\.Timeout|i/o timeout)",
        "image-unreachable",
        "the machine cannot reach the registry",
        "machines without an address of their own need Cloud NAT for registries outside Google, and Private Google "
        "Access on the subnetwork for Google's",
    ),
    _row(r"docker pull", "image-pull", "the image cannot be pulled", "the evidence has docker's words"),
    _row(
        r"No such file or directory: '?gcsfuse",
        "gcsfuse-missing",
        "the machine has no gcsfuse, so that no bucket can be mounted",
        "use a boot image that has it, or read and write the bucket by its API (`gcloud storage`, gcsfs)",
    ),
    _row(
        r"mount ",
        "mount",
        "a bucket cannot be mounted",
        "the account that jobs run as needs roles/storage.objectUser on the bucket (objectViewer to read only)",
    ),
    _row(
        r"secret projects/",
        "secret-unreadable",
        "a secret cannot be read",
        "the account that jobs run as needs roles/secretmanager.secretAccessor on it, and the version must be enabled",
    ),
    _row(
        r"^not-started",
        "not-started",
        "the command was not started",
        "the evidence says why; `accel-jobs logs REF` shows what the machine did before",
    ),
)
"""Of a host's result, where its command was not run."""

TPU = (
    _row(
        r"Ran out of memory in memory space hbm|Exceeded hbm capacity|HBM OOM",
        "tpu-out-of-memory",
        "the TPU's own memory was full",
        "a smaller batch, a model sharded over more chips, or a generation with more memory a chip",
    ),
    _row(
        r"TPU is already in use by process|libtpu\.so already in use|libtpu_lockfile",
        "tpu-busy",
        "another process on the machine has the TPU, which one process alone can have",
        "start one process on each host that uses the TPU; a program that imports JAX must not start another that does",
    ),
    _row(
        r"initialize backend 'tpu'|No accelerator found|TPU initialization failed|open\(/dev/(accel|vfio)",
        "tpu-not-visible",
        "the program sees no TPU",
        "the runtime version must be the generation's (`tpu_vm.runtime_version`; leave it out), libtpu must be in the "
        "image (pip install 'jax[tpu]'), and all hosts of a slice must run the program",
    ),
)
"""Of the end of a log, where the job is on TPUs."""

OF_VMS = {
    "gpu-not-visible": "the image's CUDA must not be newer than the driver of the machine: `accel-jobs exec REF --host "
    "-- nvidia-smi` shows it while a job runs; the stack's boot image decides",
    "gpu-not-requested": "accelerator: {type: l4} in the job file",
    "disk-full": "write to a bucket, or give disk_gib",
    "killed": "look at how much memory the job uses: the kernel ends what uses the most when it is short; cpus or "
    "memory_mib in the job file choose a larger machine",
    "shared-memory": "raise shm_mib, or use fewer data loader workers; it is half of the machine's memory otherwise",
    "command-not-executable": "give it execute permission in the image, or name its interpreter; a binary must be for "
    "the machine's CPU",
}
"""What to do where the words of outcome.py are of another platform."""
