"""Fields of a job of AI Platform Training, and gcloud's flags for them. Sources: the discovery document ml.v1, and
gcloud's own flags of `ai-platform jobs submit training` (and `ml-engine`)."""

from collections.abc import Mapping

ROLES = ("master", "worker", "parameterServer", "evaluator")
"""Roles in the order of Vertex AI's worker pools."""

REPLICA = (
    *("acceleratorConfig.count", "acceleratorConfig.type", "containerArgs", "containerCommand"),
    *("diskConfig.bootDiskSizeGb", "diskConfig.bootDiskType", "imageUri", "tpuTfVersion"),
)

PARAMETER = (*("categoricalValues", "discreteValues", "maxValue", "minValue", "parameterName", "scaleType", "type"),)

HYPERPARAMETERS = (
    *("algorithm", "enableTrialEarlyStopping", "goal", "hyperparameterMetricTag", "maxFailedTrials"),
    *("maxParallelTrials", "maxTrials", "params", "resumePreviousJobId"),
)

TRAINING_INPUT = (
    *("args", "enableWebAccess", "encryptionConfig.kmsKeyName", "hyperparameters", "jobDir", "network", "packageUris"),
    *("pythonModule", "pythonVersion", "region", "runtimeVersion", "scaleTier", "serviceAccount", "useChiefInTfConfig"),
    *("scheduling.maxRunningTime", "scheduling.maxWaitTime", "scheduling.priority"),
    *(f"{role}{what}" for role in ROLES for what in ("Config", "Type")),
    *(f"{role}Count" for role in ROLES[1:]),
)

OUTPUT_ONLY = ("createTime", "startTime", "endTime", "state", "errorMessage", "trainingOutput", "jobPosition", "etag")

TOP = {name.partition(".")[0] for name in TRAINING_INPUT}
"""Fields of trainingInput that identify a document that leaves out that key."""

KNOWN = sorted(
    {part for name in (*TRAINING_INPUT, *REPLICA, *PARAMETER, *HYPERPARAMETERS) for part in name.split(".")}
    | {"jobId", "labels", "trainingInput", *OUTPUT_ONLY}
)

_ROLE_FLAGS = {"master": "master", "worker": "worker", "parameter-server": "parameterServer"}

SETTINGS: Mapping[str, str] = {
    "--config": "",
    "--enable-web-access": "enableWebAccess",
    "--job-dir": "jobDir",
    "--kms-key": "encryptionConfig.kmsKeyName",
    "--labels": "labels",
    "--module-name": "pythonModule",
    "--network": "network",
    "--packages": "packageUris",
    "--python-version": "pythonVersion",
    "--region": "region",
    "--runtime-version": "runtimeVersion",
    "--scale-tier": "scaleTier",
    "--service-account": "serviceAccount",
    "--tpu-tf-version": "workerConfig.tpuTfVersion",
    "--use-chief-in-tf-config": "useChiefInTfConfig",
    **{f"--{flag}-machine-type": f"{role}Type" for flag, role in _ROLE_FLAGS.items()},
    **{f"--{flag}-accelerator": f"{role}Config.acceleratorConfig" for flag, role in _ROLE_FLAGS.items()},
    **{f"--{flag}-image-uri": f"{role}Config.imageUri" for flag, role in _ROLE_FLAGS.items()},
    **{f"--{flag}-count": f"{role}Count" for flag, role in _ROLE_FLAGS.items() if role != "master"},
}
"""Flags, each with the field below trainingInput that it sets (`labels` is the job's own)."""

OF_GCLOUD = {
    "--async": "says how gcloud waits; accel-jobs submit waits with --wait",
    "--stream-logs": "says what gcloud shows; accel-jobs logs --follow shows it",
    "--package-path": "",
    "--staging-bucket": "says where gcloud uploads packages",
    "--kms-keyring": "",
    "--kms-location": "",
    "--kms-project": "",
}
"""Flags that set no field of the job, each with the reason why it is left out; empty if it is read with others."""

UNNEEDED = ("--package-path", "--staging-bucket")
"""Flags whose values are not in a job file, so that a variable in one needs no value."""

BARE = ("--async", "--stream-logs", "--enable-web-access")
"""Flags without a value."""

FLAGS = {name: name not in BARE for name in (*SETTINGS, *OF_GCLOUD)}

GENERAL = ("--config", "--labels", "--region", "--network", "--service-account", "--project", "--async", "--quiet")
"""Flags whose names a program may well have for itself."""
