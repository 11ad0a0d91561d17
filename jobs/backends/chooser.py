"""Choice among offers, for any backend: a machine type for one, a node pool for another."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding

OfferT = TypeVar("OfferT")


@dataclass(frozen=True)
class Requirement(Generic[OfferT]):
    """Condition on offers. `fault` explains why none of those left meets it: as text about `field`, or as findings."""

    field: str
    fits: Callable[[OfferT], bool]
    fault: Callable[[Sequence[OfferT]], str | Sequence[Finding]]


def narrow(
    offers: Iterable[OfferT], requirements: Iterable[Requirement[OfferT]], diagnostics: Diagnostics
) -> list[OfferT]:
    """Return none, and add the fault, if one requirement rules out all that are left."""
    left = list(offers)
    for each in requirements:
        fitting = [offer for offer in left if each.fits(offer)]
        if not fitting:
            fault = each.fault(left)
            if isinstance(fault, str):
                diagnostics.error(f"{each.field}: {fault}")
            else:
                diagnostics.add_errors(fault)
            return []
        left = fitting
    return left


def choose(
    offers: Iterable[OfferT],
    requirements: Iterable[Requirement[OfferT]],
    wishes: Iterable[Callable[[OfferT], bool]],
    rank: Callable[[OfferT], Any],
    diagnostics: Diagnostics,
) -> OfferT | None:
    """Return the first offer by rank that meets the requirements, and each wish that some of them meet."""
    left = narrow(offers, requirements, diagnostics)
    for wish in wishes:
        left = [offer for offer in left if wish(offer)] or left
    return min(left, key=rank, default=None)
