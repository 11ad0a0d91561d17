"""Recognition of the tool that a document is written for, by its keys or by the command in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from accel.diagnostics import messages, yaml_positions
from accel.diagnostics.errors import BadInput

from . import script_text, shell
from .ai_platform_fields import TOP
from .heredoc_documents import document_in
from .kinds import KINDS
from .names import KNOWN_MAX
from .reading import Json, read
from .slurm_submission import PROGRAM, is_submission

_SHARED = ("args", "enableWebAccess", "encryptionConfig", "network", "region", "scheduling", "serviceAccount")
"""Fields of AI Platform Training that other tools have as well."""
_KEYS: Mapping[str, frozenset[str]] = {
    "aws-batch": frozenset({"jobQueue", "jobDefinition", "containerOverrides", "arrayProperties"}),
    "google-batch": frozenset({"taskGroups", "allocationPolicy"}),
    "vertex": frozenset({"jobSpec", "workerPoolSpecs"}),
    "ai-platform": frozenset({"trainingInput", *TOP} - {*_SHARED}),
}
_COMMANDS = {
    r"gcloud\s(.*\s)?batch\s+jobs\s+submit(\s|$)": "google-batch",
    r"aws\s(.*\s)?batch\s+register-job-definition(\s|$)": "aws-batch",
    r"aws\s(.*\s)?batch\s+submit-job(\s|$)": "aws-batch",
    r"gcloud\s(.*\s)?ai\s+custom-jobs\s+create": "vertex",
    r"gcloud\s(.*\s)?(ai-platform|ml-engine|ml)\s+jobs\s+submit\s+training": "ai-platform",
}
_BEFORE = re.compile(
    rf"^\s*(?:[$!%]\s*)?(?:{script_text.DECLARATION}\w+=[\"']?(?:\$?\(|`)\s*|{script_text.ENVIRONMENT})"
)
"""Text that may precede a command: a prompt, a variable that takes its output."""
_PREDICTION = r"gcloud\s(.*\s)?(ai-platform|ml-engine|ml)\s+jobs\s+submit\s+prediction"
_UNREAD_COMMANDS = {
    _PREDICTION: "a batch prediction of AI Platform; write a job that predicts",
    r"gcloud\s": "a command of gcloud that submits no job",
    r"aws\s": "a command of aws that submits no job",
    r"#PBS\s": "a PBS script",
}
_NO_COMMAND = "a script with no command that submits a job"
_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
_CLOUDFORMATION = "a CloudFormation template; deploy it, and import what `aws batch describe-job-definitions` prints"
_UNREAD = {
    "jobSummaryList": "a list of jobs of AWS Batch; import what `aws batch describe-jobs --jobs ID` prints of one",
    "StartAt": "a state machine of Step Functions; import the parameters of its task submitJob",
    "trainingTaskDefinition": "a TrainingPipeline of Vertex AI",
    "trialJobSpec": "a HyperparameterTuningJob of Vertex AI",
    "studySpec": "a HyperparameterTuningJob of Vertex AI",
    "pipelineSpec": "a PipelineJob of Vertex AI",
    "AlgorithmSpecification": "a training job of SageMaker",
    "services": "a Compose file",
}
DEFINITION_KEYS = {"jobDefinitionName", "jobDefinitions", "containerProperties", "nodeProperties", "ecsProperties"}
"""Keys of a job definition of AWS Batch that can become a job."""
_DEFINITION = {*DEFINITION_KEYS, "eksProperties"}
_RESOURCE_COMMANDS = ("create-compute-environment", "create-job-queue", "create-scheduling-policy")
_RESOURCES = ("computeEnvironmentName", "computeEnvironments", "jobQueueName", "jobQueues")
_DSTACK = ("task", "dev-environment", "service", "fleet", "volume", "gateway")


_SKYPILOT = (
    *("accelerators", "cloud", "infra", "any_of", "ordered", "use_spot", "instance_type", "image_id", "cpus"),
    *("job_recovery", "disk_size"),
)
"""Fields of `resources` of a SkyPilot task."""


@dataclass(frozen=True)
class Recognition:
    """Kind of a document, and what identified it."""

    kind: str
    by: str

    @property
    def text(self) -> str:
        """Message for the user, without the file's name."""
        return f"is read as {self.kind}: {KINDS[self.kind].text}, by {self.by}"


def recognize(name: str, data: bytes) -> Recognition:
    """Raise BadInput if the document has no kind, may have several, or has one that is not read yet."""
    text = data.decode("utf-8-sig", errors="replace")
    if (inside := document_in(text)) is not None:
        text, data = inside, inside.encode()
    if re.search(r"^#SBATCH\s", text, re.MULTILINE):
        return Recognition("slurm", "its lines #SBATCH")
    if found := _of_command(name, text):
        return found
    if re.search(r"^apiVersion:", text, re.MULTILINE) and re.search(r"^kind:", text, re.MULTILINE):
        return Recognition("kubernetes", "apiVersion, kind")  # often several documents, which nothing else is
    if re.search(r"^\s*[\"']?AWSTemplateFormatVersion[\"']?\s*:", text, re.MULTILINE):  # whose tags no reader knows
        raise _unread(name, _CLOUDFORMATION)
    try:
        document = read(name, _task(name, data))
    except BadInput:
        if name.endswith(_SCRIPTS):
            raise _unread(name, _NO_COMMAND) from None
        raise
    if "apiVersion" in document and "kind" in document:
        return Recognition("kubernetes", "apiVersion, kind")
    if document.get("type") in _DSTACK:
        return Recognition("dstack", f"type: {document['type']}")
    if "jobs" in document and is_described_job(document):
        return Recognition("aws-batch", "jobs")
    if DEFINITION_KEYS & set(document) and "jobQueue" not in document:
        return Recognition("aws-batch", _some([key for key in document if key in _DEFINITION]))
    keys = {_camel(key): key for key in document}
    found = {kind: sorted(keys[key] for key in known & set(keys)) for kind, known in _KEYS.items()}
    found["skypilot"] = _skypilot(document)
    kinds = [kind for kind, by in found.items() if by]
    if len(kinds) == 1:
        return Recognition(kinds[0], _some(found[kinds[0]]))
    if kinds:
        said = " or ".join(f"{kind} (by {_some(found[kind])})" for kind in kinds)
        raise BadInput(f"{name}: may be {said}; say which: accel-jobs import {kinds[0]} FILE")
    raise _none(name, document)


