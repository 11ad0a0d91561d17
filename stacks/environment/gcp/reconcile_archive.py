"""The files of the scheduled function: the reconciler of `jobs` and its imports, as they are in this project."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import accel
import jobs
from components.gcp.cloud_function import packages
from components.gcp.reconcile_function import ENTRY

_ROOTS = {"accel": Path(accel.__file__).parent, "jobs": Path(jobs.__file__).parent}
_BEGIN = "jobs.backends.vm.function"

_DATA = ("jobs/agent/startup.sh", "accel/rules/rules.csv")

_MAIN = f'''\
"""Where Cloud Run functions begin: {_BEGIN} has what happens."""

import functions_framework

from {_BEGIN} import handler

{ENTRY} = functions_framework.http(handler)
'''


def archive() -> dict[str, str]:
    modules = _imported()
    folders = {str(parent) for path in modules for parent in PurePosixPath(path).parents} - {"."}
    agent = sorted((_ROOTS["jobs"] / "agent" / "program").glob("*.py"))
    return {
        "main.py": _MAIN,
        "requirements.txt": packages("reconcile-function"),
        # The packages' own __init__ files also import the clients of jobs, which the function does not need. Pulumi's
        # SDK cannot read an empty asset back.
        **{f"{package}/__init__.py": "# A package.\n" for package in sorted(folders)},
        **{path: _file(path).read_text(encoding="utf-8") for path in modules},
        **{f"jobs/agent/program/{each.name}": each.read_text(encoding="utf-8") for each in agent},
        **{path: _file(path).read_text(encoding="utf-8") for path in _DATA},
    }


def _imported() -> list[str]:
    """Return paths of the modules that the function imports at any time; a package's own only if it is itself used."""
    found: set[str] = set()
    ahead = [_path(_BEGIN) or ""]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += _imports(path)
    return sorted(found)


def _imports(path: str) -> Iterator[str]:
    package = path.split("/")[:-1]
    tree = ast.parse(_file(path).read_text(encoding="utf-8"))
    typing = {
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for each in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in typing:
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for name in node.names:
                if each := _path(f"{module}.{name.name}") or _path(module):
                    yield each


def _path(module: str) -> str | None:
    name = module.replace(".", "/")
    paths = (f"{name}.py", f"{name}/__init__.py") if module.partition(".")[0] in _ROOTS else ()
    return next((path for path in paths if _file(path).exists()), None)


def _file(path: str) -> Path:
    first, _, rest = path.partition("/")
    return _ROOTS[first] / rest
