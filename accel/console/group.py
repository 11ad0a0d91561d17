"""A command with verbs: finds the verb, and turns errors into lines and an exit code."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

import click

from accel.diagnostics.redaction import redact_output

from ..diagnostics.errors import BadInput
from .errors import code_of, open_missing_streams, silence_stdout
from .options import COMMON, Settings, options, program


class Verbs(click.Group):
    """A command with verbs, each imported from its module of the package on demand."""

    def __init__(self, name: str, verbs: Mapping[str, tuple[str, str]], package: str, **rest: Any) -> None:
        super().__init__(
            name,
            invoke_without_command=True,
            callback=_help_without_verb,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            **rest,
        )
        self.verbs = verbs
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        # A verb that is a Python keyword, such as import, is import_ there.
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        return getattr(import_module(f".{self.verbs[cmd_name][0]}", self.package), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.verbs:
            from accel.diagnostics.messages import did_you_mean, printable_name

            near = did_you_mean(args[0], list(self.verbs))
            raise BadInput(
                f"unknown command {printable_name(args[0])}{near}", f"`{ctx.command_path} --help` lists them"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in self.verbs.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        name = prog_name or (program() if self.name == "jobs" else str(self.name))
        variable = complete_var or f"_{name.replace('-', '_').upper()}_COMPLETE"
        if instruction := os.environ.get(variable):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, name, variable, instruction))
        settings = Settings()
        open_missing_streams()
        # A job's output may hold characters that the terminal's encoding lacks.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with redact_output():
            code = self._code(name, list(sys.argv[1:] if args is None else args), settings)
        sys.exit(code)

    def _code(self, name: str, args: list[str], settings: Settings) -> int:
        try:
            with self.make_context(name, args, obj=settings) as ctx:
                self.invoke(ctx)
                sys.stdout.flush()
            return 0
        except click.exceptions.Exit as done:
            return done.exit_code
        except BrokenPipeError:
            silence_stdout()
            return 141  # as if SIGPIPE had ended it, as it ends other programs in a pipe
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, the outermost handler
            return code_of(error, debug=settings.debug)


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"accel {version('accel-infra')}{_commit()}")
    except PackageNotFoundError:
        click.echo(f"accel, from a checkout{_commit()}")
    context.exit()


def _help_without_verb() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def common(names: Sequence[str] = COMMON) -> list[click.Option]:
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        help="Show the version.",
    )
    return [*options(names), version]


_COMMIT_DIGITS = 12
_LOOK_S = 5


def _commit() -> str:
    """Return `, commit 1a2b3c4d5e6f`, with a note if the checkout has changes, or an empty string."""
    root = Path(__file__).resolve().parents[2]
    found = _of_checkout(root) if (root / ".git").exists() else _of_package()
    return f", commit {found}" if found else ""


def _of_checkout(root: Path) -> str:
    import shutil
    import subprocess

    if not (git := shutil.which("git")):
        return ""
    # A repository can name a program as its file system monitor, which this command would run.
    ask = [git, "-c", "core.fsmonitor=false", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=12"]
    try:
        done = subprocess.run(
            [*ask, "--dirty= with changes"], capture_output=True, text=True, timeout=_LOOK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _of_package() -> str:
    """Return the commit that pip recorded. Source: https://packaging.python.org/en/latest/specifications/direct-url/"""
    import json
    from importlib.metadata import distribution, packages_distributions

    for name in packages_distributions().get("accel", ()):
        try:
            noted: Any = json.loads(distribution(name).read_text("direct_url.json") or "{}")
            return str(noted["vcs_info"]["commit_id"])[:_COMMIT_DIGITS]
        except (ValueError, KeyError, TypeError):
            continue
    return ""
