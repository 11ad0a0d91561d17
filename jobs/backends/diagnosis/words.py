"""Words that several platforms write: those of registries and docker, and Google's refusals."""

from .engine import row

IMAGE_PLATFORM = row("image-platform", r"no matching manifest|no match for platform|descriptor matching platform")
EXEC_FORMAT = row(
    "image-platform",
    r"exec format error",
    "the command is for another kind of CPU than the machine's, or a script without an interpreter",
    "build the image for linux/amd64 (`docker build --platform linux/amd64`), or for arm64 where the machine is one; a "
    "script needs a first line such as `#!/bin/sh`",
)
PULL_DENIED = row("image-forbidden", r"pull access denied", "the image may not be read, or there is none")
"""Docker Hub gives the same answer in both cases."""

# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html
PULL = (
    row("image-rate-limit", r"toomanyrequests|pull rate limit|too many requests"),
    IMAGE_PLATFORM,
    row(
        "disk-full",
        r"no space left on device",
        "the machine's disk has no room for the image",
        "a larger disk_gib, or a smaller image",
    ),
    row(
        "image-forbidden",
        r"(?<!pull )access ?denied|denied:|permission \S+ denied|permission denied (on|for)|not authorized"
        r"|unauthorized|unauthenticated|forbidden"
        r"|no basic auth credentials|authorization failed|failed to authorize|\b40[13]\b",
    ),
    row(
        "image-unreachable",
        r"time-?out|timed out|no such host|connection refused|unreachable|request canceled|context (deadline|canceled)"
        r"|RequestError|connection reset|\bEOF\b|x509:|\b50[0234] (internal|bad|service|gateway)",
    ),
    row(
        "image-missing",
        r"manifest unknown|manifest for \S+ not found|: not found|(?<!repository )does not exist"
        r"|repository .*not ?found|image \S+ not found|ImageNotFound|no such (image|manifest)|name unknown|\b404\b"
        r"|invalid reference format",
    ),
)

CONTAINER_GPU = row(
    "container-gpu",
    r"could not select device driver|nvidia-container|\bnvml\b|libnvidia|unknown or invalid runtime name: nvidia",
)
MOUNT = row("mount", r"error (while )?mounting|mounting volume|VolumeDriver\.")
STOCKOUT = (
    r"RESOURCE_POOL_EXHAUSTED|does not have enough resources available|stockout|currently unavailable in the \S+ zone"
)
"""Words of Compute Engine about machines that it does not have just now. Sources:
https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability,
https://github.com/kubernetes/k8s.io/issues/9834"""
START = (
    CONTAINER_GPU,
    row(
        "disk-full",
        r"no space left on device|thin pool has \d+ free data blocks",
        "the machine's disk has no room for the container",
        "a larger disk_gib, or a smaller image",
    ),
    EXEC_FORMAT,
    row(
        "command-not-executable",
        r"\bexec\b.*permission denied",
        "its command cannot be run, so the container was not started",
    ),
    row(
        "command-not-found",
        r"executable file not found|\bexec\b.*no such file or directory|\[Errno 2\] no such file|no command specified",
        "its command was not found, so the container was not started",
    ),
    row(
        "out-of-memory",
        r"OOM-killed|cannot allocate memory",
        "the container had no memory to start in",
    ),
)
"""Words of runc and containerd about a container that was not made or not started. Sources:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cannot-start-container.html,
https://github.com/vdesabou/kafka-docker-playground/issues/8515"""

TPU = (
    row(
        "tpu-out-of-memory",
        r"Ran out of memory in memory space hbm|Exceeded hbm capacity|HBM OOM|Error allocating device buffer",
    ),
    row("tpu-busy", r"TPU is already in use by process|libtpu\.so already in use|libtpu_lockfile"),
    row(
        "tpu-not-visible",
        r"initialize backend 'tpu'|No accelerator found|TPU initialization failed|open\(/dev/(accel|vfio)",
    ),
)
"""Words at the end of a TPU job's log."""

NO_ADDRESSES = row(
    "no-addresses",
    r"ip space (of \S+ is )?exhausted|IP_SPACE_EXHAUSTED|no IP addresses available|not enough free addresses"
    r"|InsufficientFreeAddressesInSubnet",
)
# https://docs.cloud.google.com/compute/docs/access/create-enable-service-accounts-for-instances,
# https://github.com/googleapis/python-aiplatform/issues/1073
SERVICE_ACCOUNT = row(
    "service-account",
    r"does not have access to (act as|service account)|permission to act as service_account|serviceAccounts\.actAs",
)
ACCOUNT_MISSING = row(
    "account-missing", r"service account .*(does not exist|not found)|serviceAccounts/\S+.* was not found"
)
API_DISABLED = row(
    "api-disabled", r"API is not enabled|has not been used in project|accessNotConfigured|SERVICE_DISABLED"
)
# https://github.com/GoogleCloudPlatform/java-docs-samples/issues/276,
# https://github.com/GoogleCloudPlatform/php-docs-samples/issues/1235, https://github.com/DataBiosphere/terra-ui/issues/1147,
# https://github.com/kyegomez/zeta/issues/71
BILLING_DISABLED = row(
    "billing-disabled",
    r"requires billing to be enabled|has billing disabled|absent billing account|billing account .* is not found"
    r"|billing must be enabled|BILLING_DISABLED|PROJECT_BILLING_NOT_FOUND",
)
POLICIES = (
    row("address-policy", r"constraints/compute\.vmExternalIpAccess"),
    row("image-policy", r"constraints/compute\.trustedImageProjects"),
    row("policy", r"constraints?/"),
)
NOT_OFFERED = row(
    "not-offered",
    r"(machine ?type|accelerator( ?type)?)s?\b.*(does not exist|was not found|cannot be found|not available"
    r"|not supported|unsupported)"
    r"|machineTypes/\S+ was not found|invalid acceleratortype|(was not found|does not exist|not supported) in"
    r" (this )?zone|zonal accelerator",
)
_NOT_FOUND = r".* (not|cannot be) found"
NETWORK_MISSING = row("network-missing", rf"/(sub)?networks/\S+{_NOT_FOUND}|(sub)?network{_NOT_FOUND}")
BOOT_IMAGE_MISSING = row("boot-image-missing", rf"/images/\S+{_NOT_FOUND}|image family{_NOT_FOUND}")
RESERVATION = row("reservation", r"reservation")
PERMISSION = row(
    "permission",
    r"permission .* is missing|required '[\w.]+' permission|permission '?[\w.]+'? denied|permission[ _]denied"
    r"|does not have permission|does not have [\w.]+ access",
)
QUOTA = row("quota", r"quota_exceeded|quota exceeded|quota limit|quota '|quota \S+ exceeded|insufficient (\w+ )?quota")

GOOGLE = (
    NO_ADDRESSES,
    SERVICE_ACCOUNT,
    ACCOUNT_MISSING,
    BILLING_DISABLED,
    API_DISABLED,
    *POLICIES,
    NOT_OFFERED,
    NETWORK_MISSING,
    BOOT_IMAGE_MISSING,
    PERMISSION,
    RESERVATION,
)
"""Refusals of Compute Engine and other Google services."""
