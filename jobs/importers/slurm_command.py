"""Translation of a batch script into the command, the image and the mounts of a job."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from accel.rules.jobs import placeholders
from accel.whole_numbers import INT_MAX

from . import slurm_variables as variables
from .fields import RequestFields
from .images import image_of
from .options import ImportOptions
from .reading import Json
from .report import Report
from .slurm_first_node import ADDRESS, SEED, FirstNode, of_first_node
from .slurm_options import SlurmOption
from .slurm_resources import GPU_OPTIONS, Options, gpus_of
from .slurm_script import Edit, apply_edits, folders_in, name_of, outside_quotes, places, reads_input
from .slurm_steps import COMMANDS, Script, Step, outside_comments
from .slurm_values import hosts
from .slurm_variables import Shape

STEP_LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("label", "unbuffered", "output", "error", "open-mode", "quiet", "verbose", "job-name", "comment",
                     "slurmd-debug"), "the output is in the platform's log: `accel-jobs logs`"),
    **dict.fromkeys(("cpu-bind", "mem-bind", "gpu-bind", "hint", "distribution", "accel-bind", "exact", "overlap",
                     "exclusive", "threads-per-core", "ntasks-per-core", "ntasks-per-socket", "cores-per-socket",
                     "sockets-per-node", "extra-node-info", "overcommit", "oversubscribe", "tres-bind", "threads",
                     "mem", "mem-per-cpu", "mem-per-gpu", "whole", "gres-flags", "core-spec"),
                    "says where on a node the step runs; here it has all that the job has"),
    **dict.fromkeys(("wait", "kill-on-bad-exit", "no-kill", "immediate", "disable-status", "propagate", "resv-ports",
                     "time", "account", "partition", "qos", "constraint", "jobid", "preserve-env", "network",
                     "cpu-freq", "compress", "bcast", "tree-width", "max-launch-time", "max-exit-timeout",
                     "msg-timeout", "profile", "acctg-freq", "reservation", "mail-type", "mail-user", "export-file",
                     "no-allocate", "send-libs", "quit-on-interrupt", "external", "contiguous", "switches",
                     "spread-job", "use-min-nodes"), "is for Slurm's own step, and a job has none"),
    **dict.fromkeys(("container-name", "container-save", "container-mount-home", "no-container-mount-home",
                     "container-remap-root", "no-container-remap-root", "container-writable", "container-readonly",
                     "no-container-entrypoint"), "a job's container is made of its image alone"),
}  # fmt: skip
STEP_SETTLED: Mapping[str, str] = {
    "mpi": "is MPI's start by Slurm, which accel has none of: programs find each other by MASTER_ADDR (docs/nodes.md)",
    "export": "sets variables of the step: write env",
    "input": "is a file of the cluster that the step reads",
    "container-entrypoint": "runs the image's entry point: write it before the program",
    "container-env": "keeps the container's own variables",
    **dict.fromkeys(("task-prolog", "task-epilog", "prolog", "epilog"), "is a program of the cluster beside the step"),
    **dict.fromkeys(("nodelist", "exclude", "nodefile", "relative"), "names nodes; here every node runs the step"),
    "dependency": "waits for another job",
    "begin": "is a time to begin at",
    "licenses": "is counted by Slurm",
}  # fmt: skip
_SAME = ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task", "gres",
         "cpus-per-gpu", "ntasks-per-gpu", "gpus-per-socket")  # fmt: skip
_ALL_AND = re.compile(r"ALL(?:,[A-Za-z_]\w*=[^,]*)+")
_BLANK = re.compile(r"\s*\Z")
_REDIRECTION = re.compile(r"[\d&]*[<>]")


@dataclass
class _Made:
    """Results of reading the steps: edits of the script, and images and mounts with their leaves."""

    edits: list[Edit] = field(default_factory=list[Edit])
    images: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    mounts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    runs_tasks: bool = False
    names_nodes: bool = False
    first: FirstNode = field(default_factory=FirstNode)
    unread: list[int] = field(default_factory=list[int])
    """Lines of steps whose processes do not get their input."""


def settle(
    script: Script, given: RequestFields, options: ImportOptions, values: Json, shape: Shape, own: Options
) -> None:
    """Put image, mounts and command into `values`, and report each leaf's outcome. `own`: the job's options."""
    report, made = given.report, _Made(names_nodes=script.names_nodes)
    if shape.nodes > 1:
        made.first = of_first_node(script)
        made.edits += made.first.edits
        made.names_nodes |= bool(made.first.edits)
    for leaf, statement, why in script.gone:
        report.decide(leaf, why, is_open=False)
        made.edits.append(Edit(statement.start, statement.end, ":"))
    for leaf, why in script.open:
        report.decide(leaf, why)
    for leaf, why in script.hidden:
        report.decide(leaf, why, is_open=False)
    for leaf in script.mpi:
        if shape.nodes > 1:
            why = "starts a program on several nodes, which accel does for MPI nowhere: write torchrun, or one node"
            report.decide(leaf, why)
        else:
            report.keep(leaf, "command")
    for name in ("container-image", "image"):
        if name in own:
            made.images.append((own[name][0], own[name][1].value))
    if "container-mounts" in own:
        made.mounts.append((own["container-mounts"][0], own["container-mounts"][1].value))
    for step in script.steps:
        _step(script, step, report, shape, made)
    _image(script, given, options, values, made.images)
    _mounts(report, options, values, made.mounts)
    _command(script, report, options, values, shape, own, made)


def _step(script: Script, step: Step, report: Report, shape: Shape, made: _Made) -> None:
    """Remove the words that start a step's program, such as srun."""
    words = step.statement.words
    texts = [script.known.value(word.text) for word in words]
    number = partial(variables.number_of, script.body, script.known.value, shape)
    numbers, folder, exported = _step_options(step, report, made, number)
    before, inside = _contained(step, report, made)
    before, folder = [*exported, *before], inside or folder
    if step.image:
        made.images.append(step.image)
    for leaf in step.variables:
        report.decide(leaf, "holds options, which are left out", is_open=False)
    per_node = _per_node(step, numbers, shape, report)
    program = words[step.program :]
    if not program or _REDIRECTION.match(program[0].text):
        leaf = step.options[0][0] if step.options else step.image[0] if step.image else COMMANDS
        ran = "run" in [name for _, name, _ in step.contained]
        why = ": write the one that the image's run script starts" if ran else ", and srun starts one"
        report.refuse(leaf, f"line {step.statement.line} names no program{why if ran or step.is_step else ''}")
        return
    if name_of(texts[step.program :]) == "hostname" and shape.nodes > 1 and _is_of_one(step, numbers):
        # The first node's address, as scripts ask for it.
        rest = next((word.start for word in program if _REDIRECTION.match(word.text)), step.statement.end)
        made.edits.append(Edit(step.start, rest, ADDRESS))
        made.names_nodes = True
        return
    has_input = reads_input(script.body, step.statement, step.start)
    if per_node > 1 and has_input:
        made.unread.append(step.statement.line)
    is_counted = per_node > 1 or (step.is_step and shape.tasks > 1 and not shape.bind_gpus and not has_input)
    made.runs_tasks |= is_counted
    is_last = _BLANK.match(script.body, step.statement.end) is not None
    made.edits += _start(step, folder, before, per_node if is_counted else 0, is_last)


