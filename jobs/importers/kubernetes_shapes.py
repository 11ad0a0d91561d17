"""Kinds of jobs in Kubernetes: where each has its pod template, how many pods it starts, how it treats failed ones.
Fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/,
https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/"""

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from accel.json_values import entries, object_at
from accel.whole_numbers import INT_MAX

from ..backends.gke import retries
from .fields import job_name
from .kubernetes_environment import ConfigMaps
from .kubernetes_nodes import SLICE
from .kubernetes_pods import OF_TARGET, PodJob, close_pod, pod_job, put_command
from .kubernetes_values import ManifestFields, at
from .options import ImportOptions
from .reading import Json

BACKOFF_LIMIT = 6
"""Retries of a Job that does not set `backoffLimit`."""
_SERVER = ("metadata.uid", "metadata.creationTimestamp", "metadata.resourceVersion", "metadata.generation", "status",
           "metadata.managedFields", "metadata.selfLink", "metadata.ownerReferences",
           "metadata.finalizers")  # fmt: skip
QUEUE = "kueue.x-k8s.io/queue-name"
_PRIORITY = "kueue.x-k8s.io/priority-class"
_RESERVED = ("kueue.x-k8s.io/", "jobset.sigs.k8s.io/", "batch.kubernetes.io/", "accel.dev/", "controller-uid",
             "job-name", "kubernetes.io/", "k8s.io/", "app.kubernetes.io/managed-by",
             "training.kubeflow.org/")  # fmt: skip
JOB: Mapping[str, tuple[str, str]] = {
    "suspend": ("changed", "is for a queue: accel suspends jobs itself, where a target has one"),
    "podReplacementPolicy": ("changed", "is of Kubernetes' own pods, and accel writes it"),
    "maxFailedIndexes": ("decision", "ends a job after some failures; here each task is tried by itself"),
    "successPolicy": ("decision", "ends a job before all of its pods; here it ends with the last one"),
    "podFailurePolicy": ("decision", "a job file has no rules, but retries and lost_retries (docs/gke.md)"),
    **dict.fromkeys(("manualSelector", "selector", "managedBy"), ("changed", "is of Kubernetes' own pods")),
}
JOBSET: Mapping[str, tuple[str, str]] = {
    "suspend": JOB["suspend"],
    "failurePolicy": ("decision", "a job file has no rules, but retries and lost_retries (docs/gke.md)"),
    "successPolicy": ("decision", "ends a job before all of its pods; here it ends with its first node"),
    **dict.fromkeys(("network", "startupPolicy", "coordinator", "managedBy", "volumeClaimPolicies"),
                    ("changed", "is of JobSet, and accel writes it")),
}  # fmt: skip
CRON: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("schedule", "timeZone"), ("decision", "a job runs once: cron submits it (docs/schedules.md)")),
    **dict.fromkeys(("concurrencyPolicy", "startingDeadlineSeconds", "suspend", "successfulJobsHistoryLimit",
                     "failedJobsHistoryLimit"), ("changed", "is of a schedule: docs/schedules.md")),
    "jobTemplate.metadata": ("changed", "is of the jobs that a schedule makes"),
}  # fmt: skip
Work = tuple[ManifestFields, Any, ImportOptions, ConfigMaps, Json]


def job_of(
    given: ManifestFields,
    document: Any,
    options: ImportOptions,
    maps: ConfigMaps,
    values: Json,
    jobs: Mapping[str, Callable[[Work], None]],
) -> None:
    """Put a manifest's job into a job file's values. `jobs`: the function that reads each kind."""
    path = (
        "metadata.name"
        if given.has("metadata.name") or not given.has("metadata.generateName")
        else "metadata.generateName"
    )
    if path == "metadata.generateName":
        given.values[path] = str(given.values[path]).rstrip("-")
    values["name"] = job_name(given, path)
    given.keep(path, "name")
    for each in ("apiVersion", "kind"):
        given.keep(each, why="is what is imported")
    given.left_out("metadata.namespace", OF_TARGET)
    for each in _SERVER:
        given.left_out(each, "is set by the cluster")
    _labels(given, document, "metadata", values)
    kind = str(document.get("kind"))
    jobs[kind]((given, document, options, maps, values))


