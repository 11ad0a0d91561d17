"""Environment variables of a pod's container: values, references to secrets, and facts that a pod gets about itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accel.contract import variables
from accel.contract.variables import RESERVED_PREFIXES
from accel.json_values import entries, object_at

from .kubernetes_values import ManifestFields, as_shell, at, expansion, references

NAMES_A_POD = "names a pod as Kubernetes calls it; here nodes find the main node at $MASTER_ADDR (docs/nodes.md)"


@dataclass
class ConfigMaps:
    """ConfigMaps in the same file: their data by name, and the report's leaf for each name and key."""

    data: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    leaves: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


@dataclass
class Environment:
    """Known variables, secrets, and shell lines for what only a container knows. `chosen`: values that the user
    gave."""

    chosen: Mapping[str, str]
    env: dict[str, str] = field(default_factory=dict[str, str])
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    before: list[str] = field(default_factory=list[str])

    @property
    def late(self) -> set[str]:
        """Names of the variables that only a container knows."""
        return {*self.secrets, *(line.partition("=")[0].removeprefix("export ") for line in self.before)}


def environment(
    given: ManifestFields, document: Any, base: str, maps: ConfigMaps, chosen: Mapping[str, str]
) -> Environment:
    found = Environment(chosen)
    report, env, secrets = given.report, found.env, found.secrets
    for index, each in enumerate(entries(at(document, f"{base}.envFrom"))):
        path = f"{base}.envFrom[{index}]"
        reference = object_at(object_at(each).get("configMapRef")).get("name")
        prefix = given.text(f"{path}.prefix") or ""
        if isinstance(reference, str) and reference in maps.data:
            for key, text in maps.data[reference].items():
                if re.fullmatch(r"[A-Za-z_]\w*", f"{prefix}{key}") and not _lines(text):
                    env[f"{prefix}{key}"] = text
                    report.changed(maps.leaves[reference, key], "env", "is put into the job file")
            for leaf in given.paths(path):
                report.changed(given.name(leaf), "env", "its values are put into the job file")
        else:
            given.ask(path, "names variables by an object alone: write each into env, or its reference into secrets")
    known = dict(env)
    for index in range(len(entries(at(document, f"{base}.env")))):
        path = f"{base}.env[{index}]"
        name = given.text(f"{path}.name")
        if not name or not re.fullmatch(r"[A-Za-z_]\w*", name):
            if given.has(path):
                given.refuse(path, "is no variable that a job may set: it has no proper name")
            continue
        if name.startswith(RESERVED_PREFIXES):
            given.left_out(path, "is set by the platform")
            continue
        value = given.values.get(f"{path}.value")
        if name in _named(document, base, index):
            given.left_out(path, "is set again below, which counts")
            if isinstance(value, str):
                known[name] = expansion(value, known)
            continue
        given.keep(f"{path}.name", "env")
        if given.has(f"{path}.valueFrom"):
            _from(given, path, name, found, maps)
            if name in env:
                known[name] = env[name]
        elif value is None:
            env[name] = known[name] = ""
        elif not isinstance(value, str):
            report.refuse(given.name(f"{path}.value"), "must be text; put it in quotes")
        elif _lines(value) or found.late.intersection(references(value)):
            made = as_shell([value], found.late, lambda text: expansion(text, known))
            found.before.append(f"export {name}={made}")
            why = "has several lines, and" if _lines(value) else "has the values of $(...), and"
            report.changed(given.name(f"{path}.value"), "command", f"{why} the command sets it")
        elif address := _first_pod(given, value):
            found.before.append(f"export {name}={address}")
            report.changed(given.name(f"{path}.value"), "command", "is the main node's address, which the command sets")
        else:
            env[name] = known[name] = expansion(value, known)
            given.keep(f"{path}.value", "env")
            if env[name] != value:
                report.changed(given.name(f"{path}.value"), "env", "has the values of $(...)")
            if names_a_pod(given, value):
                report.decide(given.name(f"{path}.value"), NAMES_A_POD, new="env", is_open=False)
    for name in secrets:
        env.pop(name, None)
    return found


def _named(document: Any, base: str, index: int) -> set[str]:
    """Return the names of the variables that are set after the one at `index`."""
    rest = entries(at(document, f"{base}.env"))[index + 1 :]
    return {str(object_at(each).get("name")) for each in rest}


_MAIN = f'"$(eval "echo \\${{${{{variables.MAIN_ADDRESS_FROM}:-ACCEL_NONE}}:-127.0.0.1}}")"'


_MASTERS = {"PyTorchJob": "pytorchReplicaSpecs", "XGBoostJob": "xgbReplicaSpecs", "PaddleJob": "paddleReplicaSpecs"}
_FIRST: Mapping[str, str] = {
    "Job": r"-0\.[a-z0-9.-]+",
    "JobSet": r"-[a-z0-9-]+-0-0\.[a-z0-9.-]+",
    **dict.fromkeys(_MASTERS, r"-master-0(?:\.[a-z0-9.-]+)?"),
    "JAXJob": r"-worker-0(?:\.[a-z0-9.-]+)?",
}
"""What follows the job's name in its first pod's name, by kind; without a master, that is the first worker.
Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode,
https://jobset.sigs.k8s.io/docs/concepts/"""


