"""Translation of a Job of Google Batch's API (JSON or YAML): the inverse of backends/google_batch/render.py."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from accel.rules.batch import jobs
from accel.rules.jobs import imports

from ..backends.google_batch import nodes, retries
from ..model.blocks_google import ExitCodes, GoogleBatch
from ..model.job import Job
from . import google_batch_command, script_text, vertex_templates
from .fields import job_name
from .google_batch_fields import (
    ALLOCATION,
    FILLED_IN,
    GROUP,
    POLICY,
    SPEC,
    BatchFields,
    placeholders_of,
    variable_names,
)
from .google_batch_steps import ENCRYPTED, Tasks, steps, variables
from .google_batch_vms import resources, vms
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, read
from .redact import hide
from .shell import is_command

BY_SERVICE = ("uid", "createTime", "updateTime", "status", f"{GROUP}.name")
LABELS_BY_SERVICE = ("batch-job-id", "batch-job-uid", "batch-node")
"""Labels of Batch's own. Source: https://docs.cloud.google.com/batch/docs/organize-resources-using-labels"""
OF_TARGET = ("notifications",)
NOT_READ = (
    *(*BY_SERVICE, *OF_TARGET, f"{ALLOCATION}.network.", f"{ALLOCATION}.serviceAccount.", f"{ALLOCATION}.tags"),
    f"{POLICY}.bootDisk.type",
)
"""Fields that are left out regardless of their values."""
_SET = re.compile(r"\.environment\.(?:variables|secretVariables)\.|\.environments\.")
"""Paths of the variables that a task's steps find."""
CODE_MAX = 59_999
"""Largest exit code that a job file names (ExitCodes)."""


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    if is_command(script_text.readable(data.decode("utf-8-sig", errors="replace"))):
        asked = google_batch_command.command(name, data, options.variables)
        given = BatchFields(name, asked.document, asked.beside)
        google_batch_command.tell(given, asked)
        found = _job_of(name, given, options)
        found.region = asked.region or found.region
        hide(given.report, asked.secrets)
        return found
    document = read(name, data)
    vertex_templates.fill(document, options.variables)
    return _job_of(name, BatchFields(name, document), options)


def _job_of(name: str, given: BatchFields, options: ImportOptions) -> ImportResult:
    report = given.report
    lacking: list[str] = []
    own = {path.rpartition(".")[2] for path in given.values if _SET.search(path)}
    for path, value in list(given.values.items()):
        for text in cast(list[Any], value) if isinstance(value, list) else [value]:
            is_image = path.endswith("imageUri")
            if not isinstance(text, str) or path.startswith(NOT_READ) or (is_image and options.image):
                continue
            found = placeholders_of(path, text)
            names = variable_names(text)
            is_set = path.endswith(FILLED_IN) and own.issuperset(names)
            if names and (is_set or all(google_batch_command.is_meant(name, options.variables) for name in names)):
                found = [each for each in found if each.rule != imports.VARIABLE.id]
            lacking += names if any(each.rule == imports.VARIABLE.id for each in found) else []
            # The image is looked at where it is chosen.
            report.findings(given.name(path), found if not is_image else [])
    if not report.is_settled("--var"):
        vertex_templates.ask_for_all(report, lacking)
    full = given.text("name")
    path = "name" if given.has("name") else "displayName"
    if full:
        given.values["name"] = full.rpartition("/")[2]
        given.left_out("displayName", "a job file has one name")
    elif not given.has(path):
        given.values[path] = name.rpartition("/")[2].partition(".")[0]
    values: Json = {"name": job_name(given, path)}
    block: Json = {}
    for list_ in ("taskGroups", f"{ALLOCATION}.instances"):
        items = given.items(list_)
        if items:
            report.findings(list_, jobs.one(len(items), list_))
        for item in items[1:]:
            given.refuse(item, "is of a second entry", jobs.GROUPS.id)
    tasks = steps(given, values, block, options.image, options.mounts)
    _group(given, values, block, several=tasks.several)
    resources(given, values)
    _environment(given, values, block, tasks)
    region = vms(given, values, block, tasks.storage) or _region(full or "")
    _retries(given, values, block)
    _job(given, values, block)
    given.close()
    if block:
        values["google_batch"] = block
    return ImportResult(report, {}, values, region)


