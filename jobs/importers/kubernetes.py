"""Translation of a Kubernetes manifest into a job file: a Job, CronJob, Pod, JobSet, or one of kubeflow.org's jobs.
A file may hold other objects beside the job, such as ConfigMaps and claims. The report covers their fields too."""

import re
from collections.abc import Mapping
from typing import Any

from accel.contract import variables
from accel.diagnostics import messages, yaml_positions
from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import HIDDEN
from accel.json_values import entries, object_at
from accel.rules.jobs import placeholders
from accel.whole_numbers import INT_MAX

from .heredoc_documents import document_in
from .kubernetes_environment import ConfigMaps
from .kubernetes_nodes import SLICE
from .kubernetes_pods import PodJob, set_ranks
from .kubernetes_shapes import CORE, JOB, QUEUE, Work, deadline, finish, job_of, keep_s, same_pods, template_job
from .kubernetes_values import ManifestFields, at
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, ReadDocument, leaves, read
from .redact import hide
from .vertex_templates import ask, ask_for_all, fill, variables_in

RUN_POLICY: Mapping[str, tuple[str, str]] = {
    "cleanPodPolicy": ("changed", "pods of an ended job are done with"),
    "suspend": JOB["suspend"],
    "schedulingPolicy": ("decision", "schedules pods together, as a target's queue does"),
    "managedBy": ("changed", "is of Kubernetes' own pods"),
}
_NODES = ("decision", "changes how many nodes there are; a job has as many as it begins with: nodes")
ELASTIC: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("rdzvBackend", "rdzvHost", "rdzvPort", "rdzvId", "rdzvConf", "standalone"),
                    ("changed", "nodes find the main node by themselves (docs/nodes.md)")),
    **dict.fromkeys(("minReplicas", "maxReplicas", "maxRestarts", "nProcPerNode", "metrics"), _NODES),
}  # fmt: skip
REPLICAS = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "Worker")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "MPIJob": ("mpiReplicaSpecs", ("Worker",)),
}
_OF_MPI = ("slotsPerWorker", "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation", "runLauncherAsWorker")


def replicas(work: Work) -> None:
    """Translate a job of kubeflow.org. Its nodes have several names, and must be alike."""
    given, document, _, _, values = work
    kind = str(document.get("kind"))
    key, names = REPLICAS[kind]
    base = f"spec.{key}"
    specs = object_at(at(document, base))
    present = [name for name in names if name in specs]
    if not present:
        given.refuse(base, f"has none of {', '.join(names)}")
        return
    first = present[0]
    template = f"{base}.{first}.template"
    found = template_job(work, template)
    nodes = 0
    for name in present:
        count = given.whole(f"{base}.{name}.replicas", 1)
        given.keep(f"{base}.{name}.replicas", "nodes")
        nodes += count or 1
        policy = given.text(f"{base}.{name}.restartPolicy")
        path = f"{base}.{name}.restartPolicy"
        if policy == "Never":
            given.keep(path, "retries")
        elif policy in ("OnFailure", "ExitCode", "Always"):
            given.settle(path, "tries again for as long as backoffLimit lets it: write retries", "retries")
        if name != first:
            same_pods(given, document, template, f"{base}.{name}.template", first)
    for name in specs:
        if name not in present and not (kind == "MPIJob" and name == "Launcher"):
            given.refuse(f"{base}.{name}", "are nodes of another kind: a job's nodes are alike")
    if nodes > 1 and not (found.machines.is_tpu and found.machines.topology):
        values["nodes"] = nodes
    _run_policy(given, "spec.runPolicy", template, values)
    _of_kind(work, kind, base, found, nodes)
    finish(work, found, template)
    given.left_out(f"{template}.spec.restartPolicy", "nodes start again together")


def _run_policy(given: ManifestFields, base: str, template: str, values: Json) -> None:
    limit = given.whole(f"{base}.backoffLimit")
    values["retries"] = min(limit or 0, INT_MAX)
    given.keep(f"{base}.backoffLimit", "retries")
    deadline(given, base, f"{template}.spec", values)
    keep_s(given, f"{base}.ttlSecondsAfterFinished", values)
    given.say(base, RUN_POLICY)


