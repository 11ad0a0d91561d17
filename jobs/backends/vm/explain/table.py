"""Every cause that can be named, and the words of Google, docker and what runs on TPUs for them.

docs/explain-vms.md is made of the causes.
"""

from ...causes import THEN_RETRY, Cause, cause_row

CLOUD = "https://docs.cloud.google.com/"
QUEUED = f"{CLOUD}tpu/docs/queued-resources"
STATES = f"{QUEUED}#queued-resource-states"
DELETE = f"{CLOUD}tpu/docs/reference/rest/v2/projects.locations.queuedResources/delete"
NODES = f"{CLOUD}tpu/docs/reference/rest/v2/projects.locations.nodes"
LIFE = f"{CLOUD}compute/docs/instances/instance-lifecycle"
STOCKOUT = f"{CLOUD}compute/docs/resource-error"
ACCOUNTS = f"{CLOUD}compute/docs/access/create-enable-service-accounts-for-instances"
INSTANCES = f"{CLOUD}compute/docs/reference/rest/v1/instances"
SERIAL = f"{INSTANCES}/getSerialPortOutput"
SPOT = f"{CLOUD}compute/docs/instances/create-use-spot"
DRIVERS = f"{CLOUD}compute/docs/gpus/install-drivers-gpu"
TPU_LOCK = "https://github.com/jax-ml/jax/issues/10192"
DOCKER = "https://docs.docker.com/reference/cli/docker/container/run/#exit-status"
FUSE = f"{CLOUD}storage/docs/cloud-storage-fuse/cli-options"
SECRET = f"{CLOUD}secret-manager/docs/reference/rest/v1/projects.secrets.versions/access"
LOGIN = f"{CLOUD}artifact-registry/docs/docker/authentication#token"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"
TORCH = "https://docs.pytorch.org/docs/stable/"

FAMILIES = "https://cloud.google.com/compute/docs/images/image-families-best-practices"
RESERVED = f"{CLOUD}compute/docs/instances/reservations-overview"
POLICIES = f"{CLOUD}resource-manager/docs/organization-policy/org-policy-constraints"

