"""Errors as lines on stderr: `error: ...`, once for each fault, then at most one `hint: ...`."""

import errno
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import click

from ..diagnostics.errors import BadInput, BadInputs, Interrupted, JobsError
from .reporter import Reporter

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What the system says where a disk, a quota or a limit on the size of files is used up."""

EXTRAS = {
    **dict.fromkeys(("pulumi", "pulumi_aws", "pulumi_gcp", "pulumi_kubernetes"), "pulumi"),
    **dict.fromkeys(("google", "paramiko", "requests", "websocket"), "google"),
}
"""Extra that installs each optional package, by import name."""


def code_of(error: BaseException, *, debug: bool) -> int:
    """Report the error and return its exit code."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    known = _known(error)
    if known is None:
        _line("error", f"unexpected: {type(error).__name__}: {error}")
        _line("hint", "this is a bug in accel; run the command with --debug for the traceback")
        return 1
    for message in known.messages if isinstance(known, BadInputs) else [known.message]:
        _line("error", message)
    if hint := _region(known) or known.hint:
        _line("hint", hint)
    return known.exit_code


def _region(error: JobsError) -> str | None:
    if isinstance(error, BadInput):
        return None
    from ..diagnostics.region_typos import region

    return region(error.message)


def warn(message: str, reporter: Reporter) -> None:
    """Print a warning. Raises BadInput with --strict."""
    if reporter.strict:
        raise BadInput(message, "it is a warning without --strict")
    _line("warning", message)


def say(message: str) -> None:
    """Print a message on stderr, so that stdout holds data only."""
    click.echo(_plain(message), err=True)


def silence_stdout() -> None:
    """Redirect stdout to the null device after its reader has gone; otherwise Python complains again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_missing_streams() -> None:
    """Open the null device for each standard stream that the caller has closed, as `command >&-` does."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115, as long as the command runs


def interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _known(error: BaseException) -> JobsError | None:
    if isinstance(error, JobsError):
        return error
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Interrupted("interrupted")
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return BadInput(error.format_message())
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return JobsError(f"the output cannot be written: {error.strerror}", "what the command did before is done")
    if isinstance(error, OSError) and isinstance(error.filename, str) and error.strerror:
        return BadInput(f"{error.filename}: {error.strerror}")
    if isinstance(error, ModuleNotFoundError) and (package := (error.name or "").partition(".")[0]) in EXTRAS:
        hint = f"install accel-infra with its extra: accel-infra[{EXTRAS[package]}]"
        return BadInput(f"{package} is not installed here", hint)
    if type(error).__name__ in ("DamagedData", "NoCatalog"):
        return _damaged(error)
    return None


def _damaged(error: BaseException) -> BadInput | None:
    from accel.catalog.selection import CHOICE, NoCatalog
    from accel.catalog.tables import DATA, DamagedData

    if isinstance(error, DamagedData) and "/" not in error.file:
        return BadInput(f"{DATA}/{error}", "accel's own data: install accel again")
    if isinstance(error, DamagedData | NoCatalog):
        return BadInput(str(error), f"`stacks refresh` makes a new one; without {CHOICE} the shipped one is used")
    return None


def _usage(error: click.UsageError) -> BadInput:
    path = error.ctx.command_path if error.ctx else "jobs"
    hint = f"`{path} --help` shows its usage"
    if isinstance(error, click.NoSuchOption):
        from accel.diagnostics.messages import did_you_mean, printable_name

        params = error.ctx.command.get_params(error.ctx) if error.ctx else []
        known = [name for param in params for name in param.opts if name.startswith("--")]
        near = did_you_mean(error.option_name, known)
        return BadInput(f"{path}: unknown option {printable_name(error.option_name)}{near}", hint)
    if isinstance(error, click.MissingParameter):
        return BadInput(f"{path}: {_param(error)} is missing", hint)
    if isinstance(error, click.BadParameter):
        return BadInput(f"{path}: {_param(error)}: {_sentence(error.message)}", hint)
    return BadInput(f"{path}: {_sentence(error.format_message())}", hint)


def _param(error: click.BadParameter) -> str:
    if error.param is None:
        return "a value"
    named = [name for name in error.param.opts if name.startswith("-")]
    return named[-1] if named else (error.param.metavar or error.param.human_readable_name).rstrip(".")


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:]


def _line(kind: str, message: str) -> None:
    word = click.style(f"{kind}:", fg=_COLOURS[kind]) if _coloured() else f"{kind}:"
    with suppress(OSError):  # nobody listens, or the disk is full; the exit code still says it
        click.echo(f"{word} {_plain(message)}", err=True, color=True)


_COLOURS = {"error": "red", "warning": "yellow", "hint": "cyan"}


def _coloured() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _plain(message: str) -> str:
    return "".join(character if character.isprintable() else " " for character in message)
