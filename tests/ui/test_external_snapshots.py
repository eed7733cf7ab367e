"""How the tabs of external agents look, compared as a whole."""

from typing import Any

import pytest

from tests.ui.app_kit import make_app
from tests.ui.external_scenes import SCENES
from tests.ui.fakes import FakeHost
from tests.ui.scenes import populate

SMALL, USUAL = (80, 24), (120, 40)


pytestmark = pytest.mark.usefixtures("same_everywhere")


def compare(snap_compare: Any, name: str, size: tuple[int, int], **options: Any) -> None:
    host = FakeHost()
    populate(host)
    prepare, run = SCENES[name]
    if prepare is not None:
        prepare(host)
    assert snap_compare(make_app(host, **options), terminal_size=size, run_before=run)


@pytest.mark.parametrize("name", SCENES)
def test_scene(snap_compare, name):
    compare(snap_compare, name, USUAL)


@pytest.mark.parametrize("name", ["talk", "typing", "dialog", "sidebar"])
def test_small(snap_compare, name):
    compare(snap_compare, name, SMALL)
