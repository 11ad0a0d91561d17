"""Translation of a pod's template into a job file: its one container, its requests, and the nodes that it selects.
Fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accel.json_values import entries, object_at
from accel.whole_numbers import INT_MAX

from .images import image_of
from .kubernetes_environment import NAMES_A_POD, ConfigMaps, Environment, environment, names_a_pod
from .kubernetes_nodes import Machines, machines
from .kubernetes_values import (
    ManifestFields,
    as_shell,
    at,
    ceiling,
    expansion,
    quantity,
    references,
)
from .kubernetes_volumes import Volumes, volumes
from .options import ImportOptions
from .reading import Json

_BESIDE = "is a container beside the job's, which has one: leave it out, or do its work in the command"
OF_TARGET = "has no place in a job file: a target has its own"
POD: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("serviceAccountName", "serviceAccount", "schedulerName", "runtimeClassName", "os"),
                    ("changed", OF_TARGET)),
    **dict.fromkeys(("dnsPolicy", "dnsConfig", "enableServiceLinks", "preemptionPolicy", "schedulingGates", "overhead",
                     "readinessGates", "setHostnameAsFQDN", "terminationGracePeriodSeconds", "restartPolicy",
                     "hostname", "subdomain", "hostUsers", "priority", "schedulingGroup", "workloadRef"),
                    ("changed", "is of Kubernetes' own pods, and accel writes them")),
    "imagePullSecrets": ("decision", "is a password of a registry: a target's nodes pull images as themselves"),
    "automountServiceAccountToken": ("decision", "a job's pods have no token of the cluster"),
    "hostNetwork": ("decision", "a job's pods have a network of their own"),
    "hostIPC": ("decision", "a job's pods have memory of their own: shm_mib"),
    "hostPID": ("refused", "a job's pods do not see the node's processes"),
    "shareProcessNamespace": ("decision", "a job's pod has one container"),
    "hostAliases": ("decision", "names hosts of its own: use their addresses"),
    "nodeName": ("decision", "names a node; a target has pools"),
    "topologySpreadConstraints": ("decision", "says where pods stand; a target places them"),
    "tolerations": ("changed", "a job tolerates the taints of the target's pools"),
    "securityContext": ("decision", "is of the namespace's standard and the job's user: gke.user"),
    "resourceClaims": ("refused", "asks for devices by claims, which accel does not: write nvidia.com/gpu into limits"),
    "ephemeralContainers": ("refused", "is of a pod that runs"),
    "initContainers": ("open", "is a container before the job's, which has one: do its work in the command, or in the "
                       "image"),
    "resources": ("decision", "is of the whole pod: write those of its container"),
}  # fmt: skip
CONTAINER: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "stdin", "stdinOnce",
                     "tty", "resizePolicy", "restartPolicy"),
                    ("changed", "is of Kubernetes' own pods, and accel writes them")),
    "ports": ("changed", "pods of a job reach each other at any port"),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"),
                    ("decision", "asks whether a service is well; a job's program ends with an exit code")),
    "lifecycle": ("decision", "runs beside the program: do it in the command (docs/runtime.md)"),
    "securityContext": ("decision", "a job's container has no privileges, and the job's user: gke.user"),
    "volumeDevices": ("refused", "is a disk without a file system"),
    "resources.claims": ("refused", "asks for devices by claims: write nvidia.com/gpu into limits"),
    "restartPolicyRules": ("decision", "starts the container again; see retries"),
}  # fmt: skip
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|deepspeed|horovodrun|mpirun")


@dataclass
class PodJob:
    """Translation of a pod's template: values of a job file, and shell lines that run before its command."""

    values: Json = field(default_factory=dict[str, Any])
    before: list[str] = field(default_factory=list[str])
    command: list[str] = field(default_factory=list[str])
    machines: Machines = field(default_factory=Machines)
    container: str = ""


