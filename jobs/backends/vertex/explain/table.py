"""Every cause that can be named, and the words of Vertex AI for them.

docs/explain-vertex.md is made of the causes.
"""

from ...causes import THEN_RETRY, Cause, cause_row

AGENT = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
SERVICE = f"{AGENT}training/understanding-training-service"
SPOT = f"{AGENT}training/use-spot-vms"
VERTEX = "https://docs.cloud.google.com/vertex-ai/docs/"
STATES = f"{VERTEX}reference/rest/v1/JobState"
SPEC = f"{VERTEX}reference/rest/v1/CustomJobSpec"
ACCOUNT = f"{VERTEX}general/custom-service-account"
PEERING = f"{VERTEX}general/vpc-peering"
ISSUES = "https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"
TORCH = "https://docs.pytorch.org/docs/stable/"

CAUSES = {
    # The job cannot be looked at
    "unknown-job": Cause("The region has no such job", f"{VERTEX}reference/rest/v1/projects.locations.customJobs"),
    # It waits
    "waits-for-quota": Cause("Vertex AI's own quota is taken by other jobs, and it is queued until they end", SERVICE),
    "quota-too-small": Cause("Vertex AI's own quota could not hold the job even if nothing else ran", SERVICE),
    "queued": Cause("Vertex has not taken it up yet; that is usually brief", SERVICE),
    "waiting-for-capacity": Cause("It waits for machines by flex-start", f"{VERTEX}training/schedule-jobs-dws"),
    "waiting-for-machines": Cause(
        "Machines of the persistent resource are to run it", f"{VERTEX}training/persistent-resource-train"
    ),
    "starting": Cause("Its machines and containers are being made ready", STATES),
    "starts-again": Cause("It ran, and Vertex starts it again: a machine or a replica was lost", SERVICE),
    # It runs, or is over
    "running": Cause("It runs", STATES),
    "stopping": Cause("Someone cancelled it, and it stops", STATES),
    "succeeded": Cause("It succeeded", STATES),
    "cancelled": Cause("Someone cancelled it", STATES),
    "timeout": Cause(
        "It ran longer than timeout_s, and Vertex cancelled it", "https://github.com/tensorflow/tfx/issues/6223"
    ),
    "expired": Cause("Vertex gave it up before it had ended", STATES),
    # It got no machines, or lost them
    "quota": Cause("A quota of Vertex AI has no room for it", f"{ISSUES}/700"),
    "compute-quota": Cause(
        "A quota of Compute Engine, which is another, has no room for its machines", f"{VERTEX}quotas"
    ),
    "no-capacity": Cause("The region has no such machines just now", SERVICE),
    "spot-taken": Cause("Its Spot machines were taken away once too often", SPOT),
    "reservation": Cause("The reservation cannot give its machines", f"{VERTEX}training/use-reservations"),
    "persistent-resource": Cause(
        "The persistent resource is not there, or has no such machines", f"{VERTEX}training/persistent-resource-train"
    ),
    "not-offered": Cause("The region has no such machine or accelerator", f"{AGENT}training/configure-compute"),
    # What it stands on
    "account-forbidden": Cause("Whoever submitted it may not use the account that jobs run as", ACCOUNT),
    "image-forbidden": Cause("Vertex may not read the image", f"{ISSUES}/2176"),
    "image-missing": Cause("The image, or its tag, is not there", f"{VERTEX}training/containers-overview"),
    "network-not-peered": Cause("Its network is not peered with Google's services", f"{ISSUES}/2611"),
    "bucket-elsewhere": Cause(
        "A bucket is in another place than the job", "https://github.com/googleapis/python-aiplatform/issues/885"
    ),
    "permission": Cause("A permission is missing", f"{VERTEX}general/access-control"),
    "api-disabled": Cause("An API is not enabled", f"{VERTEX}start/cloud-environment"),
    # Its program
    "not-started": Cause("A container could not be started", f"{ISSUES}/1898"),
    "out-of-memory": Cause("A machine's memory was full", SERVICE),
    "cuda-out-of-memory": Cause("The GPU's own memory was full", f"{TORCH}notes/faq.html"),
    "shared-memory": Cause("There was no room in shared memory", f"{TORCH}multiprocessing.html"),
    "gpu-not-visible": Cause(
        "The program saw no GPU that it can use", "https://docs.nvidia.com/deploy/cuda-compatibility/"
    ),
    "gpu-not-requested": Cause(
        "The program wants a GPU and the job asks for none", f"{AGENT}training/configure-compute"
    ),
    "disk-full": Cause("A disk was full", f"{VERTEX}reference/rest/v1/DiskSpec"),
    "killed": Cause("SIGKILL ended it, and nothing says who sent it", EXIT_STATUS),
    "command-not-found": Cause("A command was not found", EXIT_STATUS),
    "command-not-executable": Cause("A command is there and cannot be run", EXIT_STATUS),
    "exit-code": Cause("The command ended by itself with another code than 0", SERVICE),
    "internal-error": Cause("Vertex itself failed, three times", SERVICE),
    "unknown": Cause("No known cause fits what could be read", STATES),
}


