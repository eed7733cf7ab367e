"""Keyboard protocols: the kitty stack, one for each screen, and XTMODKEYS."""

from __future__ import annotations

from .mode_ops import ModeOps

KITTY_STACK = 16
"""Entries of a kitty keyboard stack; beyond them the oldest is dropped."""
_KITTY_FLAGS = 0b11111
_OTHER_KEYS = 4


class Keyboard(ModeOps):
    """What the child wants keys to look like."""

    def push_keyboard(self, flags: int = 0) -> None:
        """CSI > flags u."""
        stack = self.buffer_shown.kitty
        stack.append(flags & _KITTY_FLAGS)
        del stack[:-KITTY_STACK]
        self.modes.kitty_flags = stack[-1]

    def pop_keyboard(self, count: int | None = None) -> None:
        """CSI < count u; popping more than there is resets all flags."""
        stack = self.buffer_shown.kitty
        del stack[max(0, len(stack) - (count or 1)) :]
        if not stack:
            stack.append(0)
        self.modes.kitty_flags = stack[-1]

    def set_keyboard(self, flags: int = 0, how: int = 1) -> None:
        """CSI = flags ; how u: replace (1), add (2) or take away (3) flags on top of the stack."""
        stack = self.buffer_shown.kitty
        flags &= _KITTY_FLAGS
        if how in (0, 1):
            stack[-1] = flags
        elif how == 2:
            stack[-1] |= flags
        elif how == 3:
            stack[-1] &= ~flags
        self.modes.kitty_flags = stack[-1]

    def report_keyboard(self, _mode: int = 0) -> None:
        """CSI ? u."""
        self.reply(f"\x1b[?{self.modes.kitty_flags}u")

    def set_key_modifiers(self, resource: int | None = None, value: int = 0) -> None:
        """XTMODKEYS (CSI > resource ; value m); only modifyOtherKeys (4) has an effect."""
        if resource is None:
            self.modes.modify_other_keys = 0
        elif resource == _OTHER_KEYS:
            self.modes.modify_other_keys = value if value in (1, 2) else 0

    def disable_key_modifiers(self, resource: int = 2) -> None:
        """CSI > resource n."""
        if resource == _OTHER_KEYS:
            self.modes.modify_other_keys = 0

    def report_key_modifiers(self, *resources: int) -> None:
        """XTQMODKEYS (CSI ? resource m)."""
        for resource in resources:
            if resource == _OTHER_KEYS:
                self.reply(f"\x1b[>{_OTHER_KEYS};{self.modes.modify_other_keys}m")
