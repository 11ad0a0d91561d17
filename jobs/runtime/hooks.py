"""What goes into a checkpoint: values of torch, trees of JAX by Orbax, files and folders. Nothing is imported unless
used.

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
    """For `save`: what torch.save takes, written as a stream and hashed on the way.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.save.html
    """

    def write(into: Writing) -> None:
        with into.open(name) as file:
            importlib.import_module("torch").save(state, file)

    return write


def torch_load(found: Checkpoint, name: str = "state.pt", **options: Any) -> Any:
    """What `torch` wrote; `options` are torch.load's. Raises FileNotFoundError."""
    return importlib.import_module("torch").load(str(found.path(name)), **options)


def orbax(tree: Any, name: str = "tree") -> Write:
    """For `save`: a tree of arrays that this process holds whole, by Orbax's StandardCheckpointer.

    A tree that several processes hold parts of is written by Orbax's own CheckpointManager, which commits over all of
    them. Source: https://orbax.readthedocs.io/en/latest/guides/checkpoint/orbax_checkpoint_101.html
    """

    def write(into: Writing) -> None:
        with importlib.import_module("orbax.checkpoint").StandardCheckpointer() as checkpointer:
            checkpointer.save(into.folder.resolve() / name, tree)
            checkpointer.wait_until_finished()

    return write


def orbax_load(found: Checkpoint, like: Any = None, name: str = "tree") -> Any:
    """What `orbax` wrote, in the shapes and places of `like`. Raises FileNotFoundError."""
    with importlib.import_module("orbax.checkpoint").StandardCheckpointer() as checkpointer:
        return checkpointer.restore(found.path(name).resolve(), like)


def files(*paths: str | os.PathLike[str]) -> Write:
    """For `save`: copies of files and folders, each under its own name.

    Raises, when it is used:
        ValueError: two have one name.
    """

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
    """`should_stop` agreed on by all processes of jax.distributed; every one must call it at the same step."""
    numpy = importlib.import_module("numpy")
    utils = importlib.import_module("jax.experimental.multihost_utils")
    return bool(utils.process_allgather(numpy.array([should_stop()])).any())


def should_stop_torch(device: Any = None) -> bool:
    """`should_stop` agreed on by all processes of torch.distributed; every one must call it at the same step. With NCCL
    `device` is the process's GPU."""
    module = importlib.import_module("torch")
    flag = module.tensor([int(should_stop())], device=device)
    module.distributed.all_reduce(flag, op=module.distributed.ReduceOp.MAX)
    return bool(flag.item())