_INDEX = f'$(eval "echo \\${{${{{variables.NODE_INDEX_FROM}:-ACCEL_NONE}}:-0}}")'
_COUNT = f'"${{{variables.NODE_COUNT}:-1}}"'
_MASTER = {"MASTER_ADDR": '"${MASTER_ADDR:-127.0.0.1}"', "MASTER_PORT": '"${MASTER_PORT:-29500}"'}


def _of_kind(work: Work, kind: str, base: str, found: PodJob, nodes: int) -> None:
    given, *_, values = work
    report = given.report
    if kind == "PyTorchJob":
        each = given.text("spec.nprocPerNode") or ""
        # WORLD_SIZE counts processes, or nodes if their number is not written: SetPodEnv in
        # https://github.com/kubeflow/training-operator/blob/v1.8.1/pkg/controller.v1/pytorch/envvar.go
        size = f'"$((${{{variables.NODE_COUNT}:-1}} * {int(each)}))"' if each.isdecimal() else _COUNT
        if set_ranks(found, {"RANK": _INDEX, "WORLD_SIZE": size, **_MASTER}):
            report.changed(given.name("kind"), "command", "RANK, WORLD_SIZE and the master's address are set before it")
        if each in ("auto", "gpu", str(found.machines.count)):
            given.keep("spec.nprocPerNode", why="is so without it")
        elif each:
            values.setdefault("env", {})["PET_NPROC_PER_NODE"] = each
            given.keep("spec.nprocPerNode", "env.PET_NPROC_PER_NODE")
        restarts = given.whole("spec.elasticPolicy.maxRestarts")
        if restarts is not None:
            values.setdefault("env", {})["PET_MAX_RESTARTS"] = str(restarts)
            given.keep("spec.elasticPolicy.maxRestarts", "env.PET_MAX_RESTARTS")
        given.say("spec.elasticPolicy", ELASTIC)
    elif kind in ("XGBoostJob", "PaddleJob"):
        if set_ranks(found, {"RANK": _INDEX, "WORLD_SIZE": _COUNT, **_MASTER}):
            report.changed(given.name("kind"), "command", "RANK, WORLD_SIZE and the master's address are set before it")
        given.say("spec.elasticPolicy", ELASTIC)
    elif kind == "JAXJob":
        names = {"PROCESS_ID": _INDEX, "NUM_PROCESSES": _COUNT, "COORDINATOR_ADDRESS": _MASTER["MASTER_ADDR"],
                 "COORDINATOR_PORT": _MASTER["MASTER_PORT"]}  # fmt: skip
        if set_ranks(found, names):
            report.changed(given.name("kind"), "command", "JAX's coordinator and numbers are set before it")
    elif kind == "TFJob" and nodes > 1:
        why = "TF_CONFIG is set by nobody: the program makes it with accel_runtime (docs/runtime.md)"
        report.decide(given.name("kind"), why, new="nodes", is_open=False)
        for each in ("successPolicy", "enableDynamicWorker"):
            given.left_out(f"spec.{each}", "a job ends with its first node")
    elif kind == "TFJob":
        for each in ("successPolicy", "enableDynamicWorker"):
            given.left_out(f"spec.{each}", "a job ends with its first node")
    elif kind == "MPIJob":
        _launcher(work, base, found, nodes)


def _launcher(work: Work, base: str, found: PodJob, nodes: int) -> None:
    """Translate the Launcher of an MPIJob, whose command calls mpirun over the workers."""
    given, launcher = work[0], f"{base}.Launcher"
    for each in _OF_MPI:
        given.left_out(f"spec.{each}", "is of MPI's own start")
    if not given.has(launcher):
        return
    if nodes > 1:
        why = (
            f"starts a program on {nodes} nodes by MPI, which accel does nowhere: write the program that each node "
            "runs into Worker (torchrun, jax.distributed), and leave Launcher out"
        )
        given.ask(launcher, why)
        return
    of = f"{launcher}.template.spec"
    words = [*given.texts(f"{of}.containers[0].command"), *given.texts(f"{of}.containers[0].args")]
    if words:
        found.command = words
        for each in ("command", "args"):
            given.settle(
                f"{of}.containers[0].{each}", "mpirun runs on the one worker: take hosts out of its options", "command"
            )
        for each in ("command", "args"):
            path = f"{found.container}.{each}"
            if given.has(path):
                given.report.changed(given.name(path), None, "the launcher's command runs in its place")
    for path in given.paths(launcher):
        if not given.report.is_settled(given.name(path)):
            given.report.decide(given.name(path), "is of the launcher; the worker's is taken", is_open=False)


