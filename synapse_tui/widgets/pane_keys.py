"""Routes keys and pastes in a pane to scroll mode, to a mention being typed, or to the agent."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from textual import events
from textual.keys import _character_to_key
from textual.timer import Timer

from synapse_tui.messages.mention import MARKS, Intercepted, MentionInterceptor, Pasted
from synapse_tui.terminal.input import KeyEvent, encode_input, encode_paste

from .scroll_mode import ScrollMode, ScrollOutcome

if TYPE_CHECKING:
    from .terminal_view import TerminalView

# the token for the interceptor: a key and its original bytes
KeyToken = tuple[KeyEvent, bytes]
Interceptor = MentionInterceptor[KeyToken]
_RENEW = 1.0  # seconds until a mention is drawn again, with the states of its receivers
_LOOK = 0.03  # seconds between checks of the screen while a mention is on probation


class PaneKeys:
    def __init__(self, view: TerminalView, interceptor: Interceptor | None) -> None:
        self._view = view
        self._interceptor = interceptor
        self._settling: Timer | None = None
        self._showing = False
        self._renewal: Timer | None = None

    def press(self, key: KeyEvent, raw: bytes) -> None:
        if self._view.scroll_mode is not None:
            self._press_in_scroll_mode(self._view.scroll_mode, key)
        elif self._interceptor is None:
            self._send_key(key, raw)
        elif self._is_blind_enter(key):
            return
        else:
            self._follow(self._interceptor.key(key, (key, raw), self._view.session.reading()))

    def run(self, text: str) -> bool:
        mention = self._interceptor
        if self._view.scroll_mode is not None:
            return False
        if mention is not None:
            if mention.active or not MARKS.isdisjoint(text):
                return False
            # For the interceptor this is a single key that types text; it cannot start a mention.
            typed = KeyEvent("", text)
            mention.key(typed, (typed, b""), self._view.session.reading())
        modes = self._view.session.terminal.modes
        codes = {each: encode_input(KeyEvent.of_text(each), each.encode(), modes) for each in set(text)}
        self._send(b"".join([codes[each] for each in text]))
        return True

    def paste(self, text: str) -> None:
        if self._view.scroll_mode is not None:
            return
        if self._interceptor is None:
            self._send(encode_paste(text, self._view.session.terminal.modes))
        else:
            self._follow(self._interceptor.paste(text))

    def _is_blind_enter(self, key: KeyEvent) -> bool:
        held = self._interceptor is not None and self._interceptor.active and self._view.mention.stale
        return held and key.key in {"enter", "kp_enter"} and key.kind != "release"

    @property
    def mentioning(self) -> bool:
        return self._interceptor is not None and self._interceptor.active

    def give_back(self) -> None:
        """Forward the held keys of a mention to the agent when the focus or the mouse goes elsewhere."""
        if self._interceptor is not None and self._interceptor.active:
            self._follow(self._interceptor.give_back())

    def choose(self, index: int) -> None:
        if self._interceptor is not None:
            self._interceptor.choose(index)
            self._show_mention()

    def _follow(self, outcome: Intercepted[KeyToken]) -> None:
        for item in outcome.forward:
            if isinstance(item, Pasted):
                self._send(encode_paste(item.text, self._view.session.terminal.modes))
            else:
                self._send_key(*item)
        if outcome.message is not None:
            # Straight to the app: bubbling takes it behind the redraw of what the overlay covered.
            self._view.app.post_message(self._view.Mentioned(self._view, outcome.message))
        if self._interceptor is not None:
            self._show_mention()
            self._await_settling(self._interceptor)

    def _show_mention(self) -> None:
        """Show the mention behind the keys that wait: drawing one costs far more than a key."""
        if not self._showing and (self.mentioning or self._view.mention.drawn is not None):
            self._showing = self._view.call_later(self._show)

    def _show(self) -> None:
        self._showing = False
        if self._interceptor is not None and self._view.is_attached:
            self._view.show_mention(self._interceptor.view)
            if self._renewal is None and self._interceptor.active:
                self._renewal = self._view.set_timer(_RENEW, self._show_again)

    def _show_again(self) -> None:
        """Draw the mention anew: the state of its receivers may have changed."""
        self._renewal = None
        self._show_mention()

    def _await_settling(self, interceptor: Interceptor) -> None:
        if interceptor.doubtful and self._settling is None:
            self._settling = self._view.set_timer(_LOOK, self._settle)

    def _settle(self) -> None:
        self._settling = None
        if self._interceptor is None:
            return
        for outcome in self._interceptor.settle(self._view.session.reading()):
            self._follow(outcome)
        self._await_settling(self._interceptor)

    def _send_key(self, key: KeyEvent, raw: bytes) -> None:
        self._send(encode_input(key, raw, self._view.session.terminal.modes))

    def _send(self, data: bytes) -> None:
        if data:
            self._view.return_to_live()
            self._view.awaited = True
            self._view.session.user_input(data)

    def _press_in_scroll_mode(self, mode: ScrollMode, key: KeyEvent) -> None:
        if key.kind == "release":
            return
        held = "".join(f"{name}+" for name in ("ctrl", "alt", "super") if getattr(key, name))
        outcome = mode.press(held + key.key.replace("page_", "page"), "" if held else key.text)
        if outcome is ScrollOutcome.COPY and mode.selection is not None:
            self._view.copy(mode.selection.text)
        if outcome is ScrollOutcome.STAY:
            self._view.update_view()
        else:
            self._view.leave_scroll_mode()


_RENAMED = {"pageup": "page_up", "pagedown": "page_down"}
_PUNCTUATION = {_character_to_key(chr(code)): chr(code) for code in range(0x21, 0x7F)}


def key_event(event: events.Key) -> KeyEvent:
    text = event.character
    if text is not None and event.is_printable:
        return KeyEvent.of_text(text) if len(text) == 1 else KeyEvent("", text)
    *held, name = event.key.split("+")
    key = _RENAMED.get(name, _PUNCTUATION.get(name, name))
    lower = key.lower()
    if len(key) == 1 and lower != key:
        return _event(lower, {*held, "shift"}, shifted=key)
    return _event(key, held)


def _event(key: str, held: Collection[str], shifted: str = "") -> KeyEvent:
    return KeyEvent(
        key,
        shift="shift" in held,
        alt="alt" in held,
        ctrl="ctrl" in held,
        super="super" in held,
        hyper="hyper" in held,
        meta="meta" in held,
        shifted=shifted,
    )