def pod_job(given: ManifestFields, document: Any, spec: str, options: ImportOptions, maps: ConfigMaps) -> PodJob:
    found = PodJob()
    report = given.report
    containers = entries(at(document, f"{spec}.containers"))
    if not containers:
        report.refuse(given.name(f"{spec}.containers"), "is missing: a pod has a container")
        return found
    main = _main(containers)
    for index in range(len(containers)):
        if index != main:
            given.ask(f"{spec}.containers[{index}]", _BESIDE)
    base = found.container = f"{spec}.containers[{main}]"
    given.keep(f"{base}.name", why="is the container's name alone")
    _image(given, base, options, found.values)
    mounted = volumes(given, document, spec, base, options.mounts)
    variables = environment(given, document, base, maps, options.variables)
    found.before += variables.before
    if variables.env:
        found.values["env"] = dict(variables.env)
    if variables.secrets:
        found.values["secrets"] = variables.secrets
    _command(given, base, options, found, variables)
    _resources(given, document, base, found)
    machines(given, document, spec, found.machines)
    _grace(given, spec, found.values)
    _user(given, document, spec, base, found.values)
    values = found.values
    if mounted.mounts:
        values["mounts"] = mounted.mounts
    if mounted.folders:
        found.before.insert(0, "mkdir -p " + " ".join(map(_quoted, mounted.folders)))
    if mounted.shm_mib:
        values["shm_mib"] = mounted.shm_mib
        memory = values.get("memory_mib")
        if memory and mounted.shm_mib > memory:
            values["shm_mib"] = memory
            report.note("shm_mib", f"is the job's memory, {memory} MiB, which it is part of")
    elif mounted.has_shm and not found.machines.count and "memory_mib" in values:
        values["shm_mib"] = values["memory_mib"]
    _disk(given, base, mounted, values)
    _defaults(given, f"{base}.securityContext", ("privileged", "allowPrivilegeEscalation"))
    given.say(base, CONTAINER)
    return found


def _defaults(given: ManifestFields, base: str, names: tuple[str, ...]) -> None:
    """Keep switches that are off, as they are in a job."""
    for name in names:
        if given.values.get(f"{base}.{name}") is False:
            given.keep(f"{base}.{name}", why="is so in a job")


def close_pod(given: ManifestFields, spec: str) -> None:
    """Report the fields of a pod's spec that have no place of their own in a job file."""
    _defaults(
        given, spec, ("hostNetwork", "hostIPC", "hostPID", "shareProcessNamespace", "automountServiceAccountToken")
    )
    for each in given.items(f"{spec}.initContainers"):
        # A sidecar: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
        if given.values.get(f"{each}.restartPolicy") == "Always":
            given.ask(each, _BESIDE)
    given.say(spec, POD)


def _quoted(text: str) -> str:
    return shlex.quote(text)


def _main(containers: list[Any]) -> int:
    """Return the index of the job's container: the first that requests GPUs or TPUs, or else the first."""
    for index, each in enumerate(containers):
        resources = object_at(object_at(each).get("resources"))
        asked = {**object_at(resources.get("requests")), **object_at(resources.get("limits"))}
        if any("gpu" in name or name == "google.com/tpu" for name in asked):
            return index
    return 0


def _image(given: ManifestFields, base: str, options: ImportOptions, values: Json) -> None:
    path = f"{base}.image"
    if options.image:
        values["image"] = options.image
        if given.has(path):
            given.report.changed(given.name(path), options.image, "--image says it")
        return
    image = given.text(path)
    if image:
        values["image"] = image_of(given, path, image, to="image")
    elif not given.has(path):
        given.report.decide(path, "is missing: say --image")


