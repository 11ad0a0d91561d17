"""A request that is refused."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from accel.diagnostics.errors import BadInputs

SECRET = "hf_abcdefghijklmnop"


@contextmanager
def refusal(message: str) -> Generator[None]:
    """Within it a request is refused, for this reason among others, and without a word of SECRET."""
    with pytest.raises(BadInputs) as caught:
        yield
    assert any(message in each for each in caught.value.messages), caught.value.messages
    assert SECRET[:9] not in caught.value.message