DOCUMENTS_MAX = 100
JOBS = {**CORE, **dict.fromkeys(REPLICAS, replicas)}
_RAY = "starts nodes of its own: write a job with `nodes`, whose command runs `ray start` (docs/nodes.md)"
_ENDLESS = "runs without end, and a job ends: write its pod's template as a Job"
_WORKFLOW = "is a workflow: make a job of each step"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("RayJob", "RayCluster", "RayService"), _RAY),
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Notebook",
                     "InferenceService", "LeaderWorkerSet"), _ENDLESS),
    **dict.fromkeys(("Workflow", "CronWorkflow", "WorkflowTemplate", "PipelineRun", "TaskRun", "Pipeline"), _WORKFLOW),
    "TrainJob": "has its pods in a TrainingRuntime of the cluster: write the job that it makes",
    "SparkApplication": "is of Spark, which starts nodes of its own",
    "AppWrapper": "wraps other objects: import the job in it",
    "Workload": "is Kueue's own record of a job: import the job",
    "PodGroup": "schedules pods together: import their job",
}  # fmt: skip
_TARGETS = "is the target's, which a stack makes (docs/gke.md)"
BESIDE: Mapping[str, tuple[str, str]] = {
    "Service": ("changed", "nodes of a job find each other by themselves (docs/nodes.md)"),
    **dict.fromkeys(("Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
                     "LocalQueue", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "PriorityClass",
                     "ResourceQuota", "LimitRange", "NetworkPolicy", "AdmissionCheck", "ProvisioningRequestConfig",
                     "Topology", "ComputeClass", "PodGroup", "Workload"), ("changed", _TARGETS)),
    **dict.fromkeys(("PersistentVolumeClaim", "PersistentVolume", "StorageClass"),
                    ("decision", "is a volume, which is a target's: workloads.volumes (docs/gke.md)")),
    "ConfigMap": ("decision", "has to be in the target's namespace, or in the image"),
    "Secret": ("decision", "has to be in the target's namespace: `kubectl apply` it there"),
}  # fmt: skip
"""Kinds that may stand beside a job, and what becomes of each."""
KNOWN = (
    *("apiVersion", "kind", "metadata", "spec", "status", "name", "generateName", "namespace", "labels"),
    *("annotations", "template", "parallelism", "completions", "completionMode", "backoffLimit", "suspend"),
    *("backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy", "podReplacementPolicy", "successPolicy"),
    *("activeDeadlineSeconds", "ttlSecondsAfterFinished", "manualSelector", "selector", "managedBy", "schedule"),
    *("jobTemplate", "concurrencyPolicy", "timeZone", "startingDeadlineSeconds", "successfulJobsHistoryLimit"),
    *("failedJobsHistoryLimit", "replicatedJobs", "replicas", "failurePolicy", "network", "startupPolicy"),
    *("coordinator", "runPolicy", "restartPolicy", "containers", "initContainers", "volumes", "image", "command"),
    *("args", "env", "envFrom", "value", "valueFrom", "resources", "limits", "requests", "volumeMounts", "mountPath"),
    *("subPath", "readOnly", "workingDir", "ports", "imagePullPolicy", "nodeSelector", "tolerations", "affinity"),
    *("securityContext", "serviceAccountName", "priorityClassName", "hostNetwork", "subdomain", "emptyDir"),
    *("persistentVolumeClaim", "hostPath", "configMap", "secret", "csi", "secretKeyRef", "configMapKeyRef", "fieldRef"),
    *("nprocPerNode", "elasticPolicy", "slotsPerWorker", "imagePullSecrets", "terminationGracePeriodSeconds"),
)


