"""`python -m sandbox.plugins --home DIR --cloud-url URL`: serves the stand-ins, writes DIR/plugins.json."""

import argparse
import json
import signal
from pathlib import Path
from typing import Any

from ..keys import key
from ..starting import announce, without_collector


def _serve(home: Path, cloud_url: str) -> dict[str, tuple[Any, int]]:
    """Return the server and the port of each provider."""
    from .aws.plugin import AwsPlugin
    from .kubernetes.plugin import KubernetesPlugin, moved_settings
    from .server import Servicer, serve

    aws = AwsPlugin(cloud_url, key(home))
    servicers = {
        "aws": Servicer(lambda: aws),
        "kubernetes": Servicer(lambda: KubernetesPlugin(home), moved_settings),
    }
    if (home / "google.json").exists():
        from .gcp.plugin import GcpPlugin

        google = json.loads((home / "google.json").read_text())
        gcp = GcpPlugin(google["url"], home)
        servicers["gcp"] = Servicer(lambda: gcp)
    return {name: serve(servicer) for name, servicer in servicers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sandbox.plugins")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cloud-url", required=True)
    given = parser.parse_args()
    with without_collector():
        running = _serve(given.home, given.cloud_url)

    announce(given.home / "plugins.json", providers={name: port for name, (_, port) in running.items()})
    signal.signal(signal.SIGTERM, lambda *_: [server.stop(grace=0.5) for server, _ in running.values()])
    for server, _ in running.values():
        server.wait_for_termination()


if __name__ == "__main__":
    main()
