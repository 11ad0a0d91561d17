"""Rules of the house that no linter knows: who imports whom, how long a file is, and that the pins agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sandbox import toolchain
from sandbox.starting import without_collector

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("accel", "components", "jobs", "stacks", "policy", "sandbox")
_SHARED = ("budget", "catalog", "clouds", "console", "contract", "diagnostics", "rules")
CORE = {"accel", *(f"accel.{part}" for part in _SHARED)}

# Of `jobs` what others may use: the Python API, and all that does not print or parse a command line.
JOBS = {
    "jobs",
    "jobs.agent",
    "jobs.backends",
    "jobs.backends.base",
    "jobs.client",
    "jobs.importers",
    "jobs.model",
    "jobs.runtime",
}

# What each part may import of the others; itself always.
MAY_IMPORT: Mapping[str, set[str]] = {
    "accel.catalog": set(),
    "accel.budget": set(),
    "accel.diagnostics": {"accel.catalog"},
    "accel": {"accel.catalog", "accel.diagnostics"},
    "accel.rules": {"accel", "accel.catalog", "accel.diagnostics"},
    "accel.contract": {"accel", "accel.catalog", "accel.diagnostics", "accel.rules"},
    "accel.clouds": {"accel", "accel.catalog", "accel.diagnostics", "accel.rules", "accel.contract"},
    "accel.console": {"accel", "accel.catalog", "accel.diagnostics"},
    "components": CORE,
    "jobs.runtime": set(),
    "jobs.agent": CORE,
    "jobs.model": CORE | {"jobs.runtime"},
    "jobs.backends.base": CORE | {"jobs.backends", "jobs.model"},
    "jobs.backends": CORE | {"jobs.agent", "jobs.backends.base", "jobs.model", "jobs.runtime"},
    "jobs.importers": CORE | {"jobs.backends", "jobs.backends.base", "jobs.model"},
    "jobs.client": CORE | {"jobs.backends", "jobs.backends.base", "jobs.model", "jobs.runtime"},
    "jobs.views": CORE | {"jobs.backends", "jobs.backends.base", "jobs.client", "jobs.model", "jobs.runtime"},
    "jobs.cli": CORE | JOBS | {"jobs.views"},
    "jobs": CORE | {"jobs.backends", "jobs.backends.base", "jobs.client", "jobs.model"},
    "jobs.__main__": {"accel", "accel.console", "accel.diagnostics", "jobs", "jobs.cli"},
    "stacks": CORE | {"components", "jobs", "jobs.backends.base", "jobs.client", "jobs.model"},
    # The page of both commands' options is made from their parsers.
    "stacks.reference": {"accel", "accel.console", "jobs.cli", "jobs.model", "stacks"},
    "policy": CORE | JOBS | {"components"},
    "sandbox": CORE,
    "__main__": {"stacks"},
}
# These two are carried under another name by the wheel, where an absolute import of themselves finds nothing.
RELATIVE_ONLY = {"components", "jobs"}


def part_of(module: str) -> str | None:
    """Return the longest part that holds a module; None for what is not of this repository."""
    parts = [part for part in MAY_IMPORT if module == part or module.startswith(f"{part}.")]
    return max(parts, key=len, default=None)


def imports(path: str, source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, module and whether it is written relative, for each import of a file."""
    package = Path(path).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name, False) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            if node.level > len(package):
                base = ["<outside>"]
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from accel import rules` names the part in its list.
            yield from ((node.lineno, f"{module}.{name.name}", node.level > 0) for name in node.names)


def import_faults(sources: Mapping[str, str]) -> list[str]:
    """Return one line for each import that the house does not allow."""
    faults: list[str] = []
    for path, source in sources.items():
        own = part_of(".".join(Path(path).with_suffix("").parts))
        for line, module, relative in imports(path, source):
            if module.startswith("<outside>"):
                faults.append(f"{path}:{line} imports from above its package")
            part = part_of(module)
            if own is None or part is None:
                continue
            package = module.partition(".")[0]
            if package == own.partition(".")[0] and package in RELATIVE_ONLY and not relative:
                faults.append(f"{path}:{line} imports {module} by its absolute name")
            if part != own and part not in MAY_IMPORT[own]:
                faults.append(f"{path}:{line} {own} imports {module}")
    return faults


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax, which many laws read."""
    with without_collector():  # three quarters of the time: it would look through all trees again and again
        return ast.parse(path.read_text(), str(path))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return every node of a file."""
    return list(ast.walk(tree_of(path)))


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lines(*folders: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in files(*folders))


def test_imports_go_one_way() -> None:
    paths = [*files(*PRODUCT), *ROOT.glob("__main__.py")]
    assert import_faults({str(path.relative_to(ROOT)): path.read_text() for path in paths}) == []


@pytest.mark.parametrize(
    "path, source, fault",
    [
        ("accel/catalog/fit.py", "from accel.rules import names", "accel.catalog imports accel.rules.names"),
        ("accel/rules/names.py", "from ..contract import hub", "accel.rules imports accel.contract.hub"),
        ("accel/rules/names.py", "from accel import contract", "accel.rules imports accel.contract"),
        ("components/base.py", "import jobs.model.job", "components imports jobs.model.job"),
        ("jobs/cli/main.py", "from components import base", "jobs.cli imports components.base"),
        ("jobs/cli/main.py", "from jobs.model.job import Job", "imports jobs.model.job.Job by its absolute name"),
        ("jobs/api.py", "from .cli import get", "jobs imports jobs.cli.get"),
        ("jobs/client/dispatch.py", "from ..cli.logs import stream", "jobs.client imports jobs.cli.logs.stream"),
        ("jobs/runtime/agent.py", "from accel import rules", "jobs.runtime imports accel.rules"),
        ("stacks/operations/leaks.py", "from jobs.views import watch", "stacks imports jobs.views.watch"),
        ("stacks/operations/drift.py", "from jobs.backends import gke", "stacks imports jobs.backends.gke"),
        ("jobs/model/job.py", "from ...accel import rules", "imports from above its package"),
        ("jobs/model/job.py", "def f():\n    import sandbox", "jobs.model imports sandbox"),
        ("stacks/environment/config.py", "import sandbox.environment", "stacks imports sandbox.environment"),
        ("sandbox/grants.py", "from jobs.backends.local import runner", "sandbox imports jobs.backends.local.runner"),
    ],
)  # fmt: skip
def test_a_wrong_import_is_found(path: str, source: str, fault: str) -> None:
    (found,) = import_faults({path: source})
    assert fault in found


@pytest.mark.parametrize(
    "path, source",
    [
        ("jobs/cli/main.py", "from ..job import Job\nfrom accel.contract import targets\nimport click"),
        ("components/aws/network.py", "from ..base import Component\nfrom . import vpc"),
        (
            "stacks/environment/aws/section.py",
            "from components.aws import network\nfrom jobs import job\nimport stacks.environment.config",
        ),
    ],
)
def test_a_right_import_is_not(path: str, source: str) -> None:
    assert import_faults({path: source}) == []


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of the product by the names under which they are imported."""
    names = {path: path.relative_to(ROOT).with_suffix("").parts for path in files(*PRODUCT)}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in names.items()}


@cache
def own_imports(name: str) -> list[tuple[str, bool]]:
    """Return each module of this repository that a module imports, and whether it does so when it is loaded."""
    own, found = modules(), list[tuple[str, bool]]()
    path, nodes = own[name].relative_to(ROOT), nodes_of(own[name])
    late: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            late.update(ast.walk(node))
    for node in nodes:
        if isinstance(node, ast.Import):
            targets = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(path.with_suffix("").parts[: -node.level]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            targets = [full if (full := f"{module}.{each.name}") in own else module for each in node.names]
        else:
            continue
        found += [(target, node not in late) for target in targets if target in own and target != name]
    return found


def circles(edges: Mapping[str, set[str]]) -> list[str]:
    """Return what is left once everything that only stands before or behind circles is taken off."""
    left = {name: set(targets) for name, targets in edges.items()}
    while ends := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets - ends for name, targets in left.items() if name not in ends}
    while starts := left.keys() - {target for targets in left.values() for target in targets}:
        left = {name: targets for name, targets in left.items() if name not in starts}
    return sorted(left)


def test_no_files_import_each_other_in_a_circle() -> None:
    """Not late either, nor for types alone."""
    own = modules()
    assert circles({name: {target for target, _ in own_imports(name)} for name in own}) == []


def test_a_circle_is_found() -> None:
    edges = {"start": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a", "end"}, "end": set[str]()}
    assert circles(edges) == ["a", "b", "c"]
    assert circles(edges | {"c": {"end"}}) == []


BANNED = {
    "asked", "chosen", "found", "given", "gone", "held", "kept", "known", "made", "marked", "named", "said", "seen",
    "sent", "shown", "told",
}  # fmt: skip
"""Words that say neither what a thing is nor what it does."""


def banned_names() -> set[str]:
    """Return modules, and public classes and functions, of a banned name."""
    names: set[str] = set()
    for path in files(*PRODUCT):
        where = str(path.relative_to(ROOT))
        names |= {where} if path.stem in BANNED else set()
        for node in nodes_of(path):
            definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            names |= {f"{where}:{node.name}"} if definition and node.name.lower() in BANNED else set()
    return names


def test_no_module_class_or_function_has_a_banned_name() -> None:
    assert banned_names() == set()


PARTICIPLES = {
    "begun", "bound", "built", "chosen", "drawn", "frozen", "given", "gone", "grown", "held", "hidden", "kept", "known",
    "laid", "left", "lost", "made", "met", "paid", "said", "seen", "sent", "shown", "spent", "stuck", "taken", "thrown",
    "told", "torn", "withdrawn", "woken", "written",
}  # fmt: skip
"""Those that do not end in -ed. What is a verb or a noun too (`set`, `put`, `run`, `read`, `split`) is none here."""
NO_PARTICIPLES = {"exceed", "feed", "need", "seed", "speed", "succeed"}
BEFORE_NO_NOUN = {"as", "at", "by", "for", "from", "in", "of", "on", "out", "s", "to", "with"}
"""Words, and a unit, that a participle qualifies nothing in: `made_of`, `known_s`."""
PARTICIPLES_THAT_STAY = {
    "accel/diagnostics/errors.py": "errors that users catch by their names",
    "jobs/client/code/inside/": "text of requests: with other names, a key of before would be of another request",
    "jobs/backends/google_batch/logs.py:created_at": "the field's word for the time",
    "jobs/runtime/stop.py:seconds_left": "part of the runtime that jobs import",
}
"""By what they begin with, and why."""


def is_participle(name: str) -> bool:
    """Return whether a name is a participle, which qualifies no noun behind it: `listed`, `NotStarted`, `made_of`."""
    first, *rest = words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
    if first in ("is", "has", "was"):
        return False
    flags = [each in PARTICIPLES or (each.endswith("ed") and each not in NO_PARTICIPLES) for each in words]
    return flags[-1] or (flags[0] and rest[0] in BEFORE_NO_NOUN)


def participles() -> set[str]:
    """Return modules, and public classes and functions of modules, that a participle names."""
    names: set[str] = set()
    for path in files(*PRODUCT):
        where = str(path.relative_to(ROOT))
        names |= {where} if is_participle(path.stem) else set()
        for node in tree_of(path).body:
            definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if definition and not node.name.startswith("_") and is_participle(node.name):
                names.add(f"{where}:{node.name}")
    return names


def test_no_module_class_or_function_is_named_by_a_participle() -> None:
    found = participles()
    assert {name for name in found if not name.startswith(tuple(PARTICIPLES_THAT_STAY))} == set()
    assert [start for start in PARTICIPLES_THAT_STAY if not any(name.startswith(start) for name in found)] == []


@pytest.mark.parametrize(
    "name", ["listed", "Listed", "NotStarted", "create_attached", "made_of", "known_as", "needed_s", "sorted_out"]
)
def test_a_participle_is_found(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["need", "Seed", "failed_jobs", "is_filled", "DeclaredQueue", "lost_exits"])
def test_a_noun_with_a_participle_is_none(name: str) -> None:
    assert not is_participle(name)


APART: Mapping[str, str] = {
    r"jobs\.backends\.[.\w]+\.(explain|facts|logs|quota|request|shell|submit)": ("each backend has the same files"),
    r"jobs\.backends\.diagnosis\.(aws_batch|vm)\.\w+": "what is read of a platform, and what follows",
    r"jobs\.backends\.vm\.iap|jobs\.agent\.program\.hosts": "how a machine is reached, and the other machines of a job",
    r"jobs\.cli\.execution": "what a verb needs when it runs and its help does not",
    r"jobs\.client\.allowances\.\w+": "a store each, and the reservation beside the settlement",
    r"jobs\.client\.code\.archive": "what is packed stands apart from where it is sent",
    r"jobs\.aio": "a module that users import",
    r"jobs\.importers\.\w+": "parts of a document that have their own reference page",
    r"jobs\.runtime\.\w+": "imported by jobs that use it, and by no other",
    r"jobs\.views\.report\.timeline": "a drawing of its own",
    r"policy\.(analyzer|commands)": "loaded by the engine, or by the command, and never by both",
    r"sandbox\.[.\w]+": "an API, or an actor behind it, each",
    r"stacks\.environment\.\w+\.\w+": "a chapter of an environment's section",
    r"stacks\.operations\.adopt\.batch": "what AWS answers as values of ours, apart from the files that are written",
    r"stacks\.operations\.\w+\.(aws|gcp|google|engine)|jobs\.client\.live\.\w+": "a cloud each, or the engine",
    r"stacks\.operations\.report\.threats": "what a change does to jobs, which the page of the changes only shows",
    r"components\.aws\.alarms": "an idea of its own",
}
"""Why a module that only one module of its folder imports is no part of that one. By what the names begin with."""
SINGLE_IMPORTER = 79
"""Such modules, at most. There were 234 when the law was written, of many that a line limit had cut off."""


def single_importers() -> list[str]:
    """Return the modules that one module alone imports, of their own folder."""
    own = modules()
    importers: dict[str, set[str]] = {}
    for name in own:
        for target, _ in own_imports(name):
            importers.setdefault(target, set()).add(name)
    return [
        target
        for target, (first, *more) in importers.items()
        if not more and own[target].name != "__init__.py" and own[first].parent == own[target].parent
    ]


def test_a_module_with_a_single_importer_has_a_reason() -> None:
    single = single_importers()
    assert [name for name in single if not any(re.fullmatch(form, name) for form in APART)] == []
    assert [form for form in APART if not any(re.fullmatch(form, name) for name in single)] == []
    assert len(single) <= SINGLE_IMPORTER


def test_a_program_begins_below_all_that_it_needs() -> None:
    for path in files(*PRODUCT):
        *body, _ = tree_of(path).body or [ast.Pass()]
        assert not any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in body), path


LATE_IMPORTS = 150
"""Names of our own that are imported within functions, at most: what would make a circle, or load a library of a cloud
for a command that does not need it. It was 749 before the rooms were made."""


def test_imports_stand_at_the_top() -> None:
    own = modules()
    late = 0
    for name in own:
        inside = [node for node in nodes_of(own[name]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        found = {each for node in inside for each in ast.walk(node) if isinstance(each, ast.ImportFrom)}
        late += sum(len(each.names) for each in found if each.level or (each.module or "").split(".")[0] in PRODUCT)
    assert 0 < late <= LATE_IMPORTS


def asked_of_platforms(source: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each `platform_module(kind, module).name`, also where the module is assigned first."""
    tree = ast.parse(source)
    calls = {
        node: str(node.args[1].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "platform_module"
        if isinstance(node.args[1], ast.Constant)
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        inside = list(ast.walk(function))
        assigned = {
            ast.unparse(node.targets[0]): calls[node.value]
            for node in inside
            if isinstance(node, ast.Assign) and node.value in calls
        }
        for node in inside:
            if isinstance(node, ast.Attribute):
                module = calls.get(node.value) or assigned.get(ast.unparse(node.value))
                if module:
                    yield module, node.attr


def test_what_platforms_are_asked_for_by_name_is_there() -> None:
    needed: dict[str, set[str]] = {}
    for path in files("jobs", "stacks"):
        for module, name in asked_of_platforms(path.read_text()):
            needed.setdefault(module, set()).add(name)
    assert len(needed) > 2
    for module, names in needed.items():
        folders = (path.parent.name for path in (ROOT / "jobs/backends").glob(f"*/{module}.py"))
        there = set().union(*(dir(import_module(f"jobs.backends.{folder}.{module}")) for folder in folders))
        assert names - there == set(), module


def test_the_map_of_the_house_is_true() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page.partition("## Where to look")[2].partition("\n## ")[0]
    paths = [path for path in re.findall(r"`([\w./<>]+/[\w./<>]*)`", section) if "<" not in path]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_file_is_over_500_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in files(*PRODUCT)
        if (count := len(path.read_text().splitlines())) > 500
    }
    assert long == {}


def test_the_sandbox_has_fewer_than_half_the_lines_of_what_it_serves() -> None:
    assert lines("sandbox") * 2 < lines("components", "jobs")


def test_engine_and_sdk_are_one_version() -> None:
    module = (toolchain.MODULES / "pulumi" / "go.mod").read_text()
    (engine,) = re.findall(r"github.com/pulumi/pulumi/pkg/v3 v(\S+)", module)
    assert engine == toolchain.ENGINE_VERSION == toolchain.pinned_version("pulumi")


def test_the_wheels_ranges_begin_at_the_pins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    for text in [*project["dependencies"], *(text for extra in extras for text in extra)]:
        wanted = Requirement(text)
        pin = toolchain.pinned_version(wanted.name)
        assert pin in wanted.specifier
        (oldest,) = [part.version for part in wanted.specifier if part.operator == ">="]
        assert pin.startswith(oldest), f"{text} begins before the tested {pin}"


@pytest.mark.parametrize("module", ["pulumi", "pulumi-language-python"])
def test_toolchain_modules_keep_their_hashes(module: str) -> None:
    folder = toolchain.MODULES / module
    assert (folder / "go.sum").stat().st_size
    assert "github.com/atotto/clipboard => " in (folder / "go.mod").read_text()


def test_jobs_help_imports_no_sdk() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "jobs", "--help"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert loaded & {"boto3", "botocore", "pydantic", "pulumi", "pulumi_aws", "yaml", "google"} == set()


def test_workflows_pin_actions_and_ask_for_little() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text()
        for action in re.findall(r"uses: (\S+)", text):
            assert re.search(r"@[0-9a-f]{40}$", action) or action.startswith("./"), f"{path.name}: {action}"
        assert re.search(r"^permissions:", text, re.MULTILINE), f"{path.name} names no permissions"