CAUSES = {
    # The job cannot be looked at
    "unknown-job": Cause("The bucket has no record of such a job", f"{CLOUD}storage/docs/request-preconditions"),
    # Nobody moves it on
    "nobody-tends": Cause("An attempt is over, or was never asked for, and no client has moved the job on", STATES),
    "next-attempt": Cause("An attempt is over, and the next one is made by whoever tends the job", STATES),
    "taken-away": Cause("Google took its machines away, and new ones are made by whoever tends the job", SPOT),
    # It waits for machines
    "waiting-for-capacity": Cause("Its zone has no such machines just now, and the request is in the queue", STATES),
    "starting": Cause("Its machines are being made, or boot", LIFE),
    "new": Cause("It was made a moment ago, and nothing stands against it", STATES),
    # Its machines are there, and do not do what they should
    "agent-silent": Cause("A machine has booted, and what runs jobs on it has never spoken", SERIAL),
    "hosts-missing": Cause("Some machines of the job have come, and wait for the others", NODES),
    "unhealthy": Cause("A machine is there, and is not well by Google's own words", NODES),
    "preparing": Cause("Its machines get ready: driver, image, buckets, secrets", DRIVERS),
    "not-released": Cause("The command has ended, and its machines are still there", DELETE),
    # It does not wait, and has not failed
    "running": Cause("It runs", LIFE),
    "succeeded": Cause("It has succeeded", LIFE),
    # It got no machines
    "no-capacity": Cause("No zone that it may use had such machines", STOCKOUT),
    "request-expired": Cause("It waited for machines for as long as it might", STATES),
    "quota": Cause(
        "A quota of the project has no room for its machines", "https://cloud.google.com/compute/resource-usage"
    ),
    "service-account": Cause("Whoever asked may not give machines the account that jobs run as", ACCOUNTS),
    "account-missing": Cause("The account that jobs run as is not there", ACCOUNTS),
    "api-disabled": Cause("An API of Google's is not enabled in the project", "https://google.aip.dev/193"),
    "permission": Cause("Whoever asked lacks a permission", f"{CLOUD}iam/docs/roles-permissions/tpu"),
    "network-missing": Cause("The network or subnetwork of the target is not there", f"{CLOUD}vpc/docs/subnets"),
    "boot-image-missing": Cause("The boot image of the target is not there", FAMILIES),
    "reservation": Cause(
        "The reservation is not there, or has nothing left that fits",
        RESERVED,
    ),
    "policy": Cause(
        "A policy of the organisation forbids such machines",
        POLICIES,
    ),
    "not-offered": Cause("The zone does not have machines of the type at all", f"{CLOUD}compute/docs/regions-zones"),
    "refused": Cause("Google refused its machines, with another reason", STATES),
    # Its command was not started
    "driver-not-ready": Cause("The driver did not find the machine's GPUs in time", DRIVERS),
    "hosts-did-not-meet": Cause("Not all machines of the job came in time", NODES),
    "image-missing": Cause("The image or its tag is not there", LOGIN),
    "image-forbidden": Cause("The image may not be read", LOGIN),
    "image-unreachable": Cause("The registry cannot be reached", f"{CLOUD}vpc/docs/private-google-access"),
    "image-platform": Cause("The image is for another kind of CPU", LOGIN),
    "image-pull": Cause("The image cannot be pulled, with another reason", LOGIN),
    "docker-missing": Cause("The machine has no docker", DOCKER),
    "container-gpu": Cause("Docker cannot give GPUs to a container", DOCKER),
    "gcsfuse-missing": Cause("The machine has no gcsfuse, and the job mounts a bucket", FUSE),
    "mount": Cause("A bucket cannot be mounted", FUSE),
    "secret-unreadable": Cause("A secret cannot be read", SECRET),
    "not-started": Cause("The command was not started, with another reason", DOCKER),
    # It failed
    "stopped": Cause("Someone cancelled it", DELETE),
    "lost-too-often": Cause("Google took its machines away more often than lost_retries allows", SPOT),
    "timeout": Cause("The command ran longer than timeout_s", f"{CLOUD}compute/docs/instances/limit-vm-runtime"),
    "no-word": Cause("Its machines told of no end long after its timeout", SERIAL),
    "peer-failed": Cause("It was stopped because another host had failed, which told nothing", NODES),
    "tpu-out-of-memory": Cause("The TPU's memory was full", "https://github.com/LargeWorldModel/LWM/issues/60"),
    "tpu-busy": Cause("Another process on the machine has the TPU", TPU_LOCK),
    "tpu-not-visible": Cause("The program sees no TPU", "https://github.com/jax-ml/jax/issues/13260"),
    "cuda-out-of-memory": Cause("The GPU's memory was full", f"{TORCH}notes/faq.html"),
    "shared-memory": Cause("Shared memory was full", f"{TORCH}multiprocessing.html"),
    "gpu-not-visible": Cause("The program sees no GPU, though the machine has one", DRIVERS),
    "gpu-not-requested": Cause("The program wants a GPU, and the machine has none", DRIVERS),
    "disk-full": Cause("A disk was full", f"{CLOUD}compute/docs/disks"),
    "killed": Cause("SIGKILL ended it, and nothing says why", EXIT_STATUS),
    "command-not-found": Cause("A command was not found (127)", EXIT_STATUS),
    "command-not-executable": Cause("A command cannot be run (126)", EXIT_STATUS),
    "exit-code": Cause("The command ended by itself with another exit code", EXIT_STATUS),
    "unknown": Cause("None of these fits; what was looked at is listed", STATES),
}
"""By id; the order is the documentation's."""


REFUSED = (
    cause_row(
        r"quota limit|quota '|quota_exceeded|quota exceeded",
        "quota",
        "a quota of the project has no room for the job's machines",
        "ask for more (`stacks quota --request` writes the request), or wait until other machines are gone; "
        f"{THEN_RETRY}. Spot and on demand have quotas of their own, and so has each region; suspended requests "
        "hold quota too",
    ),
    # https://docs.cloud.google.com/compute/docs/access/create-enable-service-accounts-for-instances
    cause_row(
        r"does not have access to service account|serviceAccounts\.actAs",
        "service-account",
        "whoever asked for the machines may not give them the account that jobs run as",
        f"it takes roles/iam.serviceAccountUser on that account; {THEN_RETRY}",
    ),
    cause_row(
        r"service account .*(does not exist|not found)|serviceAccounts/\S+.* was not found",
        "account-missing",
        "the account that jobs run as is not there",
        f"deploy the stack of the target again, and submit to the target of now; {THEN_RETRY}",
    ),
    cause_row(
        r"API is not enabled|has not been used in project|accessNotConfigured|SERVICE_DISABLED",
        "api-disabled",
        "an API is not enabled in the project",
        f"enable it as the evidence says, or deploy the stack again, which does; {THEN_RETRY}",
    ),
    cause_row(
        r"reservation",
        "reservation",
        "the target's reservation cannot give the machines",
        f"look at what it holds and who uses it; spot: true or a target without one asks elsewhere; {THEN_RETRY}",
    ),
    cause_row(
        r"constraints?/",
        "policy",
        "a policy of the organisation forbids such machines",
        "the evidence names the constraint; whoever owns the organisation can make an exception",
    ),
    cause_row(
        r"permission .* is missing|required '[\w.]+' permission|permission denied|does not have permission",
        "permission",
        "whoever asked for the machines lacks a permission",
        f"of jobs on TPUs it takes roles/tpu.admin, on VMs roles/compute.instanceAdmin.v1; {THEN_RETRY}",
    ),
    cause_row(
        r"/(sub)?networks/\S+.* (was )?not found|subnetwork .* not found",
        "network-missing",
        "the target's network or subnetwork is not there",
        f"deploy the stack of the target again, and submit to the target of now; {THEN_RETRY}",
    ),
    cause_row(
        r"/images/\S+.* (was )?not found|image family .* not found",
        "boot-image-missing",
        "the target's boot image is not there: image families are given up after a while",
        "choose an image of now in the stack (`image` of the target), deploy it, and submit to the target of now",
    ),
    cause_row(
        r"invalid acceleratortype|was not found in zone|does not exist in zone|zonal accelerator",
        "not-offered",
        "the zone does not have machines of that type",
        "`accel-jobs offers` shows the zones that have it; give those to the job or to the target",
    ),
)
"""Of a request that Google refused; the first that fits counts."""

