"""Errors and warnings of one input, collected while it is read and raised once."""

from collections.abc import Callable, Iterable, Mapping

from .errors import BadInputs
from .findings import Finding


class Diagnostics:
    """Errors and warnings of one input, each `<path>: <text>`, in the order of their addition. `name_of` translates a
    field of the rules into the input's own name for it."""

    def __init__(
        self,
        errors: Iterable[str] = (),
        warnings: Iterable[str] = (),
        *,
        name_of: Callable[[str], str] = lambda field: field,
    ) -> None:
        self.errors = list(errors)
        self.warnings = list(warnings)
        self._name_of = name_of

    def error(self, text: str) -> None:
        self.errors.append(text)

    def reject(self, field: str, text: str) -> None:
        self.errors.append(f"{self._name_of(field)}: {text}")

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def add(self, findings: Iterable[Finding], *, under: str = "") -> bool:
        """Add a `reject` as an error, others as warnings. Return whether none was a `reject`. `under` is a path
        prefix."""
        before = len(self.errors)
        for finding in findings:
            name = self._name_of(f"{under}.{finding.field}" if under else finding.field)
            (self.errors if finding.severity == "reject" else self.warnings).append(f"{name}: {finding.text}")
        return len(self.errors) == before

    def add_errors(self, findings: Iterable[Finding]) -> bool:
        return self.add(each for each in findings if each.severity == "reject")

    def add_warnings(self, findings: Iterable[Finding]) -> None:
        self.add(each for each in findings if each.severity != "reject")

    def with_names(self, names: Mapping[str, str]) -> "Diagnostics":
        """Return a view on the same errors and warnings, with other names for fields of the rules."""
        view = Diagnostics(name_of=lambda field: names.get(field, field))
        view.errors, view.warnings = self.errors, self.warnings
        return view

    def refusal(self) -> BadInputs:
        return BadInputs(self.errors)

    def raise_errors(self) -> None:
        """Raise BadInputs with all errors."""
        if self.errors:
            raise self.refusal()
