"""Importer of a Slurm batch script. A script runs on the first node, and srun starts programs on all nodes; a job
file's command runs on each node. Therefore srun is removed from the steps, and the whole script runs on every node."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accel.contract.variables import RESERVED_PREFIXES
from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME

from ..model.job import NAME_MAX
from .fields import RequestFields, job_name
from .heredoc_documents import listing_in
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, ReadDocument
from .redact import hide
from .slurm_command import settle
from .slurm_options import KNOWN, SlurmOption, body_of, directives, options_of
from .slurm_resources import GPU_OPTIONS, HANDLED, gpus_of, resources
from .slurm_script import name_of, statements
from .slurm_steps import COMMANDS, Script, assignments
from .slurm_submission import ELSEWHERE, Submission, interpreter_first, report_command, submission

OF_TARGET = "has no place in a job file: a target has its own"
WRITTEN_BY_ACCEL = "the output is in the platform's log: `accel-jobs logs`"
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("output", "error", "open-mode"), WRITTEN_BY_ACCEL),
    **dict.fromkeys(("mail-type", "mail-user", "bell"), "notifications are the stack's: monitoring"),
    **dict.fromkeys(("account", "wckey", "uid", "gid", "mcs-label", "clusters"), OF_TARGET),
    **dict.fromkeys(("priority", "nice"), "has no place in a job file: queues have priorities"),
    **dict.fromkeys(("quiet", "verbose", "parsable", "wait", "test-only", "comment", "ignore-pbs", "extra"),
                    "is for sbatch itself"),
    **dict.fromkeys(("hint", "distribution", "cpu-bind", "mem-bind", "gpu-bind", "gres-flags", "threads-per-core",
                     "ntasks-per-core", "ntasks-per-socket", "cores-per-socket", "sockets-per-node", "core-spec",
                     "thread-spec", "extra-node-info", "overcommit", "accel-bind", "tres-bind"),
                    "says where on a node processes run; a container has its CPUs and GPUs to itself"),
    **dict.fromkeys(("cpu-freq", "gpu-freq", "power", "acctg-freq", "profile", "propagate", "contiguous", "switches",
                     "spread-job", "use-min-nodes", "wait-all-nodes", "delay-boot", "reboot", "network", "segment",
                     "get-user-env", "kill-on-invalid-dep", "no-kill", "oversubscribe", "immediate", "x11", "stepmgr",
                     "consolidate-segments", "spread-segments", "resv-ports", "slurmd-debug", "compress", "msg-timeout",
                     "tree-width", "threads", "max-launch-time", "max-exit-timeout", "disable-stdout-job-summary"),
                    "is for Slurm's own scheduling, and has no place in a job file"),
    **dict.fromkeys(("container-writable", "container-readonly", "container-mount-home", "no-container-mount-home",
                     "container-remap-root", "no-container-remap-root", "container-name", "container-save",
                     "no-container-entrypoint"),
                    "is for a container of pyxis; a job's container is made of its image alone"),
}  # fmt: skip
SETTLED: Mapping[str, str] = {
    "qos": "has no place in a job file: a target has its own limits and priorities",
    "constraint": "names a feature of the cluster's nodes; a target has its own machines",
    "cluster-constraint": "names a feature of a cluster; choose a target with --to",
    "prefer": "names a feature of the cluster's nodes; a target has its own machines",
    **dict.fromkeys(("nodelist", "exclude", "nodefile", "reservation"), "names nodes of the cluster; a target has "
                    "its own"),
    "licenses": "is counted by Slurm; here nobody counts it",
    "dependency": "names jobs of Slurm; `accel-jobs wait REF` before the submit, or aws_batch.depends_on",
    "begin": "is a time to begin at: submit it then (docs/schedules.md)",
    "deadline": "is a time to end by; see deadline and spot: prefer (docs/deadline.md)",
    "hold": "holds the job; here it is submitted when it is to run",
    "exclusive": "asks for whole nodes; a job has what cpus, memory_mib and accelerator say",
    "signal": "asks for a signal before the end; every platform sends SIGTERM (docs/runtime.md), gke.grace_s says how "
    "long before",
    "time-min": "is the least time; timeout_s is the most",
    "gpus-per-socket": "counts GPUs by sockets; write --gpus-per-node",
    "ntasks-per-gpu": "starts a process for each GPU; write ntasks-per-node",
    "tres-per-task": "is read in no other form; write --gpus-per-task",
    **dict.fromkeys(("bb", "bbf"), "is of a burst buffer; --mount says what is at a path"),
    "container-workdir": "is where the program begins: write `cd` before it",
    "container-entrypoint": "runs the image's entry point, which a command replaces: write it before the program",
    "container-env": "keeps the container's own variables",
    "container": "is an OCI bundle of the cluster; push it as an image, and say --image",
    "container-id": "is a container of the cluster; say --image",
    "module": "loads modules of shifter: the image has to have what they bring",
    "volume": "mounts folders of the cluster: --mount PATH=SOURCE says what is there",
    "input": "is a file of the cluster that the script reads",
    "chdir": "is a folder of the cluster: code goes with `submit --code`, data is a mount",
    "export-file": "is a file of variables: write them into env",
}  # fmt: skip
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("het-group", "pack-group"), "is of a heterogeneous job; a job file has nodes that are alike: make "
                    "a job of each"),
    "multi-prog": "starts a program of its own on each task; make a job of each, or a sweep (docs/sweeps.md)",
    "pty": "is of an interactive step: `accel-jobs exec` enters a job that runs",
    "wrap": "stands in a script, where Slurm refuses it",
}  # fmt: skip
PART = "hetjob"
_PART = re.compile(r"#SBATCH\s+(?:het|pack)job\b")
_PROMPT = re.compile(r"^(\s*)\$\s+(?=(?:srun|sbatch)\s)", re.MULTILINE)
OPTIONS_MAX = 2000
READ = ("image", "container-image", "container-mounts", "job-name", "partition", "export", "requeue", "no-requeue")
"""Options that are read in addition to resources."""
STEP_ALONE = ("pty", "label", "unbuffered", "mpi", "kill-on-bad-exit", "wait")
"""Options of srun that do not concern the job."""


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\0", " ")
    if (listing := listing_in(text)) is not None:
        text = interpreter_first(listing)
    submitted = submission(name, text, options.variables)
    text = submitted.script if submitted else text
    found = list(directives(text))
    if len(found) > OPTIONS_MAX:
        raise BadInput(f"{name}: has more than {OPTIONS_MAX} options")
    found, script = _parts(name, text, found, submitted)
    parts = [number for number, line in enumerate(text.split("\n"), 1) if _PART.match(line)]
    found = [each for each in found if each.line not in parts or each.written not in ("hetjob", "packjob")]
    beside = {PART: "several parts"} if parts else {}
    beside |= {"after the command": submitted.command.rest} if submitted else {}
    fields = _Fields(name, found, script, beside)
    given, report = fields.given, fields.given.report
    secrets = [value for name, value in script.known.values.items() if SECRET_NAME.search(name)]
    if submitted:
        secrets += submitted.command.secrets
        arguments = {str(number): value for number, value in enumerate(submitted.arguments, 1)}
        options = replace(options, variables={**arguments, **options.variables})
        report_command(submitted, report, {leaf: each.value for leaf, each in fields.leaves.items()}, COMMANDS)
    if parts:
        report.places[PART] = f"{name}:{parts[0]}"
        report.refuse(PART, "is a heterogeneous job; a job file has nodes that are alike: make a job of each")
    values: Json = {}
    _name(fields, name, values)
    _gpus_of_steps(fields, script)
    shape = resources(fields.options, report, values)
    _partition(fields, options.variables)
    _environment(fields, values)
    _requeue(fields, values)
    _others(fields, values)
    settle(script, given, options, values, shape, fields.options)
    report.close(tuple(f"--{each}" for each in KNOWN))
    hide(report, [*fields.secrets, *secrets])
    return ImportResult(report, {}, values)


class _Fields:
    """Leaves of a script: an entry for each option, and for each part of its body that is more than its text."""

    def __init__(self, name: str, found: list[SlurmOption], script: Script, beside: Mapping[str, Any]) -> None:
        """Take the options and the body of a script. `beside`: leaves of the command that submits it."""
        leaves: dict[str, Any] = {leaf: value for leaf, value in beside.items() if value}
        places: dict[str, str] = {}
        self.options: dict[str, tuple[str, SlurmOption]] = {}
        """Option that counts for each long name: its leaf and the option itself."""
        self.leaves: dict[str, SlurmOption] = {}
        self.secrets: list[str] = []
        said: list[tuple[str, str, str]] = []
        for each in found:
            leaf = _unused(each, leaves)
            leaves[leaf] = each.value or True
            self.leaves[leaf] = each
            places[leaf] = f"{name}:{each.line}"
            if each.ignored:
                said.append(("changed", leaf, "stands below a command, where Slurm does not read it either"))
            elif each.fault:
                said.append(("refused", leaf, each.fault))
            else:
                if each.name in self.options:
                    said.append(("changed", self.options[each.name][0], f"line {each.line} sets it again, and counts"))
                self.options[each.name] = (leaf, each)
            if each.note:
                said.append(("note", leaf, each.note))
        for leaf, value, line in script.leaves():
            leaves[leaf] = value
            places[leaf] = f"{name}:{line}"
        self.given = RequestFields(ReadDocument(leaves, places))
        report = self.given.report
        for kind, leaf, why in said:
            if kind == "refused":
                report.refuse(leaf, why)
            elif kind == "changed":
                report.changed(leaf, None, why)
            else:
                report.note(leaf, why)

    def value(self, name: str) -> tuple[str, str]:
        """Return an option's leaf and value, both empty if it is not given."""
        leaf, option = self.options.get(name, ("", None))
        return (leaf, option.value) if option else ("", "")


