"""Programs of AI Platform Training jobs: runtimes, images, arguments, and differences in Vertex AI."""

from datetime import date

from accel.catalog.vertex import images, place
from accel.diagnostics.findings import Finding, Rule
from accel.rules.vertex.ai_platform import JOBS

_RUNTIMES = "https://docs.cloud.google.com/vertex-ai/docs/training/pre-built-containers"
_TF_CONFIG = "https://cloud.google.com/ai-platform/training/docs/distributed-training-details"

RUNTIME = Rule(
    "ai-platform.runtime",
    "translate",
    "A runtime version becomes the prebuilt image with its TensorFlow",
    _RUNTIMES,
)
RUNTIME_ENDED = Rule(
    "ai-platform.runtime.ended",
    "reject",
    "The prebuilt images of all runtime versions have ended: another has to be chosen",
    _RUNTIMES,
)
RUNTIME_UNKNOWN = Rule(
    "ai-platform.runtime.unknown",
    "reject",
    "Some runtime versions never had a prebuilt image: one has to be chosen",
    _RUNTIMES,
)
PYTHON = Rule(
    "ai-platform.runtime.python",
    "reject",
    "The prebuilt image of a runtime version has one Python, which the job's has to be",
    _RUNTIMES,
)
ONE_IMAGE = Rule(
    "ai-platform.program.runtime-and-image",
    "reject",
    "A job has a runtime version or an image of its own, not both",
    JOBS,
)
PROGRAM = Rule(
    "ai-platform.program.missing",
    "reject",
    "A job is an image, or Python packages with a module and a runtime version",
    JOBS,
)
CONTAINER = Rule(
    "ai-platform.program.container-command",
    "reject",
    "containerCommand and containerArgs go with an image, and not with args",
    JOBS,
)
PACKAGE_PATH = Rule(
    "ai-platform.program.local-package",
    "reject",
    "gcloud built and uploaded a local package; Vertex AI takes a source distribution in Cloud Storage",
    "https://docs.cloud.google.com/vertex-ai/docs/training/create-python-pre-built-container",
)
JOB_DIR = Rule(
    "ai-platform.job-dir",
    "reject",
    "A job's directory is in Cloud Storage",
    JOBS,
)
PRIORITY = Rule(
    "ai-platform.scheduling.priority",
    "translate",
    "Custom jobs of Vertex AI have no priority",
    "https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling",
)
WAIT = Rule(
    "ai-platform.scheduling.wait",
    "translate",
    "How long a custom job waits for machines can be said for flex-start alone",
    "https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling",
)
TF_CONFIG = Rule(
    "ai-platform.tf-config",
    "warn",
    "In TF_CONFIG the first machine is `chief`; AI Platform Training said `master` to runtimes before 2.1 and to "
    "containers without useChiefInTfConfig",
    f"{_TF_CONFIG}#chief-versus-master",
)
STOPPING = Rule(
    "ai-platform.tuning.early-stopping",
    "translate",
    "Vertex AI stops trials by a named method; the median of the others is the nearest",
    "https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec",
)
RESUME = Rule(
    "ai-platform.tuning.resume",
    "translate",
    "A tuning job of Vertex AI does not go on with the trials of an earlier one",
    "https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.hyperparameterTuningJobs",
)
METRIC = Rule(
    "ai-platform.tuning.metric",
    "warn",
    "Vertex AI reads a trial's metric from cloudml-hypertune, not from TensorFlow's summaries",
    "https://docs.cloud.google.com/vertex-ai/docs/training/using-hyperparameter-tuning",
)
TUNING = Rule(
    "ai-platform.tuning",
    "reject",
    "A job file is one training; a search over hyperparameters is another resource of Vertex AI",
    "https://docs.cloud.google.com/vertex-ai/docs/training/using-hyperparameter-tuning",
)

RULES = (
    RUNTIME, RUNTIME_ENDED, RUNTIME_UNKNOWN, PYTHON, ONE_IMAGE, PROGRAM, CONTAINER, PACKAGE_PATH, JOB_DIR,
    PRIORITY, WAIT, TF_CONFIG, STOPPING, RESUME, METRIC, TUNING,
)  # fmt: skip

PACKAGES_MAX = 100
PYTHON_OF_RUNTIMES = "3.7"
"""Python version of the runtimes that Vertex AI has images for."""
_CHOOSE = "choose one with --image: of your own at best, which has the Python and the TensorFlow of the program"


def runtime_version(
    version: str, *, today: date, gpu: bool = False, region: str = "", field: str = "runtimeVersion"
) -> list[Finding]:
    """Check a runtime version. The replacement is the prebuilt image with its TensorFlow, in the registry near the
    region."""
    name = f"tf-{'gpu' if gpu else 'cpu'}.{version.replace('.', '-')}"
    found = images().get(name)
    if found is None:
        message = f'is "{version}", for which Vertex AI never had an image'
        return [RUNTIME_UNKNOWN.finding(field, message, _CHOOSE)]
    image = f"{place(region)}-docker.pkg.dev/vertex-ai/training/{name}:latest"
    if today > found.available_until:
        message = f"is {version}, whose image {name} was to be had until {found.available_until}"
        return [RUNTIME_ENDED.finding(field, message, _CHOOSE)]
    return [RUNTIME.finding(field, f"is {version}, a runtime version", f"use {image}", image)]


