"""Resources that a Slurm job asks for: nodes, processes, GPUs, CPUs, memory, time, and the tasks of an array."""

import re
from collections.abc import Mapping
from math import ceil

from accel.rules.gcp.gpus import accelerator_name, find_accelerator
from accel.whole_numbers import INT_MAX

from . import slurm_values as read
from .reading import Json
from .report import Report
from .slurm_options import SlurmOption
from .slurm_variables import Shape

Options = Mapping[str, tuple[str, SlurmOption]]
"""Options by long name: the leaf in the report, and the option."""
HANDLED = ("nodes", "ntasks", "ntasks-per-node", "gpus", "gpus-per-node", "gres", "gpus-per-task", "cpus-per-task",
           "cpus-per-gpu", "mincpus", "mem", "mem-per-cpu", "mem-per-gpu", "tmp", "time", "array")  # fmt: skip
GPU_OPTIONS = ("gpus-per-node", "gres", "gpus", "gpus-per-task")
GPUS_MAX = 16
"""Maximum number of GPUs in one machine: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html, and Google's
a2-megagpu-16g."""


def resources(options: Options, report: Report, values: Json) -> Shape:
    nodes, tasks = _processes(options, report, values)
    gpus, bound = _gpus(options, report, values, nodes, tasks)
    cpus, cpus_per_task = _cpus(options, report, values, tasks, gpus)
    mem, per_cpu = _memory(options, report, values, cpus or (0 if _has_whole_nodes(options) else tasks), gpus)
    if found := _value(options, "tmp"):
        size = read.mib(found[1])
        if size:
            values["disk_gib"] = ceil(size / 1024)
            report.keep(found[0], "disk_gib")
        elif size == 0:
            report.changed(found[0], None, "is no disk")
        else:
            report.refuse(found[0], "must be a size such as 100G")
    if found := _value(options, "time"):
        _time(found, report, values)
    indices = None
    if found := _value(options, "array"):
        indices = _array(found, report, values, nodes)
    return Shape(nodes, tasks, indices, cpus_per_task, cpus, gpus, mem, per_cpu, bound)


def _value(options: Options, name: str) -> tuple[str, str] | None:
    leaf, option = options.get(name, ("", None))
    return (leaf, option.value) if option else None


def _whole(options: Options, report: Report, name: str) -> int | None:
    """Return an option's number, from 1, or None if it is not given. Refuse any other value."""
    found = _value(options, name)
    if found is None:
        return None
    leaf, value = found
    if re.fullmatch(r"\d{1,9}", value) and 0 < int(value) <= INT_MAX:
        return int(value)
    report.refuse(leaf, "must be an integer from 1")
    return None


def _processes(options: Options, report: Report, values: Json) -> tuple[int, int]:
    """Return the number of nodes, and the number of processes on each."""
    nodes: int | None = None
    if found := _value(options, "nodes"):
        leaf, text = found
        several = read.nodes(text)
        if several is None:
            report.refuse(leaf, "must be a number of nodes, such as 2")
        else:
            nodes = several[0]
            if several[0] == several[1]:
                report.keep(leaf, "nodes")
            else:
                report.decide(leaf, "is a range, and a job file has one number", new=f"nodes: {nodes}", is_open=False)
    total, each = _whole(options, report, "ntasks"), _whole(options, report, "ntasks-per-node")
    if "nodes" not in options:
        nodes = _named_nodes(options, report, total)
    if each is not None:
        if total is not None and nodes is None:
            nodes = ceil(total / each)
        if total is not None and ceil(total / (nodes or 1)) < each:
            each = ceil(total / (nodes or 1))
            why = "is the most that a node may have, and --ntasks says fewer"
            report.changed(options["ntasks-per-node"][0], f"{each} on each node", why)
        else:
            report.keep(options["ntasks-per-node"][0], "the processes of each srun")
    elif total is not None and nodes is not None:
        each = ceil(total / nodes)
    elif total is not None:
        each = total
    each = each or 1
    nodes = nodes or 1
    if total is not None:
        leaf = options["ntasks"][0]
        if total == each * nodes and (nodes > 1 or total == 1 or "nodes" in options):
            report.keep(leaf, "the processes of each srun")
        elif total == each * nodes:
            why = "are on one machine, where Slurm may take several: write --nodes for that"
            report.decide(leaf, why, new="one machine", is_open=False)
        else:
            why = f"is no multiple of {nodes} nodes: each runs {each}"
            report.decide(leaf, why, new=str(each * nodes), is_open=False)
    if nodes > 1:
        values["nodes"] = nodes
    return nodes, each