_ALONE = ("exec", "nohup", "command")
"""Words that start a program, but no function of the shell."""


def _start(step: Step, folder: str, before: list[str], count: int, is_last: bool) -> list[Edit]:
    """Return edits that start a step's program as often as srun. `folder`: where it begins; `before`: words before it;
    `count`: its processes, 0 if it is not told; `is_last`: nothing follows, which would begin in the folder too."""
    statement, words = step.statement, step.statement.words
    lead = [f"run_tasks {count}"] if count else []
    is_called = any(word.text in (*_ALONE, "time", "!") or "=" in word.text for word in statement.before)
    if folder and (is_called or step.start != statement.start or not is_last):
        before = [f"""sh -c 'cd "$0" && exec "$@"' {folder}""", *before]
    elif folder:
        lead.insert(0, f"cd {folder} &&")
    held = [word.text for word in words[step.program : step.written]]
    end = words[0].end if held else words[step.program].start
    text = "".join(f"{each} " for each in before) + " ".join(held)
    if step.start == statement.start:
        edits = [Edit(step.start, end, "".join(f"{each} " for each in lead) + text)]
    else:
        edits = [Edit(step.start, step.start, "".join(f"{each} " for each in lead)), Edit(statement.start, end, text)]
    for word in statement.before if count else ():
        if word.text in _ALONE:
            edits.append(Edit(word.start, word.end, ""))
        if word.text == "exec":
            edits.append(Edit(statement.end, statement.end, "; exit"))
    return edits


