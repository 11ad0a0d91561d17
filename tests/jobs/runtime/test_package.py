"""The package as jobs have it: one file for pip, for an image and for PYTHONPATH, without anything of the project."""

import ast
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import jobs.runtime
from jobs.client import runtime_wheel
from tests.support.wheel import run

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "jobs" / "runtime").glob("*.py"))
ALONE = """
import sys
import accel_runtime
public = [getattr(accel_runtime, name) for name in accel_runtime.__all__]
assert accel_runtime.Checkpoints and accel_runtime.rendezvous().nodes == 1 and accel_runtime.task().count == 1
accel_runtime.report(step=1, steps=2, loss=0.5)
loaded = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(accel_runtime.__file__, sorted(loaded - {"accel_runtime", "__main__"}))
"""


def test_the_same_sources_are_the_same_file(tmp_path: Path) -> None:
    first = runtime_wheel.content()
    runtime_wheel.content.cache_clear()
    assert runtime_wheel.content() == first
    path = runtime_wheel.write(tmp_path)
    assert path.name == f"accel_runtime-{jobs.runtime.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        held = {name for name in archive.namelist() if name.startswith("accel_runtime/")}
    assert held == {f"accel_runtime/{source.name}" for source in SOURCES}


def test_python_imports_from_the_file_where_it_lies(tmp_path: Path) -> None:
    path = runtime_wheel.write(tmp_path)
    out = run(sys.executable, "-S", "-c", ALONE, cwd=tmp_path, PYTHONPATH=str(path))
    assert out.splitlines()[-1] == f"{path}/accel_runtime/__init__.py []"


@pytest.mark.slow
def test_pip_installs_it(tmp_path: Path) -> None:
    path = runtime_wheel.write(tmp_path)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run(*install, "--disable-pip-version-check", "--target", tmp_path / "there", path, cwd=tmp_path)
    out = run(sys.executable, "-S", "-c", ALONE, cwd=tmp_path, PYTHONPATH=str(tmp_path / "there"))
    assert out.splitlines()[-1] == f"{tmp_path}/there/accel_runtime/__init__.py []"
    assert (tmp_path / "there" / f"accel_runtime-{runtime_wheel.version()}.dist-info" / "METADATA").is_file()


def test_the_command_writes_it(tmp_path: Path, invoke: Callable[..., Result]) -> None:
    result = invoke("runtime", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    path = Path(result.stdout.strip())
    assert path.parent == tmp_path and path.read_bytes() == runtime_wheel.content()
    refused = invoke("runtime", "--out", str(tmp_path / "no" / "file.whl"))
    assert refused.exit_code == 2
    assert f"error: --out: {tmp_path / 'no' / 'file.whl'} cannot be written: No such file" in refused.stderr


def test_its_import_loads_little() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import jobs.runtime; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-S", "-c", code, str(ROOT)], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(answer.stdout.split())
    costly = {"json", "dataclasses", "inspect", "urllib.request", "concurrent.futures", "subprocess", "ctypes", "ssl"}
    assert loaded & costly == set()


# Python 3.9 is not installed here: what its grammar and library lack is looked for instead.
NEWER = {
    "dataclass": {"slots", "kw_only"},
    "zip": {"strict"},
}
"""Parameters that Python 3.10 and later know, by the function's name."""
NEWER_NAMES = {"tomllib", "batched", "pairwise", "ExceptionGroup", "TypeAlias", "ParamSpec", "Self", "UTC", "StrEnum"}
"""Names that it does not have. Sources: the What's New pages, https://docs.python.org/3/whatsnew/3.10.html and on."""


def newer(source: str) -> list[str]:
    """What of a source Python 3.9 lacks."""
    tree = ast.parse(source, feature_version=(3, 9))
    found: list[str] = []
    lazily = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found += [f"{name}({key.arg}=)" for key in node.keywords if key.arg in NEWER.get(name, ())]
        names = {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}
        found += sorted(names & NEWER_NAMES)
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if annotation and not lazily and any(isinstance(part, ast.BinOp) for part in ast.walk(annotation)):
            found.append("an annotation with | that is evaluated")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_module_is_of_python_3_9_and_imports_the_standard_library_and_itself(path: Path) -> None:
    assert newer(path.read_text()) == []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.level == 0 and node.module), f"{path.name}:{node.lineno}"
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
        names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        assert {str(name).partition(".")[0] for name in names} <= set(sys.stdlib_module_names), path.name


@pytest.mark.parametrize(
    "source",
    [
        "zip(a, b, strict=True)",
        "@dataclass(slots=True)\nclass A: ...",
        "from itertools import pairwise",
        "def f(a: int | None): ...",
        "def f() -> int | None: ...",
    ],
)
def test_what_is_newer_is_found(source: str) -> None:
    assert newer(source)


def test_newer_grammar_is_found() -> None:
    with pytest.raises(SyntaxError):
        newer("match a:\n    case 1: ...")


def test_its_version_is_that_of_the_project() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["version"] == jobs.runtime.__version__