def _named_nodes(options: Options, report: Report, total: int | None) -> int | None:
    """Return the number of nodes by the names of nodes, as sbatch does without --nodes, but no more than processes:
    https://github.com/SchedMD/slurm/blob/master/src/sbatch/opt.c"""
    found = _value(options, "nodelist") or _value(options, "nodefile")
    if found is None:
        return None
    leaf, text = found
    count = read.hosts(text) if "nodelist" in options else None
    if count is None:
        report.decide(leaf, "is no list of names: write --nodes", new="one node", is_open=False)
        return None
    nodes = min(count, total or count)
    if count > 1:
        report.decide(leaf, "sets the number of nodes, without --nodes", new=f"nodes: {nodes}", is_open=False)
    return nodes


def gpus_of(option: SlurmOption) -> read.Gpus | None:
    """Return the GPUs that an option asks for, or None if its value is not a request for one kind of GPU."""
    return read.gres(option.value) if option.name == "gres" else read.gpus(option.value)


def _gpus(options: Options, report: Report, values: Json, nodes: int, tasks: int) -> tuple[int, int]:
    """Return the number of GPUs of each node, and that of each process if it sees only its own, otherwise 0."""
    counts: dict[str, int] = {}
    kind, kind_leaf, bound = "", "", 0
    for name in GPU_OPTIONS:
        if name not in options:
            continue
        leaf, option = options[name]
        asked = gpus_of(option)
        if asked is None:
            report.refuse(leaf, "must be one kind of GPU and a number, such as a100:4; a job's nodes are alike")
            continue
        count = asked.count * tasks if name == "gpus-per-task" else asked.count
        if name == "gpus":
            if count % nodes:
                report.decide(leaf, f"cannot be shared out to {nodes} nodes alike: write --gpus-per-node")
                continue
            count //= nodes
            if count > GPUS_MAX:
                report.decide(leaf, f"no machine has {count} GPUs: write --nodes, and --gpus-per-node")
                continue
        bound = asked.count if name == "gpus-per-task" else bound
        if asked.rest:
            why = f"{', '.join(asked.rest)[:80]} is a resource of the cluster's own: see disk_gib and mounts"
            report.decide(leaf, why, new="GPUs alone" if count else None, is_open=False)
            if not count:
                continue
        if not count:
            report.changed(leaf, None, "is no GPU")
            continue
        if counts and count not in counts.values():
            other, number = next(iter(counts.items()))
            report.decide(leaf, f"--{other} comes to {number} on a node", new=str(number), is_open=False)
            continue
        counts[name] = count
        report.keep(leaf, "accelerator")
        if asked.kind:
            kind, kind_leaf = asked.kind, leaf
    if not counts:
        return 0, 0
    count = next(iter(counts.values()))
    accelerator: Json = {"count": count}
    partition = re.search(r"(?:^|[_-])(\dg)[.-](\d+gb)$", kind)
    if partition:
        name = f"{partition[1]}.{partition[2]}"
        values["gke"] = {"gpu_partition": name}
        why = "is a partition of a GPU, which a target's pool has to have"
        report.decide(kind_leaf, why, new=f"gke.gpu_partition: {name}", is_open=False)
        kind = kind[: partition.start()]
    if kind and (name := gpu_type(kind, kind_leaf, report)):
        accelerator["type"] = name
    elif not kind and (found := _value(options, "constraint")):
        _constraint(found, report, accelerator)
    values["accelerator"] = {key: accelerator[key] for key in ("type", "count") if key in accelerator}
    return count, bound if bound and tasks > 1 else 0