def _first_pod(given: ManifestFields, value: str) -> str:
    """Return the address of the job's first pod as a shell expression if a value holds it, otherwise an empty text."""
    name, kind = str(given.values.get("metadata.name", "")), str(given.values.get("kind"))
    rest = _FIRST.get(kind)
    if rest and kind in _MASTERS and not given.has(f"spec.{_MASTERS[kind]}.Master"):
        rest = rest.replace("master", "worker")
    found = re.fullmatch(rf"{re.escape(name)}{rest}(:\d{{1,5}})?", value) if name and rest else None
    return f"{_MAIN}{found[1] or ''}" if found else ""


def names_a_pod(given: ManifestFields, text: str) -> bool:
    """Return whether a text has the name of a pod of the job, by which other pods find it."""
    name = re.escape(str(given.values.get("metadata.name", "imported")))
    role = r"|-(?:chief|master|worker)-\d+\b" if "kubeflow" in str(given.values.get("apiVersion")) else ""
    return re.search(rf"(?<![\w.-])(?<![^/]/){name}(?:(?:-[a-z0-9-]+)?-\d+\.[a-z]{role})", text) is not None


def _lines(text: str) -> bool:
    return re.search(r"[\n\r\0]", text) is not None


_FIELDS = {
    "metadata.annotations['batch.kubernetes.io/job-completion-index']": '"${JOB_COMPLETION_INDEX:-0}"',
    "metadata.labels['batch.kubernetes.io/job-completion-index']": '"${JOB_COMPLETION_INDEX:-0}"',
    "metadata.labels['apps.kubernetes.io/pod-index']": '"${JOB_COMPLETION_INDEX:-0}"',
    "metadata.name": '"$(hostname)"',
    "status.podIP": "\"$(hostname -i | cut -d' ' -f1)\"",
    "status.podIPs": "\"$(hostname -i | cut -d' ' -f1)\"",
    "metadata.labels['job-name']": '"$ACCEL_JOB_NAME"',
    "metadata.labels['batch.kubernetes.io/job-name']": '"$ACCEL_JOB_NAME"',
    "metadata.annotations['jobset.sigs.k8s.io/jobset-name']": '"$ACCEL_JOB_NAME"',
    "metadata.labels['jobset.sigs.k8s.io/jobset-name']": '"$ACCEL_JOB_NAME"',
}
"""Fields that tell pods about themselves, and the shell expressions that give them in a container."""


def _from(given: ManifestFields, path: str, name: str, found: Environment, maps: ConfigMaps) -> None:
    report, source, env, secrets = given.report, f"{path}.valueFrom", found.env, found.secrets
    if given.has(f"{source}.secretKeyRef"):
        of, key = given.text(f"{source}.secretKeyRef.name"), given.text(f"{source}.secretKeyRef.key")
        if not of or not key:
            given.refuse(f"{source}.secretKeyRef", "names no Secret and no key of it")
            return
        secrets[name] = f"{of}/{key}"
        for each in ("name", "key"):
            given.keep(f"{source}.secretKeyRef.{each}", f"secrets.{name}")
        given.left_out(f"{source}.secretKeyRef.optional", "a secret that is not there stops the job")
    elif given.has(f"{source}.configMapKeyRef"):
        of, key = given.text(f"{source}.configMapKeyRef.name"), given.text(f"{source}.configMapKeyRef.key")
        value = maps.data.get(of or "", {}).get(key or "")
        if value is None or _lines(value):
            why = f"is a value of a ConfigMap: write it into env, as {name}"
            _take_chosen(given, f"{source}.configMapKeyRef", name, found, why)
            return
        env[name] = value
        report.changed(maps.leaves[of or "", key or ""], "env", "is put into the job file")
        for each in given.paths(f"{source}.configMapKeyRef"):
            report.changed(given.name(each), "env", "the value itself is put into the job file")
    elif given.has(f"{source}.fieldRef"):
        wanted = (given.text(f"{source}.fieldRef.fieldPath") or "").replace('"', "'")
        value = _FIELDS.get(wanted)
        given.left_out(f"{source}.fieldRef.apiVersion", "is of Kubernetes alone")
        if value is None:
            _take_chosen(given, f"{source}.fieldRef", name, found, f"is not known to a job: write a value for {name}")
            return
        found.before.append(f"export {name}={value}")
        report.changed(given.name(f"{source}.fieldRef.fieldPath"), f"export {name}={value}", "the command sets it")
    else:
        _take_chosen(given, source, name, found, f"is not known to a job: write a value for {name}")


def _take_chosen(given: ManifestFields, source: str, name: str, found: Environment, why: str) -> None:
    if name not in found.chosen:
        given.ask(source, f"{why}, or give it with --var {name}=<value>")
        return
    found.env[name] = found.chosen[name]
    for path in given.paths(source):
        given.report.changed(given.name(path), "env", "--var says it")