def python_version(python: str, version: str, field: str = "pythonVersion") -> list[Finding]:
    """Check the Python version that a job requests with its runtime version."""
    if python == PYTHON_OF_RUNTIMES:
        return []
    wrong = f"is {python}, and the image of runtime version {version} has Python {PYTHON_OF_RUNTIMES}"
    return [PYTHON.finding(field, wrong, _CHOOSE)]


def program(
    image: str | None, version: str | None, packages: bool, module: str | None, field: str = "runtimeVersion"
) -> list[Finding]:
    """Check that a job has exactly one program."""
    if image and version:
        return [ONE_IMAGE.finding(field, f'is "{version}", and the job has an image too', "keep one of them")]
    if image or (packages and module and version):
        return []
    lacks = [
        name for name, there in (("pythonModule", module), ("packageUris", packages), (field, version)) if not there
    ]
    fix = "name packageUris, pythonModule and runtimeVersion, or masterConfig.imageUri"
    return [PROGRAM.finding(lacks[0], "is missing, and so is an image", fix)]


def container_command(image: str | None, args: bool, field: str) -> list[Finding]:
    """Check the command or arguments of a container. `args`: whether the job also has arguments."""
    if not image:
        return [CONTAINER.finding(field, "stands without an image", "name masterConfig.imageUri, or use args")]
    if args:
        return [CONTAINER.finding(field, "stands beside args", "keep one of them")]
    return []


def local_package(path: str, upload: str, field: str = "--package-path") -> list[Finding]:
    """Return the finding for a folder that gcloud packaged. `upload`: where the package is expected now; empty:
    unknown."""
    where = upload or "gs://<bucket>/<folder>/"
    fix = f"build it (python -m build --sdist), copy it to {where} and name it with --packages"
    return [PACKAGE_PATH.finding(field, f'is "{path}", a folder of this machine', fix, upload or None)]


def job_dir(path: str, field: str = "jobDir") -> list[Finding]:
    """Check the folder of a job's results."""
    if path.startswith("gs://") and len(path) > len("gs://"):
        return []
    return [JOB_DIR.finding(field, f'is "{path}", which is not in Cloud Storage', "write gs://<bucket>/<folder>")]


def priority(value: int, field: str = "priority") -> list[Finding]:
    """Check that a job has no priority."""
    message = f"is {value}, and custom jobs have no priority"
    return [PRIORITY.finding(field, message, "leave it out")] if value else []


def wait(flex_start: bool, field: str = "maxWaitTime") -> list[Finding]:
    """Check how long a job waits for resources."""
    message = "is set, and a custom job that is not flex-start waits for as long as it takes"
    return [] if flex_start else [WAIT.finding(field, message, "leave it out; vertex.wait_s goes with flex-start")]


def tf_config(
    version: str | None, chief: bool | None, machines: int, field: str = "useChiefInTfConfig"
) -> list[Finding]:
    """Check the name of the first machine in TF_CONFIG. `version`: runtime version, None for a container; `machines`:
    number of machines in the job."""
    old = version is not None and _number(version) < (2, 1)
    if machines < 2 or not (old or (version is None and not chief)):
        return []
    message = "is not set, so the program was told `master`" if version is None else f"does not matter to {version}"
    fix = "see that the program knows `chief` in TF_CONFIG"
    return [TF_CONFIG.finding(field, message, fix)]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def early_stopping(asked: bool, field: str = "enableTrialEarlyStopping") -> list[Finding]:
    """Check the early stopping of unpromising trials."""
    message = "is true, and Vertex AI wants a method"
    return [STOPPING.finding(field, message, "use medianAutomatedStoppingSpec", "median")] if asked else []


def resume(job: str, field: str = "resumePreviousJobId") -> list[Finding]:
    """Check for a tuning job that continues another's trials."""
    if not job:
        return []
    return [
        RESUME.finding(
            field, f'is "{job}", whose trials Vertex AI does not know', "leave it out: the search begins anew"
        )
    ]


def metric(runs_container: bool, field: str = "hyperparameterMetricTag") -> list[Finding]:
    """Check how a trial reports its metric. Containers already used cloudml-hypertune."""
    if runs_container:
        return []
    message = "was read from TensorFlow's summaries"
    return [METRIC.finding(field, message, "report it with cloudml-hypertune under this name")]


def tuning(params: int, field: str = "hyperparameters") -> list[Finding]:
    """Check for a search over hyperparameters in a future job file."""
    message = f"is a search over {params} parameters, which a job file does not say"
    return (
        [TUNING.finding(field, message, "use -o tuning for Vertex AI's, or leave it out for one training")]
        if params
        else []
    )
