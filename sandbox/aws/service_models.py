"""boto3's models of services, parsed once in a process. boto3 keeps them for one session, and moto and the tests make
many: each would list and parse them anew, 0.2 s for four clients."""

from typing import Any

from botocore.loaders import Loader

_kept: dict[Any, Any] = {}
_begin = Loader.__init__


def keep() -> None:
    """Give all loaders one cache. None of them may have a folder of its own."""
    Loader.__init__ = _sharing


def _sharing(loader: Loader, *given: Any, **named: Any) -> None:
    _begin(loader, *given, **named)
    loader._cache = _kept
