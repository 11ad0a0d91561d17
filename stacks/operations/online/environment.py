"""One environment against the existing resources of its clouds."""

from accel.diagnostics.faults import Fault, parse_path

from ...environment.config import Environment
from ..stack_files import ReadStack
from .aws import check_aws
from .checks import CheckResult, together
from .google import check_google


def check(environment: Environment) -> CheckResult:
    """Raise NoCredentials, CloudSilent, BadInput."""
    parts: list[CheckResult] = []
    if environment.aws is not None:
        parts.append(check_aws(environment.aws).within("aws"))
    if environment.gcp is not None:
        parts.append(check_google(environment.gcp).within("gcp"))
    return together(parts)


def lines(stack: ReadStack, strict: bool) -> tuple[list[str], list[str]]:
    """Return lines and errors (file, line, path). With `strict`, warnings and what could not be read are errors too."""
    checked = check(stack.environment)
    errors: list[str] = []
    shown: list[str] = []
    for finding in checked.findings:
        path = ("environment", *parse_path(finding.field))
        line = stack.placed(Fault(path, f"{finding.text} [{finding.rule}]"))
        if finding.severity == "reject" or strict:
            errors.append(line)
        else:
            shown.append(f"warning: {line}")
    unread = [f"{stack.path}: not checked: {each}" for each in checked.unread]
    if strict:
        errors += unread
    else:
        shown += [f"warning: {each}" for each in unread]
    if not errors:
        looked = ", ".join(checked.looked_at)
        summary = f"fits what exists ({looked})" if looked else "names nothing that exists before it"
        shown.insert(0, f"{stack.path}: {summary}")
    return shown, errors
