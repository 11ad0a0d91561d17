"""Lock files of the Cloud Run functions' packages, each with its hashes. Run `python -m
stacks.environment.function_packages` after a new version of one of WANTED. pip resolves for the functions' Python and
for the machines that build them, and reports which files it would take. It runs once more for the older name of their
platform, under which some packages have a file too."""

import json
import subprocess
import sys

from components.gcp.cloud_function import LOCKS, RUNTIME

WANTED = {
    "budget-function": ("functions-framework==3.10.2",),
    "reconcile-function": ("functions-framework==3.10.2", "requests==2.34.2"),
}
PLATFORMS = (("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"), ("manylinux2014_x86_64",))
HEAD = "# Written by `python -m stacks.environment.function_packages`; pip takes no other files.\n--only-binary :all:\n"


def lock_packages(wanted: tuple[str, ...]) -> str:
    hashes: dict[str, set[str]] = {}
    for platforms in PLATFORMS:
        options = [option for each in platforms for option in ("--platform", each)]
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--report",
            "-",
        ]
        command += ["--only-binary", ":all:", "--target", "unused", "--implementation", "cp", *options]
        command += ["--python-version", RUNTIME.removeprefix("python"), *wanted]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        for each in report["install"]:
            pin = f"{each['metadata']['name'].lower()}=={each['metadata']['version']}"
            hashes.setdefault(pin, set()).add(each["download_info"]["archive_info"]["hashes"]["sha256"])
    lines = [
        " \\\n    ".join([pin, *(f"--hash=sha256:{each}" for each in sorted(hashes[pin]))]) for pin in sorted(hashes)
    ]
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    LOCKS.mkdir(exist_ok=True)
    for name, wanted in WANTED.items():
        (LOCKS / f"{name}.txt").write_text(lock_packages(wanted))


if __name__ == "__main__":
    main()
