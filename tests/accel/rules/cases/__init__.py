"""Every rule once."""

from . import definitions, environments, gcp_gpus, gcp_tpus, others, places
from .case import Case

CASES = environments.CASES + definitions.CASES + others.CASES + places.CASES + gcp_gpus.CASES + gcp_tpus.CASES

__all__ = ["CASES", "Case"]
