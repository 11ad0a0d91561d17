"""Jobs of kubeflow.org: nodes under several names, each with a template of its own.

Fields: https://www.kubeflow.org/docs/components/trainer/legacy-v1/reference/
"""

from collections.abc import Mapping

from accel.contract import variables

from .kubernetes_pods import PodJob, set_ranks
from .kubernetes_shapes import JOB, Work, deadline, finish, keep_s, same_pods, template_job
from .kubernetes_values import ManifestFields, at, object_of
from .reading import Json

RUN_POLICY: Mapping[str, tuple[str, str]] = {
    "cleanPodPolicy": ("changed", "pods of an ended job are done with"),
    "suspend": JOB["suspend"],
    "schedulingPolicy": ("decision", "schedules pods together, as a target's queue does"),
    "managedBy": ("changed", "is of Kubernetes' own pods"),
}
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
    """A job of kubeflow.org: nodes of several names, which have to be alike."""
    given, document, _, _, values = work
    kind = str(document.get("kind"))
    key, names = REPLICAS[kind]
    base = f"spec.{key}"
    specs = object_of(at(document, base))
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
    values["retries"] = min(limit or 0, 2**31 - 1)
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
    elastic = "changes how many nodes there are; a job has as many as it begins with"
    if kind == "PyTorchJob":
        if set_ranks(found, {"RANK": _INDEX, "WORLD_SIZE": _COUNT, **_MASTER}):
            report.changed(given.name("kind"), "command", "RANK, WORLD_SIZE and the master's address are set before it")
        each = given.text("spec.nprocPerNode")
        if each in ("auto", "gpu", str(found.machines.count)):
            given.keep("spec.nprocPerNode", why="is so without it")
        elif each:
            values.setdefault("env", {})["PET_NPROC_PER_NODE"] = each
            given.keep("spec.nprocPerNode", "env.PET_NPROC_PER_NODE")
        given.settle("spec.elasticPolicy", elastic, "nodes")
    elif kind in ("XGBoostJob", "PaddleJob"):
        if set_ranks(found, {"RANK": _INDEX, "WORLD_SIZE": _COUNT, **_MASTER}):
            report.changed(given.name("kind"), "command", "RANK, WORLD_SIZE and the master's address are set before it")
        given.settle("spec.elasticPolicy", elastic, "nodes")
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
    """The Launcher of an MPIJob, whose command calls mpirun over the workers."""
    given, launcher = work[0], f"{base}.Launcher"
    launcher = f"{base}.Launcher"
    for each in (
        "slotsPerWorker",
        "sshAuthMountPath",
        "launcherCreationPolicy",
        "mpiImplementation",
        "runLauncherAsWorker",
    ):
        given.left_out(f"spec.{each}", "is of MPI's own start")
    if not given.has(launcher):
        return
    if nodes > 1:
        why = (
            f"starts a program on {nodes} nodes by MPI, which accel does nowhere: write the program that each node "
            "runs into Worker (torchrun, jax.set_ranks), and leave Launcher out"
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
