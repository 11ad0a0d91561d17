"""Translation of `aws batch submit-job`'s input, of a job definition, or of a described job."""

import re
from collections.abc import Mapping
from typing import Any, cast

from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.errors import BadInput
from accel.rules.jobs import imports, placeholders

from . import aws_batch_definitions, aws_batch_jobs, aws_cli, script_text, vertex_templates
from .aws_batch_definitions import is_definition
from .aws_batch_fields import (
    array,
    attempts_of,
    environment,
    fair_share,
    needs,
    only_item,
    timeout_and_labels,
    with_parameters,
)
from .fields import RequestFields, job_name
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, read
from .recognition import is_described_job, resource_text
from .redact import hide
from .shell import MOMENT, PastedCommand, is_command

KNOWN = (
    *("jobName", "jobQueue", "jobDefinition", "shareIdentifier", "schedulingPriorityOverride", "arrayProperties"),
    *("size", "dependsOn", "jobId", "type", "parameters", "containerOverrides", "vcpus", "memory", "command"),
    *("instanceType", "environment", "name", "value", "resourceRequirements", "nodeOverrides", "numNodes"),
    *("nodePropertyOverrides", "targetNodes", "retryStrategy", "attempts", "evaluateOnExit", "onStatusReason"),
    *("onReason", "onExitCode", "action", "propagateTags", "timeout", "attemptDurationSeconds", "tags"),
    *("eksPropertiesOverride", "ecsPropertiesOverride", "taskProperties", "containers"),
    "consumableResourcePropertiesOverride",
)
"""Fields of a SubmitJob request. Source: botocore's model of SubmitJob."""

REFUSED = {
    "nodeOverrides": "is for a definition of several nodes, which no target has; write `nodes`, `image` and `command` "
    "into a job file (docs/nodes.md)",
    "eksPropertiesOverride": "is for a queue on EKS, and targets of kind aws-batch run containers on ECS; the kind gke "
    "runs jobs on Kubernetes",
    "consumableResourcePropertiesOverride": "is a consumable resource, which a job file has no field for",
}
DEPENDENCIES = ("N_TO_N", "SEQUENTIAL")
OVERRIDES, ECS_OVERRIDES = "containerOverrides", "ecsPropertiesOverride"
LEFT_OUT = re.compile(
    r"^(?:jobDefinitionArn$|eksProperties|statusReason$|attempts\[|eksAttempts)|\.logConfiguration\."
    r"|\.(?:jobRoleArn|taskRoleArn|executionRoleArn|instanceType|reason|logStreamName|containers\[0\]\.name)$"
)
"""Fields whose values are not in a job, so that a variable in one of them needs no value."""


def import_job(name: str, data: bytes, chosen: ImportOptions) -> ImportResult:
    text = data.decode("utf-8-sig", errors="replace")
    if is_command(script_text.readable(text), "aws"):
        verb = aws_cli.VERB if re.search(r"\bbatch\s+submit-job\b", text) else _verb(text)
        asked = aws_cli.request(name, text, chosen.variables, verb)
        vertex_templates.fill(asked.document, chosen.variables)
        given = RequestFields(asked.document, beside=asked.beside)
        _command_line(given, asked, _ask(given, chosen.variables, asked.written))
        defines = verb == aws_cli.DEFINITION
        found = aws_batch_definitions.import_definition(given, chosen.variables) if defines else _request(given)
        found.region = asked.region if "$" not in asked.region else ""
        hide(given.report, asked.written.secrets)
        return found
    document = read(name, data)
    vertex_templates.fill(document, chosen.variables)
    if isinstance(document.get("jobs"), list) or is_described_job(document):
        several = "jobs: choose one, with `aws batch describe-jobs --jobs ID`"
        given = only_item(name, document, "jobs", several)
        vertex_templates.ask_for_all(given.report, _ask(given, chosen.variables))
        return aws_batch_jobs.import_described_job(given, chosen.variables)
    if is_definition(document):
        given = only_item(
            name, document, "jobDefinitions", "job definitions: `stacks adopt` takes them (docs/adopt.md)"
        )
        vertex_templates.ask_for_all(given.report, _ask(given, chosen.variables))
        return aws_batch_definitions.import_definition(given, chosen.variables)
    if not {"jobName", "jobQueue", "jobDefinition"} & set(document):
        said = "is no SubmitJob request: it has no jobName, no jobQueue and no jobDefinition"
        raise BadInput(f"{name}: {resource_text(document) or said}")
    given = RequestFields(document)
    vertex_templates.ask_for_all(given.report, _ask(given, chosen.variables))
    return _request(given)


