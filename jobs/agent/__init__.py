"""What runs on a machine that was made for a job: a startup script, and a program of a few modules.

Both lie in the machine's own metadata, so that no image has to bring them and no machine has to download them. Google
takes 256 KiB a value and 512 KiB in all. Source:
https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances/setMetadata
"""

import base64
import io
import zipfile
from functools import cache
from pathlib import Path

VALUE_MAX = 256 * 1024
"""Bytes of a value of metadata."""

_MAIN = "import sys\n\nfrom program.run import main\n\nsys.exit(main())\n"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The same files give the same archive; a zip's time begins here."""


@cache
def metadata() -> dict[str, str]:
    """The entries of a machine's metadata that start the agent. What the agent is to do is its entry `accel-job`."""
    here = Path(__file__).parent
    return {"startup-script": (here / "startup.sh").read_text(), "accel-agent": _packed(here / "program")}


def _packed(folder: Path) -> str:
    """A folder's modules as a zip archive that Python runs, in base64. Stored as they are: zlib's versions differ."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _WHEN), _MAIN)
        for file in sorted(folder.glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"program/{file.name}", _WHEN), file.read_bytes())
    return base64.encodebytes(held.getvalue()).decode()