def _command(given: ManifestFields, base: str, options: ImportOptions, found: PodJob, variables: Environment) -> None:
    report = given.report
    words, arguments = given.texts(f"{base}.command"), given.texts(f"{base}.args")
    entry = options.variables.get("ENTRYPOINT", "")
    if not words and entry:
        words = entry.split()
    elif arguments and not words:
        why = "are for the image's own entry point, which a job's command replaces: --var ENTRYPOINT='<program>'"
        report.decide(given.name(f"{base}.args"), why)
    for each in ("command", "args"):
        given.keep(f"{base}.{each}", "command")
    whole = [*words, *arguments]
    known = variables.env
    names = {*variables.late, "JOB_COMPLETION_INDEX"} - known.keys()
    late = names.intersection(name for word in whole for name in references(word))
    made = [expansion(word, known) if not late else word for word in whole]
    if late:
        made = ["sh", "-c", f"exec {as_shell(whole, late, lambda text: expansion(text, known))}"]
    if made != whole:
        for each in ("command", "args"):
            if given.has(f"{base}.{each}"):
                report.changed(given.name(f"{base}.{each}"), "command", "has the values of $(...)")
    if any(names_a_pod(given, word) for word in whole):
        for each in ("command", "args"):
            if given.has(f"{base}.{each}"):
                report.decide(given.name(f"{base}.{each}"), NAMES_A_POD, new="command", is_open=False)
    found.command = made
    folder = given.text(f"{base}.workingDir")
    if folder:
        # A pod's folder is made where the image has none: prepareRootfs in
        # https://github.com/opencontainers/runc/blob/main/libcontainer/rootfs_linux.go
        found.before += [f"mkdir -p {_quoted(folder)}", f"cd {_quoted(folder)}"]
        report.changed(given.name(f"{base}.workingDir"), "command", "is `cd` before the program")


def _resources(given: ManifestFields, document: Any, base: str, found: PodJob) -> None:
    values, report = found.values, given.report
    asked: dict[str, dict[str, tuple[str, Any]]] = {}
    for part in ("limits", "requests"):
        for name in object_at(at(document, f"{base}.resources.{part}")):
            path = f"{base}.resources.{part}.{name}"
            if path not in given.values:
                continue
            number = quantity(given.values[path])
            if number is None or number < 0 or number > 2**70:
                if not given.is_stopped(path):
                    report.refuse(given.name(path), "must be a quantity such as 500m, 4 or 16Gi")
                continue
            asked.setdefault(name, {})[part] = (path, number)
    for name, each in asked.items():
        if name == "cpu":
            _amount(given, each, values, "cpus", 1, "requests")
        elif name == "memory":
            _amount(given, each, values, "memory_mib", 2**20, "limits")
        elif name == "ephemeral-storage":
            _amount(given, each, values, "disk_gib", 2**30, "limits")
        elif name in ("nvidia.com/gpu", "google.com/tpu") or re.fullmatch(
            r"nvidia\.com/(mig-\d+g\.\d+gb|gpu\.shared)", name
        ):
            path, number = each.get("limits") or each["requests"]
            if number != int(number) or number > 10_000:
                report.refuse(given.name(path), "must be a whole number")
                continue
            for at_, _ in each.values():
                if number:
                    given.keep(at_, "accelerator.count")
                else:
                    report.changed(given.name(at_), None, "is none")
            if len({count for _, count in each.values()}) > 1:
                report.refuse(given.name(each["requests"][0]), "must be as in limits")
            if not number:
                continue
            if found.machines.count:
                report.refuse(given.name(path), "is a second kind of accelerator")
                continue
            found.machines.count, found.machines.count_at = int(number), path
            found.machines.is_tpu = name == "google.com/tpu"
            if "mig-" in name:
                found.machines.partition = name.partition("mig-")[2]
            elif name.endswith("shared"):
                found.machines.sharing = "time-sharing"
        elif name.startswith(
            ("rdma/", "vpc.amazonaws.com/", "networking.gke.io", "hugepages-", "tencent.com/", "k8s.io/")
        ):
            for at_, _ in each.values():
                report.decide(
                    given.name(at_),
                    "is a device of the cluster's nodes; a target's machines have theirs",
                    is_open=False,
                )
        else:
            for at_, _ in each.values():
                report.refuse(
                    given.name(at_),
                    "is a resource that a job file has none of: accelerators are nvidia.com/gpu and google.com/tpu",
                )