def _verb(text: str) -> str:
    return aws_cli.DEFINITION if re.search(r"\bbatch\s+register-job-definition\b", text) else aws_cli.VERB


def _ask(given: RequestFields, variables: Mapping[str, str], command: PastedCommand | None = None) -> list[str]:
    """Return the names. A program's words may hold variables, except those that the shell of `command` would replace,
    which runs `$(...)` itself: its variables need no value."""
    written = command.written if command else []
    computed = [mark for mark in command.unknown.values() if mark.startswith(("$(", "`"))] if command else []
    lacking: list[str] = []
    for path, value in given.values.items():
        if LEFT_OUT.search(path):
            continue
        texts = cast("list[Any]", value) if isinstance(value, list) else [value]
        for text in (each for each in texts if isinstance(each, str)):
            for part in computed:
                text = text.replace(part, "")
            for mark, variable in vertex_templates.variables_in(text):
                is_meant = variable in variables or f"${variable}" in variables.values()
                if is_meant or (path.endswith(".command") and variable not in written):
                    continue
                given.report.findings(given.name(path), imports.variable(mark, variable, given.name(path)))
                lacking.append(variable)
    return lacking


def _request(given: RequestFields) -> ImportResult:
    values: Json = {"name": job_name(given, "jobName")} if given.values.get("jobName") else {}
    block: Json = {}
    for each in ("jobName", "jobQueue", "jobDefinition"):
        if given.values.get(each, "") == "":
            given.report.refuse(each, "must be a name, is empty")
    found = ImportResult(given.report, {}, values)
    found.queue = given.text("jobQueue") or ""
    given.keep_value("jobQueue", "the queue of the target")
    given.report.findings("jobQueue", placeholders.value("jobQueue", found.queue))
    found.definition = given.text("jobDefinition") or ""
    _definition(given, found.definition, block)
    if base := _overridden(given, block):
        _container(given, base, values)
    array(given, values)
    _depends_on(given, block)
    attempts_of(given, values)
    fair_share(given, block, "schedulingPriorityOverride")
    timeout_and_labels(given, values, "the definition says whether tags are propagated")
    for each, why in REFUSED.items():
        for path in given.paths(each):
            if given.values[path] == "":  # of a skeleton
                given.report.keep(given.name(path), why="is empty")
            else:
                given.report.refuse(given.name(path), why)
    given.report.close(KNOWN)
    if block:
        values["aws_batch"] = block
    return found


def fit_targets(found: ImportResult, targets: Mapping[str, AwsBatchTarget]) -> list[str]:
    """Return the names of the targets that have the queue. Put the first one's name for the definition into the job."""
    names = [name for name, target in targets.items() if _same(found.queue, target.queue_arn)]
    if names:
        asked = _revision(found.definition)[0]
        definitions = targets[names[0]].definitions
        keys = [key for key, each in definitions.items() if _same(asked, _revision(each.arn)[0])]
        if keys:
            found.values["aws_batch"]["definition"] = keys[0]
    return names


def _command_line(given: RequestFields, asked: aws_cli.Request, lacking: list[str]) -> None:
    """Report the parts of a pasted command other than its request. `lacking` holds variables already asked for."""
    report, written = given.report, asked.written
    name = given.values.get("jobName")
    for variable, mark in written.unknown.items():
        if isinstance(name, str) and mark in name and (MOMENT.match(mark) or re.match(r"\$\{\w+[^\w}]", mark)):
            given.values["jobName"] = name = name.replace(mark, "").strip("-_") or "imported"
            report.changed("jobName", name, f"{mark[:60]} makes each name another, and a job's reference is one anyway")
        plain = variable if re.fullmatch(r"\w+", variable) else ""
        for path, value in given.values.items():
            texts = cast("list[Any]", value) if isinstance(value, list) else [value]
            if not LEFT_OUT.search(path) and any(isinstance(text, str) and mark in text for text in texts):
                at = given.name(path)
                report.findings(at, imports.variable(mark, plain, at))
                lacking.append(plain)
    vertex_templates.ask_for_all(report, lacking)
    for option, why in asked.unknown.items():
        report.refuse(option, why)
    for option in asked.beside:
        if option in aws_cli.GLOBAL:
            report.changed(option, None, "is for the CLI itself; a target has its own account and region")
        elif option == "after the command":
            report.changed(option, None, "is not the command's")
        elif option.endswith(" of the file"):
            report.changed(option, None, "is given as an option too, which wins")
        elif option == "words of the command":
            report.refuse(option, "the command takes options alone; a value with spaces wants quotes")
    written.report_lines(report)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _revision(name: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*[^:]):(\d+)", name, re.DOTALL)
    return (found[1], found[2]) if found else (name, "")