def _task(name: str, data: bytes) -> bytes:
    """Return the document, or the first task of a file with several, which may be a pipeline of SkyPilot's tasks."""
    parts = yaml_positions.documents(data)
    if len(parts) < 2 or data.lstrip().startswith((b"{", b"[")):
        return data
    for _, part in parts:
        if _skypilot(read(name, re.sub(rb"^---", b"", part))):
            return re.sub(rb"^---", b"", part)
    return data


def _skypilot(document: Json) -> list[str]:
    """Return the keys that identify a SkyPilot task. Other tools have `run`, `setup` and `resources` as well."""
    found = [key for key in ("run", "setup") if isinstance(document.get(key), str)]
    found += [key for key in ("num_nodes", "file_mounts") if key in document]
    resources = document.get("resources")
    if isinstance(resources, dict):
        found += [f"resources.{key}" for key in _SKYPILOT if key in resources]
    return found


def is_described_job(document: Json) -> bool:
    """Return whether a document is an answer of AWS Batch's describe-jobs, or a job of one."""
    jobs = document.get("jobs")
    return any(
        isinstance(each, dict) and {"jobId", "jobDefinition"} <= each.keys()
        for each in (document, *(cast(list[Any], jobs) if isinstance(jobs, list) else ()))
    )


def resource_text(document: Json) -> str:
    for key in document:
        if key in (*_DEFINITION, *_RESOURCES):
            what = "a job definition" if key in _DEFINITION else "a resource"
            return f"is {what} of AWS Batch and no job ({key}): `stacks adopt` takes it (docs/adopt.md)"
    return ""


def _of_command(name: str, text: str) -> Recognition | None:
    """Return the kind of a pasted command or a script, or None for a document. Raise BadInput if none of it is read."""
    text = script_text.with_calls(script_text.readable(text))
    lines = [_BEFORE.sub("", line) for line in re.sub(r"\\\s*\n", " ", text).splitlines()]
    kinds: dict[str, str] = {}
    if shell.is_command(script_text.with_xpk(text), "xpk"):
        for by in filter(None, map(script_text.xpk_command, lines)):
            kinds["xpk"] = by
    is_command = shell.is_command(text) or shell.is_command(text, "aws")
    for pattern, kind in _COMMANDS.items() if is_command else ():
        for line in lines:
            if found := re.match(pattern, line):
                kinds[kind] = " ".join(found[0].split()[-4:])
    if len(kinds) > 1:
        said = " or ".join(f"{kind} (by `{by}`)" for kind, by in kinds.items())
        raise BadInput(f"{name}: may be {said}; say which: accel-jobs import {next(iter(kinds))} FILE")
    for kind, by in kinds.items():
        return Recognition(kind, f"the command `{by}`")
    if is_submission(text):
        return Recognition("slurm", f"the command `{PROGRAM}`")
    for line in lines if shell.is_command(text, "aws") else ():
        if (found := re.match(r"aws\s(?:.*\s)?batch\s+([a-z-]+)", line)) and found[1] in _RESOURCE_COMMANDS:
            said = f"is a resource of AWS Batch and no job (`aws batch {found[1]}`)"
            raise BadInput(f"{name}: {said}: `stacks adopt` takes it (docs/adopt.md)")
    if is_command or text.startswith("#!"):
        for pattern, what in _UNREAD_COMMANDS.items():
            if any(re.match(pattern, line) for line in lines):
                raise _unread(name, what)
    if text.startswith("#!"):
        raise _unread(name, _NO_COMMAND)
    return None


def _none(name: str, document: Json) -> BadInput:
    for key in document:
        if key in _UNREAD:
            return _unread(name, _UNREAD[key])
    if resource := resource_text(document):
        return BadInput(f"{name}: {resource}")
    if isinstance(document.get("name"), str) and {"command", "image"} & set(document):
        return BadInput(f"{name}: looks like a job file of accel itself, which `accel-jobs validate` checks")
    keys = ", ".join(messages.printable_name(key) for key in list(document)[:KNOWN_MAX]) or "no keys"
    said = "; ".join(f"{kind}, {each.text}" for kind, each in KINDS.items())
    return BadInput(f"{name}: is none of the kinds that are read, by its keys ({keys}): {said}")


def _unread(name: str, what: str) -> BadInput:
    what, _, advice = what.partition("; ")
    said = f"; {advice}" if advice else f"; what is read: {', '.join(KINDS)}"
    return BadInput(f"{name}: is {what}, which is not read yet{said}")


def _camel(key: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), key)


def _some(names: list[str]) -> str:
    return ", ".join(messages.printable_name(each) for each in names[:3])
