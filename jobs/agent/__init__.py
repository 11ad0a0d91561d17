"""Agent of a machine that was created for a job: a startup script, and a program of a few modules. Both are in the
machine's own metadata, so no image has to include them and no machine has to download them. Google accepts 256 KiB per
value and 512 KiB in all: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances/setMetadata"""

import base64
import io
import zipfile
from functools import cache
from pathlib import Path

_MAIN = "import sys\n\nfrom program.run import main\n\nsys.exit(main())\n"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""Time of every file, so that the same files give the same archive; a zip's time begins here."""


@cache
def metadata() -> dict[str, str]:
    """Return the entries of a machine's metadata that start the agent. The agent's task is the entry `accel-job`."""
    here = Path(__file__).parent
    return {"startup-script": (here / "startup.sh").read_text(), "accel-agent": _packed(here / "program")}


def _packed(folder: Path) -> str:
    """Return a zip archive that Python runs, in base64; not compressed, since the output of zlib's versions differs."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _WHEN), _MAIN)
        for file in sorted(folder.glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"program/{file.name}", _WHEN), file.read_bytes())
    return base64.encodebytes(held.getvalue()).decode()
