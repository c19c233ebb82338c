"""The plugin that plain ``xdsl-opt`` finds."""

from __future__ import annotations

from xdsl.universe import Universe

from devscope.dialects.device import Device
from devscope.passes import get_all_passes
from devscope.universe import UNIVERSE


def test_it_offers_the_dialect_and_the_passes() -> None:
    assert {name: factory() for name, factory in UNIVERSE.all_dialects.items()} == {"device": Device}
    assert set(UNIVERSE.all_passes) == set(get_all_passes())


def test_it_is_installed_and_clashes_with_no_other() -> None:
    multiverse = Universe.get_multiverse()
    assert {"device", "func"} <= set(multiverse.all_dialects)
    assert {"device-plan", "device-verify"} <= set(multiverse.all_passes)
