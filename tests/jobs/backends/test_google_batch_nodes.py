"""What tasks and nodes are told, by those that really run: Google Batch of the sandbox."""

from ipaddress import ip_address
from typing import Any

import pytest

from jobs.backends.base import JobRef, Phase
from tests.jobs.backends.google_batch_cloud import Cloud

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]


@pytest.fixture
def cloud(batch_cloud: Cloud) -> Cloud:
    return batch_cloud


IMAGE = "local/tests"
SAYS = 'echo "node=$ACCEL_NODE_INDEX of $PET_NNODES main=$MASTER_ADDR at $PET_RDZV_ENDPOINT rank=$PET_NODE_RANK $1"'


def printed(cloud: Cloud, text: str, **fields: Any) -> list[str]:
    """What a job's tasks print, in the order of the words."""
    ref = cloud.backend().submit(cloud.request(text, image=IMAGE, **fields))
    assert isinstance(ref, JobRef)
    assert cloud.becomes(ref, lambda status: status.phase.ended).phase == Phase.SUCCEEDED
    return sorted(line.text for line in cloud.backend().logs(ref, follow=True) if not line.text.startswith("runnable"))


def test_nodes_know_each_other(cloud: Cloud) -> None:
    found = printed(cloud, "nodes", nodes=3, command=["/bin/sh", "-c", SAYS, "sh", "it's"])
    main = found[0].partition("main=")[2].partition(" ")[0]
    assert ip_address(main).is_loopback  # on the sandbox every VM is this machine
    assert found == [f"node={i} of 3 main={main} at {main}:29500 rank={i} it's" for i in range(3)]


def test_a_script_of_nodes_is_told_too(cloud: Cloud) -> None:
    fields = {"nodes": 2, "command": [], "google_batch": {"runnables": [{"script": f"#!/bin/sh\nset -e\n{SAYS}\n"}]}}
    ref = cloud.backend().submit(cloud.request("script", image=None, **fields))
    assert isinstance(ref, JobRef)
    assert cloud.becomes(ref, lambda status: status.phase.ended).phase == Phase.SUCCEEDED


def test_batchs_variables_in_arguments_have_their_values(cloud: Cloud) -> None:
    assert printed(cloud, "sweep", tasks=3, command=["echo", "row ${BATCH_TASK_INDEX} of", "$HOME"]) == [
        f"row {i} of $HOME" for i in range(3)
    ]
