"""Commands that the sandbox runs, from PATH, the cache, a download or a build with Go. `python -m sandbox.toolchain`
provides them; with `--print` it writes the engine's folder to stdout."""

from .control_plane import COMMANDS, WHAT_TO_INSTALL, kubernetes
from .making import MODULES, ToolchainError, pinned_version
from .pulumi import ENGINE_VERSION, accepts, engine

__all__ = [
    "COMMANDS",
    "ENGINE_VERSION",
    "MODULES",
    "WHAT_TO_INSTALL",
    "ToolchainError",
    "accepts",
    "engine",
    "kubernetes",
    "pinned_version",
]
