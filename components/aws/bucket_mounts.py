"""The boot script that mounts S3 buckets on an instance, for containers to see as folders."""

from collections.abc import Mapping
from typing import Literal

Access = Literal["read-only", "read-write"]

OPTIONS: dict[Access, str] = {"read-only": "--read-only", "read-write": "--allow-delete --allow-overwrite"}
"""Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md"""


def bucket_mounts_script(buckets: Mapping[str, Access], root: str) -> str:
    """Return a user data script that mounts each bucket at `root`/<bucket> for every user, by Mountpoint for Amazon S3.
    If a bucket cannot be mounted, the instance takes no jobs: they would find an empty folder in its place. The script
    needs Amazon Linux 2023 from 2023.9.20251110 on, whose repository has Mountpoint. Source:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mountpoint-installation.html"""
    mounts = "\n".join(f"mounted {bucket} {OPTIONS[access]}" for bucket, access in sorted(buckets.items()))
    return f"""\
#!/bin/bash
set -euo pipefail
trap 'echo "accel: no bucket mounted, so this instance takes no jobs" >&2; systemctl mask --now --no-block ecs' ERR
mounted() {{
  local bucket=$1 folder={root}/$1
  shift
  mountpoint -q "$folder" && return
  mkdir -p "$folder"
  mount-s3 "$bucket" "$folder" --allow-other "$@"
}}
command -v mount-s3 >/dev/null || dnf install -y mount-s3
set -E
{mounts}
"""
