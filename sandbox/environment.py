"""Environment variables that lead a command to the sandbox, and to nothing but the sandbox."""

import json
import os
import sys
from pathlib import Path

from . import SandboxError, keys, toolchain
from .google import PROJECT

PERSONAL = ("AWS_", "CLOUDSDK_", "GCLOUD_", "GOOGLE_")
"""Prefixes of variables that would lead a command past the sandbox."""

_ROOT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_"
# Path between host and method in the addresses of each API that gcloud also uses. Source:
# https://cloud.google.com/sdk/gcloud/reference/topic/endpoint-override
_PATHS = {
    **dict.fromkeys(("container", "iam", "cloudresourcemanager", "serviceusage", "cloudquotas", "monitoring"), ""),
    **dict.fromkeys(("tpu", "logging", "openidconnect", "oslogin", "secretmanager"), ""),
    **dict.fromkeys(("batch", "aiplatform", "firestore", "pubsub", "cloudfunctions", "cloudscheduler"), ""),
    **dict.fromkeys(("artifactregistry", "file"), ""),
    "cloudbilling": "v1/",
    "compute": "compute/v1/",
    "storage": "storage/v1/",
}
_RELAY = "ACCEL_IAP_URL"


def project() -> Path:
    return Path(__file__).resolve().parent.parent


def home_of(given: Path | None = None) -> Path:
    return (given or Path(os.environ.get("SANDBOX_HOME") or project() / ".sandbox")).absolute()


def environment(home: Path | None = None) -> dict[str, str]:
    """Return the variables that lead `pulumi`, boto3 and `jobs` to the running sandbox of `home`; Google's where that
    part runs. Raise SandboxError (exit code 6) where the sandbox is not running."""
    home = home_of(home)
    try:
        cloud, plugins = (json.loads((home / f"{part}.json").read_text()) for part in ("cloud", "plugins"))
    except FileNotFoundError as error:
        raise SandboxError(6, f"the sandbox of {home} is not running", "start it: python -m sandbox start") from error
    engine = os.environ.get("ACCEL_PULUMI_BIN") or str(toolchain.engine())
    google = home / "google.json"
    lent = [str(home / "bin")] if google.exists() else []
    first = [*lent, engine, str(Path(sys.executable).parent)]
    rest = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part not in first]
    return {
        "PATH": os.pathsep.join([*first, *rest]),
        "SANDBOX_HOME": str(home),
        "PULUMI_HOME": str(home / "pulumi"),
        "PULUMI_BACKEND_URL": (home / "backend").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "sandbox",
        "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, port in plugins["providers"].items()),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{cloud['port']}",
        **keys.aws(keys.key(home)),
        "AWS_EC2_METADATA_DISABLED": "true",
        # Empty files: a person's own profile cannot be reached from here.
        "AWS_CONFIG_FILE": str(home / "aws-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "aws-config"),
        "GOOGLE_APPLICATION_CREDENTIALS": str(home / "google-credentials.json"),
        "CLOUDSDK_CONFIG": str(home / "gcloud"),
        "KUBECONFIG": str(home / "kubeconfig"),
        "ACCEL_TARGETS": str(project() / ".accel" / "targets.json"),
        **(_google(home, json.loads(google.read_text())["url"]) if google.exists() else {}),
    }


def _google(home: Path, url: str) -> dict[str, str]:
    roots = {f"{_ROOT}{name.upper()}": f"{url}/{name}.googleapis.com/{path}" for name, path in _PATHS.items()}
    relay = {_RELAY: f"{url.replace('http', 'ws', 1)}/v4"}
    return {"GOOGLE_OAUTH_ACCESS_TOKEN": keys.key(home), "GOOGLE_CLOUD_PROJECT": PROJECT, **relay, **roots}
