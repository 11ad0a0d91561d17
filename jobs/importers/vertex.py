"""A custom job of Vertex AI as it is written for gcloud or the API, as a job file of ours."""

from collections.abc import Sequence

from accel.rules.gcp import zones
from accel.rules.jobs import image_cuda, placeholders

from .options import Options
from .outcome import ImportResult
from .vertex_source import SPEC, source
from .vertex_values import job_values

KNOWN = (
    *("displayName", "jobSpec", "workerPoolSpecs", "machineSpec", "machineType", "acceleratorType", "acceleratorCount"),
    *("tpuTopology", "reservationAffinity", "replicaCount", "containerSpec", "imageUri", "command", "args", "env"),
    *("pythonPackageSpec", "executorImageUri", "packageUris", "pythonModule", "diskSpec", "bootDiskSizeGb"),
    *("bootDiskType", "nfsMounts", "scheduling", "timeout", "strategy", "restartJobOnWorkerRestart", "disableRetries"),
    *("maxWaitDuration", "serviceAccount", "network", "baseOutputDirectory", "outputUriPrefix", "tensorboard"),
    *("enableWebAccess", "enableDashboardAccess", "persistentResourceId", "labels", "encryptionSpec"),
)


def imported(name: str, data: bytes, flags: Sequence[str], options: Options) -> ImportResult:
    """The job of a file (config.yaml, a CustomJob, a pasted gcloud command) and of flags, which win.

    Raises BadInput where it cannot be read.
    """
    given, region = source(name, data, flags, options.variables)
    if not given.has("displayName"):
        given.values["displayName"] = name.rpartition("/")[2].partition(".")[0]
    for path, value in list(given.values.items()):
        if isinstance(value, str):
            given.report.findings(given.name(path), placeholders.value(path, value))
    values = job_values(given, options)
    if region:
        given.report.findings("--region", zones.region(region))
    accelerators = [str(value) for path, value in given.values.items() if path.endswith(".acceleratorType")]
    image = values.get("image")
    if isinstance(image, str):
        at = f"{SPEC}.workerPoolSpecs[0].containerSpec.imageUri"
        given.report.findings(given.name(at), image_cuda.image(image, accelerators))
    given.report.close(KNOWN)
    return ImportResult(given.report, {}, values, region)