UNREADY = (
    cause_row(
        r"^driver-not-ready",
        "driver-not-ready",
        "the driver did not find the machine's GPUs in time, or not all of them",
        "the target's boot image must bring a driver (or install one at the first boot) that knows the GPU; Secure "
        "Boot must be off for a driver that is built on the machine",
    ),
    cause_row(
        r"^not-met",
        "hosts-did-not-meet",
        "not all machines of the job came in time",
        "one of them did not boot, or its agent could not reach the bucket: the evidence names them. Machines meet in "
        "the bucket; once they run, the firewall must let them talk: a stack's rule is for the tag accel-jobs",
    ),
    cause_row(
        r"^timeout$",
        "timeout",
        "the time of the job was over before its command was started",
        "raise timeout_s",
    ),
    cause_row(
        r"No such file or directory: '?docker",
        "docker-missing",
        "the machine has no docker",
        "use a boot image or a TPU runtime that has docker, or leave `image` out and run the command on the machine",
    ),
    cause_row(
        r"could not select device driver|nvidia-container|unknown or invalid runtime name: nvidia",
        "container-gpu",
        "docker cannot give GPUs to a container: the NVIDIA Container Toolkit is missing, or docker does not know it",
        "use a boot image that has it, as Deep Learning VM images do",
    ),
    cause_row(
        r"no matching manifest|no match for platform|exec format error",
        "image-platform",
        "the image has no version for the machine's CPU",
        "build it for linux/amd64, or for arm64 where the machine is one",
    ),
    cause_row(
        r"docker login|docker(:| pull).*(denied|unauthorized|forbidden|\b40[13]\b)",
        "image-forbidden",
        "the machine may not read the image, or there is none",
        "the account that jobs run as needs roles/artifactregistry.reader on the repository; a registry elsewhere must "
        "be open; a name that is wrong is answered the same",
    ),
    cause_row(
        r"docker(:| pull).*(not found|manifest unknown|does not exist|no such image)",
        "image-missing",
        "the image or its tag is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    cause_row(
        r"docker(:| pull).*(timeout|timed out|no such host|connection refused|unreachable|Client\.Timeout|i/o timeout)",
        "image-unreachable",
        "the machine cannot reach the registry",
        "machines without an address of their own need Cloud NAT for registries outside Google, and Private Google "
        "Access on the subnetwork for Google's",
    ),
    cause_row(r"docker pull", "image-pull", "the image cannot be pulled", "the evidence has docker's words"),
    cause_row(
        r"No such file or directory: '?gcsfuse",
        "gcsfuse-missing",
        "the machine has no gcsfuse, so that no bucket can be mounted",
        "use a boot image that has it, or read and write the bucket by its API (`gcloud storage`, gcsfs)",
    ),
    cause_row(
        r"mount ",
        "mount",
        "a bucket cannot be mounted",
        "the account that jobs run as needs roles/storage.objectUser on the bucket (objectViewer to read only)",
    ),
    cause_row(
        r"secret projects/",
        "secret-unreadable",
        "a secret cannot be read",
        "the account that jobs run as needs roles/secretmanager.secretAccessor on it, and the version must be enabled",
    ),
    cause_row(
        r"^not-started",
        "not-started",
        "the command was not started",
        "the evidence says why; `accel-jobs logs REF` shows what the machine did before",
    ),
)
"""Of a host's result, where its command was not run."""

TPU = (
    cause_row(
        r"Ran out of memory in memory space hbm|Exceeded hbm capacity|HBM OOM",
        "tpu-out-of-memory",
        "the TPU's own memory was full",
        "a smaller batch, a model sharded over more chips, or a generation with more memory a chip",
    ),
    cause_row(
        r"TPU is already in use by process|libtpu\.so already in use|libtpu_lockfile",
        "tpu-busy",
        "another process on the machine has the TPU, which one process alone can have",
        "start one process on each host that uses the TPU; a program that imports JAX must not start another that does",
    ),
    cause_row(
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
