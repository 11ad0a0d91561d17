"""What pyproject.toml cannot say of the wheel: the imports of `stacks` by the names that its parts have there."""

import ast
import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MOVED = ("components", "jobs")
"""Beside `stacks` in a checkout, and under `accel` in the wheel."""


def renamed(source: str) -> str:
    """The same program, where it imports `components` or `jobs` by their names in the wheel; texts stay as they are."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        at = getattr(node, "lineno", 0) - 1
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in MOVED:
            lines[at] = lines[at].replace(f"from {node.module}", f"from accel.{node.module}", 1)
        elif isinstance(node, ast.Import) and node.names[0].name in MOVED:
            lines[at] = re.sub(r"import (\w+)", r"import accel.\1 as \1", lines[at], count=1)
    return "".join(lines)


class BuildPy(build_py):
    """Writes the modules of `stacks` with their imports renamed."""

    def build_module(self, module: str, module_file: str, package: str) -> object:
        """As setuptools does, and then renamed."""
        built = super().build_module(module, module_file, package)
        if package.startswith("accel.stacks"):
            made = Path(self.get_module_outfile(self.build_lib, package.split("."), module))
            made.write_text(renamed(made.read_text(encoding="utf-8")), encoding="utf-8")
        return built


setup(cmdclass={"build_py": BuildPy})
