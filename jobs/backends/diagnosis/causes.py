"""All causes that `accel-jobs explain` can name, for all platforms. docs/explain.md is generated from this table."""

from .cause import DEPLOY, RETRY, THEN_RETRY, Cause, define

CLOUD = "https://docs.cloud.google.com/"
DOCKER = "https://docs.docker.com/reference/cli/docker/container/run/#exit-status"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"
TORCH = "https://docs.pytorch.org/docs/stable/"
PYTHON = "https://docs.python.org/3/library/exceptions.html"
HUB = "https://huggingface.co/docs/hub/"
POLICIES = f"{CLOUD}resource-manager/docs/organization-policy/org-policy-constraints"
REGIONS = f"{CLOUD}compute/docs/regions-zones"
RESERVATIONS = f"{CLOUD}compute/docs/instances/reservations-overview"
REGISTRY = f"{CLOUD}artifact-registry/docs/docker/authentication"
BILLING = "https://cloud.google.com/sdk/gcloud/reference/billing/projects/link"

# AWS
API = "https://docs.aws.amazon.com/batch/latest/APIReference/"
GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide/"
ECS = "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/"
PULL = f"{ECS}task_cannot_pull_image.html"
SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/"
LAUNCHES = f"{SCALING}ts-as-instancelaunchfailure.html"
EC2_ERRORS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
STUCK = f"{GUIDE}job_stuck_in_runnable_misconfiguration.html"
JOB_STATES = f"{GUIDE}job_states.html"
RETRIES = f"{GUIDE}job_retries.html"

# GKE
GKE = "https://docs.cloud.google.com/kubernetes-engine/docs/"
KUEUE = "https://kueue.sigs.k8s.io/docs/"
KUBERNETES = "https://kubernetes.io/docs/concepts/"
JOB = f"{KUBERNETES}workloads/controllers/job/"
POD = f"{KUBERNETES}workloads/pods/pod-lifecycle/"
IMAGES = f"{KUBERNETES}containers/images/"
POD_SECURITY = f"{KUBERNETES}security/pod-security-standards/"
EVICTION = f"{KUBERNETES}scheduling-eviction/node-pressure-eviction/"
AUTOSCALER = f"{GKE}troubleshooting/cluster-autoscaler-scale-up"
FLAVORS = "https://github.com/kubernetes-sigs/kueue/blob/v0.14.0/pkg/scheduler/flavorassigner/flavorassigner.go"

# Google Batch
BATCH = f"{CLOUD}batch/docs/"
BATCH_TROUBLE = f"{BATCH}troubleshooting"
BATCH_STATES = f"{BATCH}reference/rest/v1/projects.locations.jobs#State"
BATCH_GPUS = f"{BATCH}create-run-job-gpus"
NEXTFLOW = "https://github.com/nextflow-io/nextflow/issues/3273"

# Vertex AI
TRAINING = f"{CLOUD}gemini-enterprise-agent-platform/machine-learning/training/"
SERVICE = f"{TRAINING}understanding-training-service"
VERTEX = f"{CLOUD}vertex-ai/docs/"
VERTEX_STATES = f"{VERTEX}reference/rest/v1/JobState"
SAMPLES = "https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/"

# TPU VMs and GPU VMs
QUEUED = f"{CLOUD}tpu/docs/queued-resources#queued-resource-states"
TPU_API = f"{CLOUD}tpu/docs/reference/rest/v2/projects.locations."
LIFE = f"{CLOUD}compute/docs/instances/instance-lifecycle"
ACCOUNTS = f"{CLOUD}compute/docs/access/create-enable-service-accounts-for-instances"
SERIAL = f"{CLOUD}compute/docs/reference/rest/v1/instances/getSerialPortOutput"
SPOT = f"{CLOUD}compute/docs/instances/create-use-spot"
DRIVERS = f"{CLOUD}compute/docs/gpus/install-drivers-gpu"
FUSE = f"{CLOUD}storage/docs/cloud-storage-fuse/cli-options"

_UNSEEN = (
    define("unknown-job", "There is no such job", aws_batch=f"{API}API_DescribeJobs.html",
           gke=f"{KUBERNETES}workloads/controllers/ttlafterfinished/", google_batch=f"{BATCH}view-jobs-tasks",
           vertex=f"{VERTEX}reference/rest/v1/projects.locations.customJobs",
           vm=f"{CLOUD}storage/docs/request-preconditions"),
    define("wrong-region", "The job is in another region than the reference says",
           aws_batch=f"{API}API_DescribeJobs.html"),
)  # fmt: skip