def _labels(given: ManifestFields, document: Any, base: str, values: Json) -> None:
    """Carry labels of the job or its pods over, and leave out annotations, which are Kubernetes' own."""
    report = given.report
    for key in object_at(at(document, f"{base}.labels")):
        path = f"{base}.labels.{key}"
        text = given.values.get(path)
        if key == QUEUE:
            given.left_out(path, "a target has its own queue")
        elif key == _PRIORITY and isinstance(text, str):
            values.setdefault("gke", {})["priority"] = text
            given.keep(path, "gke.priority")
        elif key.startswith(_RESERVED) or ".kubernetes.io/" in key or ".k8s.io/" in key:
            given.left_out(path, "is a label of Kubernetes' own parts")
        elif not isinstance(text, str):
            if path in given.values:
                given.refuse(path, "must be text; put it in quotes")
        else:
            labels = values.setdefault("labels", {})
            if labels.setdefault(key, text) != text:
                report.decide(given.name(path), "has another value in the job's own labels", is_open=False)
            else:
                given.keep(path, "labels")
    for path in given.paths(f"{base}.annotations"):
        if not path.endswith(f".{SLICE}"):
            given.left_out(path, "has no place in a job file")
    if base != "metadata":
        for each in ("name", "namespace", "generateName", "creationTimestamp"):
            given.left_out(f"{base}.{each}", "is of Kubernetes' own pods")


def template_job(work: Work, template: str) -> PodJob:
    """Return the job of the pod template at a path, empty for a Pod. Read the template's metadata too."""
    given, document, options, maps, values = work
    if template:
        _labels(given, document, f"{template}.metadata", values)
    spec = f"{template}.spec" if template else "spec"
    gke = values.pop("gke", {})
    found = pod_job(given, document, spec, options, maps)
    own = found.values.pop("gke", {})
    values |= found.values
    found.values = values
    if gke or own:
        values["gke"] = {**own, **gke}
    path = f"{spec}.priorityClassName"
    if priority := given.text(path):
        if "priority" in values.get("gke", {}):
            given.left_out(path, "Kueue's own priority counts")
        else:
            values.setdefault("gke", {})["priority"] = priority
            given.keep(path, "gke.priority")
    return found


def finish(work: Work, found: PodJob, template: str) -> None:
    """Set the machines and the command with the lines that precede it, and settle the remaining fields of the pod."""
    given, *_, values = work
    found.machines.put(given, values)
    is_read = not any(given.is_stopped(path) for path in given.paths(f"{found.container}.resources"))
    if is_read and "accelerator" not in values and not {"cpus", "memory_mib"} <= set(values):
        why = "are not all there: a target of kind gke needs cpus and memory_mib of a job without an accelerator"
        given.report.decide(f"{found.container}.resources", why, is_open=False)
    if not put_command(found):
        why = "lines are needed before the program, which the image names alone: --var ENTRYPOINT='<program>'"
        given.report.decide(f"{found.container}.command", why)
    close_pod(given, f"{template}.spec" if template else "spec")


def _pod(work: Work) -> None:
    given, _, _, _, values = work
    found = template_job(work, "")
    policy = given.text("spec.restartPolicy")
    values["retries"] = 0
    if policy == "Never":
        given.keep("spec.restartPolicy", "retries: 0")
    elif policy == "OnFailure":
        given.report.decide("spec.restartPolicy", "tries without end: write retries", new="retries: 0", is_open=False)
    elif policy == "Always":
        given.report.changed("spec.restartPolicy", "retries: 0", "a job ends")
    elif policy is None:
        given.report.changed("spec.restartPolicy", "retries: 0", "is missing, which means Always; a job ends")
    deadline(given, "spec", "spec", values)
    finish(work, found, "")