def _region(name: str) -> str:
    found = re.fullmatch(r"projects/[^/]+/locations/([^/]+)/jobs/[^/]+", name)
    return found[1] if found else ""


def _group(given: BatchFields, values: Json, block: Json, *, several: bool) -> None:
    """Translate the tasks' number and order. `several`: they are the nodes of one job."""
    count, at_once = given.whole(f"{GROUP}.taskCount", 1) or 1, given.whole(f"{GROUP}.parallelism", 1)
    per_vm = given.whole(f"{GROUP}.taskCountPerNode", 1)
    for name in ("taskCount", "parallelism", "taskCountPerNode", "requireHostsFile", "permissiveSsh"):
        given.keep(f"{GROUP}.{name}")
    in_order = _in_order(given)
    for finding in jobs.tasks(count, at_once, in_order=in_order):
        at = "taskCount" if finding.field == "tasks" else "parallelism"
        given.report.findings(given.name(f"{GROUP}.{at}"), [finding])
    if several:
        values["nodes"] = count
        if at_once not in (None, count):
            given.refuse(f"{GROUP}.parallelism", f"is of {count} nodes, which run all at once")
        if per_vm not in (None, 1):
            given.refuse(f"{GROUP}.taskCountPerNode", "is of nodes, each of which is a VM")
        if not given.flag(f"{GROUP}.requireHostsFile"):
            block["hosts_file"] = False
    else:
        values |= {"tasks": count} if count > 1 else {}
        if at_once and at_once > count:
            given.report.changed(given.name(f"{GROUP}.parallelism"), None, f"is above the number of tasks, {count}")
        elif at_once and at_once < count:
            values["parallelism"] = at_once
        if per_vm:
            block["tasks_per_vm"] = per_vm
        if given.flag(f"{GROUP}.requireHostsFile"):
            block["hosts_file"] = True
    if in_order:
        block["in_order"] = True
    if given.flag(f"{GROUP}.permissiveSsh"):
        block["permissive_ssh"] = True
    if given.is_on(f"{GROUP}.runAsNonRoot"):
        why = "has no place in a job file; use an image that names another user (USER), or --user among its options"
        given.refuse(f"{GROUP}.runAsNonRoot", why)
    own = f"{GROUP}.taskEnvironments"
    if given.has(own) or given.items(own):
        why = "is variables of single tasks, which a job file has as a sweep: write their values there (docs/sweeps.md)"
        given.refuse(own, why)


def _in_order(given: BatchFields) -> bool:
    path = f"{GROUP}.schedulingPolicy"
    policy = given.text(path)
    if policy not in (None, "IN_ORDER", "AS_SOON_AS_POSSIBLE", "SCHEDULING_POLICY_UNSPECIFIED"):
        given.refuse(path, "must be AS_SOON_AS_POSSIBLE or IN_ORDER")
    given.keep(path, "google_batch.in_order" if policy == "IN_ORDER" else "")
    return policy == "IN_ORDER"