def _same(asked: str, arn: str) -> bool:
    """Return whether a name or an ARN denotes the resource `arn`. A name has no region and no account."""
    return asked == arn if asked.startswith("arn:") else bool(asked) and asked == _last(arn)


def _definition(given: RequestFields, asked: str, block: Json) -> None:
    whole, revision = _revision(asked)
    bare = _last(whole)
    given.keep_value("jobDefinition", "aws_batch.definition")
    if bare:
        block["definition"] = bare
    if revision:
        why = f"revision {revision} is not carried: a target names the latest one of {bare}"
        given.report.changed(given.name("jobDefinition"), bare, why)
    elif bare != asked:
        given.report.changed(given.name("jobDefinition"), bare, "a job file has the name alone")


def _overridden(given: RequestFields, block: Json) -> str | None:
    """Return the path of what the request overrides of the one container, or None if it overrides several."""
    filled = [path for path in given.paths(ECS_OVERRIDES) if given.values[path] not in ("", [""])]
    if all(path.endswith(".type") for path in filled):  # of a skeleton
        given.keep(ECS_OVERRIDES, why="is empty")
        return OVERRIDES
    tasks = given.items(f"{ECS_OVERRIDES}.taskProperties")
    containers = [path for task in tasks for path in given.items(f"{task}.containers")]
    if len(tasks) > 1 or len(containers) > 1:
        several = f"{len(tasks)} ECS tasks" if len(tasks) > 1 else f"{len(containers)} containers"
        for path in given.paths(ECS_OVERRIDES):
            given.report.refuse(given.name(path), f"is of {several}, and a job file has one container")
        return None
    for path in given.paths(OVERRIDES):
        given.report.refuse(given.name(path), f"stands beside {ECS_OVERRIDES}; keep one of the two")
    if name := block.get("definition"):
        why = (
            f"has ecsProperties, and no definition of a target has: import it, as `aws batch describe-job-definitions "
            f"--job-definitions {name}` prints it, and write its image in place of aws_batch.definition"
        )
        given.report.decide(given.name("jobDefinition"), why, new=name, is_open=False)
    return containers[0] if containers else None


def _container(given: RequestFields, base: str, values: Json) -> None:
    command = given.texts(f"{base}.command")
    given.keep_value(f"{base}.command", "command")
    if command[:1] == [""]:
        given.report.refuse(given.name(f"{base}.command"), "has no program; leave it out for the definition's own")
    if command := with_parameters(given, f"{base}.command", command):
        values["command"] = command
    environment(given, base, values)
    needs(given, base, values)
    if base == OVERRIDES:
        why = "Batch takes it for jobs of several nodes alone; a target's environments have its machines"
        given.left_out(f"{base}.instanceType", why)
    else:
        given.left_out(f"{base}.name", aws_batch_definitions.OF_ECS_CONTAINER["name"])


def _depends_on(given: RequestFields, block: Json) -> None:
    entries: list[Any] = []
    for path in given.items("dependsOn"):
        job_id, kind = given.text(f"{path}.jobId"), given.text(f"{path}.type")
        for each in ("jobId", "type"):
            given.keep_value(f"{path}.{each}", "aws_batch.depends_on")
        if kind not in (None, *DEPENDENCIES):
            given.report.refuse(given.name(f"{path}.type"), f"must be one of {', '.join(DEPENDENCIES)}")
        elif not job_id and kind != "SEQUENTIAL":
            at = next((each for each in ("type", "jobId") if given.has(f"{path}.{each}")), "")
            if at:
                given.report.refuse(given.name(f"{path}.{at}"), "must have a jobId")
        elif kind:
            entries.append({"type": kind, **({"job": job_id} if job_id else {})})
        else:
            entries.append(job_id)
    if entries:
        block["depends_on"] = entries