_QUEUED = (
    define("new", "It was made a moment ago, and nothing stands against it", "the job was made a moment ago",
           "wait a few seconds", aws_batch=JOB_STATES, gke=JOB, google_batch=BATCH_STATES, vm=QUEUED),
    define("queued", "The platform has it and has not begun with it, without a word", aws_batch=JOB_STATES,
           google_batch=BATCH_STATES, vertex=SERVICE),
    define("dependencies", "It waits for jobs that it depends on", aws_batch=f"{GUIDE}job_dependencies.html"),
    define("queue-invalid", "The queue is INVALID or being deleted", aws_batch=f"{API}API_JobQueueDetail.html"),
    define("queue-missing", "The queue is not there", gke=f"{KUEUE}concepts/local_queue/"),
    define("queue-stopped", "The queue takes no jobs just now", gke=f"{KUEUE}concepts/cluster_queue/#stoppolicy"),
    define("queue-silent", "Kueue has not looked at it", gke=f"{KUEUE}tasks/troubleshooting/troubleshooting_jobs/"),
    define("queue-too-small", "The queue could never give it so much", gke=f"{KUEUE}concepts/cluster_queue/"),
    define("queue-resource", "The queue has no quota of something that it asks for", gke=FLAVORS),
    define("queue-flavor", "No flavor of the queue has nodes of the kind that it asks for", gke=FLAVORS),
    define("queue-full", "Other jobs use the queue's quota", gke=f"{KUEUE}concepts/cluster_queue/"),
    define("behind-others", "Other jobs are before it in the queue", aws_batch=f"{API}API_GetJobQueueSnapshot.html",
           gke=f"{KUEUE}concepts/cluster_queue/#queueing-strategy"),
    define("fair-share", "The queue's scheduling policy puts other shares first",
           aws_batch=f"{GUIDE}fair-share-scheduling.html"),
    define("share-reserve", "What is left of max_vcpus is reserved for shares without jobs",
           aws_batch=f"{GUIDE}fair-share-scheduling.html"),
    define("environment-disabled", "Every environment of the queue is DISABLED", aws_batch=STUCK),
    define("environment-invalid", "Every environment of the queue is INVALID or DISABLED",
           aws_batch=f"{GUIDE}invalid_compute_environment.html"),
    define("service-role", "Batch may not use its service role", aws_batch=f"{GUIDE}service_IAM_role.html"),
    define("nobody-tends", "An attempt is over, or was never asked for, and no client has moved the job on",
           vm=QUEUED),
    define("next-attempt", "An attempt is over, and the next one is made by whoever tends the job", vm=QUEUED),
)  # fmt: skip

