"""Every rule once."""

from . import definitions, environments, gcp_gpus, gcp_tpus, monitoring, others, places, shapes, shares
from .case import Case

CASES = (
    environments.CASES
    + definitions.CASES
    + others.CASES
    + places.CASES
    + monitoring.CASES
    + shapes.CASES
    + shares.CASES
    + gcp_gpus.CASES
    + gcp_tpus.CASES
)

__all__ = ["CASES", "Case"]