_NICKNAMES = {"tesla": "", "volta": "v100", "ampere": "a100", "hopper": "h100", "turing": "", "pascal": "p100",
              "v100l": "v100-32gb", "any": "", "gpu": "", "nvidia": ""}  # fmt: skip
"""Clusters' own names of GPUs; v100l is from https://docs.alliancecan.ca/wiki/Using_GPUs_with_Slurm."""


def catalog_gpu(written: str) -> str:
    """Return the catalogue's name for a GPU that a cluster may call otherwise; empty if there is none."""
    plain = re.sub(r"[\s_.]+", "-", written.lower())
    tries = [plain, re.sub(r"-(sxm\d?|pcie|nvlink|hbm\d\w?|nvl)(?=-|$)", "", plain)]
    tries += [each.removeprefix("nvidia-").removeprefix("tesla-") for each in list(tries)]
    tries += [re.sub(r"-?\d+g(b)?$", "", each) for each in list(tries)]
    tries += [_NICKNAMES.get(plain, "")]
    return next((each for each in tries if each and find_accelerator(each)), "")


def gpu_type(written: str, leaf: str, report: Report) -> str:
    """Report how the catalogue's name for a GPU relates to the written one, and return it; empty if there is none."""
    found = catalog_gpu(written)
    if found:
        if found != written:
            report.changed(leaf, f"accelerator.type: {found}", "has this name in the catalogue")
        return found
    if written.lower() in _NICKNAMES:
        report.decide(leaf, f"{written} is no one kind: write accelerator.type", new="a GPU of any", is_open=False)
        return ""
    said = next((finding.text for finding in accelerator_name(written, "GPU", cloud="aws")), "is no known GPU")
    report.decide(leaf, f"{said}; without a type any GPU of the target will do", new="a GPU of any", is_open=False)
    return ""


def _constraint(found: tuple[str, str], report: Report, accelerator: Json) -> None:
    leaf, text = found
    named = {known for word in re.split(r"[&|,\[\]()*\s]+", text) if word and (known := catalog_gpu(word))}
    if len(named) == 1:
        accelerator["type"] = named.pop()
        report.changed(leaf, f"accelerator.type: {accelerator['type']}", "names a GPU")


def _has_whole_nodes(options: Options) -> bool:
    """Return whether the job has all CPUs of its nodes; with --exclusive=user, for example, it has not."""
    found = _value(options, "exclusive")
    return found is not None and not found[1]


def _cpus(options: Options, report: Report, values: Json, tasks: int, gpus: int) -> tuple[int | None, int | None]:
    """Return the CPUs of a node, and of each process as Slurm's variables give them; None if the script gives none."""
    each, per_gpu = _whole(options, report, "cpus-per-task"), _whole(options, report, "cpus-per-gpu")
    least = _whole(options, report, "mincpus")
    cpus: int | None = None
    if each is not None:
        cpus = each * tasks
        leaf = options["cpus-per-task"][0]
        if tasks == 1:
            report.keep(leaf, "cpus")
        else:
            report.changed(leaf, f"cpus: {cpus}", f"a job file has those of a node, with {tasks} processes")
    elif tasks > 1 and not _has_whole_nodes(options):
        cpus = tasks
    if per_gpu is not None:
        leaf = options["cpus-per-gpu"][0]
        if not gpus:
            report.changed(leaf, None, "the job has no GPU")
        elif cpus is None or each is None:
            cpus = per_gpu * gpus
            report.changed(leaf, f"cpus: {cpus}", f"a job file has those of a node, with {gpus} GPUs")
        else:
            report.decide(leaf, "--cpus-per-task is given too, and counts", is_open=False)
    if least is not None:
        cpus = max(cpus or 0, least)
        report.keep(options["mincpus"][0], "cpus")
    if cpus:
        values["cpus"] = cpus
    return cpus, each