_ROOM = (
    define("too-many-gpus", "No instance type of the queue has so many GPUs", aws_batch=STUCK),
    define("too-many-vcpus", "No instance type of the queue has so many vCPUs", aws_batch=STUCK),
    define("too-much-memory", "No instance type registers so much memory",
           aws_batch=f"{GUIDE}memory-management.html"),
    define("too-large", "AWS finds it larger than every instance type; the catalogue does not", aws_batch=STUCK),
    define("max-vcpus", "max_vcpus has no room for an instance that holds it", aws_batch=STUCK),
    define("environment-full", "Running jobs use what max_vcpus allows", aws_batch=f"{API}API_ComputeResource.html"),
    define("pool-full", "The pool has as many nodes as it may have", gke=AUTOSCALER),
    define("insufficient", "What nodes have is in use, and there is no other",
           gke=f"{KUBERNETES}configuration/manage-resources-containers/"),
    define("no-such-node", "No node has the labels that it asks for",
           gke=f"{KUBERNETES}scheduling-eviction/assign-pod-node/"),
    define("taint", "Nodes have a taint that it does not tolerate",
           gke=f"{KUBERNETES}scheduling-eviction/taint-and-toleration/"),
    define("claim-missing", "A volume's claim is not there, or is bound to nothing",
           gke=f"{KUBERNETES}storage/persistent-volumes/"),
    define("waits-for-quota", "A quota has no room for it just now, and it waits until there is",
           google_batch=f"{BATCH_TROUBLE}#insufficient-quota", vertex=SERVICE),
    define("quota-too-small", "Vertex AI's own quota could not hold it even if nothing else ran", vertex=SERVICE),
    define("quota", "A quota of the account or project has no room for its machines",
           "a quota of the project has no room for the job's machines",
           "ask for more (`stacks quota --request` writes the request), or wait until other machines are gone; Spot "
           f"and on demand have quotas of their own, and so has each region; {THEN_RETRY}", aws_batch=EC2_ERRORS,
           gke=AUTOSCALER, google_batch=f"{BATCH_TROUBLE}#insufficient-quota", vertex=f"{SAMPLES}700",
           vm="https://cloud.google.com/compute/resource-usage"),
    define("compute-quota",
           "A quota of Compute Engine, which is another than Vertex AI's, has no room for its machines",
           vertex=f"{VERTEX}quotas"),
    define("no-addresses", "The subnetwork has no addresses left", "the subnetwork has no addresses left for machines",
           "wait until other machines are gone, or have the subnetwork's range expanded, or another one given",
           aws_batch=LAUNCHES, gke=AUTOSCALER, google_batch=f"{CLOUD}vpc/docs/subnets", vm=f"{CLOUD}vpc/docs/subnets"),
    define("no-capacity", "The cloud has no such machines where it may run just now",
           aws_batch=f"{GUIDE}job_stuck_in_runnable_capacity.html", gke=AUTOSCALER,
           google_batch=f"{CLOUD}compute/docs/troubleshooting/troubleshooting-resource-availability",
           vertex=SERVICE, vm=f"{CLOUD}compute/docs/resource-error"),
    define("waiting-for-capacity", "Its machines are asked for, and the request waits in the cloud's queue",
           gke=f"{GKE}how-to/provisioningrequest", vertex=f"{VERTEX}training/schedule-jobs-dws", vm=QUEUED),
    define("waiting-for-machines", "Machines of the persistent resource are to run it",
           vertex=f"{VERTEX}training/persistent-resource-train"),
    define("nodes-refused", "The nodes that were asked for all at once are not given",
           gke=f"{GKE}how-to/provisioningrequest"),
    define("nodes-given-up", "Nodes that were asked for all at once did not come, and the stack ended the wait",
           gke=f"{KUEUE}concepts/workload/#active"),
    define("waited-too-long", "It waited for machines for as long as it may, and was given up",
           google_batch=f"{CLOUD}batch/quotas", vm=QUEUED),
    define("time-limit", "The queue cancelled it after the time that it allows",
           aws_batch=f"{GUIDE}job_stuck_in_runnable_time_limit_actions.html"),
)  # fmt: skip

