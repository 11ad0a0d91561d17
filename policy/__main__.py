"""Run by the engine with its address, the pack; run by a person, the command `python -m policy`."""

import re
import sys
from pathlib import Path

# The engine runs this folder, whose modules would then stand beside the standard library's.
sys.path[0] = str(Path(__file__).resolve().parents[1])

if len(sys.argv) > 1 and re.fullmatch(r"\S+:\d+", sys.argv[1]):
    from policy.analyzer import serve

    serve()
else:
    from policy.commands import main

    main()
