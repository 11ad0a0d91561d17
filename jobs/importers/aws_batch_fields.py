"""Translation of the fields that a SubmitJob request of AWS Batch and a job definition share."""

import re
from typing import Any, cast

from accel.contract.variables import RESERVED_PREFIXES
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput
from accel.whole_numbers import INT_MAX

from ..backends.aws_batch import labels as tags
from ..backends.aws_batch import retries
from .fields import RequestFields
from .reading import Json

NEEDS = {"VCPU": "cpus", "MEMORY": "memory_mib", "GPU": "accelerator.count"}
OLD_NEEDS = {"vcpus": "VCPU", "memory": "MEMORY"}
"""Fields of requests from before `resourceRequirements`."""
REFERENCE = re.compile(r"Ref::([A-Za-z0-9_-]+)")


def only_item(name: str, document: Json, key: str, several: str) -> RequestFields:
    """Return the fields of a document, or of the one item of an answer's list `key`. Raise BadInput, with `several`, if
    the list does not hold exactly one."""
    if not isinstance(document.get(key), list):
        return RequestFields(document)
    items = cast(list[Any], document[key])
    if len(items) != 1:
        raise BadInput(f"{name}: holds {len(items)} {several}")
    if not isinstance(items[0], dict):
        raise BadInput(f"{name}: {key}[0]: must be a mapping of fields, is {messages.display(items[0])}")
    return RequestFields(document, within=f"{key}[0].")


def needs(given: RequestFields, base: str, values: Json, *, fractions: bool = False) -> None:
    """Refuse vCPUs, memory and GPUs that are given twice. `fractions`: round up parts of a vCPU, which Fargate has."""
    asked: dict[str, str] = {}
    for path in given.items(f"{base}.resourceRequirements"):
        kind = given.text(f"{path}.type")
        if kind in NEEDS:
            given.keep_value(f"{path}.type", NEEDS[kind])
            _need(given, kind, f"{path}.value", asked, values, fractions=fractions)
        elif given.has(path):
            at = f"{path}.type" if given.has(f"{path}.type") else f"{path}.value"
            given.report.refuse(given.name(at), f"must have a type, one of {', '.join(NEEDS)}")
    for old, kind in OLD_NEEDS.items():
        if given.has(f"{base}.{old}"):
            _need(given, kind, f"{base}.{old}", asked, values, fractions=fractions)


def _need(given: RequestFields, kind: str, path: str, asked: dict[str, str], values: Json, *, fractions: bool) -> None:
    name = given.name(path)
    number = _vcpus(given, path, fractions=fractions) if kind == "VCPU" else None
    number = number or given.whole(path, 0 if kind == "GPU" else 1)
    if kind in asked:
        given.report.refuse(name, f"is a second {kind}, after {asked[kind]}; write one")
        return
    asked[kind] = name
    if number is None:
        if given.values.get(path, "") == "":
            given.report.refuse(name, f"must be a number, which {kind} needs")
        return
    given.keep_value(path, NEEDS[kind])
    if kind != "GPU":
        values[NEEDS[kind]] = number
    elif number:
        values["accelerator"] = {"count": number}
    else:
        given.left_out(path, "is no GPU")


