"""Every cause that can be named. docs/explain-vms.md is made of this."""

from ...causes import Cause

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
