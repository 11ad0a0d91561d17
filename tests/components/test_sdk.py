"""The SDKs' packages, of which only the modules that are used are imported."""

import subprocess
import sys

import pytest

from sandbox.environment import project

PROGRAM = """
import sys
import pytest
from components.sdk import aws, batch, gcp

package = {package}
early = {{name: getattr(package, name) for name in {names}}}
own = package.__name__ + "."
used = {{name for name in sys.modules if name.startswith(own)}}
assert 0 < len(used) < 20, used
with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
    package.Nothing
every = {{name for name in sys.modules if name.startswith(own)}}
assert len(every) > len(used)
assert {other!r} in vars(package)
assert all(vars(package)[name] is one for name, one in early.items())
assert sys.modules[package.__name__] is package
"""


@pytest.mark.parametrize(
    ("package", "names", "other"),
    [
        ("aws.ec2", ("Vpc", "LaunchTemplateNetworkInterfaceArgs", "get_ami"), "InstanceType"),
        ("gcp.storage", ("Bucket", "BucketLifecycleRuleArgs", "get_bucket"), "Notification"),
        ("batch.v1", ("Job", "JobSpecArgs"), "CronJob"),
    ],
)
def test_a_package_is_whole_for_whoever_asks_for_more(package: str, names: tuple[str, ...], other: str) -> None:
    program = PROGRAM.format(package=package, names=names, other=other)
    subprocess.run([sys.executable, "-c", program], cwd=project(), check=True)