_REFUSED = (
    define("not-offered", "The zone or region does not have such machines at all",
           "a zone does not have machines of that type",
           "`accel-jobs offers` shows the zones that have it; give those to the job or to the target",
           aws_batch=LAUNCHES, google_batch=REGIONS, vertex=f"{TRAINING}configure-compute", vm=REGIONS),
    define("reservation", "The reservation is not there, or has nothing left that fits",
           "the reservation cannot give the machines",
           f"look at what it holds and who uses it; spot: true, or a target without one, asks elsewhere; {THEN_RETRY}",
           aws_batch=EC2_ERRORS, google_batch=RESERVATIONS, vertex=f"{VERTEX}training/use-reservations",
           vm=RESERVATIONS),
    define("persistent-resource", "The persistent resource is not there, or has no such machines",
           vertex=f"{VERTEX}training/persistent-resource-train"),
    define("service-account", "Whoever asked may not use the account that jobs run as",
           "whoever asked for the machines may not give them the account that jobs run as",
           f"it takes roles/iam.serviceAccountUser on that account; {THEN_RETRY}",
           aws_batch="https://github.com/nextflow-io/nextflow/pull/2146",
           google_batch=f"{BATCH_TROUBLE}#insufficient-permissions",
           vertex=f"{VERTEX}general/custom-service-account", vm=ACCOUNTS),
    define("account-missing", "The account that jobs run as is not there", "the account that jobs run as is not there",
           DEPLOY, google_batch=f"{BATCH}get-started", vertex=f"{VERTEX}general/custom-service-account",
           vm=ACCOUNTS),
    define("permission", "Whoever asked, or the account that jobs run as, lacks a permission",
           "a permission is missing", f"the evidence names it, and who lacks it; {THEN_RETRY}",
           google_batch=f"{BATCH_TROUBLE}#insufficient-permissions", vertex=f"{VERTEX}general/access-control",
           vm=f"{CLOUD}iam/docs/roles-permissions/tpu"),
    define("api-disabled", "An API of Google's is not enabled in the project", "an API is not enabled in the project",
           f"enable it as the evidence says, or deploy the stack again, which does; {THEN_RETRY}",
           google_batch=f"{BATCH}get-started", vertex=f"{VERTEX}start/cloud-environment",
           vm="https://google.aip.dev/193"),
    define("billing-disabled", "The project has no billing account, or one that is closed",
           "the project has no open billing account, so Google refuses its calls",
           "link one (`gcloud billing projects link PROJECT --billing-account=ACCOUNT`), wait a few minutes for it to "
           f"apply; {THEN_RETRY}",
           google_batch=BILLING, vertex=BILLING, vm=BILLING),
    define("network-missing", "The network or subnetwork of the target is not there",
           "the target's network or subnetwork is not there", DEPLOY, google_batch=f"{BATCH}networking-overview",
           vertex=f"{VERTEX}general/vpc-peering", vm=f"{CLOUD}vpc/docs/subnets"),
    define("network-not-peered", "Its network is not peered with Google's services", vertex=f"{SAMPLES}2611"),
    define("bucket-elsewhere", "A bucket is in another place than the job",
           vertex="https://github.com/googleapis/python-aiplatform/issues/885"),
    define("address-policy", "A policy of the organisation forbids machines with addresses of their own",
           "a policy of the organisation forbids machines with addresses of their own",
           "have external_address switched off in the stack, with Cloud NAT for what jobs need of the internet; "
           f"{DEPLOY}",
           google_batch=f"{BATCH_TROUBLE}#constraint-violated-external-ip", vertex=POLICIES, vm=POLICIES),
    define("image-policy", "A policy of the organisation forbids the machines' boot image",
           "a policy of the organisation forbids the machines' boot image",
           "give the target or the job a boot image that it allows, or have the image's project allowed",
           google_batch=f"{BATCH_TROUBLE}#constraint-violated-trusted-images", vertex=POLICIES, vm=POLICIES),
    define("policy", "A policy of the organisation forbids such machines",
           "a policy of the organisation forbids such machines",
           "the evidence names the constraint; whoever owns the organisation can make an exception",
           google_batch=POLICIES, vertex=POLICIES, vm=POLICIES),
    define("boot-image-missing", "The machines' boot image is not there",
           "the machines' boot image is not there: image families are given up after a while",
           "choose an image of now, for the job or in the stack, and submit to the target of now",
           aws_batch=LAUNCHES, google_batch=f"{BATCH}view-os-images",
           vm="https://cloud.google.com/compute/docs/images/image-families-best-practices"),
    define("template", "The instance template makes no VM that Batch can use",
           google_batch=f"{BATCH_TROUBLE}#instance-template-failure"),
    define("refused", "The cloud refuses the job or its machines, with another reason",
           aws_batch=f"{ECS}stopped-task-errors.html", gke=f"{KUEUE}tasks/troubleshooting/troubleshooting_jobs/",
           google_batch=BATCH_TROUBLE, vm=QUEUED),
    define("launch-failed", "EC2 refuses to launch for another reason",
           aws_batch=LAUNCHES),
)  # fmt: skip

