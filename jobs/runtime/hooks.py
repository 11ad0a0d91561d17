"""Content of checkpoints: values of torch, trees of JAX by Orbax, files and folders. A library is imported only when it
is used.

    checkpoints.save(step, hooks.torch({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))
    state = hooks.torch_load(checkpoints.resume(), map_location="cpu")
"""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from .stop import should_stop

if TYPE_CHECKING:
    from .checkpoints import Checkpoint
    from .writing import Writing

Write = Callable[["Writing"], None]


def torch(state: Any, name: str = "state.pt") -> Write:
    """Return the `write` for `save` of what torch.save takes. It streams the data, and hashes it on the way. Source:
    https://docs.pytorch.org/docs/stable/generated/torch.save.html"""

    def write(into: Writing) -> None:
        with into.open(name) as file:
            importlib.import_module("torch").save(state, file)

    return write


def torch_load(found: Checkpoint, name: str = "state.pt", **options: Any) -> Any:
    """Load what `torch` wrote. `options` are those of torch.load. Raise FileNotFoundError if it is missing."""
    return importlib.import_module("torch").load(str(found.path(name)), **options)


def orbax(tree: Any, name: str = "tree") -> Write:
    """Return the `write` for `save` of a tree of arrays that this process holds whole, by Orbax's StandardCheckpointer.
    For a tree that several processes hold parts of, use Orbax's own CheckpointManager, which commits over all of them.
    Source: https://orbax.readthedocs.io/en/latest/guides/checkpoint/orbax_checkpoint_101.html"""

    def write(into: Writing) -> None:
        with importlib.import_module("orbax.checkpoint").StandardCheckpointer() as checkpointer:
            checkpointer.save(into.folder.resolve() / name, tree)
            checkpointer.wait_until_finished()

    return write


def orbax_load(found: Checkpoint, like: Any = None, name: str = "tree") -> Any:
    """Load what `orbax` wrote, in the shapes and places of `like`. Raise FileNotFoundError if it is missing."""
    with importlib.import_module("orbax.checkpoint").StandardCheckpointer() as checkpointer:
        return checkpointer.restore(found.path(name).resolve(), like)


def files(*paths: str | os.PathLike[str]) -> Write:
    """Return the `write` for `save` of copies of files and folders, each under its own name. The `write` raises
    ValueError if two have one name."""

    def write(into: Writing) -> None:
        for path in map(Path, paths):
            to = into.folder / path.name
            if to.exists():
                raise ValueError(f"{path.name}: two of the files have this name")
            if path.is_dir():
                shutil.copytree(str(path), str(to), symlinks=True)
            else:
                with path.open("rb") as source, into.open(path.name) as file:
                    shutil.copyfileobj(source, file, 1 << 20)

    return write


def should_stop_jax() -> bool:
    """Return whether any process of jax.distributed is to stop. Every process must call it at the same step."""
    numpy = importlib.import_module("numpy")
    utils = importlib.import_module("jax.experimental.multihost_utils")
    return bool(utils.process_allgather(numpy.array([should_stop()])).any())


def should_stop_torch(device: Any = None) -> bool:
    """Return whether any process of torch.distributed is to stop. Every process must call it at the same step. With
    NCCL, `device` is the process's GPU."""
    module = importlib.import_module("torch")
    flag = module.tensor([int(should_stop())], device=device)
    module.distributed.all_reduce(flag, op=module.distributed.ReduceOp.MAX)
    return bool(flag.item())
