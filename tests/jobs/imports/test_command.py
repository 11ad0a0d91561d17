"""`jobs import` as a command: its report in two forms, its exit codes, and files that cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from accel.contract.targets import write
from jobs.importers.kinds import KINDS
from tests.jobs.backends.vertex_jobs import make_target
from tests.jobs.conftest import command

CONFIG = """\
trainingInput:
  scaleTier: CUSTOM
  region: us-central1
  masterType: standard_gpu
  masterConfig:
    imageUri: us-docker.pkg.dev/acme/train/flowers:1.4
"""
LOST = """\
trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highcpu-16
      count: 4
      type: NVIDIA_TESLA_T4
  workerType: n1-highcpu-16
      count: 4
      type: NVIDIA_TESLA_T4
"""


def test_a_job_file_that_a_target_takes(home: Path, invoke: Callable[..., Result]) -> None:
    Path("config.yaml").write_text(CONFIG)
    Path("targets.json").write_text(json.dumps(write({"training": make_target()})))
    done = invoke(
        "import", "ai-platform", "config.yaml", "--targets", "targets.json", "--", "flowers", "--", "--epochs=3"
    )
    assert done.exit_code == 0, done.stderr
    assert "submit it with --to training" in done.stderr
    assert "changed: trainingInput.masterType 'standard_gpu' -> 'n1-standard-4'" in done.stderr
    assert "[gcp.legacy.machine-type, ai-platform.k80]" in done.stderr
    Path("job.yaml").write_text(done.stdout)
    assert yaml.safe_load(done.stdout)["vertex"]["args"] == ["--epochs=3"]
    checked = invoke("validate", "job.yaml", "--to", "training", "--no-quota", "--targets", "targets.json")
    assert checked.exit_code == 0, checked.stderr


def test_as_a_process(home: Path) -> None:
    Path("config.yaml").write_text(CONFIG)
    done = command(
        "import", "ai-platform", "config.yaml", "-o", "json", "--", "--worker-count=2", "--worker-machine-type=standard"
    )
    assert done.returncode == 0 and json.loads(done.stdout)["vertex"]["workers"]["machine_type"] == "n1-standard-4"
    assert command("import", "ai-platform", "-", text=CONFIG).returncode == 0
    assert command("import", "ai-platform", "missing.yaml").returncode == 6


def test_the_report_for_machines(home: Path, invoke: Callable[..., Result]) -> None:
    text = CONFIG.replace("standard_gpu", "complex_model_l_gpu") + "  args: [--token=abc]\n"
    done = invoke("import", "ai-platform", "-", "--report", "json", text=text)
    assert done.exit_code == 2 and done.stdout == ""
    report = json.loads(done.stderr)
    assert [(each["field"], each["open"]) for each in report["decision"]] == [("trainingInput.masterType", True)]
    assert report["decision"][0]["rules"] == ["ai-platform.k80.none"]
    assert "abc" not in done.stderr
    assert invoke("import", "ai-platform", "-", "--k80-replacement", "V100", text=text).exit_code == 0


def test_strict_takes_what_is_unchanged_alone(home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "ai-platform", "-", "--strict", text=CONFIG)
    assert done.exit_code == 2 and "they are no errors without --strict" in done.stderr
    assert (
        invoke("import", "ai-platform", "-", "--strict", text=CONFIG.replace("standard_gpu", "n1-standard-4")).exit_code
        == 0
    )


NOT_HERE = "is not YAML: mapping values are not allowed here; the line"
GPUS = "      count: 4\n      type: NVIDIA_TESLA_T4\n"


@pytest.mark.parametrize(
    "text, message",
    [
        (
            LOST,
            f"stdin:4: {NOT_HERE}s `masterConfig:` and `acceleratorConfig:` are probably missing between masterType",
        ),
        (LOST.replace(GPUS, "", 1), f"stdin:5: {NOT_HERE}s `workerConfig:` and `acceleratorConfig:` are"),
        (LOST.replace(GPUS, "      imageUri: x\n"), f"stdin:4: {NOT_HERE} `masterConfig:` is probably missing"),
        ("trainingInput:\n\tscaleTier: BASIC\n", "stdin:2: is not YAML: a tab; indent with spaces"),
        ("trainingInput:\n  region: 'us\n  scaleTier: BASIC\n", "stdin:2: is not YAML: the quote that opens here"),
        ("trainingInput:\n  args: [a, b\n  scaleTier: BASIC\n", "a list that is not closed by ']'"),
        ("trainingInput:\n  region: a\n  region: b\n", "stdin:3: trainingInput.region: is set twice"),
        ('{"trainingInput": {"region": "a",}}', "stdin:1: is not JSON"),
        (
            '{"trainingInput": {"region": "a", "region": "b"}}',
            "stdin:1: trainingInput.region: is set twice, here and in line 1",
        ),
        ('{"trainingInput":\n{"region": "\\ud800"}}', "stdin:2: holds half of a character"),
        ('{"a.b": 1,\n"a": {"b": 2}}', "stdin:2: a.b: is set twice, once with a dot in the key"),
        ('{"a":' * 40 + "1" + "}" * 40, "stdin:1: holds more than 32 levels"),
        ("[" * 5000, "stdin:1: holds more than 32 levels"),
        ("- a\n", "must be a mapping of fields, is a list"),
        ("\0", "stdin:1: holds the control character"),
        ("a: " + "[" * 99, "holds more than 32 levels"),
    ],
)
def test_files_that_cannot_be_read(home: Path, invoke: Callable[..., Result], text: str, message: str) -> None:
    for kind in KINDS:
        done = invoke("import", kind, "-", text=text)
        assert (done.exit_code, done.stdout) == (2, "")
        scripts = {"slurm": "is no Slurm script", "xpk": "must hold one command `xpk"}  # which are no documents
        expected = scripts.get(kind, message)
        assert expected in done.stderr
        assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1


def test_a_file_that_is_too_large(home: Path, invoke: Callable[..., Result]) -> None:
    text = json.dumps({"taskGroups": [{"taskSpec": {"runnables": [{"script": {"text": "x" * 2**20}}]}}]})
    for each in (text, "a: " + "b" * 2**20):
        done = invoke("import", "google-batch", "-", text=each)
        assert done.exit_code == 2 and "is larger than 1 MiB" in done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("google-batch", "-", "--", "--region=x"), "flags after --: are for vertex and ai-platform"),
        (("vertex", "-", "-o", "tuning"), "-o tuning: is for ai-platform"),
        (("vertex", "-", "--mount", "/a=gs://b"), "--mount: is for google-batch"),
        (("aws-batch", "-", "--image", "x"), "--image: is for google-batch and vertex and ai-platform"),
        (("google-batch", "-", "--mount", "/a"), "--mount: must be <name>=<value>"),
        (("ai-platform", "-", "--k80-replacement", "h100"), "--k80-replacement: is h100; use one of nvidia-tesla-t4"),
        (("ai-platfrom", "-"), "did you mean ai-platform"),
        (("ai-platform", "-", "-o", "tuning"), "is missing, and -o tuning is about it"),
    ],
)
def test_options_that_do_not_fit(
    home: Path, invoke: Callable[..., Result], arguments: tuple[str, ...], message: str
) -> None:
    done = invoke("import", *arguments, text=CONFIG)
    assert done.exit_code == 2 and message in done.stderr


BATCH = """\
taskGroups:
- taskSpec:
    runnables:
    - container: {imageUri: us-docker.pkg.dev/acme/train/flowers:1.4, commands: [train]}