_MACHINES = (
    define("machine-starting", "A machine for it is being made, or boots", "its machines are being made, or boot",
           "wait a few minutes", aws_batch=JOB_STATES, gke=f"{GKE}concepts/cluster-autoscaler",
           google_batch=BATCH_STATES, vm=LIFE),
    define("starting", "It is made ready: driver, image, volumes and container; on Vertex AI its machines, too",
           aws_batch=JOB_STATES, gke=POD, vertex=VERTEX_STATES, vm=DRIVERS),
    define("image-without-driver", "The instances' image has no NVIDIA driver: they have no GPUs for jobs",
           aws_batch=f"{API}API_Ec2Configuration.html"),
    define("driver-not-ready", "The GPU driver was not installed, or did not find the machine's GPUs",
           gke=f"{GKE}how-to/gpus", google_batch=BATCH_GPUS, vm=DRIVERS),
    define("instance-role", "The instance profile or its role is missing or lacks a permission",
           aws_batch=f"{GUIDE}instance_IAM_role.html"),
    define("no-egress", "Instances cannot reach ECS, or CloudWatch Logs, from their subnet",
           aws_batch=f"{ECS}vpc-endpoints.html"),
    define("agent-silent", "Machines run, and the agent on them that runs jobs does not report",
           aws_batch=f"{GUIDE}job_stuck_in_runnable.html",
           google_batch=f"{BATCH_TROUBLE}#no-service-agent-reporting", vm=SERIAL),
    define("agent-permission", "The account that jobs run as may not report to Batch", google_batch=NEXTFLOW),
    define("agent-outdated", "The boot image, or Batch's agent in it, is too old",
           google_batch=f"{BATCH_TROUBLE}#no-service-agent-reporting"),
    define("hosts-missing", "Some machines of the job have come, and wait for the others", vm=f"{TPU_API}nodes"),
    define("hosts-did-not-meet", "Not all machines of the job came in time", vm=f"{TPU_API}nodes"),
    define("unhealthy", "A machine is there, and is not well by Google's own words", vm=f"{TPU_API}nodes"),
    define("not-released", "The command has ended, and its machines are still there",
           vm=f"{TPU_API}queuedResources/delete"),
)  # fmt: skip

_START = (
    define("image-missing", "The image or its tag is not there", "the image or its tag is not there",
           "check its name and tag, or push it; `docker manifest inspect` asks the registry", aws_batch=PULL,
           gke=IMAGES, google_batch=REGISTRY, vertex=f"{VERTEX}training/containers-overview", vm=REGISTRY,
           local=DOCKER),
    define("image-forbidden", "The image may not be read", "the image may not be read from its registry",
           "the account that jobs run as needs roles/artifactregistry.reader on the repository; a registry elsewhere "
           "must be open; a name that is wrong is answered the same", aws_batch=PULL,
           gke=f"{GKE}troubleshooting/image-pulls", google_batch=REGISTRY, vertex=f"{SAMPLES}2176",
           vm=REGISTRY, local=DOCKER),
    define("image-unreachable", "The registry cannot be reached", "the registry cannot be reached from the machine",
           "machines without an address of their own need Cloud NAT for registries outside Google, and Private Google "
           "Access on the subnetwork for Google's", aws_batch=PULL, gke=f"{GKE}troubleshooting/image-pulls",
           google_batch=f"{BATCH}networking-overview", vm=f"{CLOUD}vpc/docs/private-google-access",
           local=DOCKER),
    define("image-rate-limit", "The registry allows no more pulls just now",
           "the registry allows no more pulls from this address just now",
           "log in to the registry, or copy the image to one of the cloud's own", aws_batch=PULL, gke=IMAGES,
           google_batch=REGISTRY, vm=REGISTRY, local=DOCKER),
    define("image-platform", "The image or its command is for another kind of CPU",
           "the image has no version for the machine's CPU",
           "build it for linux/amd64 (`docker build --platform linux/amd64`), or for arm64 where the machine is one",
           everywhere="https://docs.docker.com/build/building/multi-platform/", aws_batch=PULL, gke=IMAGES),
    define("image-pull", "The image cannot be pulled, with another reason", "the image cannot be pulled",
           "the evidence has the registry's words", aws_batch=PULL, gke=IMAGES, vm=REGISTRY, local=DOCKER),
    define("runs-as-root", "The image runs as root, which its namespace does not take", gke=POD_SECURITY),
    define("pod-security", "The namespace does not take such pods", gke=POD_SECURITY),
    define("docker-missing", "The machine has no docker", vm=DOCKER),
    define("container-gpu", "The container cannot be given GPUs: no working driver, or no NVIDIA Container Toolkit",
           "the container cannot be given GPUs: the machine's driver or its NVIDIA Container Toolkit is missing, or is "
           "older than the image needs", "use an image for an older CUDA, or machines with a newer driver",
           aws_batch=f"{API}API_Ec2Configuration.html", gke=f"{GKE}how-to/gpus",
           google_batch=NEXTFLOW, vertex="https://docs.nvidia.com/deploy/cuda-compatibility/", vm=DOCKER, local=DOCKER),
    define("gcsfuse-missing", "The machine has no gcsfuse, and the job mounts a bucket", vm=FUSE),
    define("mount", "A volume or bucket cannot be mounted", "a volume cannot be mounted",
           aws_batch="https://github.com/aws/amazon-ecs-cli/issues/1083",
           gke=f"{KUBERNETES}storage/volumes/", google_batch=f"{BATCH}create-run-job-storage", vm=FUSE),
    define("secret-unreadable", "A secret is not there, or may not be read", "a secret cannot be read",
           "the account that jobs run as needs roles/secretmanager.secretAccessor on it, and the version must be "
           "enabled",
           aws_batch=f"{ECS}secrets-envvar-secrets-manager.html", gke=f"{KUBERNETES}configuration/secret/",
           google_batch=f"{BATCH}create-run-job-secret-manager",
           vm=f"{CLOUD}secret-manager/docs/reference/rest/v1/projects.secrets.versions/access"),
    define("log-group-missing", "The log group is not there", aws_batch="https://github.com/aws/aws-cdk/issues/5954"),
    define("log-group-forbidden", "The log group may not be written to", aws_batch=f"{ECS}using_awslogs.html"),
    define("not-started", "The command was not started, with another reason", "the container was not started",
           "the evidence says what failed", aws_batch=f"{ECS}cannot-start-container.html", gke=POD,
           google_batch="https://github.com/broadinstitute/cromwell/pull/7515", vertex=f"{SAMPLES}1898", vm=DOCKER,
           local=""),
)  # fmt: skip

