"""An archive in Cloud Storage: gs://<bucket>/<object>, read as the account that the metadata server speaks for.

Sources: https://docs.cloud.google.com/compute/docs/access/authenticate-workloads#applications,
https://docs.cloud.google.com/storage/docs/json_api/v1/objects/get
"""

import json
import os
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener, urlopen


def token() -> str:
    """Return a token of the job's account."""
    env = os.environ
    # The sandbox's storage, whose jobs get a token with it.
    if "ACCEL_STORAGE_ROOT" in env and env.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return env["GOOGLE_OAUTH_ACCESS_TOKEN"]
    host = env.get("GCE_METADATA_HOST") or "metadata.google.internal"
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    # No proxy can reach the metadata server.
    asked = build_opener(ProxyHandler({})).open(Request(url, headers={"Metadata-Flavor": "Google"}), timeout=20)
    return str(json.load(asked)["access_token"])


def opened(source: str) -> Any:
    """Open the archive for reading. Raise OSError."""
    bucket, _, name = source[5:].partition("/")
    root = os.environ.get("ACCEL_STORAGE_ROOT") or "https://storage.googleapis.com/"
    url = f"{root}storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
    return urlopen(Request(url, headers={"Authorization": f"Bearer {token()}"}), timeout=60)
