"""The tab bar at the top, and the bar with key hints and notices at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from rich.cells import cell_len
from textual.reactive import reactive, var
from textual.timer import Timer

from synapse_tui.core.model import AgentState
from synapse_tui.core.wording import since
from synapse_tui.settings.actions import ARRANGING, BETWEEN_PANES
from synapse_tui.settings.keymap import Keymap, key_label, leader_label
from synapse_tui.system.language import name_list, tr

from .fit import Hint, Piece, distinct, shorten, width_of
from .segment_bar import SegmentBar
from .states import DONE, HELD, HOLDS, SPINNER_INTERVAL, spinning
from .text import one_line, plural
from .views import AgentView, calling

Level = Literal["information", "warning", "error"]
LEADER = "leader"

NOTICE_SECONDS = 3.0
LONG_SECONDS = 10.0  # most seconds for a notice that ends when it is not true any more
LEAST_NOTICE = 20  # cells of a notice below which it takes them from the hints
_NOTICE_EDGES = 4 + len(" ^] menu ")  # cells of its glyph and gap, and of the hint that always stays
_COLOURS = {"information": "$ink", "warning": "bold $needs", "error": "bold $fail"}
_GLYPHS = {"information": "·", "warning": "▲", "error": "×"}
# priority of the hints when space is short, most useful first
_KEEP = (
    "help",
    "compose",
    "sidebar",
    "next_agent",
    "palette",
    "layout",
    "interrupt",
    "scroll",
    "previous_agent",
    "interrupt_all",
)


SCROLL_KEY = "scroll:"  # begins the target of a hint of scroll mode; its key follows


class StatusBar(SegmentBar):
    """Shows key hints and notices; targets are action ids, `leader`, `notice`, and keys of scroll mode."""

    keymap: reactive[Keymap] = reactive(Keymap)
    notice: var[str] = var("")
    level: var[Level] = var("information")
    agents: reactive[Sequence[AgentView]] = reactive(())  # those that need the user are shown at the right
    active: reactive[str] = reactive("")  # the active agent, not listed since its pane shows its state
    progress: reactive[str] = reactive("")  # startup progress, if any
    shrunk_by: reactive[str] = reactive("")  # the terminal whose size the others follow
    beside: reactive[bool] = reactive(False)  # whether the sidebar has the focus, from where its key leads on
    covered: reactive[bool] = reactive(False)  # whether a dialog has the keys, or what follows the leader
    leading: reactive[bool] = reactive(False)  # whether it is what follows the leader, which Esc closes
    arranging: reactive[bool] = reactive(False)  # whether keys arrange the panes
    alone: reactive[bool] = reactive(False)  # whether one pane is all that is in view
    zoomed: reactive[bool] = reactive(False)  # whether it is because it is zoomed
    scrolling: reactive[Sequence[Hint]] = reactive(())  # the keys of scroll mode, if the active pane is in it

    _expiry: Timer | None = None
    _still: Callable[[], bool] | None = None

    def show(
        self,
        text: str,
        level: Level = "information",
        *,
        still: Callable[[], bool] | None = None,
        long: bool = False,
    ) -> None:
        """Show a notice for some seconds, with `long` for more, and no longer than `still` is true."""
        self.level, self._still = level, still
        self.notice = one_line(text)
        self.refresh()
        if self._expiry is not None:
            self._expiry.stop()
        self._expiry = self.set_timer(LONG_SECONDS if long else NOTICE_SECONDS, self._clear)

    def check(self) -> None:
        """End a notice that is not true any more."""
        if self.notice and self._still is not None and not self._still():
            self._clear()

    def forget(self) -> None:
        """End a notice about what was just done."""
        if self._still is None:
            self._clear()

    def reword(self, before: str, after: str) -> None:
        """Change a notice if it is still shown; it ends when it would have ended."""
        if self.notice and self.notice == one_line(before):
            self.notice = one_line(after)
            self.refresh()

    def fits(self, text: str) -> bool:
        """Whether a notice can be shown here as it is."""
        width = self.size.width
        label = [*self.shrunk_pieces(), *self._calls(width)]
        return cell_len(one_line(text)) + _NOTICE_EDGES <= self._notice_room(width, label)

    def _notice_room(self, width: int, label: Sequence[Piece]) -> int:
        """Return the cells for a notice; most of the row is left to keys that work only now."""
        room = width - width_of(label)
        return min(room, width * 2 // 5) if self.arranging or self.scrolling else room

    def _clear(self) -> None:
        self.notice = ""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        label = [*self.shrunk_pieces(), *self._calls(width)]
        right = [*self.notice_pieces(self._notice_room(width, label)), *label]
        room = width - width_of(right)
        if self.covered:
            return _hint(LEADER, "Esc", "close") if self.leading else [], right
        if self.arranging:
            return self._arranging(room), right
        if self.scrolling:
            return self._scrolling(room), right
        leader = _hint(LEADER, key_label(self.keymap.leader), "menu")
        words = {"sidebar": tr("board")} if self.beside else {}
        if not any(agent.agent_id == self.active and agent.exit is None for agent in self.agents):
            words["interrupt"] = ""
        if not self.agents:
            words |= dict.fromkeys(("scroll", "interrupt_all"), "")
        if len(self.agents) < 2:
            words |= dict.fromkeys(("previous_agent", "next_agent"), "")
        return fit_hints(leader, self.keymap, room, words), right

    def shrunk_pieces(self) -> list[Piece]:
        if not self.shrunk_by:
            return []
        words = tr(f" the size of {self.shrunk_by} ")
        return [Piece(words, "$faint", tip=tr("another terminal that shows this session is smaller"))]

    def _arranging(self, room: int) -> list[Piece]:
        pieces = [
            Piece(tr(" arrange "), "bold $accent"),
            *_hint("arrange", "Esc", "done"),
            *([] if self.alone else _hint("", tr("arrows"), "resize")),
        ]
        idle = set(BETWEEN_PANES) if self.alone else set()
        if self.alone and not self.zoomed:
            idle.add("zoom")
        if len(self.agents) < 2:
            idle |= {"next_agent", "previous_agent"}
        for action in (self.keymap.find(name) for name in ARRANGING if name not in idle):
            key = leader_label(action).replace("←→", tr("arrows"))
            hint = _hint("" if action.takes_key else action.id, key, action.hint or tr(action.title).lower())
            if key and width_of(pieces) + width_of(hint) <= room:
                pieces += hint
        return pieces

    def _scrolling(self, room: int) -> list[Piece]:
        pieces = [Piece(tr(" scroll "), "bold $accent")]
        for hint in self.scrolling:
            more = _hint(f"{SCROLL_KEY}{hint.target}" if hint.target else "", hint.key, hint.word)
            if width_of(pieces) + width_of(more) <= room:
                pieces += more
        return pieces

    def notice_pieces(self, room: int) -> list[Piece]:
        if not self.notice:
            return []
        text = shorten(self.notice, max(LEAST_NOTICE, room - _NOTICE_EDGES))
        glyph = Piece(f" {_GLYPHS[self.level]} ", _COLOURS[self.level], "notice")
        return [glyph, Piece(f"{text} ", _COLOURS[self.level], "notice", self.notice)]

    def _calls(self, width: int) -> list[Piece]:
        others = calling(self.agents, self.active)
        asking = [agent for agent in others if agent.stuck]
        held = sorted(
            (agent for agent in self.agents if agent.held_long), key=lambda each: -each.held_seconds
        )
        done = [agent for agent in others if agent.done and not agent.stuck]
        if asking:
            first = asking[0]
            loud = "bold $needs-ink on $needs" if first.exit is None else "bold $fail"
            if self.app.no_color:
                loud = "bold reverse"
            name, what = shorten(first.label, 16, "middle"), first.call
            return self._label(width, f"{first.mark.glyph} {name}: {what}", len(asking) - 1, loud)
        if done:
            text = tr(f"◆ {done[0].label}: done") if len(done) == 1 else tr(f"◆ {len(done)} done")
            return self._label(width, text, 0, "bold $done")
        if held:
            first = held[0]
            name = shorten(first.label, 16, "middle")
            facts = (f"{tr('held')} {since(first.held_seconds)}", first.held_reason)
            text = f"{HELD} {name}: {name_list(filter(None, facts))}"
            action = "next_waiting" if first.agent_id != self.active else "sidebar"
            return self._label(width, text, len(held) - 1, "bold $needs", action)
        return [Piece(f" {self.progress} ", "$muted")] if self.progress else []

    def _label(
        self, width: int, text: str, more: int, style: str, action: str = "next_waiting"
    ) -> list[Piece]:
        tail = f" +{more}" if more else ""
        way = self.keymap.way(action)
        text = shorten(text, max(24, width // 2 - cell_len(way) - len(tail) - 4)) + tail
        tip = self.keymap.find(action).title
        label = Piece(f" {text} ", style, action, tip)
        return [label] if self.covered else [label, Piece(f" {way} ", "bold $accent", action, tip)]


def fit_hints(leader: Sequence[Piece], keymap: Keymap, width: int, words: Mapping[str, str]) -> list[Piece]:
    """Return the most useful key hints that fit, in the order of the function keys.

    Args:
        leader: The hint of the leader key, which always stays.
        keymap: The keys in effect.
        width: Cells for all of them.
        words: What the keys of some actions do now, where that is not what their actions say; empty if
            they do nothing.
    """
    room = width - width_of(leader)
    hints = {
        action.id: _hint(
            action.id,
            key_label(action.keys[0]),
            words.get(action.id, action.hint or tr(action.title).lower()),
        )
        for action in keymap.with_keys()
        if words.get(action.id) != ""
    }
    kept = set()
    for name in sorted(hints, key=lambda name: _KEEP.index(name) if name in _KEEP else len(_KEEP)):
        if width_of(hints[name]) <= room:
            kept.add(name)
            room -= width_of(hints[name])
    return [*leader, *(piece for name, hint in hints.items() if name in kept for piece in hint)]


def _hint(target: str, key: str, word: str) -> list[Piece]:
    return [Piece(f" {key}", "bold $accent", target), Piece(f" {tr(word)} ", "$muted", target)]


MIN_LABEL = 7  # minimum cells of a label; below that it is omitted
NEW = "new"
MORE_LEFT = "previous"
MORE_RIGHT = "next"


class TabBar(SegmentBar):
    """Tabs of all agents; targets are agent ids, `new`, `previous` and `next`."""

    agents: var[Sequence[AgentView]] = var(())
    expected: reactive[Sequence[AgentView]] = reactive(())  # being opened; not clickable
    active: reactive[str] = reactive("")
    project: reactive[str] = reactive("")
    frame: var[int] = var(0)

    # what the names were fitted for, the names, and what stands at the right
    _fitted: tuple[object, Sequence[str] | None, Sequence[Piece]] | None = None
    _timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(SPINNER_INTERVAL, self._turn, pause=True)

    def watch_agents(self) -> None:
        self.refresh()
        if self._timer is not None:
            working = any(agent.state is AgentState.PROCESSING for agent in self.agents)
            working = working and self.app.animation_level != "none"
            (self._timer.resume if working else self._timer.pause)()

    def _turn(self) -> None:
        self.frame += 1
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        every = (*self.agents, *self.expected)
        key = (every, self.active, self.project, width)
        if self._fitted is None or self._fitted[0] != key:  # not while only spinners turn
            self._fitted = key, *self._fit(every, width)
        _, names, right = self._fitted
        if names is None:
            return self._scrolled(every, width - width_of(right)), right
        tabs = (self._tab(agent, name) for agent, name in zip(every, names, strict=True))
        return [Piece(" "), *(piece for tab in tabs for piece in tab)], right

    def _fit(self, every: Sequence[AgentView], width: int) -> tuple[Sequence[str] | None, Sequence[Piece]]:
        """Return the names that fit, all different, and what stands at the right; no names if none fit.

        Names become shorter first, then as many calm tabs lose theirs as must, then the project's
        name goes.
        """
        project = [Piece(f" {shorten(self.project, 30, 'middle')} ", "$faint")] if self.project else []
        new = [Piece(tr(" + new "), "$muted", NEW, tr("New agent"))]
        plus = [Piece(" + ", "$muted", NEW, tr("New agent"))]
        nameless = sum(width_of(self._tab(agent, "")) for agent in every)
        everyone = range(len(every))
        for right in ([*new, *project], [*plus, *project], plus):
            room = width - 1 - width_of(right) - nameless
            names = self._names(every, everyone, room)
            if names is None and right[0] is plus[0]:
                names = self._names(every, self._most_named(every, room), room)
            if names is not None:
                return names, right
        return None, plus

    def _most_named(self, every: Sequence[AgentView], room: int) -> Sequence[int]:
        """Return the tabs with a name, if short: the active one first, those that call, then the others."""
        shortest = distinct(tuple(agent.label for agent in every), MIN_LABEL)
        ranks = [(not self._is_active(agent), not self._calls(agent)) for agent in every]
        named: list[int] = []
        for at in sorted(range(len(every)), key=ranks.__getitem__):
            needed = cell_len(shortest[at]) + 2
            if needed <= room or self._is_active(every[at]):
                named.append(at)
                room -= needed
        return named

    def _names(self, every: Sequence[AgentView], named: Sequence[int], room: int) -> Sequence[str] | None:
        """Return names as long as they fit in the room, empty for tabs without one."""
        labels = tuple(agent.label for agent in every)
        longest = max(map(cell_len, labels), default=0)
        for limit in range(max(longest, MIN_LABEL), MIN_LABEL - 1, -1):
            short = distinct(labels, limit)
            names = [name if at in named else "" for at, name in enumerate(short)]
            if sum(cell_len(name) + 2 for name in names if name) <= room:
                return names
        return None

    def _calls(self, agent: AgentView) -> bool:
        return agent.needs_attention or bool(agent.held or agent.answers)

    def _is_active(self, agent: AgentView) -> bool:
        return bool(agent.agent_id) and agent.agent_id == self.active

    def _scrolled(self, every: Sequence[AgentView], width: int) -> list[Piece]:
        labels = distinct(tuple(agent.label for agent in every), MIN_LABEL)
        tabs = [
            self._tab(agent, name if self._is_active(agent) else "")
            for agent, name in zip(every, labels, strict=True)
        ]
        if not tabs:
            return []
        width -= 4
        at = next((i for i, agent in enumerate(every) if self._is_active(agent)), 0)
        first, last = at, at + 1
        room = width - width_of(tabs[at])
        while True:
            if last < len(tabs) and width_of(tabs[last]) <= room:
                room -= width_of(tabs[last])
                last += 1
            elif first > 0 and width_of(tabs[first - 1]) <= room:
                first -= 1
                room -= width_of(tabs[first])
            else:
                break
        more_left = Piece(
            "‹ " if first else "  ", self._more_style(every[:first]), MORE_LEFT, tr("Previous agent")
        )
        more_right = Piece(
            " ›" if last < len(tabs) else "  ",
            self._more_style(every[last:]),
            MORE_RIGHT,
            tr("Next agent"),
        )
        return [more_left, *(piece for tab in tabs[first:last] for piece in tab), more_right]

    def _more_style(self, hidden: Sequence[AgentView]) -> str:
        return "bold $needs" if any(agent.needs_attention for agent in hidden) else "$muted"

    def _tab(self, agent: AgentView, short: str) -> list[Piece]:
        active = self._is_active(agent)
        back = "" if not active else " reverse" if self.app.no_color else " on $select"
        mark, target = agent.mark, agent.agent_id
        tip = f"{agent.label}: {agent.state_text}"
        calm = not mark.calls
        name = "bold $ink" if active else "$muted" if calm else "$ink"
        number = Piece(f" {agent.number}", f"{'bold $accent' if active else '$faint'}{back}", target, tip)
        label = [Piece(f" {short} ", name + back, target, tip)] if short else []
        bell = [Piece("♪", f"$needs{back}", target)] if agent.rang else []
        ink = f"${mark.colour}" if calm else f"bold ${mark.colour}"
        glyph = [Piece(spinning(mark, self.frame), ink + back, target, tip)] if mark is not HOLDS else []
        held: list[Piece] = []
        if agent.held:
            why = tr(f"{agent.label} holds {plural(agent.held, 'message')}: {agent.held_reason}")
            style = "bold $needs" if agent.held_long else "$held"
            held = [Piece(f"{' ' if glyph else ''}{HELD}{agent.held}", style + back, target, why)]
        answers: list[Piece] = []
        if agent.answers:
            what = tr(f"{plural(agent.answers, 'answer')} to what you asked there")
            gap = " " if glyph or held else ""
            answers = [Piece(f"{gap}{DONE.glyph}{agent.answers}", f"bold $done{back}", target, what)]
        return [number, *label, *bell, *glyph, *held, *answers, Piece(" ", back.strip(), target)]
