"""Build of the wheel as far as pyproject.toml cannot: `stacks` imports its parts by their names in the wheel."""

import ast
import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MOVED = ("components", "jobs")
"""Packages that lie beside `stacks` in a checkout, and under `accel` in the wheel."""


def renamed(source: str) -> str:
    """Rename imports of `components` and `jobs` to their names in the wheel; leave texts as they are."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        at = getattr(node, "lineno", 0) - 1
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in MOVED:
            lines[at] = lines[at].replace(f"from {node.module}", f"from accel.{node.module}", 1)
        elif isinstance(node, ast.Import) and node.names[0].name in MOVED:
            lines[at] = re.sub(r"import (\w+)", r"import accel.\1 as \1", lines[at], count=1)
    return "".join(lines)


class BuildPy(build_py):
    """A build command that renames the imports in the modules of `stacks`."""

    def build_module(self, module: str, module_file: str, package: str) -> object:
        built = super().build_module(module, module_file, package)
        if package.startswith("accel.stacks"):
            made = Path(self.get_module_outfile(self.build_lib, package.split("."), module))
            made.write_text(renamed(made.read_text(encoding="utf-8")), encoding="utf-8")
        return built


setup(cmdclass={"build_py": BuildPy})