def deadline(given: ManifestFields, job: str, spec: str, values: Json) -> None:
    """Set `timeout_s` from the pod's deadline at `spec`, or else from the job's at `job`."""
    own = given.whole(f"{spec}.activeDeadlineSeconds", 1)
    if own and own <= INT_MAX:
        values["timeout_s"] = own
        given.keep(f"{spec}.activeDeadlineSeconds", "timeout_s")
    if job == spec:
        return
    path = f"{job}.activeDeadlineSeconds"
    whole = given.whole(path, 1)
    if not whole or whole > INT_MAX:
        return
    if own:
        given.settle(path, "is of all attempts; a pod has its own deadline, which counts")
        return
    values["timeout_s"] = whole
    given.keep(path, "timeout_s")
    if values.get("retries") or values.get("tasks", 1) > 1:
        of = "tasks and attempts" if values.get("tasks", 1) > 1 else "attempts"
        why = f"is of all {of} and their wait for nodes; timeout_s is of one attempt"
        given.settle(path, why, f"timeout_s: {whole}")


def keep_s(given: ManifestFields, path: str, values: Json) -> None:
    """Set `gke.keep_s`, the seconds for which an ended job stays in the cluster."""
    seconds = given.whole(path)
    if seconds is None:
        return
    if seconds and seconds <= INT_MAX:
        values.setdefault("gke", {})["keep_s"] = seconds
        given.keep(path, "gke.keep_s")
    else:
        given.settle(path, "deletes an ended job at once, and then nobody can ask for it", "a week")


def _batch_job(work: Work, base: str = "spec") -> None:
    given, document, _, _, values = work
    found = template_job(work, f"{base}.template")
    spec = f"{base}.template.spec"
    _counts(given, document, base, spec, found, values)
    _attempts(given, document, base, values)
    deadline(given, base, spec, values)
    keep_s(given, f"{base}.ttlSecondsAfterFinished", values)
    given.say(base, JOB)
    finish(work, found, f"{base}.template")
    if values.get("nodes", 1) > 1 or "nodes" in values:
        values.pop("tasks", None)


def _counts(given: ManifestFields, document: Any, base: str, spec: str, found: PodJob, values: Json) -> None:
    """Set `tasks` or `nodes`."""
    report = given.report
    completions, parallelism = given.whole(f"{base}.completions", 1), given.whole(f"{base}.parallelism")
    mode = given.text(f"{base}.completionMode")
    if mode not in (None, "Indexed", "NonIndexed"):
        given.refuse(f"{base}.completionMode", "must be Indexed or NonIndexed")
    if parallelism == 0:
        given.settle(f"{base}.parallelism", "starts no pod; a job starts when it is submitted")
    count = completions or 1
    if completions is None and parallelism and parallelism > 1:
        count = parallelism
        given.settle(
            f"{base}.parallelism", "are pods that share their work; here each is a task with its own number", "tasks"
        )
    topology = found.machines.topology
    if count > 1 and (found.machines.is_tpu and topology):
        _hosts(given, found, {f"{base}.completions": completions, f"{base}.parallelism": parallelism})
    elif count > 1 and mode == "Indexed" and given.has(f"{spec}.subdomain"):
        values["nodes"] = count
        why = "are nodes of one job, as its pods find each other by a subdomain"
        for each in ("completions", "parallelism"):
            given.settle(f"{base}.{each}", why, "nodes")
    elif count > 1:
        values["tasks"] = count
        given.keep(f"{base}.completions", "tasks")
        if completions and parallelism and parallelism < count:
            values["parallelism"] = parallelism
            given.keep(f"{base}.parallelism", "parallelism")
        elif completions and parallelism:
            given.keep(f"{base}.parallelism", why="all at once, as without it")
        elif completions and parallelism is None:
            values["parallelism"] = 1
            report.changed(f"{base}.parallelism", "parallelism: 1", "is missing; Kubernetes runs one at a time")
    else:
        for path in (f"{base}.completions", f"{base}.parallelism"):
            if not given.is_stopped(path):
                given.keep(path, why="is one, as without it")
        if mode == "Indexed":
            values.setdefault("env", {}).setdefault("JOB_COMPLETION_INDEX", "0")
    if mode == "Indexed":
        given.keep(f"{base}.completionMode", "tasks or nodes, which have numbers")
    elif mode == "NonIndexed" and count == 1:
        given.keep(f"{base}.completionMode", why="is so without it")
    elif mode == "NonIndexed":
        report.changed(given.name(f"{base}.completionMode"), None, "tasks have numbers here")


