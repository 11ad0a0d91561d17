"""How long the provider waits for what takes longer than its defaults.

It gives up after 15 minutes with managed groups and 20 with TPUs and persistent resources, while machines may still be
on their way (`timeouts`, and mmv1/api/timeouts.go, in https://github.com/GoogleCloudPlatform/magic-modules).
What already waits longer keeps the provider's value: node pools 2 hours, clusters 90 minutes. No page says how long a
large slice takes; an hour is our choice.
"""

from __future__ import annotations

import pulumi

LONG = "60m"


def long() -> pulumi.CustomTimeouts:
    """For resources that get machines."""
    return pulumi.CustomTimeouts(create=LONG, update=LONG, delete=LONG)