def _step_options(
    step: Step, report: Report, made: _Made, number: Callable[[str], int | None]
) -> tuple[dict[str, int | None], str, list[str]]:
    """Return a step's numbers (None: a variable holds it), its working folder, and words that set its variables."""
    numbers: dict[str, int | None] = {}
    folder, exported = "", list[str]()
    for leaf, option in step.options:
        name = option.name
        if option.fault:
            report.refuse(leaf, option.fault)
        elif name == "container-image":
            made.images.append((leaf, option.value))
        elif name == "container-mounts":
            made.mounts.append((leaf, option.value))
        elif name in _SAME:
            numbers[name] = number(option.value)
        elif name in ("container-workdir", "chdir") and option.value:
            folder = _quote(option.value)
            report.changed(leaf, "command", "is `cd` before the program")
        elif name == "export" and option.value == "ALL":
            report.changed(leaf, None, "is so here: the program has the script's variables")
        elif name == "export" and _ALL_AND.fullmatch(option.value):
            exported = [f"env {' '.join(map(_quote, option.value.split(',')[1:]))}"]
            report.changed(leaf, "command", "is set before the program")
        elif name in STEP_LEFT_OUT:
            report.changed(leaf, None, STEP_LEFT_OUT[name])
        elif name in STEP_SETTLED:
            report.decide(leaf, STEP_SETTLED[name], is_open=False)
        elif name == "pty":
            report.refuse(leaf, "is of an interactive step: `accel-jobs exec` enters a job that runs")
        elif name == "multi-prog":
            report.refuse(leaf, "starts a program of its own on each task: make a job of each")
        elif name in ("het-group", "pack-group"):
            report.refuse(leaf, "is of a heterogeneous job; a job file has nodes that are alike")
        else:
            report.decide(leaf, "is of Slurm's own step", is_open=False)
    return numbers, folder, exported


def _quote(value: str) -> str:
    """Return a value quoted for a shell, which still expands the variables in it."""
    return '"' + re.sub(r'(["\\`])', r"\\\1", value) + '"' if "$" in value else shlex.quote(value)


def _contained(step: Step, report: Report, made: _Made) -> tuple[list[str], str]:
    """Return the words before a container's program, and its working folder."""
    before: list[str] = []
    folder = ""
    for leaf, name, value in step.contained:
        if name in ("-B", "--bind", "--mount", "--volume", "-V"):
            made.mounts.append((leaf, value))
        elif name in ("--nv", "--nvccli"):
            report.changed(leaf, None, "a job's container has its GPUs and their driver")
        elif name in ("--pwd", "--cwd", "-W") and value:
            folder = _quote(value)
            report.changed(leaf, "command", "is `cd` before the program")
        elif name == "--env" and re.match(r"[A-Za-z_]\w*=", value):
            before.append(f"env {' '.join(map(_quote, value.split(',')))}")
            report.changed(leaf, "command", "is set before the program")
        elif name == "run":
            report.decide(leaf, "runs the image's own run script, which a command replaces", is_open=False)
        else:
            report.decide(leaf, "is of a container of the cluster; a job's is made of its image", is_open=False)
    return before, folder