def _attempts(given: ManifestFields, document: Any, base: str, values: Json) -> None:
    """Set `retries` and `lost_retries`."""
    report, spec = given.report, f"{base}.template.spec"
    each, whole = given.whole(f"{base}.backoffLimitPerIndex"), given.whole(f"{base}.backoffLimit")
    policy = given.text(f"{spec}.restartPolicy")
    for path in (f"{base}.backoffLimit", f"{base}.backoffLimitPerIndex"):
        if (number := given.values.get(path)) is not None and str(number).isdigit() and int(number) > INT_MAX:
            report.changed(given.name(path), "2147483647", "is the most that a job file has")
    limit = each if each is not None else whole
    if each is not None:
        given.keep(f"{base}.backoffLimitPerIndex", "retries")
        given.settle(f"{base}.backoffLimit", "is of all tasks together; each has its own limit")
    elif whole is not None and values.get("tasks", 1) > 1:
        given.settle(f"{base}.backoffLimit", "is of all tasks together; retries are of each", f"retries: {whole}")
    elif whole is not None:
        given.keep(f"{base}.backoffLimit", "retries")
    else:
        limit = BACKOFF_LIMIT
        if not given.is_stopped(f"{base}.backoffLimit"):
            report.changed(f"{base}.backoffLimit", f"retries: {limit}", "is missing; Kubernetes tries six times more")
    values["retries"] = min(limit or 0, INT_MAX)
    if policy == "OnFailure":
        report.changed(given.name(f"{spec}.restartPolicy"), "retries", "a job has a new pod for each attempt")
    elif policy == "Never":
        given.keep(f"{spec}.restartPolicy", "retries")
    elif policy is not None:
        given.refuse(f"{spec}.restartPolicy", "must be Never or OnFailure")
    _policy(given, document, f"{base}.podFailurePolicy", values)


def _hosts(given: ManifestFields, found: PodJob, counts: Mapping[str, int | None]) -> None:
    """Settle pod counts, by path, for a TPU slice: it has as many nodes as it has hosts."""
    hosts = found.machines.hosts()
    for path, count in counts.items():
        if count is not None and not found.machines.tpu_label:
            given.settle(path, "is of a slice that is not known")
            continue
        if count == hosts:
            given.report.changed(given.name(path), None, "a slice has as many nodes as it has hosts")
        elif count is not None:
            given.settle(path, f"{count} pods are asked for, and the slice has {hosts} hosts", f"{hosts} nodes")


_RULE = re.compile(
    r"\.rules\[\d+\]\.(action|onPodConditions\[\d+\]\.(type|status)|onExitCodes\.(containerName|operator|values))"
)


def _policy(given: ManifestFields, document: Any, path: str, values: Json) -> None:
    """Translate a pod failure policy that `retries` and `lost_retries` can express."""
    rules = copy.deepcopy(entries(at(document, f"{path}.rules")))
    if not rules:
        return
    for rule in rules:
        object_at(object_at(rule).get("onExitCodes")).pop("containerName", None)
        for condition in entries(object_at(rule).get("onPodConditions")):
            object_at(condition).setdefault("status", "True")
            if object_at(condition).get("status") is True:
                object_at(condition)["status"] = "True"
    number = values["retries"]
    own = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    for failures, lost in ((number, None), (0, number), (number, 0)):
        made = retries.of_job(failures, lost, array=values.get("tasks", 1) > 1)["podFailurePolicy"]["rules"]
        for rule in made:
            rule.get("onExitCodes", {}).pop("containerName", None)
        if rules == _spelt(made) or (lost is None and rules == own):
            values["retries"] = failures
            if lost is not None:
                values["lost_retries"] = lost
            for each in given.paths(path):
                if _RULE.fullmatch(each[len(path) :]):
                    given.keep(each, "retries, lost_retries")
            return


