"""Speed of the sandbox's nodes, and faults: DIR/nodes.json, read again whenever it changes. {"scale_up_s": 5,
"stockout": ["my-pool"], ...}: any of the fields below. The real times are minutes, given with each."""

import json
import time
from dataclasses import dataclass, field, fields
from pathlib import Path


@dataclass
class Settings:
    """Times in seconds. `stockout`: node pools without available machines, or "ZONE/POOL"."""

    scale_up_s: float = 0.5  # minutes: https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler
    driver_s: float = 0.3  # until a driver that GKE installs is there; a minute or two
    backoff_s: float = 30  # after a stockout; the autoscaler's own: 5 minutes at first, 30 at most
    idle_s: float = 600  # until an unneeded node is removed: 10 minutes
    grace_s: float = 15  # for pods of a preempted Spot machine, system pods not counted; .../concepts/spot-vms
    clock_offset_s: float = 0  # how far the sandbox's clock is ahead: idle nodes go earlier
    stockout: tuple[str, ...] = ()
    exhausted: set[str] = field(default_factory=set[str], init=False)  # machine types, from Google's side

    def now(self) -> float:
        return time.monotonic() + self.clock_offset_s


class SettingsFile:
    """Settings in a sandbox's folder; a missing field has the default above."""

    def __init__(self, home: Path) -> None:
        self._path, self._stamp = home / "nodes.json", 0
        self.now = Settings()

    def read(self) -> Settings:
        """Return the current settings. Raises ValueError for a file that cannot be read, and for an unknown field."""
        stamp = self._path.stat().st_mtime_ns if self._path.exists() else 0
        if stamp != self._stamp:
            told = json.loads(self._path.read_text()) if stamp else {}
            if unknown := told.keys() - {each.name for each in fields(Settings) if each.init}:
                raise ValueError(f"{self._path}: unknown setting: {', '.join(sorted(unknown))}")
            self.now, self._stamp = Settings(**told), stamp
        return self.now
