"""Every cause that can be named. docs/explain-vertex.md is made of this."""

from ...causes import Cause

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
