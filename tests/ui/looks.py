"""The sizes and themes in which every screen is pictured.

The themes alternate with the sizes, so that each screen is seen at each size and in both themes.
"""

from __future__ import annotations

import pytest

SMALL, USUAL, LARGE = (80, 24), (120, 40), (200, 60)

LOOKS = [
    pytest.param(SMALL, "light", id="80x24-light"),
    pytest.param(USUAL, "dark", id="120x40-dark"),
    pytest.param(LARGE, "light", id="200x60-light"),
]
every_look = pytest.mark.parametrize(("size", "theme"), LOOKS)
dialog_looks = pytest.mark.parametrize(("size", "theme"), LOOKS[:2])  # a larger screen shows the same box