def _vcpus(given: RequestFields, path: str, *, fractions: bool) -> int | None:
    """Return vCPUs that are written with a point, as AWS's console does (2.0). Return None for others."""
    text = given.values.get(path)
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,6}\.\d{1,3}", text):
        return None
    number = int(-(-float(text) // 1))
    if number == float(text):
        return number
    if not fractions:
        return None
    given.report.changed(given.name(path), number, "a job file has whole vCPUs")
    return number


def environment(given: RequestFields, base: str, values: Json) -> None:
    env: dict[str, str] = {}
    at: dict[str, str] = {}
    for path in given.items(f"{base}.environment"):
        name, value = given.text(f"{path}.name"), given.values.get(f"{path}.value", "")
        if not name:
            if given.text(f"{path}.value"):
                given.report.refuse(given.name(f"{path}.value"), "is of a variable without a name")
            continue
        if name.startswith(RESERVED_PREFIXES):
            for each in ("name", "value"):
                given.left_out(f"{path}.{each}", "is set by the platform")
            continue
        if not isinstance(value, str):
            given.report.refuse(given.name(f"{path}.value"), "must be text; put it in quotes")
        elif name in env:
            given.report.refuse(given.name(f"{path}.name"), f"is set twice, here and in {at[name]}")
        else:
            env[name], at[name] = value, given.name(f"{path}.name")
        for each in ("name", "value"):
            given.keep_value(f"{path}.{each}", "env")
    if env:
        values["env"] = env


def with_parameters(given: RequestFields, at: str, command: list[str]) -> list[str]:
    """Return the command with the values of `parameters` in place of words `Ref::<name>`, which a job file lacks."""
    parameters = given.mapping("parameters")
    used: set[str] = set()

    def value(word: str) -> str:
        found = REFERENCE.fullmatch(word)
        if not found or found[1] not in parameters:
            return word
        used.add(found[1])
        return parameters[found[1]]

    words = [value(word) for word in command]
    inside = {found for word in words for found in REFERENCE.findall(word)}
    for name in parameters:
        path = f"parameters.{name}"
        if name in used:
            given.keep_value(path, "command")
        elif name in inside:
            why = f"stands inside of a word of the command; write the value there in place of Ref::{name}"
            given.report.decide(given.name(path), why)
        elif command:
            given.left_out(path, f"the command has no word Ref::{name}, and a job file has no parameters")
        else:
            why = (
                "is for the definition's own command, and a job file has no parameters; "
                f"write that command into {at}, with the value in place of Ref::{name}"
            )
            given.report.decide(given.name(path), why)
    if used:
        names = ", ".join(f"Ref::{name}" for name in sorted(used))
        given.report.changed(given.name(at), words, f"has the value of {names}")
    return words


def attempts_of(given: RequestFields, values: Json) -> None:
    base = "retryStrategy"
    attempts = given.whole(f"{base}.attempts", 1)
    given.keep_value(f"{base}.attempts", "retries")
    paths = given.items(f"{base}.evaluateOnExit")
    if attempts is None:
        if given.has(base) and given.values.get(f"{base}.attempts", "") == "":
            given.report.refuse(f"{base}.attempts", f"must be an integer from 1 to {INT_MAX}, is empty")
        return
    fields = ("onStatusReason", "onReason", "onExitCode", "action")
    rules: list[dict[str, str]] = []
    for path in paths:
        rule = {each: given.text(f"{path}.{each}") for each in fields}
        rules.append({each: text for each, text in rule.items() if text is not None})
        for each in fields:
            given.keep_value(f"{path}.{each}", "retries")
        action = str(rule["action"])
        if action.upper() not in ("RETRY", "EXIT"):
            given.report.refuse(given.name(f"{path}.action"), "must be RETRY or EXIT")
    asked = {"attempts": attempts, **({"evaluateOnExit": rules} if rules else {})}
    again = attempts - 1
    for own, lost in ((again, None), (None, again), (again, 0)):
        if _alike(asked, retries.of_job(own, lost)):
            values |= {name: n for name, n in (("retries", own), ("lost_retries", lost)) if n is not None}
            return
    if rules and _only_lost(rules):
        values["lost_retries"] = again
        new, why = "lost_retries", "whatever the cloud takes away is tried again"
    else:
        values["retries"] = again
        new = f"retries: {again}"
        why = "a job file has no rules, but retries (after any failure) and lost_retries (after what the cloud takes)"
    for path in paths:
        for each in given.paths(path):
            if each.rpartition(".")[2] in fields:
                given.report.decide(given.name(each), why, new=new, is_open=False)


def _alike(asked: Json, ours: Json | None) -> bool:
    """Return whether two strategies are the same. Batch does not distinguish RETRY from retry."""

    def plain(strategy: Json) -> Json:
        rules = cast("list[dict[str, str]]", strategy.get("evaluateOnExit", []))
        return {**strategy, "evaluateOnExit": [{**rule, "action": rule.get("action", "").upper()} for rule in rules]}

    return ours is not None and plain(asked) == plain(ours)


def _only_lost(rules: list[dict[str, str]]) -> bool:
    """Return whether the rules retry some of what the cloud takes away, and nothing else."""
    ours = [retries.NOT_PULLED, *retries.infrastructure_only()["evaluateOnExit"]]
    known = [{**rule, "action": rule["action"].upper()} for rule in ours]
    asked = [{**rule, "action": rule.get("action", "").upper()} for rule in rules]
    return asked[-1] == known[-1] and all(rule in known[:-1] for rule in asked[:-1])


def array(given: RequestFields, values: Json) -> None:
    if size := given.whole("arrayProperties.size", 2):
        values["tasks"] = size
    given.keep_value("arrayProperties.size", "tasks")


def fair_share(given: RequestFields, block: Json, priority: str) -> None:
    """Put share and scheduling priority into the job's block. `priority`: the path of the latter."""
    if share := given.text("shareIdentifier"):
        block["share_identifier"] = share
    given.keep_value("shareIdentifier", "aws_batch.share_identifier")
    if (number := given.whole(priority)) is not None:
        block["scheduling_priority"] = number
    given.keep_value(priority, "aws_batch.scheduling_priority")


def timeout_and_labels(given: RequestFields, values: Json, why: str) -> None:
    """Put the timeout and the labels into the job. `why`: for not saying whether tags are propagated."""
    if seconds := given.whole("timeout.attemptDurationSeconds", 1):
        values["timeout_s"] = seconds
    given.keep_value("timeout.attemptDurationSeconds", "timeout_s")
    labels(given, values)
    given.flag("propagateTags")
    given.left_out("propagateTags", why)


def labels(given: RequestFields, values: Json) -> None:
    found: dict[str, str] = {}
    for name, text in given.mapping("tags").items():
        if name.lower().startswith(tags.RESERVED):
            given.left_out(f"tags.{name}", "is kept for AWS and accel")
        else:
            found[name] = text
            given.keep_value(f"tags.{name}", "labels")
    if found:
        values["labels"] = found
