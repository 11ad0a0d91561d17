"""Body of a batch script: the parts that do not belong in a job, and the steps that srun and singularity start."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from . import slurm_variables as variables
from .heredocs import open_blocks
from .shell_expansion import list_end
from .slurm_options import SlurmOption, options_of, plain_word
from .slurm_script import Statement, Word, name_of, statements

LISTS_MAX = 200
_WORD = re.compile(r"""(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s\\"'])+""", re.DOTALL)
COMMANDS = "commands"
"""Name of the leaf that holds the body."""
IMAGE_HAS = "the image has to have what it brings, and a job has no modules or environments of a cluster"
OF_IMAGES = "makes or asks for an image of the cluster: see --image"
_MODULES = ("module", "ml", "spack", "easybuild")
_CONDA = ("conda", "mamba", "micromamba")
_PROFILE = re.compile(
    r"(/bin/activate$|^~?/?\.?(bashrc|bash_profile|profile|zshrc)$|/\.(bashrc|bash_profile|profile|zshrc)$"
    r"|^/etc/profile|modules?(\.sh|\.bash|/init/\w+)?$|conda\.sh$|mamba\.sh$|setup-env\.sh$|/init/(ba)?sh$)"
)
_OF_SLURM = ("squeue", "sacct", "sinfo", "sstat", "seff", "sprio", "sshare", "sattach", "sbcast", "strigger", "sreport")
_SUBMITS = ("sbatch", "salloc", "qsub", "bsub")
_LOGINS = ("ssh", "pdsh", "clush", "rsh")
_MPI = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "jsrun", "ibrun", "aprun", "ccc_mprun")
_CONTAINERS = ("singularity", "apptainer")
_OTHER_CONTAINERS = ("docker", "podman", "podman-hpc", "enroot", "charliecloud", "ch-run", "sarus")
_SINGULARITY_VALUES = (
    "-B", "--bind", "--mount", "--env", "--env-file", "--pwd", "-W", "--workdir", "-H", "--home", "--overlay", "-o",
    "-S", "--scratch", "--app", "--fakeroot-path", "--hostname", "--dns", "--network", "--add-caps", "--drop-caps",
    "--security", "--shm-size", "--cpus", "--memory", "--cwd", "--fusemount", "--blkio-weight",
)  # fmt: skip


@dataclass(frozen=True)
class Assignments:
    """Lines `NAME=value` of a script, for the few places that need the value of a variable."""

    values: Mapping[str, str]

    def value(self, word: str) -> str:
        """Return a word of a script, unquoted, with the variables that the script sets replaced."""
        text = plain_word(word)
        for _ in range(4):
            before = text
            text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: self.values.get(found[1] or found[2], found[0]), text)
            if text == before or len(text) > 10_000:
                break
        return text