_ALL_CPUS = "counts all CPUs of a node with --exclusive"
"""Source: --mem-per-cpu and --exclusive of https://slurm.schedmd.com/sbatch.html"""


def _memory(options: Options, report: Report, values: Json, cpus: int, gpus: int) -> tuple[int | None, int | None]:
    """Return the memory of a node and of each CPU in MiB, None for one that the script does not give. `cpus`: those of
    a node that the job file has, 0 for all of a machine."""
    sizes: dict[str, int] = {}
    per_cpu: int | None = None
    for name, times, what in (("mem", 1, ""), ("mem-per-cpu", cpus, "CPUs"), ("mem-per-gpu", gpus, "GPUs")):
        found = _value(options, name)
        if found is None:
            continue
        leaf, text = found
        size = read.mib(text)
        if size is None or (size * times) > INT_MAX:
            report.refuse(leaf, "must be a size such as 16G")
        elif not size:
            report.changed(leaf, None, "is all of a node's memory: without memory_mib a job has its machine's")
        elif sizes:
            report.decide(leaf, f"--{next(iter(sizes))} is given too, and counts", is_open=False)
        elif not times and name == "mem-per-gpu":
            report.changed(leaf, None, "the job has no GPU")
        elif not times:
            per_cpu = size
            why = f"{_ALL_CPUS}: without memory_mib a job has its machine's; write what it needs"
            report.decide(leaf, why, is_open=False)
        else:
            sizes[name] = max(size * times, 4)
            per_cpu = size if name == "mem-per-cpu" else per_cpu
            if name == "mem-per-cpu" and _has_whole_nodes(options):
                why = f"{_ALL_CPUS}, and this is that of {times}: write more if it needs it"
                report.decide(leaf, why, new=f"memory_mib: {sizes[name]}", is_open=False)
            elif times == 1 and size >= 4:
                report.keep(leaf, "memory_mib")
            else:
                why = f"a job file has that of a node, with {times} {what}" if what else "is the least"
                report.changed(leaf, f"memory_mib: {sizes[name]}", why)
    if not sizes:
        return None, per_cpu
    (name, size), *_ = sizes.items()
    values["memory_mib"] = size
    return (size if name == "mem" else None), per_cpu


def _time(found: tuple[str, str], report: Report, values: Json) -> None:
    leaf, text = found
    seconds = read.seconds(text)
    if seconds is None or seconds > INT_MAX:
        report.refuse(leaf, "must be a time such as 90, 1:30:00 or 2-12:00:00")
    elif not seconds:
        report.changed(leaf, None, "is without end: without timeout_s a job has none")
    else:
        values["timeout_s"] = seconds
        report.keep(leaf, "timeout_s")


def _array(found: tuple[str, str], report: Report, values: Json, nodes: int) -> read.Indices | None:
    leaf, text = found
    indices = read.indices(text)
    if indices is None:
        report.refuse(
            leaf, f"must be indices such as 0-9, 1-20:5 or 1,3,7, and a limit such as %4; at most {read.TASKS_MAX}"
        )
        return None
    count = len(indices.values)
    if nodes > 1 and count > 1:
        why = (
            f"is of jobs with {nodes} nodes: a job file has several nodes or several tasks; take it out, and import "
            f"it for each index, with --var SLURM_ARRAY_TASK_ID={indices.values[0]}"
        )
        report.refuse(leaf, why)
        return indices
    if count > 1:
        values["tasks"] = count
        if indices.at_once and indices.at_once < count:
            values["parallelism"] = indices.at_once
    if indices.values == tuple(range(count)) and count > 1:
        report.keep(leaf, "tasks")
    else:
        first, last = indices.values[0], indices.values[-1]
        why = f"tasks are numbered from 0; the command makes SLURM_ARRAY_TASK_ID of it, {first} to {last}"
        report.changed(leaf, f"tasks: {count}", why)
    return indices