_LEFT_OUT = re.compile(
    r"(?:^|\.)(?:namespace|serviceAccount(?:Name)?|schedulerName|runtimeClassName|hostname|subdomain)$"
    rf"|\.imagePullSecrets\[\d+\]\.name$|\.labels\.{re.escape(QUEUE)}$|\.annotations\.(?!{re.escape(SLICE)}$)"
)
"""Fields whose values are not in a job, so that a variable in one of them needs no value."""


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    """Raise BadInput if the manifest cannot be read, or does not hold exactly one job."""
    documents = _documents(name, data, options.variables)
    jobs = [each for each in documents if _kind(each) in JOBS and _refusal(each) is None]
    if len(jobs) != 1:
        raise BadInput(f"{name}: {_no_job(documents) if not jobs else _several(jobs)}")
    document = jobs[0]
    others = [each for each in documents if each is not document]
    beside, said, maps = _others(others)
    places = dict(getattr(document, "places", {}))
    for each, (prefix, _) in zip(others, said, strict=True):
        places |= {f"{prefix}.{path}": place for path, place in getattr(each, "places", {}).items()}
    given = ManifestFields(ReadDocument(document, places), beside=beside)
    lacking = ask(given, options.variables, left_out=_LEFT_OUT)
    values: Json = {}
    for prefix, kind in said:
        _say(given, beside, prefix, kind)
    job_of(given, document, options, maps, values, JOBS)
    _say_samples(given)
    if lacking or options.variables or _has_variables_left_out(given):
        _say_missing(given, values)
    given.report.close(KNOWN)
    ask_for_all(given.report, lacking)
    hide(given.report, [value for name, value in options.variables.items() if "TOKEN" in name.upper()])
    return ImportResult(given.report, {}, values)


def _has_variables_left_out(given: ManifestFields) -> bool:
    return any(
        isinstance(value, str) and _LEFT_OUT.search(path) and variables_in(value)
        for path, value in given.values.items()
    )


