"""Command lines and documents of other tools, as people write them."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

FLAG_WINS = rule("import.flag-wins")
FLAG_AFTER = rule("import.flag-after-dashes")
FLAG_SHARED = rule("import.flag-passed-on")
VARIABLE = rule("import.variable")
ROLE = rule("import.role")
TIMEOUT = rule("import.vertex.timeout-flag")
TENSORFLOW_GPU = rule("python.tensorflow-gpu")
PYTHON = rule("import.python")
POOLS_MAPPING = rule("import.vertex.pools-mapping")

ROLES = {
    "roles/ml.admin": "roles/aiplatform.admin",
    "roles/ml.developer": "roles/aiplatform.user",
    "roles/ml.jobOwner": "roles/aiplatform.user",
    "roles/ml.viewer": "roles/aiplatform.viewer",
}
"""Vertex AI role with the same permissions on jobs, by AI Platform role."""


def flag_wins(flag: str, same: bool, new: object, field: str) -> list[Finding]:
    if same:
        return []
    return [FLAG_WINS.finding(field, f"is set by {flag} too, which wins", "leave one of them out", new)]


def flag_after(flag: str, own: bool, field: str) -> list[Finding]:
    """Check a flag of the service after `--`. `own`: no program would have a flag of that name."""
    if own:
        return [FLAG_AFTER.finding(field, f"has {flag}, a flag of the service, after `--`", f"put {flag} before `--`")]
    message = f"has {flag}, which the service has too and does not see after `--`"
    return [FLAG_SHARED.finding(field, message, "put it before `--` if it was meant for the service")]


def variable(written: str, name: str, field: str) -> list[Finding]:
    """Check for a variable of unknown value in a pasted command. `name` is empty unless it is a plain one."""
    fix = f"give it with --var {name}=<value>" if name else "write its value instead"
    return [VARIABLE.finding(field, f"holds {written}, which no shell has replaced", fix)] if written else []


def role(name: str, field: str = "role") -> list[Finding]:
    if not name.startswith("roles/ml."):
        return []
    now = ROLES.get(name, "roles/aiplatform.user")
    return [ROLE.finding(field, f'is "{name}", which grants nothing on Vertex AI', f"grant {now}", now)]


def timeout_flag(value: str, field: str = "--timeout") -> list[Finding]:
    fix = f"write timeout_s: {value or '<seconds>'} into the job file (scheduling.timeout of the config)"
    return [TIMEOUT.finding(field, f'is "{value}", and the command has no such flag', fix)]


def requirement(name: str, field: str) -> list[Finding]:
    """Check a requirement or the name of an archive."""
    if not name.rpartition("/")[2].lower().replace("_", "-").startswith("tensorflow-gpu"):
        return []
    return [TENSORFLOW_GPU.finding(field, f'is "{name}", a package that was withdrawn', "use tensorflow[and-cuda]")]


def pools_mapping(is_mapping: bool, field: str = "workerPoolSpecs") -> list[Finding]:
    if not is_mapping:
        return []
    return [POOLS_MAPPING.finding(field, "is a mapping", "write a list of pools", "a list of one")]


def python(words: list[str], field: str = "command") -> list[Finding]:
    if words[:1] != ["python"]:
        return []
    return [PYTHON.finding(field, "begins with python, which the image may not have", "use python3 unless it has")]
