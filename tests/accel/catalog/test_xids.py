"""XIDs: what NVIDIA answers with a reset takes a node out of use."""

import pytest

from accel.catalog.tables import DamagedData
from accel.catalog.xids import cordoning, xids
from tests.support.catalog import Damage, damage, replaced

__all__ = ["damage"]

RESETS = ("RESET_GPU", "RESTART_BM", "RESTART_VM")


def test_a_reset_cordons_and_a_restart_of_the_program_does_not() -> None:
    for xid in xids().values():
        if xid.action in ("RESTART_APP", "IGNORE"):
            assert not xid.cordon, xid
        # 155 is also sent where NVLink was taken down on purpose.
        if xid.action in RESETS and xid.number != 155:
            assert xid.cordon, xid


def test_numbers_are_in_order() -> None:
    assert cordoning() == sorted(set(cordoning()))
    assert {48, 74, 79, 95, 119} <= set(cordoning())


def test_a_damaged_cell_is_named(damage: Damage) -> None:
    damage("xids.csv", replaced("79,", ",yes,", ",maybe,"))
    with pytest.raises(DamagedData, match=r"xids.csv:12: cordon: neither yes nor no: maybe"):
        xids()
