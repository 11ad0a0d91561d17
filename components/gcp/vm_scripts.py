"""Scripts that a GPU VM runs at its start and at its end. At each start they install the driver if the image lacks it,
then report the number of GPUs, and once all are there run the author's script. The report is the guest attribute
`accel/gpus`, which instances.getGuestAttributes reads: `waiting`, the number, or `driver-not-ready`. At the end, or
already when Google gives notice of a preemption, they send SIGTERM to what the author named, and wait for it."""

from __future__ import annotations

import shlex

READY = "accel/gpus"
"""Namespace and key of the guest attribute with the number of GPUs."""

AUTHORS_SCRIPT = "accel-startup"
"""Metadata key of the author's script, which may use any interpreter."""

_INSTALLER = "https://storage.googleapis.com/compute-gpu-installation-us/installer/latest/cuda_installer.pyz"
"""Google's own: https://docs.cloud.google.com/compute/docs/gpus/install-drivers-gpu. It may reboot the machine, and
then continues at the next boot."""

_COMMON = """\
#!/bin/bash
# Made by the stack: see components/gcp/vm_scripts.py.
set -u
root="http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1/instance"
ask() { curl -sf -H 'Metadata-Flavor: Google' "$root/$1"; }
"""

_DRIVER = f"""
if ! nvidia-smi -L >/dev/null 2>&1; then
  installer=/var/lib/cuda_installer.pyz
  curl -fsSL {_INSTALLER} -o "$installer" &&
    python3 "$installer" install_driver --installation-mode=repo --installation-branch=prod ||
    echo "accel: the driver could not be installed"
fi
"""

_REPORT = """
tell() {{ curl -sf -X PUT -H 'Metadata-Flavor: Google' --data "$1" "$root/guest-attributes/{ready}"; }}
ready() {{
  local end=$((SECONDS + {wait_s})) found
  while :; do
    found=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
    if [ "$found" -ge {gpus} ]; then tell "$found"; return 0; fi
    if [ "$SECONDS" -ge "$end" ]; then break; fi
    sleep 2
  done
  tell driver-not-ready
  echo "accel: $found of {gpus} GPUs after {wait_s} s"
  return 1
}}
authors() {{
  local script
  ask attributes/{script} >/dev/null || return 0
  script=$(mktemp) && ask attributes/{script} >"$script" && chmod 0700 "$script" && "$script"
}}
tell waiting
# The image's own installer may wait for this script, and whoever runs this script waits for its output.
(ready && authors) >>"${{HOME:-/root}}/accel-startup.log" 2>&1 </dev/null &
"""

_UNIT = """
checkpoint() {{ timeout {wait_s} systemctl stop {unit}; }}
"""

_GROUP = """
checkpoint() {{
  local group end=$((SECONDS + {wait_s}))
  group=$(cat {pid_file}) || return 0
  # Told once: a second SIGTERM may end what saves a checkpoint.
  if mkdir {pid_file}".$group.told" 2>/dev/null; then kill -TERM -- "-$group" || return 0; fi
  while kill -0 -- "-$group" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do sleep 0.2; done
}}
"""

_WATCH = """
watch() {
  until [ "$(ask preempted)" = TRUE ]; do
    ask 'preempted?wait_for_change=true' >/dev/null || sleep 1
  done
  checkpoint
}
watch >/dev/null 2>&1 </dev/null &
"""


def checkpoint_script(unit: str | None, pid_file: str | None, wait_s: int) -> str:
    """Return the function `checkpoint`: SIGTERM to a unit of systemd, or to the process group in a file."""
    if unit:
        return _UNIT.format(wait_s=wait_s, unit=shlex.quote(unit))
    return _GROUP.format(wait_s=wait_s, pid_file=shlex.quote(pid_file or ""))


def startup_script(gpus: int, *, wait_s: int, driver: bool, checkpoint: str | None = None) -> str:
    """Return the script. `driver`: install it here. `checkpoint`: the function to call on a notice of preemption."""
    watch = checkpoint + _WATCH if checkpoint else ""
    report = _REPORT.format(ready=READY, script=AUTHORS_SCRIPT, gpus=gpus, wait_s=wait_s)
    return _COMMON + watch + (_DRIVER if driver else "") + report


def shutdown_script(checkpoint: str) -> str:
    return f"{_COMMON}{checkpoint}checkpoint\n"
