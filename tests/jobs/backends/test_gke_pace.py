"""How often a followed log on GKE is looked at."""

import time

import pytest

from accel.clouds.timeouts import Timing
from jobs.backends.gke.logs import logs
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.test_gke_observe import a_pod, submitted


class Slept(BaseException):
    """The reader pauses."""


@pytest.mark.parametrize("pods, pause_s", [(1, 0.55), (8, 0.9), (40, 2.0)])
def test_few_pods_are_read_within_a_second_and_many_do_not_load_the_server(
    pods: int, pause_s: float, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        raise Slept(seconds)

    ref, api = submitted(cluster), cluster.api()
    for _ in range(pods):
        a_pod(cluster, ref, "Running")
    api.timing = Timing()
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(Slept) as slept:
        list(logs(api, SCOPE, ref, task=None, follow=True))
    assert slept.value.args[0] == pytest.approx(pause_s)
