"""Golden files: what a test makes is compared with them. ACCEL_UPDATE_GOLDEN=1 writes them anew; look at the
difference."""

import json
import os
from pathlib import Path
from typing import Any

from jobs.backends.base import Request


def check_golden(path: Path, value: Any, *, sort_keys: bool = True) -> None:
    text = json.dumps(value, indent=2, sort_keys=sort_keys) + "\n"
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def check_request(path: Path, request: Request, **more: Any) -> None:
    """What `submit --dry-run` shows of a request, and what a test adds to it."""
    check_golden(path, {"body": request.body, "warnings": list(request.warnings), **more})