_WELL = (
    define("running", "It runs", "the job runs: it neither waits nor has it failed", "`accel-jobs logs -f REF`",
           aws_batch=JOB_STATES, gke=JOB, google_batch=BATCH_STATES, vertex=VERTEX_STATES, vm=LIFE, local=""),
    define("parallelism", "It runs, and some of its tasks wait for their turn",
           "the job runs, and some of its tasks wait for their turn",
           "`parallelism` in the job file lets more run at once", gke=f"{JOB}#parallel-jobs",
           google_batch=f"{CLOUD}batch/quotas"),
    define("starts-again", "It ran, its machine was lost, and it starts again on another",
           google_batch=f"{BATCH}automate-task-retries", vertex=SERVICE, vm=SPOT),
    define("stopping", "Someone cancelled it, and it stops", "someone cancelled the job, and it stops", "wait",
           google_batch=BATCH_STATES, vertex=VERTEX_STATES),
    define("succeeded", "It has succeeded", "the job has succeeded: there is nothing to explain",
           "`accel-jobs logs REF` shows what it printed", aws_batch=JOB_STATES, gke=JOB,
           google_batch=BATCH_STATES, vertex=VERTEX_STATES, vm=LIFE, local=""),
)  # fmt: skip

_ENDED = (
    define("stopped", "Someone cancelled or terminated it", "someone cancelled the job", RETRY,
           aws_batch=f"{API}API_TerminateJob.html", gke=JOB, google_batch=f"{BATCH}cancel-job",
           vertex=VERTEX_STATES, vm=f"{TPU_API}queuedResources/delete", local=""),
    define("deleted", "Someone deletes it", google_batch=f"{BATCH}delete-job"),
    define("expired", "Vertex gave it up before it had ended", vertex=VERTEX_STATES),
    define("timeout", "It ran longer than timeout_s", "it ran longer than timeout_s",
           "raise timeout_s, or save and resume", aws_batch=f"{GUIDE}job_timeouts.html", gke=POD,
           google_batch=f"{BATCH_TROUBLE}#task_runs_over_the_maximum_runtime_50005",
           vertex="https://github.com/tensorflow/tfx/issues/6223",
           vm=f"{CLOUD}compute/docs/instances/limit-vm-runtime", local=""),
    define("dependency-failed", "A job that it depends on has failed", aws_batch=f"{GUIDE}job_dependencies.html"),
    define("peer-failed", "It was stopped because another host had failed, which told nothing", vm=f"{TPU_API}nodes"),
    define("preempted", "It was preempted and not retried, or was preempted too often",
           aws_batch=RETRIES, gke=f"{GKE}concepts/spot-vms", google_batch=f"{BATCH_TROUBLE}#vm_preemption_50001",
           vertex=f"{TRAINING}use-spot-vms", vm=SPOT),
    define("host-lost", "The machine under it went away, and nothing says that it was preempted", aws_batch=RETRIES,
           gke="https://github.com/kubernetes/kubernetes/issues/104107",
           local=""),
    define("vm-silent", "Nothing more was heard from its machine (Google Batch: 50002)",
           google_batch=f"{BATCH_TROUBLE}#vm_reporting_timeout_50002", gke=f"{GKE}how-to/node-auto-repair", vm=SERIAL),
    define("vm-rebooted", "Its VM rebooted (50003)",
           google_batch=f"{BATCH_TROUBLE}#vm_rebooted_during_execution_50003"),
    define("vm-unresponsive", "Its task could not be stopped (50004)",
           google_batch=f"{BATCH_TROUBLE}#vm_and_task_are_unresponsive_50004"),
    define("vm-recreated", "Its VM was recreated (50006)",
           google_batch=f"{BATCH_TROUBLE}#vm_recreated_during_execution_50006"),
    define("evicted-disk", "It wrote more to the node's disk than there was", gke=EVICTION),
    define("evicted", "The node was short of something, and put it out", gke=EVICTION),
    define("internal-error", "Vertex itself failed, three times", vertex=SERVICE),
)  # fmt: skip