def _unused(option: SlurmOption, leaves: Mapping[str, Any]) -> str:
    written = option.written if option.written.isprintable() and option.written else repr(option.written)
    leaf = written if written not in leaves else f"{written} (line {option.line})"
    number = 2
    while leaf in leaves:
        leaf, number = f"{written} (line {option.line}, {number})", number + 1
    return leaf


def _parts(
    name: str, text: str, found: list[SlurmOption], submitted: Submission | None
) -> tuple[list[SlurmOption], Script]:
    """Raise BadInput for text without directives that is no `srun`, `sbatch --wrap`, or submitted script."""
    body = body_of(text)
    body = body if found or submitted else _PROMPT.sub(r"\1", body)
    known = assignments(body)
    if submitted:
        return [*found, *submitted.options], Script(body, known)
    if found or "#SBATCH" in text:
        return found, Script(body, known)
    first = next((each for each in statements(body) if name_of(each.texts) in ("srun", "sbatch")), None)
    if first is None:
        raise BadInput(f"{name}: is no Slurm script: it has no line #SBATCH and no command srun or sbatch")
    is_step = name_of(first.texts) == "srun"
    words = [known.value(word.text) for word in first.words[1:]]
    options, _ = options_of(words, first.line, srun=is_step)
    if is_step:
        return [each for each in options if each.name not in STEP_ALONE], Script(body, known, own_options=True)
    wrapped = next((each.value for each in options if each.name == "wrap"), None)
    if wrapped is None:
        raise BadInput(f"{name}: {ELSEWHERE}")
    return [each for each in options if each.name != "wrap"], Script(wrapped, known)