def _per_node(step: Step, numbers: Mapping[str, int | None], shape: Shape, report: Report) -> int:
    per_node = shape.tasks
    if not step.is_step:
        return 1
    nodes = numbers.get("nodes") or shape.nodes
    each, total = numbers.get("ntasks-per-node"), numbers.get("ntasks")
    if each or total:
        per_node = min(each or INT_MAX, ceil((total or INT_MAX) / nodes))
    for leaf, option in step.options:
        if option.name not in _SAME or option.fault:
            continue
        number = numbers.get(option.name)
        if option.name in GPU_OPTIONS:
            _gpus_of_step(leaf, option, report, shape, per_node)
        elif number is None:
            report.decide(leaf, "is taken for the job's own number", new="the job's", is_open=False)
        elif option.name == "nodes" and number != shape.nodes:
            report.decide(leaf, f"the step runs on all {shape.nodes} nodes", new=str(shape.nodes), is_open=False)
        elif option.name == "ntasks" and number < shape.nodes:
            why = f"the step runs on each of {shape.nodes} nodes"
            report.decide(leaf, why, new=str(shape.nodes), is_open=False)
        elif option.name == "ntasks" and number != per_node * nodes:
            why = f"is no multiple of {nodes} nodes: each runs {per_node}"
            report.decide(leaf, why, new=str(per_node * nodes), is_open=False)
        elif option.name in ("nodes", "ntasks", "ntasks-per-node"):
            report.keep(leaf, f"command: {per_node} on each node")
        else:
            report.changed(leaf, None, "the step has the CPUs and GPUs of its node")
    return per_node


def _gpus_of_step(leaf: str, option: SlurmOption, report: Report, shape: Shape, per_node: int) -> None:
    if own := _own_gpus(option, shape, per_node):
        why = f"the step sees all {shape.gpus} GPUs of its node, and in Slurm {own}: set CUDA_VISIBLE_DEVICES"
        report.decide(leaf, why, is_open=False)
    elif not shape.gpus and "$" in option.value:
        report.decide(leaf, "the job has no GPUs, and the step's are not known: write --gpus-per-node", is_open=False)
    elif not report.is_settled(leaf):
        report.changed(leaf, None, "the step has the job's GPUs")


def _own_gpus(option: SlurmOption, shape: Shape, per_node: int) -> str:
    """Return the GPUs that a step sees in Slurm if they are fewer than its node's, otherwise an empty text."""
    asked = gpus_of(option)
    count = asked.count if asked else 0
    if option.name == "gpus-per-task" and per_node > 1 and count and not shape.bind_gpus:
        return f"each process {count}"
    if option.name == "gpus":
        count //= shape.nodes
    return str(count) if 0 < count < shape.gpus and option.name != "gpus-per-task" else ""


def _is_of_one(step: Step, numbers: Mapping[str, int | None]) -> bool:
    """Return whether a step runs on only one of several nodes."""
    is_named = any(option.name == "nodelist" and hosts(option.value) in (None, 1) for _, option in step.options)
    return is_named or numbers.get("nodes") == 1 or numbers.get("ntasks") == 1


def _image(
    script: Script, given: RequestFields, options: ImportOptions, values: Json, images: list[tuple[str, str]]
) -> None:
    report = given.report
    if options.image:
        values["image"] = options.image
        for leaf, _ in images:
            report.changed(leaf, options.image, "--image says it")
        return
    named: dict[str, list[str]] = {}
    for leaf, written in images:
        image = _docker(script.known.value(written))
        if image is None:
            why = "is a file of the cluster: push it to a registry, and say --image"
            if "$" in written:
                why = "is made of a variable: say --image"
            report.decide(leaf, why)
        else:
            named.setdefault(image, []).append(leaf)
    if len(named) > 1:
        for leaves in named.values():
            for leaf in leaves:
                report.decide(leaf, "is one of several images, and a job has one: say --image")
    elif named:
        (image, leaves), *_ = named.items()
        values["image"] = image_of(given, leaves[0], image, to="image")
        for leaf in leaves:
            if leaf != leaves[0]:
                report.keep(leaf, "image")
            elif image != given.values.get(leaf) and not report.stopped_by(leaf):
                report.changed(leaf, values["image"], "is written as a registry has it")
    elif not images:
        report.decide("image", "a job runs in an image, and the script names none: say --image")