def _spelt(rules: list[Json]) -> list[Json]:
    """Return rules with numbers as text, as a document has them."""
    made = copy.deepcopy(rules)
    for rule in made:
        codes = rule.get("onExitCodes", {})
        if "values" in codes:
            codes["values"] = [str(code) for code in codes["values"]]
    return made


def _cron_job(work: Work) -> None:
    given = work[0]
    given.say("spec", CRON)
    _batch_job(work, "spec.jobTemplate.spec")


def same_pods(given: ManifestFields, document: Any, first: str, second: str, of: str) -> None:
    """Refuse differences of a second pod template, as a job's nodes are alike. `of`: the first's name in messages."""
    mine = dict(_plain(given, first))
    for path in given.paths(second):
        own = path[len(second) :]
        if own.startswith(".metadata.") or (own.endswith("].name") and own.count("[") == 1):
            given.left_out(path, f"pods are as those of {of}")
        elif mine.get(own, _NONE) == given.values[path]:
            given.report.keep(given.name(path), why=f"is as in {of}")
        else:
            given.refuse(path, f"differs from {of}'s: a job's nodes are alike")
    theirs = dict(_plain(given, second))
    for own in mine.keys() - theirs.keys():
        if not own.startswith(".metadata."):
            given.refuse(f"{second}{own}", f"is missing, and {of} has it: a job's nodes are alike")


_NONE = object()


def _plain(given: ManifestFields, base: str) -> list[tuple[str, Any]]:
    return [(path[len(base) :], given.values[path]) for path in given.paths(base)]


def _job_set(work: Work) -> None:
    given, document, _, _, values = work
    items = entries(at(document, "spec.replicatedJobs"))
    if not items:
        given.refuse("spec.replicatedJobs", "is missing: a JobSet has jobs")
        return
    base = "spec.replicatedJobs[0]"
    job, spec = f"{base}.template.spec", f"{base}.template.spec.template.spec"
    found = template_job(work, f"{job}.template")
    nodes = 0
    slices = 0
    for index in range(len(items)):
        each = f"spec.replicatedJobs[{index}]"
        for name in ("name", "groupName"):
            given.left_out(f"{each}.{name}", "is of JobSet, and accel writes it")
        _order(given, document, f"{each}.dependsOn")
        given.left_out(f"{each}.template.metadata", "is of JobSet's own jobs")
        replicas = given.whole(f"{each}.replicas", 1) or 1
        own = f"{each}.template.spec"
        completions, parallelism = given.whole(f"{own}.completions", 1), given.whole(f"{own}.parallelism", 1)
        nodes += replicas * (completions or parallelism or 1)
        slices += replicas
        given.keep(f"{each}.replicas", "nodes")
        if found.machines.is_tpu and found.machines.topology:
            _hosts(given, found, {f"{own}.completions": completions, f"{own}.parallelism": parallelism})
        elif completions and parallelism and completions != parallelism:
            given.keep(f"{own}.completions", "nodes")
            given.settle(f"{own}.parallelism", "nodes of a job run all at once", f"{completions} at once")
        else:
            given.keep(f"{own}.completions", "nodes")
            given.keep(f"{own}.parallelism", "nodes")
        mode = given.text(f"{own}.completionMode")
        if mode in ("Indexed", "NonIndexed"):
            given.keep(f"{own}.completionMode", "nodes, which have numbers")
        if index:
            same_pods(given, document, f"{job}.template", f"{own}.template", "the first")
            _same_deadline(given, f"{job}.activeDeadlineSeconds", f"{own}.activeDeadlineSeconds")
        given.left_out(f"{own}.ttlSecondsAfterFinished", "is the JobSet's")
    if found.machines.is_tpu and found.machines.topology:
        if slices > 1:
            why = "are several slices, which a target of kind gke does not join: the kind tpu-vm has tpu_vm.slices"
            given.refuse(f"{base}.replicas", why)
    elif nodes > 1:
        values["nodes"] = nodes
    if slices > 1:
        _say_numbers(given, found.container, nodes)
    restarts = given.whole("spec.failurePolicy.maxRestarts")
    if restarts is not None:
        given.keep("spec.failurePolicy.maxRestarts", "retries")
    values["retries"] = min(restarts or 0, INT_MAX)
    for index in range(len(items)):
        is_pod = nodes == 1 and found.machines.hosts() == 1
        _pod_attempts(given, f"spec.replicatedJobs[{index}].template.spec.backoffLimit", is_pod, values)
    policy = given.text(f"{spec}.restartPolicy")
    if policy in ("Never", "OnFailure"):
        given.keep(f"{spec}.restartPolicy", "retries")
    deadline(given, job, spec, values)
    keep_s(given, "spec.ttlSecondsAfterFinished", values)
    for index in range(len(items)):
        given.say(f"spec.replicatedJobs[{index}].template.spec", JOB)
    given.say("spec", JOBSET)
    finish(work, found, f"{job}.template")


