"""Grants of the sandbox's AWS account beyond a new one: vCPUs, so that jobs run, and nothing else. A new account has 0
vCPUs of every GPU family, and a person asks AWS for more (`stacks quota --request`). Here `sandbox start` asks the
control API for these, and `sandbox start --no-grants` for none; `sandbox status` and `stacks quota` show them."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from .keys import bearer

GRANTS: Mapping[str, float] = {
    "L-DB2E81BA": 1024,  # Running On-Demand G and VT instances
    "L-3819A6DF": 1024,  # All G and VT Spot Instance Requests
    "L-417A185B": 1024,  # Running On-Demand P instances
    "L-7212CCBC": 1024,  # All P4, P3 and P2 Spot Instance Requests
    "L-C4BD4855": 1024,  # All P5 Spot Instance Requests
    "L-1216C47A": 1024,  # Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances
    "L-34B43A08": 1024,  # All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests
}
"""vCPUs by the code of the quota."""


def grant(home: Path, url: str, values: Mapping[str, float]) -> dict[str, float]:
    """Grant these to the account of the sandbox's AWS at `url`, and return all grants afterwards."""
    body = json.dumps(dict(values)).encode()
    request = urllib.request.Request(f"{url}/sandbox-api/quotas", body, bearer(home))  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return {code: value for code, value in json.load(answer).items() if value is not None}
