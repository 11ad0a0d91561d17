"""`python -m sandbox.plugins --home DIR --cloud-url URL`: serves the stand-ins, writes DIR/plugins.json."""

import argparse
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from .aws.plugin import AwsPlugin
from .server import Boundary, Servicer

_THREADS = 64  # a create that waits for its resource holds one


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sandbox.plugins")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cloud-url", required=True)
    given = parser.parse_args()

    server = grpc.server(
        ThreadPoolExecutor(_THREADS),
        interceptors=[Boundary()],
        options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    )
    servicer = Servicer(AwsPlugin(given.cloud_url))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    told = given.home / "plugins.json.new"
    told.write_text(json.dumps({"pid": os.getpid(), "providers": {"aws": port}}))
    told.replace(given.home / "plugins.json")
    signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=0.5))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
