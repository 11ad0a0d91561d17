"""The boot script that makes one scratch folder of an instance's own NVMe disks."""

SCRATCH = "/scratch"
DISKS = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"
"""udev's names of instance store volumes; EBS volumes are `nvme-Amazon_Elastic_Block_Store_*`.
Source: https://docs.aws.amazon.com/ebs/latest/userguide/nvme-ebs-volumes.html"""


def local_nvme_script(path: str, disks: str = DISKS) -> str:
    """A shell script for user data: the disks striped (RAID 0) where there are several, XFS, mounted at `path` for all
    to write. Run again, as at a reboot, it changes nothing.

    Where it fails, jobs run all the same, and `path` is a folder of the root volume.
    """
    return f"""\
#!/bin/bash
set -euo pipefail
mountpoint -q {path} && exit 0
udevadm settle || true
mapfile -t disks < <(for disk in {disks}; do [ -e "$disk" ] && readlink -f "$disk"; done | sort -u)
if [ ${{#disks[@]}} -eq 0 ]; then
  echo "accel: no local NVMe disk for {path}" >&2
  exit 1
fi
device=${{disks[0]}}
if [ ${{#disks[@]}} -gt 1 ]; then
  command -v mdadm >/dev/null || dnf install -y mdadm
  device=/dev/md/scratch
  mdadm --create "$device" --run --level=0 --raid-devices=${{#disks[@]}} "${{disks[@]}}"
fi
command -v mkfs.xfs >/dev/null || dnf install -y xfsprogs
mkfs.xfs -f "$device"
mkdir -p {path}
mount -o noatime "$device" {path}
chmod 1777 {path}
"""
