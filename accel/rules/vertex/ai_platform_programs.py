"""Programs of AI Platform Training jobs: runtimes, images, arguments, and differences in Vertex AI."""

from datetime import date

from accel.catalog.vertex import images, place
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

RUNTIME = rule("ai-platform.runtime")
RUNTIME_ENDED = rule("ai-platform.runtime.ended")
RUNTIME_UNKNOWN = rule("ai-platform.runtime.unknown")
PYTHON = rule("ai-platform.runtime.python")
ONE_IMAGE = rule("ai-platform.program.runtime-and-image")
PROGRAM = rule("ai-platform.program.missing")
CONTAINER = rule("ai-platform.program.container-command")
PACKAGE_PATH = rule("ai-platform.program.local-package")
JOB_DIR = rule("ai-platform.job-dir")
PRIORITY = rule("ai-platform.scheduling.priority")
WAIT = rule("ai-platform.scheduling.wait")
TF_CONFIG = rule("ai-platform.tf-config")
STOPPING = rule("ai-platform.tuning.early-stopping")
RESUME = rule("ai-platform.tuning.resume")
METRIC = rule("ai-platform.tuning.metric")
TUNING = rule("ai-platform.tuning")

PYTHON_OF_RUNTIMES = "3.7"
"""Python version of the runtimes that Vertex AI has images for."""
_CHOOSE = "choose one with --image: of your own at best, which has the Python and the TensorFlow of the program"


def runtime_version(
    version: str, *, today: date, gpu: bool = False, region: str = "", field: str = "runtimeVersion"
) -> list[Finding]:
    """Check a version. The replacement is the prebuilt image with its TensorFlow, in the registry near the region."""
    name = f"tf-{'gpu' if gpu else 'cpu'}.{version.replace('.', '-')}"
    found = images().get(name)
    if found is None:
        message = f'is "{version}", for which Vertex AI never had an image'
        return [RUNTIME_UNKNOWN.finding(field, message, _CHOOSE)]
    image = f"{place(region)}-docker.pkg.dev/vertex-ai/training/{name}:latest"
    if today > found.available_until:
        message = f"is {version}, whose image {name} was available until {found.available_until}"
        return [RUNTIME_ENDED.finding(field, message, _CHOOSE)]
    return [RUNTIME.finding(field, f"is {version}, a runtime version", f"use {image}", image)]


def python_version(python: str, version: str, field: str = "pythonVersion") -> list[Finding]:
    if python == PYTHON_OF_RUNTIMES:
        return []
    wrong = f"is {python}, and the image of runtime version {version} has Python {PYTHON_OF_RUNTIMES}"
    return [PYTHON.finding(field, wrong, _CHOOSE)]


def program(
    image: str | None, version: str | None, packages: bool, module: str | None, field: str = "runtimeVersion"
) -> list[Finding]:
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
    if not image:
        return [CONTAINER.finding(field, "stands without an image", "name masterConfig.imageUri, or use args")]
    if args:
        return [CONTAINER.finding(field, "stands beside args", "keep one of them")]
    return []


def local_package(path: str, upload: str, field: str = "--package-path") -> list[Finding]:
    """Return the finding for a folder that gcloud packaged. `upload`: its place now; empty: unknown."""
    where = upload or "gs://<bucket>/<folder>/"
    fix = f"build it (python -m build --sdist), copy it to {where} and name it with --packages"
    return [PACKAGE_PATH.finding(field, f'is "{path}", a folder of this machine', fix, upload or None)]


def job_dir(path: str, field: str = "jobDir") -> list[Finding]:
    if path.startswith("gs://") and len(path) > len("gs://"):
        return []
    return [JOB_DIR.finding(field, f'is "{path}", which is not in Cloud Storage', "write gs://<bucket>/<folder>")]


def priority(value: int, field: str = "priority") -> list[Finding]:
    message = f"is {value}, and custom jobs have no priority"
    return [PRIORITY.finding(field, message, "leave it out")] if value else []


def wait(flex_start: bool, field: str = "maxWaitTime") -> list[Finding]:
    message = "is set, and a custom job that is not flex-start waits for as long as it takes"
    return [] if flex_start else [WAIT.finding(field, message, "leave it out; vertex.wait_s goes with flex-start")]


def tf_config(
    version: str | None, chief: bool | None, machines: int, field: str = "useChiefInTfConfig"
) -> list[Finding]:
    """Check the name of the first machine. `version`: of the runtime, None for a container."""
    old = version is not None and _number(version) < (2, 1)
    if machines < 2 or not (old or (version is None and not chief)):
        return []
    message = "is not set, so the program was told `master`" if version is None else f"does not matter to {version}"
    fix = "see that the program knows `chief` in TF_CONFIG"
    return [TF_CONFIG.finding(field, message, fix)]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def early_stopping(asked: bool, field: str = "enableTrialEarlyStopping") -> list[Finding]:
    message = "is true, and Vertex AI wants a method"
    return [STOPPING.finding(field, message, "use medianAutomatedStoppingSpec", "median")] if asked else []


def resume(job: str, field: str = "resumePreviousJobId") -> list[Finding]:
    if not job:
        return []
    return [
        RESUME.finding(
            field, f'is "{job}", whose trials Vertex AI does not know', "leave it out: the search begins anew"
        )
    ]


def metric(runs_container: bool, field: str = "hyperparameterMetricTag") -> list[Finding]:
    """Pass containers, which already used cloudml-hypertune."""
    if runs_container:
        return []
    message = "was read from TensorFlow's summaries"
    return [METRIC.finding(field, message, "report it with cloudml-hypertune under this name")]


def tuning(params: int, field: str = "hyperparameters") -> list[Finding]:
    message = f"is a search over {params} parameters, which a job file does not say"
    return (
        [TUNING.finding(field, message, "use -o tuning for Vertex AI's, or leave it out for one training")]
        if params
        else []
    )
