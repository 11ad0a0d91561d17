"""The provider's timeouts for operations that take longer than its defaults. It gives up after 15 minutes on managed
groups and 20 on TPUs and persistent resources, while machines may still be on their way (`timeouts`, and
mmv1/api/timeouts.go, in https://github.com/GoogleCloudPlatform/magic-modules). Resources with longer defaults keep
them: node pools 2 hours, clusters 90 minutes. No page says how long a large slice takes; an hour is our choice."""

from __future__ import annotations

import pulumi

LONG = "60m"


def long() -> pulumi.CustomTimeouts:
    return pulumi.CustomTimeouts(create=LONG, update=LONG, delete=LONG)