FAILED = (
    cause_row(
        r"compute\.googleapis\.com/\S+.*quota|quota\W+'?(NVIDIA_|GPUS_ALL|CPUS|SSD_TOTAL)",
        "compute-quota",
        "a quota of Compute Engine has no room for its machines; it is not the one of Vertex AI",
        f"`stacks quota --request` writes the request for more; {THEN_RETRY}",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/700,
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/264
    cause_row(
        r"quota metrics exceed quota limits|quotas are exceeded|quota exceeded for",
        "quota",
        "a quota of Vertex AI has no room for it; quotas of Compute Engine of the same name are others and do not help",
        "ask for more of the metric that is named, of the Vertex AI API in this region (Spot and flex-start have one "
        f"of their own), or wait until other jobs are over; {THEN_RETRY}",
    ),
    # https://github.com/googleapis/python-aiplatform/issues/885
    cause_row(
        r"must be in the same regional location",
        "bucket-elsewhere",
        "a bucket that the job names is in another place than the job",
        "use a bucket of the job's own region, as the target's is (`vertex.output`, `vertex.package`)",
    ),
    # https://github.com/googleapis/python-aiplatform/issues/1073
    cause_row(
        r"permission to act as service_account|serviceAccounts\.actAs",
        "account-forbidden",
        "whoever submitted it may not use the account that jobs run as, or there is no such account",
        f"it takes roles/iam.serviceAccountUser on that account; {THEN_RETRY}",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2176
    cause_row(
        r"permission to access Artifact Registry|artifactregistry\.repositories\.downloadArtifacts|"
        r"(image|registry).*(denied|forbidden|unauthorized|permission)",
        "image-forbidden",
        "Vertex may not read the image: its own service agent pulls it, not the account that jobs run as",
        f"give the agent that is named roles/artifactregistry.reader on the repository; {THEN_RETRY}",
    ),
    # The words are from memory.
    cause_row(
        r"(image|manifest|tag)\b.*(not found|does not exist|unknown|no such)|MANIFEST_UNKNOWN|name unknown",
        "image-missing",
        "the image, or its tag, is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/2611
    cause_row(
        r"NETWORK_NOT_PEERED|not peered|peering|servicenetworking|reserved ip range",
        "network-not-peered",
        "the job's network is not peered with Google's services, or the peering has no addresses left",
        "deploy the stack of the target with a network that has private services access, or use a network attachment",
    ),
    cause_row(
        r"persistent ?resource",
        "persistent-resource",
        "the persistent resource is not there or not ready, or has no pool of such machines",
        "look at it in the console; `vertex.persistent_resource` and the job's machines must fit one of its pools",
    ),
    cause_row(
        r"reservation",
        "reservation",
        "the reservation cannot give the machines, or is not shared with Vertex AI",
        "look at what it holds, who uses it, and that it is shared with Google services; spot: true asks elsewhere; "
        f"{THEN_RETRY}",
    ),
    cause_row(
        r"(machine ?type|accelerator)\b.*(not supported|unsupported|not available|invalid|not found)",
        "not-offered",
        "the region has no such machine or accelerator for custom jobs",
        "`accel-jobs offers` shows the regions that have it",
    ),
    # https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1898
    cause_row(
        r"StartError|failed to create (containerd|shim) task|ContainerCannotRun",
        "not-started",
        "a container could not be started",
        "the evidence says why: of a command that was not found, give the interpreter's path, one argument an entry",
    ),
    # The page of the training service, and https://github.com/google/agents-cli/issues/43
    cause_row(
        r"ran out[- ]of[- ]memory|low on memory|OOMKilled",
        "out-of-memory",
        "the memory of a machine was full, not that of its GPU; on the smallest, Vertex itself takes up to 40 %",
        "raise memory_mib, or choose a larger machine (`vertex.machine_type`)",
    ),
    cause_row(
        r"Internal error occurred",
        "internal-error",
        "Vertex itself failed, and gave up after three attempts",
        "`accel-jobs retry REF` tries again; a lack of machines in the region can be behind it, and so another region "
        "may help",
    ),
    cause_row(
        r"API is not enabled|has not been used in project|SERVICE_DISABLED|accessNotConfigured",
        "api-disabled",
        "an API is not enabled in the project",
        f"enable it as the evidence says, or deploy the stack again, which does; {THEN_RETRY}",
    ),
    cause_row(
        r"permission .* is missing|permission '?[\w.]+'? denied|permission[ _]denied|does not have permission"
        r"|does not have [\w.]+ access",
        "permission",
        "a permission is missing",
        f"the evidence names it, and who lacks it: the account that jobs run as, or Vertex's own agent; {THEN_RETRY}",
    ),
)
"""Of a job's error; the first that fits counts."""

OF_VERTEX = {
    "gpu-not-visible": "the image's CUDA must not be newer than the driver of Vertex's machines, and needs a build for "
    "GPUs",
    "gpu-not-requested": "accelerator: {type: l4} in the job file",
    "disk-full": "write to a bucket (/gcs/<bucket>), or give disk_gib",
    "killed": "look at how much memory the job uses: the kernel ends what uses the most when it is short; memory_mib "
    "in the job file chooses a larger machine",
    "shared-memory": "use fewer data loader workers",
    "command-not-executable": "give it execute permission in the image, or name its interpreter",
}
"""What to do where the words of outcome.py are of another platform."""
