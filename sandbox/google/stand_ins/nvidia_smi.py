"""Stand-in for nvidia-smi on a machine: `main(FOLDER, ARGUMENTS)`, from the data of FOLDER/gpus.json: {"driver": bool,
"gpus": [{"index": 0, "name": ...}]}; the keys are those of --query-gpu."""

import json
import sys
from pathlib import Path

# Message on a machine with a GPU whose driver is not loaded.
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)
UNITS = {"memory.total": " MiB", "utilization.gpu": " %"}


def main(folder: str, arguments: list[str]) -> int:
    known = json.loads((Path(folder) / "gpus.json").read_text())
    gpus = known["gpus"]
    if not gpus:
        sys.stderr.write("nvidia-smi: command not found\n")
        return 127
    if not known["driver"]:
        return _say(NO_DRIVER, 9)
    asked = next((each.partition("=")[2] for each in arguments if each.startswith("--query-gpu=")), "")
    if asked:
        fields = asked.split(",")
        form = next((each.partition("=")[2] for each in arguments if each.startswith("--format=")), "").split(",")
        if unknown := [field for field in fields if field not in gpus[0]]:
            return _say(f'Field "{unknown[0]}" is not a valid field to query.', 2)
        units = {} if "nounits" in form else UNITS
        rows = [", ".join(f"{gpu[field]}{units.get(field, '')}" for field in fields) for gpu in gpus]
        header = ", ".join(f"{field} [{UNITS[field].strip()}]" if field in UNITS else field for field in fields)
        return _say("\n".join([*([] if "noheader" in form else [header]), *rows]), 0)
    if unknown := [each for each in arguments if each not in ("-L", "--list-gpus")]:
        return _say(f"Invalid combination of input arguments: the sandbox does not know {unknown[0]}", 2)
    return _say("\n".join(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})" for gpu in gpus), 0)


def _say(text: str, code: int) -> int:
    sys.stdout.write(f"{text}\n")
    return code