def _environment(given: BatchFields, values: Json, block: Json, tasks: Tasks) -> None:
    ours = {**nodes.environment("", 1, 1)} if tasks.several and values.get("nodes", 1) > 1 else {}
    path = f"{SPEC}.environment"
    old = variables(given, f"{SPEC}.environments", ours)
    env = variables(given, f"{path}.variables", ours)
    for name in old.keys() & env.keys():
        given.refuse(f"{SPEC}.environments.{name}", "is set in environment.variables too; keep one of the two")
    env = {**old, **env}
    for finding in jobs.environment(env):
        name = finding.field.partition(".")[2]
        base = f"{path}.variables" if f"{path}.variables.{name}" in given.values else f"{SPEC}.environments"
        given.report.findings(given.name(f"{base}.{name}"), [finding])
    if env:
        values["env"] = env
    if given.has(f"{path}.encryptedVariables"):
        given.refuse(f"{path}.encryptedVariables", ENCRYPTED)
    secrets = _secrets(given, f"{path}.secretVariables", env)
    for at, reference in tasks.secrets.items():
        name = at.rpartition(".secretVariables.")[2]
        if not isinstance(reference, str):
            given.refuse(at, "must be text")
        elif name in env or secrets.get(name, reference) != reference:
            given.refuse(at, f"{name} has another value in another place, and a secret of a job file is of all steps")
        elif name not in secrets:
            secrets[name] = reference
            steps = len(block.get("runnables", ())) > 1
            why = "is of all steps: a job file has secrets for the whole job"
            given.report.changed(given.name(at), f"secrets.{name}", why) if steps else given.keep(at, "secrets")
        else:
            given.keep(at, "secrets")
    for step in block.get("runnables", ()):
        for name in step.get("env", {}).keys() & secrets.keys():
            given.report.refuse(f"{path}.secretVariables", f"{name} is a variable of a step too; give it another name")
    if secrets:
        values["secrets"] = secrets


def _secrets(given: BatchFields, base: str, env: Mapping[str, str]) -> dict[str, str]:
    secrets = variables(given, base)
    for name in secrets:
        given.keep(f"{base}.{name}", "secrets")
        if name in env:
            given.refuse(f"{base}.{name}", "is set in variables too; keep one of the two")
    return secrets


def _retries(given: BatchFields, values: Json, block: Json) -> None:
    path = f"{SPEC}.maxRetryCount"
    count = given.whole(path)
    given.keep(path)
    stands = given.report.findings(given.name(path), jobs.retries(count, None))
    policies = [(each, *_policy(given, each)) for each in given.items(f"{SPEC}.lifecyclePolicies")]
    if not all(action and codes for _, action, codes in policies):
        return
    if count is None and not policies:
        # What Batch does without a word of it: no attempt after the first.
        values |= {"retries": 0, "lost_retries": 0}
        return
    asked: Json = {"maxRetryCount": count or 0}
    if policies:
        asked["lifecyclePolicies"] = [
            {"action": action, "actionCondition": {"exitCodes": codes}} for _, action, codes in policies
        ]
    number = count or 0
    for own, lost in _candidates(number):
        like = Job(name="x", nodes=values.get("nodes", 1), retries=own, lost_retries=lost)
        if retries.of_job(like, GoogleBatch()) == asked:
            values |= {name: n for name, n in (("retries", own), ("lost_retries", lost)) if n is not None}
            return
    if _by_codes(given, number, [(action, codes) for _, action, codes in policies], values, block) and stands:
        _compare(given, policies, values, block)


def _policy(given: BatchFields, path: str) -> tuple[str | None, list[int]]:
    """Return the action and the exit codes of a lifecycle policy, None and empty if they are refused."""
    at, name = f"{path}.actionCondition.exitCodes", f"{path}.action"
    action, texts = given.text(name), given.texts(at)
    if action not in ("RETRY_TASK", "FAIL_TASK"):
        given.report.refuse(given.name(name), f"{'must be' if action else 'is missing:'} RETRY_TASK or FAIL_TASK")
        action = None
    codes = [int(text) for text in texts if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) <= CODE_MAX]
    if len(codes) < len(texts) or not texts:
        why = "are missing: a policy is of some exit codes" if not texts else f"must be integers from 1 to {CODE_MAX}"
        given.report.refuse(given.name(at), why)
        codes = []
    given.keep(name, "retries")
    given.keep(at, "google_batch.exit_codes")
    return action, codes