def _command(
    script: Script,
    report: Report,
    options: ImportOptions,
    values: Json,
    shape: Shape,
    own: Options,
    made: _Made,
) -> None:
    report.keep(COMMANDS, "command")
    for place in places(script.body)[:3] if script.is_shell else ():
        report.findings(COMMANDS, placeholders.value(COMMANDS, place))
    body = "\n".join(
        apply_edits(script.body, made.edits).split("\n")[1 if script.body.startswith("#!") else 0 :]
    ).strip("\n")
    if not any(line.strip() and not line.lstrip().startswith("#") for line in body.split("\n")):
        report.refuse(COMMANDS, "has no command")
        return
    if shape.nodes > 1:
        starts = bool(script.mpi) or any(step.is_step for step in script.steps)
        why = "every node runs the whole script; Slurm runs it on the first"
        report.decide(COMMANDS, f"{why}, and srun's programs on all" if starts else why, new="command", is_open=False)
        for why in made.first.whys:
            report.decide(COMMANDS, why, new="command", is_open=False)
    if made.unread:
        where = ", ".join(map(str, made.unread[:3]))
        why = f"the processes of a step (line {where}) have no standard input here: let them open a file"
        report.decide(COMMANDS, why, new="command", is_open=False)
    if folders := folders_in(outside_comments(body)):
        why = f"names folders of the cluster ({', '.join(folders)}): --mount PATH=SOURCE says what is there"
        report.decide(COMMANDS, why, new="command", is_open=False)
    before = _before(script, report, options, shape, own, made)
    arguments = _arguments(script, report, options, body)
    values["command"] = _argv(script, report, before, body, arguments)


_TOLD = {"SLURM_JOB_PARTITION": "partition", "SLURM_JOB_ACCOUNT": "account", "SLURM_JOB_QOS": "qos"}


def _before(
    script: Script, report: Report, options: ImportOptions, shape: Shape, own: Options, made: _Made
) -> list[str]:
    """Return the lines before the script, which set Slurm's variables."""
    known = variables.table(shape)
    for name, option in _TOLD.items():
        if option in own:
            known[name] = variables.Variable((f"export {name}={shlex.quote(own[option][1].value)}",))
    wanted = [name for name in script.text_names if name not in script.own_names]
    if shape.indices and "SLURM_ARRAY_TASK_ID" not in wanted:
        wanted.append("SLURM_ARRAY_TASK_ID")
    if any(step.is_step for step in script.steps) and (shape.nodes > 1 or shape.tasks > 1):
        wanted += [name for name in variables.OF_STEPS if name not in wanted]
    wanted += ["SLURM_NODEID", "SLURM_NNODES"] if made.runs_tasks else []
    wanted += ["SLURM_JOB_NODELIST"] if made.names_nodes else []
    wanted += ["SLURM_JOB_ID"] if made.first.draws else []
    chosen = {name: value for name, value in options.variables.items() if name.startswith("SLURM")}
    for name, guarded in script.text_names.items():
        if name in script.own_names:
            continue
        leaf = f"${name}"
        if name in chosen:
            report.changed(leaf, "--var", "--var says it")
        elif name in known and known[name].why:
            report.decide(leaf, known[name].why, new="set before the script", is_open=False)
        elif name in known:
            report.keep(leaf, "set before the script")
        elif guarded:
            report.decide(leaf, "is not set here, and what the script says for that is taken", is_open=False)
        else:
            why = f"is not set here, and empty: --var {name}=<value> sets it"
            if name.startswith("SLURM_ARRAY_") and not shape.indices:
                why = "is of an array, which the script has not: write #SBATCH --array"
            report.decide(leaf, why, is_open=False)
    out = variables.lines([name for name in wanted if name not in chosen], known)
    out += [f"export {name}={shlex.quote(value)}" for name, value in chosen.items()]
    out += [SEED] if made.first.draws else []
    out += [variables.SCONTROL] if made.names_nodes else []
    return [*out, *([variables.run_tasks(shape)] if made.runs_tasks else [])]


