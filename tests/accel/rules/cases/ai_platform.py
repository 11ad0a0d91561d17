"""Jobs of AI Platform Training, and documents and command lines of other tools."""

from datetime import date

from accel.rules.jobs import imports
from accel.rules.vertex import ai_platform, ai_platform_programs

from .case import Case

_T4, _V100 = "nvidia-tesla-t4", "nvidia-tesla-v100"

MACHINES = [
    Case(
        "ai-platform.tier.unknown", "scaleTier", ('"STANDARD_2"',), "STANDARD_1",
        lambda: ai_platform.scale_tier("STANDARD_2"), lambda: ai_platform.scale_tier("CUSTOM"),
    ),
    Case(
        "ai-platform.tier.machine", "scaleTier", ("BASIC_GPU", "1 nvidia-tesla-k80"), "n1-standard-4",
        lambda: ai_platform.scale_tier("BASIC_GPU"), lambda: ai_platform.scale_tier("CUSTOM"), "n1-standard-4",
    ),
    Case(
        "ai-platform.tier.size", "scaleTier", ("PREMIUM_1",), "CUSTOM",
        lambda: ai_platform.scale_tier("PREMIUM_1"), lambda: ai_platform.scale_tier("BASIC"),
    ),
    Case(
        "ai-platform.tier.custom-only", "workerCount", ("CUSTOM", "BASIC"), "CUSTOM",
        lambda: ai_platform.custom_only("BASIC", "workerCount"), lambda: ai_platform.custom_only("CUSTOM", "x"),
    ),
    Case(
        "ai-platform.role.master", "masterType", ("is missing",), "n1-standard-8",
        lambda: ai_platform.master("CUSTOM", None), lambda: ai_platform.master("BASIC", None),
    ),
    Case(
        "ai-platform.role.type", "workerType", ("9 replicas",), "machine type",
        lambda: ai_platform.role_type(9, None, "workerType"), lambda: ai_platform.role_type(0, None, "workerType"),
    ),
    Case(
        "ai-platform.role.kinds", "masterType", ("masterType legacy", "workerType Compute Engine's"), "one kind",
        lambda: ai_platform.kinds({"masterType": "standard", "workerType": "n1-standard-4"}),
        lambda: ai_platform.kinds({"masterType": "standard", "workerType": "large_model"}),
    ),
    Case(
        "ai-platform.role.legacy-accelerators", "type", ("complex_model_m_gpu",), "n1-standard-16",
        lambda: ai_platform.accelerators("complex_model_m_gpu", "NVIDIA_TESLA_T4", "type"),
        lambda: ai_platform.accelerators("n1-standard-16", "NVIDIA_TESLA_T4", "type"),
    ),
    Case(
        "ai-platform.tpu", "type", ("TPU_V2",), "ct5lp-hightpu-4t",
        lambda: ai_platform.accelerators("cloud_tpu", "TPU_V2", "type"),
        lambda: ai_platform.accelerators("n1-standard-4", "NVIDIA_TESLA_T4", "type"),
    ),
    Case(
        "ai-platform.k80", "accelerator", ("4 nvidia-tesla-k80", "n1-standard-16"), "4 nvidia-tesla-t4",
        lambda: ai_platform.k80("n1-standard-16", 4, _T4), lambda: ai_platform.k80("n1-standard-32", 8, _T4),
        "NVIDIA_TESLA_T4",
    ),
    Case(
        "ai-platform.k80.none", "accelerator", ("8 nvidia-tesla-t4 fit no machine",), "8 nvidia-tesla-v100",
        lambda: ai_platform.k80("n1-standard-32", 8, _T4), lambda: ai_platform.k80("n1-standard-32", 8, _V100),
    ),
]  # fmt: skip

_OLD, _NOW = date(2023, 1, 1), date(2026, 11, 22)