def assignments(text: str) -> Assignments:
    """Return the assignments at the beginnings of a script's lines, without names that are set to different values."""
    found: dict[str, str] = {}
    again: set[str] = set()
    for name, value in re.findall(
        r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=([^\s;&|`(]*)[ \t]*(?:#.*)?$", text, re.MULTILINE
    ):
        plain = plain_word(value)
        if found.get(name, plain) != plain:
            again.add(name)
        found[name] = plain
    return Assignments({name: value for name, value in found.items() if name not in again})


@dataclass
class Step:
    """Program that srun, singularity or both start: the part of its statement that is removed."""

    statement: Statement
    options: list[tuple[str, SlurmOption]] = field(default_factory=list[tuple[str, SlurmOption]])
    """Options of srun, each with its leaf."""
    contained: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Options of singularity: leaf, option, value."""
    image: tuple[str, str] | None = None
    """Image of singularity: leaf and name."""
    program: int = 0
    """Index of the word with which the program itself begins."""
    is_step: bool = False
    start: int = 0
    """Position at which the whole command begins, including a program that starts it, such as timeout."""
    written: int = 0
    """Number of words at the beginning of the statement that a variable holds."""
    variables: list[str] = field(default_factory=list[str])
    """Leaves of variables that hold options of srun."""


_LIST = re.compile(r"^[ \t]*(?:(?:export|local|readonly|declare|typeset)(?:[ \t]+-\w+)*[ \t]+)?(\w+)=\(", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_STARTERS = ("srun", "shifter", *_CONTAINERS)
_THROUGH = ("timeout", "stdbuf", "time", "nice", "ionice", "env", "numactl", "taskset", "unbuffer", "strace")
"""Programs that start the program that their arguments name."""
_TELL = (
    "echo",
    "printf",
    "which",
    "type",
    "hash",
    "grep",
    "[",
    "[[",
    "test",
    "cat",
    "mkdir",
    "cd",
    "ls",
    "rm",
    "nextflow",
)
_SHELLS = ("bash", "sh", "eval", "xargs", "parallel")
_CALLS = re.compile(r"""["']\s*(?P<called>srun|singularity|apptainer|shifter)\s+\S""")
_CALLED = re.compile(r"""(?:^|[\s;&|"'(])(?P<called>srun|singularity|apptainer|shifter)\s""")
_ASSIGNED = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?P<name>\w+)\+?=["']\s*(?P<called>srun|singularity|apptainer|shifter)\s+\S.*$""",
    re.MULTILINE,
)


def _starters(body: str) -> dict[str, list[str]]:
    """Return the words of each variable that is set once, to a command that starts with srun or a container."""
    found: dict[str, list[str]] = {}
    often = Counter(re.findall(r"\b(\w+)\+?=", body))
    for name, _, value in re.findall(r"^[ \t]*(?:export[ \t]+)?(\w+)=([\"'])([^\"'\n]*)\2", body, re.MULTILINE):
        words = value.split()
        if name_of(words) in _STARTERS and often[name] == 1 and not re.search(r"\$\(|`", value):
            found[name] = words
    return found


def _lists(body: str, known: Assignments) -> dict[str, list[str]]:
    """Return the words of each list that is set once, `NAME=(words)`, outside of conditions and loops."""
    found: dict[str, list[str]] = {}
    depth = at = 0
    often = Counter(re.findall(r"\b(\w+)(?:\[[^\]\s]*\])?\+?=", body))
    for listed in islice(_LIST.finditer(body), LISTS_MAX):
        depth, at = depth + open_blocks(body[at : listed.start()]), listed.start()
        text = body[listed.end() : list_end(body, listed.end())]
        if depth < 1 and often[listed[1]] == 1 and not re.search(r"\$\(|`", text):
            found[listed[1]] = [known.value(word[0]) for word in _WORD.finditer(_COMMENT.sub("", text))]
    return found


class Script:
    """Body of a script, and its parts other than programs that run anywhere."""

    def __init__(self, body: str, known: Assignments, *, own_options: bool = False) -> None:
        """Read a body. `own_options`: whether the options of the first srun are the job's, as there are no others."""
        self.body, self.known = body, known
        self.gone: list[tuple[str, Statement, str]] = []
        """Statements that are left out: leaf, place, reason."""
        self.steps: list[Step] = []
        self.mpi: list[str] = []
        self.open: list[tuple[str, str]] = []
        self.names_nodes = False
        self.hidden: list[tuple[str, str]] = []
        """Statements whose text calls a program that no image has: leaf, reason."""
        self._leaves: dict[str, tuple[str, int]] = {}
        self._starters = _starters(body)
        self._lists = _lists(body, known)
        self._written = Counter[str]()
        self._of_options = set(re.findall(r"\b(\w+)\+?=\(?\s*[\"']?[\s\\]*-", body))
        shebang = re.match(r"#!\s*(.*)", body)
        self.interpreter = shebang[1].split() if shebang else []
        self.is_shell = not self.interpreter or self.shell() is not None
        if self.is_shell:
            for statement in statements(body):
                self._read(statement, own_options)
            self._read_assignments(outside_comments(body))
        self.text_names = variables.names_in(outside_comments(body) if self.is_shell else body)
        self.own_names = set(re.findall(r"\b(SLURMD?_[A-Z0-9_]+)=", body))
        first = next(
            (number for number, line in enumerate(body.split("\n"), 1) if line.strip(" \t") and line[0] != "#"), 1
        )
        self._leaves[COMMANDS] = (body, first)
        for name in self.text_names:
            if name not in self.own_names:
                line = body[: body.find(name)].count("\n") + 1
                self._leaves[f"${name}"] = (f"line {line}", line)

    def leaves(self) -> Iterator[tuple[str, str, int]]:
        for leaf, (value, line) in self._leaves.items():
            yield leaf, value, line

    def shell(self) -> str | None:
        """Return the shell that the script's first line names, or None if it names another interpreter or none."""
        words = [word for word in self.interpreter if not re.match(r"-S$", word)]
        program = words[0].rpartition("/")[2] if words else ""
        if program == "env":
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        program = re.sub(r"[\d.]+$", "", program)
        return program if program in ("bash", "sh", "zsh", "dash", "ksh", "ash") else None

    def _leaf(self, base: str, line: int, value: str) -> str:
        leaf = f"{base} (line {line})" if base else f"line {line}"
        number = 2
        while leaf in self._leaves:
            leaf = f"{base} (line {line}, {number})" if base else f"line {line} ({number})"
            number += 1
        self._leaves[leaf] = (value, line)
        return leaf

    def _read(self, statement: Statement, own_options: bool) -> None:
        statement, written = self._expand(statement)
        texts = [self.known.value(text) for text in statement.texts]
        program = name_of(texts)
        said = " ".join(texts)[:200]
        if why := self._gone(program, texts):
            self.gone.append((self._leaf("", statement.line, said), statement, why))
        elif program == "scontrol":
            if texts[1:2] == ["show"] and texts[2:3] and texts[2].startswith("hostname"):
                self.names_nodes = True
            else:
                leaf = self._leaf("", statement.line, said)
                self.gone.append((leaf, statement, "asks Slurm, which there is none of: see `accel-jobs --help`"))
        elif program in _SUBMITS:
            leaf = self._leaf("", statement.line, said)
            why = "submits another job: take it out, and submit that one by itself"
            if "<<" in self.body[statement.start :].partition("\n")[0]:
                why = "submits the text below it: put that into a file, with its variables' values, and import the file"
            self.open.append((leaf, why))
        elif program in _LOGINS:
            why = "logs in to a node, which no job does: every node runs the whole script"
            self.hidden.append((self._leaf("", statement.line, said), why))
        elif program in _MPI:
            self.mpi.append(self._leaf("", statement.line, said))
        elif program in _OTHER_CONTAINERS and texts[1:2]:
            self._other_container(statement, program, texts[1])
        elif program in _STARTERS:
            self._step(statement, texts, own_options, statement.start, written)
            return
        elif why := self._fault_of(program, statement):
            self.hidden.append((self._leaf("", statement.line, said), why))
        if program in (*_MPI, *_THROUGH) or texts[0].startswith(("$", "-")):
            self._read_through(statement, texts, own_options)

    def _expand(self, statement: Statement) -> tuple[Statement, int]:
        """Replace a variable that begins a statement and holds srun or a container with its words, as a shell does.
        Return the statement, and the number of these words."""
        first = statement.words[0]
        found = re.fullmatch(r"\$(?:\{(\w+)\}|(\w+))", first.text)
        name = (found[1] or found[2]) if found else ""
        words = self._starters.get(name, [])
        self._written[name] += bool(words)
        made = [Word(text, first.start, first.end) for text in words]
        return Statement([*(made or [first]), *statement.words[1:]], statement.line, statement.before), len(made)

    def _read_through(self, statement: Statement, texts: list[str], own_options: bool) -> None:
        """Read a step that another program starts, such as `timeout 1h srun ...`."""
        at = next((index for index, text in enumerate(texts) if index and name_of([text]) in _STARTERS), 0)
        if at and not re.search(r"[\s$]", statement.words[at].text) and at + 1 < len(texts):
            inner = Statement(statement.words[at:], statement.line, statement.before)
            self._step(inner, texts[at:], own_options, statement.start, 0)

    def _read_assignments(self, body: str) -> None:
        """Report the variables that hold srun or a container and are used in ways that are not read."""
        often = Counter(re.findall(r"\$\{?(\w+)", body))
        for found in _ASSIGNED.finditer(body):
            name, called = found["name"], found["called"]
            if often[name] > self._written[name]:
                why = f"calls {called} where ${name} is not read: write the program alone there"
                line = body.count("\n", 0, found.start()) + 1
                self.hidden.append((self._leaf("", line, found[0].strip()), why))

    def _fault_of(self, program: str, statement: Statement) -> str:
        """Return why an unread statement may fail: its text calls a program that no image has; else an empty text."""
        if program in _TELL:
            return ""
        for word in statement.words[1:]:
            if found := _CALLS.match(word.text) or (program in _SHELLS and _CALLED.search(word.text)):
                return f"calls {found['called']} in a text that is not read: write the program alone there"
        return ""

    def _other_container(self, statement: Statement, program: str, verb: str) -> None:
        leaf = self._leaf("", statement.line, " ".join(map(self.known.value, statement.texts))[:200])
        if verb in ("run", "exec", "start") or program == "ch-run":
            why = "starts a container inside of the job's own: write its image with --image, and its program alone"
            self.open.append((leaf, why))
        elif verb in ("build", "pull", "import", "create", "load", "login", "rm", "stop", "tag", "push", "images"):
            self.gone.append((leaf, statement, OF_IMAGES))
        else:
            self.hidden.append((leaf, f"calls {program}, which a job has none of: take it out"))

    def _gone(self, program: str, texts: list[str]) -> str:
        """Return why a statement does not belong in a job, or an empty text if it does."""
        if program in _MODULES and (program != "spack" or texts[1:2] in (["load"], ["env"], ["unload"])):
            return IMAGE_HAS
        if program in _CONDA and texts[1:2] and texts[1] in ("activate", "deactivate", "init", "shell"):
            return IMAGE_HAS
        if program in ("activate", "deactivate"):
            return IMAGE_HAS
        if program in ("source", ".") and len(texts) > 1 and (texts[1] == "activate" or _PROFILE.search(texts[1])):
            return IMAGE_HAS
        if program == "eval" and re.search(r"\b(conda|mamba|micromamba|modulecmd|spack)\b", " ".join(texts)):
            return IMAGE_HAS
        if program in _OF_SLURM or program == "scancel":
            return "asks Slurm, which there is none of: see `accel-jobs --help`"
        return ""

    def _srun(self, step: Step, texts: list[str], own: bool) -> int:
        """Return the index of the started program's first word. `own`: whether the options are the job's."""
        at, line = 1, step.statement.line
        while True:
            options, count = options_of(texts[at:], line, srun=True)
            step.options += [
                (self._leaf(f"srun {each.written}", line, each.value), each) for each in options if not own
            ]
            at += count
            if at + 1 >= len(texts) or not self._holds_options(texts[at]):
                return at
            if listed := self._options_in(texts[at], line):
                step.options += [(self._leaf(f"srun {each.written}", line, each.value), each) for each in listed]
                at += 1
                continue
            step.variables.append(self._leaf(f"srun {texts[at]}", line, texts[at]))
            at += 1

    def _options_in(self, word: str, line: int) -> list[SlurmOption]:
        """Return the options that the words of a list stand for, or none if it has other words or is not known."""
        found = re.fullmatch(r"\$\{(\w+)\[@\]\}", word)
        words = self._lists.get(found[1], []) if found else []
        options, count = options_of(words, line, srun=True)
        return options if count == len(words) else []

    def _holds_options(self, word: str) -> bool:
        """Return whether a word is a variable to which the script assigns options, as `SRUN_ARGS=" --label "` does."""
        found = re.fullmatch(r"\$\{?(\w+)(?:\[[@*]\])?\}?", word)
        return bool(found and found[1] in self._of_options)

    def _step(self, statement: Statement, texts: list[str], own_options: bool, start: int, written: int) -> None:
        step = Step(statement, start=start, written=written)
        at = 0
        if name_of(texts) == "srun":
            step.is_step = True
            at = self._srun(step, texts, own_options and not self.steps)
        if name_of(texts[at:]) == "shifter":
            at += 1
            while at < len(texts) and texts[at].startswith("-"):
                name, equals, value = texts[at].partition("=")
                if not equals and at + 1 < len(texts) and name in ("--image", "-i", "--volume", "-V", "--module", "-m"):
                    at, value = at + 1, texts[at + 1]
                leaf = self._leaf(f"shifter {name}", statement.line, value)
                if name in ("--image", "-i"):
                    step.image = (leaf, value)
                else:
                    step.contained.append((leaf, name, value))
                at += 1
        elif name_of(texts[at:]) in _CONTAINERS:
            at = self._container(step, texts, at)
        step.program = at
        if at == 0:
            return
        self.steps.append(step)
        inner = name_of(texts[at:])
        if inner in _OTHER_CONTAINERS and texts[at + 1 : at + 2]:
            self._other_container(statement, inner, texts[at + 1])

    def _is_option(self, word: str, verb: str, following: list[str]) -> bool:
        """Return whether a variable holds a container's options: a program that `exec` runs has no leading dash."""
        is_before_one = verb == "exec" and word.startswith("$") and following and following[0].startswith("-")
        return bool(is_before_one or self._holds_options(word))

    def _container(self, step: Step, texts: list[str], at: int) -> int:
        """Read `singularity [options] exec [options] IMAGE`. Return the index of the program's first word."""
        called, begun, verb = name_of(texts[at:]), at, ""
        given: list[tuple[str, str]] = []
        line = step.statement.line
        at += 1
        while at < len(texts):
            word = texts[at]
            if word.startswith("-"):
                name, equals, value = word.partition("=")
                if not equals and name in _SINGULARITY_VALUES and at + 1 < len(texts):
                    at, value = at + 1, texts[at + 1]
                given.append((name, value))
            elif verb and self._is_option(word, verb, texts[at + 1 : at + 2]):
                step.variables.append(self._leaf(f"{called} {word}", line, word))
            elif not verb:
                verb = word
                if verb not in ("exec", "run"):
                    break
            else:
                step.image = (self._leaf(f"{called} {verb}", line, word), word)
                step.contained += [(self._leaf(f"{called} {name}", line, value), name, value) for name, value in given]
                if verb == "run":
                    step.contained.append((step.image[0], "run", ""))
                return at + 1
            at += 1
        leaf = self._leaf("", line, " ".join(texts)[:200])
        if verb in ("exec", "run", "shell", "instance"):
            self.open.append((leaf, "starts a container inside of the job's own: write its program alone"))
        else:
            self.gone.append((leaf, step.statement, OF_IMAGES))
        return begun if step.is_step else 0


def outside_comments(body: str) -> str:
    return "\n".join("" if line.lstrip().startswith("#") else line for line in body.split("\n"))