def _arguments(script: Script, report: Report, options: ImportOptions, body: str) -> list[str]:
    """Return the arguments of the script, which --var 1=... gives."""
    numbered = {int(name): value for name, value in options.variables.items() if re.fullmatch(r"[1-9]", name)}
    plain = outside_quotes(body) if script.is_shell else ""
    used = {int(number) for number in re.findall(r"\$\{?([1-9])\b", plain)}
    missing = sorted(used - set(numbered))
    if missing and not re.search(r"\w\s*\(\)|\bfunction\s|\bset\s+--", plain):
        asked = " ".join(f"--var {number}=<value>" for number in missing)
        why = f"the script reads what sbatch was given after it ({', '.join(f'${n}' for n in missing)}): {asked}"
        report.decide(COMMANDS, why, new="command", is_open=False)
    return [numbered.get(number, "") for number in range(1, max(numbered, default=0) + 1)]


def _argv(script: Script, report: Report, before: list[str], body: str, arguments: list[str]) -> list[str]:
    text = "\n".join([*before, body])
    shell = script.shell()
    if shell is None and script.interpreter:
        program = [word for word in script.interpreter if word.rpartition("/")[2] != "env" and word != "-S"]
        if not program or not re.match(r"python[\d.]*$", program[0].rpartition("/")[2]):
            report.refuse(COMMANDS, "is written for another interpreter than a shell or python: write a shell script")
            return []
        python = program[0].rpartition("/")[2]
        if not before:
            return [python, *program[1:], "-c", body, *arguments]
        return ["sh", "-c", "\n".join([*before, f'exec {python} -c "$0" "$@"']), body, *arguments]
    flags = [word for word in script.interpreter[1:] if word.startswith("-") and word != "-S"]
    if not before and not arguments and not flags and (words := _program(body)):
        return words
    name = ["script", *arguments] if arguments else []
    return [shell or "bash", *flags, "-c", text, *name]


def _docker(written: str) -> str | None:
    """Return the name of an image in a registry, or None for a file, a folder or a variable."""
    image = re.sub(r"^(docker|oras|library|shub)://", "", written)
    if written.startswith(("library://", "shub://", "oras://")) or "$" in image:
        return None
    if image == written:
        if re.search(r"\.(sif|simg|sqsh|sqfs|img|squashfs)$", image) or image.startswith(("/", ".", "~")):
            return None
        image = image.removeprefix("docker:")
    return image.replace("#", "/", 1)


def _mounts(report: Report, options: ImportOptions, values: Json, mounts: list[tuple[str, str]]) -> None:
    made = [{"source": source, "path": path} for path, source in options.mounts.items()]
    for leaf, text in mounts:
        missing: list[str] = []
        for part in [part for part in text.split(",") if part]:
            names = [each for each in part.split(":") if each]
            path = names[1] if len(names) > 1 else names[0]
            if path not in options.mounts:
                missing.append(path)
            elif "ro" in names[2:]:
                made = [{**each, "read_only": True} if each["path"] == path else each for each in made]
        if missing:
            asked = " ".join(f"--mount {path if '$' not in path else '<path>'}=<source>" for path in missing[:3])
            why = f"are folders of the cluster: {asked}; code goes with `submit --code`"
            report.decide(leaf, why, is_open=False)
        else:
            report.changed(leaf, "mounts", "--mount says what is there")
    if made:
        values["mounts"] = made


def _program(body: str) -> list[str] | None:
    """Return the words of a body that is one program and needs nothing that a shell does, otherwise None."""
    plain = re.sub(r"\\\n", " ", outside_comments(body)).strip()
    if "\n" in plain or re.search(r"[$`&|;<>()*?\[\]{}~!#]", plain) or re.match(r"\w+=", plain):
        return None
    try:
        words = shlex.split(plain)
    except ValueError:
        return None
    return words or None