def _compare(given: BatchFields, policies: list[tuple[str, str | None, list[int]]], values: Json, block: Json) -> None:
    """Report where a job file retries other exit codes than the document."""
    fields = {name: values[name] for name in ("nodes", "retries", "lost_retries") if name in values}
    codes = [ExitCodes(**each) for each in block.get("exit_codes", [])]
    made = retries.of_job(Job(name="x", **fields), GoogleBatch(exit_codes=codes)).get("lifecyclePolicies")
    if not made:
        return
    action, now = made[0]["action"], set(made[0]["actionCondition"]["exitCodes"])
    what = "are tried again" if action == "RETRY_TASK" else "are final"
    listed = ", ".join(map(str, sorted(now)))
    if not policies:
        why = f"tasks that ran out of their time, and commands that cannot be run, are final: {listed}"
        given.report.note(given.name(f"{SPEC}.maxRetryCount"), why)
    for path, before, before_codes in policies:
        if before != action:
            given.report.changed(given.name(f"{path}.action"), action, f"a job file has it so: {listed} {what}")
        if before != action or set(before_codes) != now:
            more, less = sorted(now - set(before_codes)), sorted(set(before_codes) - now)
            said = [f"{', '.join(map(str, more))} {what} too"] if more and before == action else []
            said += [f"{', '.join(map(str, less))} are not"] if less and before == action else []
            why = f"a job file keeps what is lost and what cannot run apart: {'; '.join(said) or f'{listed} {what}'}"
            given.report.changed(given.name(f"{path}.actionCondition.exitCodes"), sorted(now), why)


def _candidates(count: int) -> Iterable[tuple[int | None, int | None]]:
    yield from ((None, None), (None, count), (0, count), (count, None), (count, 0))


def _by_codes(
    given: BatchFields, count: int, policies: list[tuple[str | None, list[int]]], values: Json, block: Json
) -> bool:
    """Translate retries that the two counts alone cannot express. Return whether they are accepted."""
    retried = {code for action, codes in policies if action == "RETRY_TASK" for code in codes}
    failed = {code for action, codes in policies if action == "FAIL_TASK" for code in codes}
    name = given.name(f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes")
    stands = given.report.findings(name, jobs.exit_codes(retried, failed, count))
    lost = set(jobs.LOST_VM)
    if retried and retried <= lost:
        values |= {"retries": 0, "lost_retries": count}
        return stands
    values["retries"] = count
    if (retried and not retried & lost) or lost <= failed:
        values["lost_retries"] = 0
    codes = [
        {"codes": sorted(those), "action": action}
        for those, action in ((retried - lost, "retry"), (failed - lost - {jobs.OUT_OF_TIME, 126, 127}, "fail"))
        if those
    ]
    if codes:
        block["exit_codes"] = codes
    return stands


def _job(given: BatchFields, values: Json, block: Json) -> None:
    if seconds := given.seconds(f"{SPEC}.maxRunDuration"):
        values["timeout_s"] = seconds
        given.report.findings(given.name(f"{SPEC}.maxRunDuration"), jobs.run_time(seconds))
    given.keep(f"{SPEC}.maxRunDuration", "timeout_s")
    priority = given.whole("priority")
    if priority is not None:
        given.report.findings(given.name("priority"), jobs.priority(priority))
        block["priority"] = priority
    given.keep("priority", "google_batch.priority")
    _labels(given, values)
    for path in OF_TARGET:
        given.left_out(path, "is the target's")
    for path in BY_SERVICE:
        given.left_out(path, "is set by the service")


def _labels(given: BatchFields, values: Json) -> None:
    """Translate the labels. A job file's labels apply to both the job and its VMs."""
    found: dict[str, str] = {}
    for base in ("labels", f"{ALLOCATION}.labels"):
        for name, text in given.mapping(base).items():
            path = f"{base}.{name}"
            if name.startswith("accel-"):
                given.left_out(path, "is the platform's own")
            elif name in LABELS_BY_SERVICE:
                given.left_out(path, "is set by the service")
            elif found.setdefault(name, text) != text:
                given.refuse(path, "has another value in labels, and labels of a job file are of the job and its VMs")
            else:
                given.keep(path, "labels")
    if found:
        values["labels"] = found
