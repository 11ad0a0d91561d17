"""Entry point: the pack when the engine runs it with its address, the command `python -m policy` for a person."""

import re
import sys
from pathlib import Path

# The engine runs this folder as a script, which would put its modules beside the standard library's.
sys.path[0] = str(Path(__file__).resolve().parents[1])

if len(sys.argv) > 1 and re.fullmatch(r"\S+:\d+", sys.argv[1]):
    from policy.analyzer import serve

    serve()
else:
    from policy.commands import main

    main()
