"""How the tabs of external agents look, compared as a whole."""

from typing import Any

import pytest

from tests.ui.app_kit import make_app
from tests.ui.external_scenes import SCENES
from tests.ui.fakes import FakeHost
from tests.ui.looks import USUAL, every_look
from tests.ui.scenes import populate

pytestmark = pytest.mark.usefixtures("same_everywhere")


def compare(snap_compare: Any, name: str, size: tuple[int, int], **options: Any) -> None:
    host = FakeHost()
    populate(host)
    prepare, run = SCENES[name]
    if prepare is not None:
        prepare(host)
    assert snap_compare(make_app(host, **options), terminal_size=size, run_before=run)


@every_look
@pytest.mark.parametrize("name", SCENES)
def test_scene(snap_compare, name, size, theme):
    compare(snap_compare, name, size, theme=theme)


@pytest.mark.parametrize("name", ["talk", "dialog"])
def test_plain(snap_compare, name, plain_theme):
    compare(snap_compare, name, USUAL, theme=plain_theme)
