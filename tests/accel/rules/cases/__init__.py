"""Every rule once."""

from . import definitions, environments, gcp_gpus, gcp_tpus, others
from .case import Case

CASES = environments.CASES + definitions.CASES + others.CASES + gcp_gpus.CASES + gcp_tpus.CASES

__all__ = ["CASES", "Case"]