_SET = re.compile(r"\b([A-Za-z_]\w*)\+?=|\b(?:for|read|local|declare|mapfile)\s+(?:-\w+\s+)*(\w+)")
_READ = re.compile(r"(?<![\\$])\$(?:\{([A-Z][A-Z0-9_]+)\}|([A-Z][A-Z0-9_]+))")
_OF_SHELLS = (
    *("HOME", "PATH", "PWD", "OLDPWD", "USER", "HOSTNAME", "SHELL", "LANG", "TERM", "TMPDIR", "RANDOM", "SECONDS"),
    *("UID", "EUID", "PPID", "IFS", "LINENO", "OPTARG", "OPTIND", "REPLY", "PIPESTATUS", "FUNCNAME", "PYTHONPATH"),
    *("LD_LIBRARY_PATH", "VIRTUAL_ENV", "JOB_COMPLETION_INDEX", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"),
    *("TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"),
)


def _say_missing(given: ManifestFields, values: Json) -> None:
    """Report variables that a template's command reads and nothing sets: what fills the template may fill them too."""
    words = [str(word) for word in values.get("command", [])]
    known = {*values.get("env", {}), *values.get("secrets", {}), *_OF_SHELLS}
    known |= {first or second for word in words for first, second in _SET.findall(word)}
    for path, value in given.values.items():
        if not re.search(r"\.containers\[\d+\]\.(command|args)$", path):
            continue
        read_here = [first or second for word in entries(value) for first, second in _READ.findall(str(word))]
        names = [name for name in dict.fromkeys(read_here) if name not in known]
        if names:
            asked = " ".join(f"--var {name}=<value>" for name in names[:6])
            why = (
                f"reads {', '.join(names[:6])}, which nothing here sets; where the template is filled with it: {asked}"
            )
            given.report.decide(given.name(path), why, new="command", is_open=False)


def _say_samples(given: ManifestFields) -> None:
    """Refuse gs://<BUCKET> in the program's words and variables, which may have variables of a shell."""
    for path, value in given.values.items():
        if re.search(r"\.containers\[\d+\]\.(command|args|env\[\d+\]\.value)$", path):
            text = re.sub(r"\$(\w+|\{.*?\}|\(.*?\))", "", " ".join(map(str, entries(value) or [value])))
            found = re.findall(r"""gs://[^\s"';|&,]+""", text)
            given.report.findings(given.name(path), placeholders.addresses(given.name(path), found))


def _documents(name: str, data: bytes, variables: Mapping[str, str]) -> list[Json]:
    """Return a file's objects, and a List's items in its place. Raise BadInput for unreadable or too many objects."""
    text = data.decode("utf-8-sig", errors="replace")
    if (inside := document_in(text)) is not None:
        text, data = inside, inside.encode()
    parts = [(0, data)] if text.lstrip().startswith(("{", "[")) else yaml_positions.documents(data)
    found: list[Json] = []
    for above, part in parts[: DOCUMENTS_MAX + 1]:
        try:
            document = read(name, b"\n" * above + part)
        except BadInput as error:
            if re.search(rb"\{\{.*\}\}", part):
                said = "it looks like a template: render it first (helm template, kustomize build)"
                raise BadInput(f"{error}; {said}") from None
            raise
        fill(document, variables)
        if _kind(document) == "List":
            for index, item in enumerate(entries(document.get("items"))):
                start = f"items[{index}]."
                places = getattr(document, "places", {}).items()
                own = {path.removeprefix(start): place for path, place in places if path.startswith(start)}
                found.append(ReadDocument(object_at(item), own))
        else:
            found.append(document)
    if len(found) > DOCUMENTS_MAX:
        raise BadInput(f"{name}: holds more than {DOCUMENTS_MAX} objects")
    return found


def _kind(document: Json) -> str:
    kind = document.get("kind")
    return kind if isinstance(kind, str) else ""


def _refusal(document: Json) -> str | None:
    version = str(document.get("apiVersion"))
    if _kind(document) == "Job" and not version.startswith("batch/"):
        of = messages.printable_name(version)
        return f"is a Job of {of}, and not of batch/v1: write the template of its pods as a Job, or as a JobSet"
    return None


def _no_job(documents: list[Json]) -> str:
    for each in documents:
        if why := _refusal(each):
            return why
        if _kind(each) in REFUSED:
            return f"is a {_kind(each)}, which {REFUSED[_kind(each)]}"
    kinds = ", ".join(dict.fromkeys(messages.printable_name(_kind(each)) for each in documents if _kind(each)))
    return f"holds no job ({kinds or 'no kind'}); what is read: {', '.join(JOBS)}"


def _several(jobs: list[Json]) -> str:
    names = [str(at(each, "metadata.name") or at(each, "metadata.generateName") or _kind(each)) for each in jobs]
    shown = ", ".join(messages.printable_name(each) for each in names[:4])
    return f"holds {len(jobs)} jobs ({shown}), and a job file has one: import each from a file of its own"


def _others(documents: list[Json]) -> tuple[dict[str, Any], list[tuple[str, str]], ConfigMaps]:
    """Return the leaves of the objects beside the job, each object's prefix and kind, and the ConfigMaps."""
    beside: dict[str, Any] = {}
    said: list[tuple[str, str]] = []
    maps = ConfigMaps()
    for each in documents:
        own = at(each, "metadata.name")
        start = f"{_kind(each) or 'object'}/{own if isinstance(own, str) else 'unnamed'}"
        prefix, number = start, 2
        while any(prefix == taken for taken, _ in said):
            prefix, number = f"{start} ({number})", number + 1
        said.append((prefix, _kind(each)))
        hidden = _kind(each) in ("ConfigMap", "Secret")
        for path, value in leaves(each):
            leaf = f"{prefix}.{path}"
            beside[leaf] = HIDDEN if hidden and path.startswith(("data.", "stringData.", "binaryData.")) else value
        if _kind(each) == "ConfigMap" and isinstance(own, str):
            data = {key: text for key, text in object_at(each.get("data")).items() if isinstance(text, str)}
            maps.data[own] = data
            maps.leaves |= {(own, key): f"{prefix}.data.{key}" for key in data}
    return beside, said, maps


def _say(given: ManifestFields, beside: Mapping[str, Any], prefix: str, kind: str) -> None:
    how, why = BESIDE.get(kind, ("refused", f"is of a {kind or 'thing without a kind'}, and no part of a job"))
    if kind in REFUSED and kind not in BESIDE:
        why = f"is of a {kind}, beside the job: start it by itself, and take it out of the file"
    for leaf in beside:
        if not leaf.startswith(f"{prefix}."):
            continue
        if how == "changed":
            given.report.changed(leaf, None, why)
        elif how == "decision":
            given.report.decide(leaf, why, is_open=False)
        else:
            given.report.refuse(leaf, why)