allocationPolicy:
instances:
- policy: {machineType: n1-standard-8}
  installGpuDrivers: true
"""


MISSPELT = json.dumps({**yaml.safe_load(BATCH), "allocationPolicy": {}}, indent=1).replace("instances", "instancez")
NONE = "is no field that is known here"
REQUEST = '{"jobName": "a", "jobQueue": "q", "jobDefinition": "d",\n"attempts": 3,\n"": 1, "qwertyuiop": 1}'


@pytest.mark.parametrize(
    "kind, text, message",
    [
        (
            "google-batch",
            BATCH,
            f"7: refused: instances[0].policy.machineType 'n1-standard-8': instances {NONE}: "
            "indent it below allocationPolicy (and 1 more field)",
        ),
        (
            "google-batch",
            MISSPELT,
            f"22: refused: instancez[0].policy.machineType 'n1-standard-8': instancez {NONE}; "
            "did you mean instances? (and 1 more field)",
        ),
        (
            "vertex",
            "workerPoolSpecs: []\ntimeout: 3600s\n",
            f"2: refused: timeout '3600s': {NONE}: indent it below scheduling",
        ),
        ("aws-batch", REQUEST, f"2: refused: attempts '3': {NONE}: indent it below retryStrategy"),
        (
            "ai-platform",
            f"{CONFIG}  acceleratorConfig: {{count: 1}}\n",
            f"7: refused: trainingInput.acceleratorConfig.count '1': acceleratorConfig {NONE}: "
            "indent it below masterConfig",
        ),
    ],
)
def test_the_outermost_fault_is_named_with_its_line(
    home: Path, invoke: Callable[..., Result], kind: str, text: str, message: str
) -> None:
    done = invoke("import", kind, "-", text=text)
    assert done.exit_code == 2 and f"error: stdin:{message}\n" in done.stderr, done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["", "qwertyuiop", ".", "a.", "\n", "[0]", "x" * 5000])
def test_hints_are_short_and_have_names(home: Path, invoke: Callable[..., Result], kind: str, key: str) -> None:
    given = {"jobName": "a", "jobQueue": "q", "jobDefinition": "d"} if kind == "aws-batch" else {}
    done = invoke("import", kind, "-", text=json.dumps({**given, key: 1}))
    assert done.exit_code == 2
    for line in done.stderr.splitlines():
        assert len(line) < 600 and line.isprintable() and line.count(", ") <= 12, line
        assert "did you mean ?" not in line and ":  " not in line and "refused:  " not in line, line


@pytest.mark.parametrize("command", ["gcloud ai custom-jobs create", "gcloud ai-platform jobs submit training x"])
def test_a_flag_that_is_none(home: Path, invoke: Callable[..., Result], command: str) -> None:
    done = invoke("import", "-", text=f"{command} --qwertyuiop=1 --=2\n")
    assert done.exit_code == 2
    (line,) = [line for line in done.stderr.splitlines() if "qwertyuiop" in line]
    assert line.count(", ") <= 10