PROGRAMS = [
    Case(
        "ai-platform.runtime", "runtimeVersion", ("2.11",), "tf-gpu.2-11",
        lambda: ai_platform_programs.runtime_version("2.11", today=_OLD, gpu=True, region="europe-west4"),
        lambda: ai_platform_programs.runtime_version("2.11", today=_NOW),
        "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-11:latest",
    ),
    Case(
        "ai-platform.runtime.ended", "runtimeVersion", ("tf-cpu.2-11", "2024-11-15"), "--image",
        lambda: ai_platform_programs.runtime_version("2.11", today=_NOW),
        lambda: ai_platform_programs.runtime_version("2.11", today=date(2024, 11, 15)),
    ),
    Case(
        "ai-platform.runtime.unknown", "runtimeVersion", ('"1.13"',), "--image",
        lambda: ai_platform_programs.runtime_version("1.13", today=_NOW),
        lambda: ai_platform_programs.runtime_version("2.1", today=_NOW),
    ),
    Case(
        "ai-platform.runtime.python", "pythonVersion", ("3.5", "Python 3.7"), "--image",
        lambda: ai_platform_programs.python_version("3.5", "1.15"),
        lambda: ai_platform_programs.python_version("3.7", "2.1"),
    ),
    Case(
        "ai-platform.program.runtime-and-image", "runtimeVersion", ('"2.11"',), "one of them",
        lambda: ai_platform_programs.program("img", "2.11", False, None),
        lambda: ai_platform_programs.program("img", None, False, None),
    ),
    Case(
        "ai-platform.program.missing", "pythonModule", ("is missing",), "masterConfig.imageUri",
        lambda: ai_platform_programs.program(None, "2.11", True, None),
        lambda: ai_platform_programs.program(None, "2.11", True, "trainer.task"),
    ),
    Case(
        "ai-platform.program.container-command", "containerArgs", ("beside args",), "one of them",
        lambda: ai_platform_programs.container_command("img", True, "containerArgs"),
        lambda: ai_platform_programs.container_command("img", False, "containerArgs"),
    ),
    Case(
        "ai-platform.program.local-package", "--package-path", ('"trainer"',), "gs://b/t.tar.gz",
        lambda: ai_platform_programs.local_package("trainer", "gs://b/t.tar.gz"), list, "gs://b/t.tar.gz",
    ),
    Case(
        "ai-platform.job-dir", "jobDir", ('"/tmp/out"',), "gs://",
        lambda: ai_platform_programs.job_dir("/tmp/out"), lambda: ai_platform_programs.job_dir("gs://b/out"),
    ),
    Case(
        "ai-platform.scheduling.priority", "priority", ("is 7",), "leave it out",
        lambda: ai_platform_programs.priority(7), lambda: ai_platform_programs.priority(0),
    ),
    Case(
        "ai-platform.scheduling.wait", "maxWaitTime", ("flex-start",), "vertex.wait_s",
        lambda: ai_platform_programs.wait(False), lambda: ai_platform_programs.wait(True),
    ),
    Case(
        "ai-platform.tf-config", "useChiefInTfConfig", ("`master`",), "`chief`",
        lambda: ai_platform_programs.tf_config(None, None, 3), lambda: ai_platform_programs.tf_config("2.1", None, 3),
    ),
    Case(
        "ai-platform.tuning.early-stopping", "enableTrialEarlyStopping", ("is true",), "median",
        lambda: ai_platform_programs.early_stopping(True), lambda: ai_platform_programs.early_stopping(False), "median",
    ),
    Case(
        "ai-platform.tuning.resume", "resumePreviousJobId", ('"tune_1"',), "anew",
        lambda: ai_platform_programs.resume("tune_1"), lambda: ai_platform_programs.resume(""),
    ),
    Case(
        "ai-platform.tuning.metric", "hyperparameterMetricTag", ("summaries",), "cloudml-hypertune",
        lambda: ai_platform_programs.metric(False), lambda: ai_platform_programs.metric(True),
    ),
    Case(
        "ai-platform.tuning", "hyperparameters", ("3 parameters",), "-o tuning",
        lambda: ai_platform_programs.tuning(3), lambda: ai_platform_programs.tuning(0),
    ),
]  # fmt: skip

IMPORTS = [
    Case(
        "import.flag-wins", "region", ("--region",), "one of them",
        lambda: imports.flag_wins("--region", False, "us-east1", "region"),
        lambda: imports.flag_wins("--region", True, "us-east1", "region"), "us-east1",
    ),
    Case(
        "import.flag-after-dashes", "args", ("--job-dir", "after `--`"), "before `--`",
        lambda: imports.flag_after("--job-dir", True, "args"), lambda: imports.flag_after("--region", False, "args"),
    ),
    Case(
        "import.flag-passed-on", "args", ("--region",), "before `--`",
        lambda: imports.flag_after("--region", False, "args"), lambda: imports.flag_after("--job-dir", True, "args"),
    ),
    Case(
        "import.variable", "JOB", ("$JOB_NAME",), "--var JOB_NAME",
        lambda: imports.variable("$JOB_NAME", "JOB_NAME", "JOB"), lambda: imports.variable("", "", "JOB"),
    ),
    Case(
        "import.role", "role", ('"roles/ml.developer"',), "roles/aiplatform.user",
        lambda: imports.role("roles/ml.developer"), lambda: imports.role("roles/aiplatform.user"),
        "roles/aiplatform.user",
    ),
    Case(
        "import.vertex.timeout-flag", "--timeout", ("no such flag",), "timeout_s: 3600s",
        lambda: imports.timeout_flag("3600s"), list,
    ),
    Case(
        "import.python", "command", ("begins with python",), "python3",
        lambda: imports.python(["python", "train.py"]), lambda: imports.python(["python3", "train.py"]),
    ),
    Case(
        "import.vertex.pools-mapping", "workerPoolSpecs", ("is a mapping",), "list of pools",
        lambda: imports.pools_mapping(True), lambda: imports.pools_mapping(False), "a list of one",
    ),
    Case(
        "python.tensorflow-gpu", "packages", ('"tensorflow-gpu==1.15"',), "tensorflow[and-cuda]",
        lambda: imports.requirement("tensorflow-gpu==1.15", "packages"),
        lambda: imports.requirement("tensorflow==2.17", "packages"),
    ),
]  # fmt: skip

CASES = MACHINES + PROGRAMS + IMPORTS
