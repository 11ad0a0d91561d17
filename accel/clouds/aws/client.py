"""An AWS client for a call or two of the command line's own; the backend has its own clients."""

import threading
from importlib import import_module
from typing import Any

CONNECTIONS = 64
"""Kept open by a client: as many as there are threads that submit."""
_MAKING = threading.Lock()
"""Clients may be shared by threads, and making one is not safe for them.
Source: https://docs.aws.amazon.com/boto3/latest/guide/clients.html"""


def client(service: str, region: str, *, connect_s: float, read_s: float, attempts: int) -> Any:
    """Untyped: its methods are made at run time. Raises what botocore raises."""
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_s, read_timeout=read_s, retries=retries, max_pool_connections=CONNECTIONS)
    with _MAKING:
        return import_module("boto3").client(service, region_name=region, config=config)