_PROGRAM = (
    define("out-of-memory", "It used more of the machine's memory than it has, or asked for",
           "the container used more memory than memory_mib, and was killed", "raise memory_mib",
           everywhere=f"{PYTHON}#MemoryError", aws_batch=f"{ECS}out-of-memory.html",
           gke=f"{KUBERNETES}configuration/manage-resources-containers/", vertex=SERVICE),
    define("cuda-out-of-memory", "The GPU's own memory was full", "the GPU's own memory was full",
           "a smaller batch, gradient accumulation, or a GPU with more memory (`accel-jobs offers` lists them); more "
           "memory_mib or shm_mib is memory of the host and does not help", everywhere=f"{TORCH}notes/faq.html"),
    define("tpu-out-of-memory", "The TPU's own memory was full", "the TPU's own memory was full",
           "a smaller batch, a model sharded over more chips, or a generation with more memory a chip",
           gke="https://github.com/LargeWorldModel/LWM/issues/60", vm="https://github.com/LargeWorldModel/LWM/issues/60"),
    define("shared-memory", "Shared memory was full",
           "a process of the program found no room in shared memory (/dev/shm)",
           "raise shm_mib, or use fewer data loader workers", everywhere=f"{TORCH}multiprocessing.html"),
    define("tpu-busy", "Another process on the machine has the TPU",
           "another process on the machine has the TPU, which one process alone can have",
           "start one process on each host that uses the TPU; a program that imports JAX must not start another that "
           "does", gke="https://github.com/jax-ml/jax/issues/10192", vm="https://github.com/jax-ml/jax/issues/10192"),
    define("tpu-not-visible", "The program sees no TPU", "the program sees no TPU",
           "libtpu must be in the image (pip install 'jax[tpu]'), and all hosts of a slice must run the program",
           gke="https://github.com/jax-ml/jax/issues/13260", vm="https://github.com/jax-ml/jax/issues/13260"),
    define("gpu-not-visible", "The program sees no GPU that it can use, though it has one",
           "the job has a GPU reserved and its program saw none that it can use",
           "the image's CUDA must not be newer than the driver of the machine", aws_batch=f"{GUIDE}gpu-jobs.html",
           gke=f"{GKE}how-to/gpus", google_batch=BATCH_GPUS,
           vertex="https://docs.nvidia.com/deploy/cuda-compatibility/", vm=DRIVERS,
           local="https://docs.nvidia.com/deploy/cuda-compatibility/"),
    define("gpu-not-requested", "The program wants a GPU, and the job asks for none",
           "the program wants a GPU and the job asks for none",
           "accelerator: {count: 1} in the job file, with the GPU's type on Google Cloud",
           aws_batch=f"{GUIDE}gpu-jobs.html", gke=f"{GKE}how-to/gpus", google_batch=BATCH_GPUS,
           vertex=f"{TRAINING}configure-compute", vm=DRIVERS,
           local="https://docs.nvidia.com/deploy/cuda-compatibility/"),
    define("gpu-failed", "A GPU of the machine failed", "a GPU of the machine failed: the fault is not the program's",
           f"{RETRY}, on another machine as a rule; if it comes again on the same one, tell the cloud's support",
           everywhere="https://docs.nvidia.com/deploy/xid-errors/"),
    define("disk-full", "A disk was full", "a disk that the job writes to was full",
           "write to a bucket, delete what is no longer needed, or give disk_gib", aws_batch=PULL, gke=EVICTION,
           google_batch=f"{BATCH}create-run-job-storage", vertex=f"{VERTEX}reference/rest/v1/DiskSpec",
           vm=f"{CLOUD}compute/docs/disks", local=DOCKER),
    define("killed", "SIGKILL ended it, and nothing says who sent it",
           "SIGKILL ended the process, and nothing says who sent it",
           "look at how much of the host's memory the job uses, and raise memory_mib if that is near what it has: the "
           "kernel ends what uses the most when memory is short", everywhere=EXIT_STATUS),
    define("command-not-found", "A command was not found (127)", "a command was not found",
           "check the command's name, and that the image has it on its PATH", everywhere=EXIT_STATUS),
    define("command-not-executable", "A command cannot be run (126)", "a command was found and cannot be run",
           "give it execute permission in the image, or name its interpreter; a binary must be for the machine's CPU",
           everywhere=EXIT_STATUS),
    define("requirements-failed", "Its packages could not be installed (69)",
           "the packages of its requirements could not be installed",
           "the installer's own words are in the log: check names and versions against the image's Python, and that "
           "the network reaches the package index", everywhere="https://pip.pypa.io/en/stable/cli/pip_install/"),
    define("import-failed", "A module or library that the program needs is not there, or does not fit",
           "a module or library that the program needs is not there, or does not fit",
           "add it to the image or to the job's requirements; a library that is missing, or a symbol that is not "
           "defined, is of a version that does not fit the others", everywhere=f"{PYTHON}#ImportError"),
    define("model-forbidden", "Hugging Face does not give it a model or data set",
           "Hugging Face does not give the program a model or data set",
           "accept its terms on its page, and give the job a token of who did (HF_TOKEN, as a secret); a name that is "
           "wrong is answered the same", everywhere=f"{HUB}models-gated"),
    define("hub-rate-limit", "Hugging Face allows no more requests just now",
           "Hugging Face allows no more requests from this address or account just now",
           "give the job a token (HF_TOKEN, as a secret), for which more is allowed; copy what all tasks read to a "
           "bucket once", everywhere=f"{HUB}rate-limits"),
    define("collective-timeout", "Its processes waited for each other in vain",
           "its processes waited for each other longer than they may",
           "one of them had ended, hung or was slower than the others: look above for the one that says nothing, or "
           "something else; raise the timeout of init_process_group if a step takes so long",
           everywhere=f"{TORCH}distributed.html"),
    define("exit-code", "The command ended by itself with another exit code", "the command ended by itself",
           "the last lines are the program's own words; `accel-jobs logs REF` shows them all",
           everywhere=EXIT_STATUS),
    define("unknown", "None of these fits; what was looked at is listed",
           "unknown: no known cause fits what could be read",
           "`accel-jobs logs REF` and `accel-jobs get REF` show all that the job left",
           aws_batch=f"{GUIDE}job_stuck_in_runnable.html", gke=f"{GKE}troubleshooting",
           google_batch=BATCH_TROUBLE, vertex=VERTEX_STATES, vm=QUEUED, local=""),
)  # fmt: skip

SECTIONS = {
    "The job cannot be looked at": _UNSEEN,
    "It waits for its turn": _QUEUED,
    "It waits for machines, or got none": _ROOM,
    "What it asks for is refused": _REFUSED,
    "Its machines come, or do not work": _MACHINES,
    "Its command was not started": _START,
    "It neither waits nor has it failed": _WELL,
    "It was ended": _ENDED,
    "Its program failed": _PROGRAM,
}
"""The table by headings, in the order of the documentation."""

CAUSES = {cause.id: cause for causes in SECTIONS.values() for cause in causes}


def of_platform(platform: str) -> dict[str, Cause]:
    return {name: cause for name, cause in CAUSES.items() if platform in cause.sources}