def _amount(
    given: ManifestFields, each: Mapping[str, tuple[str, Any]], values: Json, to: str, unit: int, first: str
) -> None:
    """Translate an amount of CPUs, memory or disk. `first` says which of requests and limits counts."""
    path, number = each.get(first) or next(iter(each.values()))
    report = given.report
    whole = max(ceiling(number / unit), 4 if to == "memory_mib" else 1)
    if whole > INT_MAX:
        report.refuse(given.name(path), "is more than any machine has")
        return
    values[to] = whole
    for at_, asked in each.values():
        if asked == whole * unit:
            given.keep(at_, to)
        elif asked == number:
            report.changed(given.name(at_), f"{to}: {whole}", "is rounded up")
        elif to == "cpus":
            report.changed(given.name(at_), None, "a job may use what CPUs its machine has free")
        else:
            report.changed(given.name(at_), f"{to}: {whole}", "a job has one number, the limit")


def _disk(given: ManifestFields, base: str, mounted: Volumes, values: Json) -> None:
    """Add the disks that volumes ask for. A pod's own disk holds its folders (emptyDir)."""
    own = values.get("disk_gib", 0)
    if gib := max(own, mounted.folders_gib) + mounted.gib:
        values["disk_gib"] = gib
    if own not in (0, gib):
        for part in ("limits", "requests"):
            if given.has(path := f"{base}.resources.{part}.ephemeral-storage"):
                given.report.changed(given.name(path), f"disk_gib: {gib}", "has room for the volumes too")


def _grace(given: ManifestFields, spec: str, values: Json) -> None:
    path = f"{spec}.terminationGracePeriodSeconds"
    seconds = given.whole(path)
    if seconds:
        values.setdefault("gke", {})["grace_s"] = seconds
        given.keep(path, "gke.grace_s")


def _user(given: ManifestFields, document: Any, spec: str, base: str, values: Json) -> None:
    """Translate the user's number, which is the container's or else the pod's."""
    for path in (f"{base}.securityContext", f"{spec}.securityContext"):
        user = given.whole(f"{path}.runAsUser")
        if user is None:
            continue
        if user > INT_MAX:
            given.refuse(f"{path}.runAsUser", "must be below 2147483648")
        elif "user" in values.get("gke", {}):
            given.left_out(f"{path}.runAsUser", "the container has its own")
        else:
            values.setdefault("gke", {})["user"] = user
            given.keep(f"{path}.runAsUser", "gke.user")
            for each in ("runAsGroup", "fsGroup"):
                if given.has(f"{path}.{each}"):
                    given.report.changed(given.name(f"{path}.{each}"), str(user), "is the user's number")
            given.left_out(f"{path}.runAsNonRoot", "the namespace's standard says it")


def set_ranks(found: PodJob, names: Mapping[str, str]) -> bool:
    """Set a program's variables if no launcher starts it, or its options name them. Return whether that was needed."""
    text = " ".join(found.command)
    named = re.findall(r"\$[({]?([A-Z_]+)", text)
    if not found.command or (_LAUNCHERS.search(text) and not names.keys() & {*named}):
        return False
    found.before += [f"export {name}={value}" for name, value in names.items()]
    if late := [name for name in references(text) if name in names]:
        found.command = ["sh", "-c", f"exec {as_shell(found.command, late)}"]
    return True


def put_command(found: PodJob) -> bool:
    """Put the command and the lines before it into the job. Return False if there is no command to put them before."""
    if not found.before:
        if found.command:
            found.values["command"] = found.command
        return True
    if not found.command:
        return False
    lines = "\n".join(found.before)
    if (
        found.command[:2] in (["sh", "-c"], ["bash", "-c"], ["/bin/sh", "-c"], ["/bin/bash", "-c"])
        and len(found.command) == 3
    ):
        found.values["command"] = [*found.command[:2], f"{lines}\n{found.command[2]}"]
    else:
        found.values["command"] = ["sh", "-c", f'{lines}\nexec "$0" "$@"', *found.command]
    return True
