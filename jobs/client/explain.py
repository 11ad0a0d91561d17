"""Why a job waits or failed, according to its platform's backend."""

from dataclasses import replace

from accel.console.reporter import Reporter
from accel.diagnostics.errors import BadInput, JobsError

from ..backends.base import Backend, Explain, Explanation, JobRef
from .targets import known_targets


def explanation(ref: JobRef, backend: Backend, reporter: Reporter) -> Explanation:
    """Raise BadInput for a job of a kind that cannot be explained, and the errors of its backend."""
    if not isinstance(backend, Explain):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} cannot be explained; `get` and `logs` show what is known")
    told = backend.explain(ref, elsewhere=lambda: _regions(ref.kind, reporter))
    return replace(told, next_step=told.next_step.replace(" REF`", f" {ref}`"))


def _regions(kind: str, reporter: Reporter) -> list[str]:
    """Return none where the targets cannot be read: a job that exists needs none of them, so that is no error."""
    try:
        entries = known_targets(reporter).entries.values()
    except JobsError as error:
        reporter.warn(f"jobs in other regions are not looked for: {error.message}")
        return []
    of_kind = [entry.target for entry in entries if entry.target and entry.target.kind == kind]
    return list(dict.fromkeys(region for target in of_kind if (region := getattr(target, "region", ""))))