def _name(fields: _Fields, file: str, values: Json) -> None:
    leaf, given = fields.value("job-name")
    if given:
        values["name"] = job_name(fields.given, leaf)
    else:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", file.rpartition("/")[2].partition(".")[0]).strip("-_")
        values["name"] = stem[:NAME_MAX] or "imported"
        fields.given.report.changed(leaf or "--job-name", values["name"], "is missing; Slurm takes the script's name")


def _gpus_of_steps(fields: _Fields, script: Script) -> None:
    """Take the GPUs of a step for the job's, if the job has whole nodes and names none."""
    if any(name in fields.options for name in GPU_OPTIONS):
        return
    found = [
        (leaf, option)
        for step in script.steps
        for leaf, option in step.options
        if option.name in GPU_OPTIONS and (asked := gpus_of(option)) and asked.count
    ]
    if not found:
        return
    leaf, option = found[0]
    fields.options[option.name] = (leaf, option)
    fields.given.report.note(leaf, "is the step's, and the job names none")
    if len(found) > 1:
        why = "is one step's, of several that ask for GPUs: write --gpus-per-node, where they run at once"
        fields.given.report.decide(leaf, why, new="accelerator", is_open=False)


def _others(fields: _Fields, values: Json) -> None:
    """Report the options whose treatment does not depend on their value."""
    report = fields.given.report
    for name, (leaf, _) in fields.options.items():
        if name in LEFT_OUT:
            report.changed(leaf, None, LEFT_OUT[name])
        elif name in SETTLED:
            if name != "constraint" or "type" not in values.get("accelerator", {}) or not report.is_settled(leaf):
                report.decide(leaf, SETTLED[name], is_open=False)
        elif name in REFUSED:
            report.refuse(leaf, REFUSED[name])
        elif name not in (*HANDLED, *READ):
            report.decide(leaf, "is of srun, or of Slurm's own scheduling", is_open=False)


def _partition(fields: _Fields, variables: Mapping[str, str]) -> None:
    leaf, value = fields.value("partition")
    if not leaf:
        return
    target = variables.get(value) or variables.get("partition")
    if target:
        fields.given.report.changed(leaf, f"--to {target}", "is a target, which the command names")
    else:
        why = "has no place in a job file: choose a target with --to"
        fields.given.report.decide(leaf, why, is_open=False)


def _environment(fields: _Fields, values: Json) -> None:
    leaf, value = fields.value("export")
    if not leaf:
        return
    report, env = fields.given.report, dict[str, str]()
    others = False
    for part in re.split(r",(?=[A-Za-z_])", value):
        name, equals, text = part.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name) and not name.startswith(RESERVED_PREFIXES):
            env[name] = text
            fields.secrets.append(text)
        elif equals:
            report.refuse(leaf, "has a variable with no name that a job may set")
        elif part in ("ALL", "NONE", "NIL"):
            others = True
        else:
            why = "has variables that are taken from the environment of who submits: write NAME=value for each"
            report.decide(leaf, why, new="env" if env else None, is_open=False)
    if env:
        values["env"] = env
        report.keep(leaf, "env")
    if others or not env:
        why = "a job gets nothing of the environment of who submits"
        report.changed(leaf, "env" if env else None, why)


def _requeue(fields: _Fields, values: Json) -> None:
    report = fields.given.report
    leaf, _ = fields.value("requeue")
    again, _ = fields.value("no-requeue")
    if leaf:
        report.changed(leaf, None, "what the cloud takes away is tried again by itself; lost_retries says how often")
    if again:
        values["lost_retries"] = 0
        report.keep(again, "lost_retries")