def _order(given: ManifestFields, document: Any, path: str) -> None:
    for number in range(len(entries(at(document, path)))):
        if given.text(f"{path}[{number}].status") == "Complete":
            why = "starts after another has ended, and nodes of a job start together: write a job of each"
            given.refuse(f"{path}[{number}]", why)
        else:
            given.settle(f"{path}[{number}]", "waits until another is ready; nodes of a job start together")


def _same_deadline(given: ManifestFields, first: str, second: str) -> None:
    if given.values.get(first) == given.values.get(second):
        given.keep(second, why="is as in the first")
    else:
        given.refuse(second, "differs from the first's: a job's nodes are alike")


def _say_numbers(given: ManifestFields, container: str, nodes: int) -> None:
    """Report what reads the number of a pod, which counts the pods of one job in JobSet."""
    for path in given.paths(container):
        if re.search("JOB_COMPLETION_INDEX|job-completion-index", str(given.values[path])):
            why = f"has the pod's number, which counts all {nodes} nodes here, and the pods of one job in JobSet"
            given.report.decide(given.name(path), why, new="command", is_open=False)


def _pod_attempts(given: ManifestFields, path: str, is_pod: bool, values: Json) -> None:
    """Settle the retries of a JobSet's pods. If it has one, they are retries of the job, at each of its starts."""
    limit = given.whole(path)
    number = BACKOFF_LIMIT if limit is None else limit
    if is_pod and number:
        starts = values["retries"] + 1
        values["retries"] = min((number + 1) * starts - 1, INT_MAX)
        given.keep(path, "retries")
        for each in (path, "spec.failurePolicy.maxRestarts") if starts > 1 else ():
            why = "retries are those of a pod at each start of the set"
            given.settle(each, why, f"retries: {values['retries']}")
    elif limit == 0:
        given.keep(path, "retries")
    else:
        given.settle(path, "tries pods by themselves; nodes of a job start again together")
    if limit is None and not given.is_stopped(path):
        why = "is missing; Kubernetes tries each pod six times more"
        why += "" if is_pod else ", and nodes of a job start again together"
        given.report.changed(path, f"retries: {values['retries']}", why)


CORE: Mapping[str, Callable[[Work], None]] = {
    "Job": _batch_job,
    "CronJob": _cron_job,
    "Pod": _pod,
    "JobSet": _job_set,
}
