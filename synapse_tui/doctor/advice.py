"""What to change in a profile, by what went wrong with a message."""

from __future__ import annotations

from collections.abc import Callable

from synapse_tui.agents.profiles.profile import Profile, key_names
from synapse_tui.model import AgentState

from .examination import Seen
from .report import Advice
from .suggest import quoted, suggest_dialog, suggest_stand_in

NO_ENTER = "did not take Enter"

Adviser = Callable[[Seen, Profile], tuple[Advice, ...]]


def advice_for(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    """What to try, when a message was not submitted.

    Args:
        seen: What became of it; its task's reason says why it waits.
        profile: The profile as it is.
    """
    for words, adviser in _ADVISERS:
        if words in seen.task.reason:
            return adviser(seen, profile)
    return ()


def _not_shown(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    """The text went into the agent, and its composer was not seen to hold it."""
    if seen.draft and (stand_in := suggest_stand_in(seen.draft)):
        return (
            Advice("composer.pastes", f"[{stand_in}]", f"in place of the message it shows {seen.draft!r}"),
        )
    if seen.draft:
        why = f"the composer was read as {_short(seen.draft)}"
        return (Advice("composer.row", quoted("^  "), why), Advice("submit.method", "typed", why))
    return _no_composer(seen, profile)


def _no_composer(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    cursor = seen.last.cursor
    why = f"the cursor stands in the row {cursor!r}"
    if profile.composer is not None and not profile.composer.cursor:
        return (Advice("composer.prompt", prompt_of(cursor), why),)
    return (
        Advice("composer.prompt", prompt_of(cursor), why),
        Advice("composer.above, composer.below", "patterns of the rows around it", "\n".join(seen.last.rows)),
    )


def prompt_of(row: str) -> str:
    """A pattern for the start of a row up to what is typed."""
    indent = len(row) - len(row.lstrip())
    sign = row[indent : indent + 1]
    if not sign or sign.isalnum():
        return quoted("^" + " " * indent)
    escaped = f"\\{sign}" if sign in r"\.^$*+?{}[]|()" else sign
    return quoted("^" + " " * indent + escaped + "[ \\xa0]")


def _no_enter(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    own = profile.submit.enter
    if seen.entered and seen.entered != own:
        name = key_names((seen.entered,))[1:-1]
        return (Advice("submit.enter", name, f"it submitted the message; {key_names((own,))[1:-1]} did not"),)
    pause = round(max(profile.submit.pause * 2.5, 1.0) * 1000)
    why = "the same key took effect later" if seen.entered else "it may have come too early"
    return (Advice("submit.pause", str(pause), f"Enter had no effect: {why}"),)


def _no_proof(_seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    value = f"{max(profile.submit.verify * 2.5, 5):g}"
    return (
        Advice("submit.verify", value, "after Enter the screen did not show in time that the message went"),
    )


def _draft(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    text = seen.last.cursor.strip()
    return (
        Advice("composer.placeholder", "{dim: true, grey: true}", f"an empty composer was read as {text!r}"),
        Advice("clear", "[ctrl+e, ctrl+u, backspace]", "if that is what was left of another message"),
    )


def _unknown(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    if rule := suggest_dialog(seen.last):
        return (Advice("dialogs", rule, "something on the screen asks, and no rule knows it"),)
    what = f"title {seen.last.title!r}, status {seen.last.status!r}, progress {seen.last.progress!r}"
    return (Advice("states", "a rule for what it shows now", what),)


def _asks(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    return (Advice("", "look what it asks, and answer it once by hand", "\n".join(seen.last.rows[-8:])),)


def _deaf(_seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    return (Advice("submit", "{method: typed, chunk: 500}", "it does not read so much at once"),)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}")


_ADVISERS: tuple[tuple[str, Adviser], ...] = (
    ("does not show the message", _not_shown),
    ("did not take the text", _not_shown),
    ("composer not visible", _no_composer),
    (NO_ENTER, _no_enter),
    ("the screen does not tell", _no_proof),
    ("you have a draft", _draft),
    ("left in the composer", _draft),
    ("state unknown", _unknown),
    ("dialog open", _asks),
    ("question open", _asks),
    ("waits for you", _asks),
    ("does not read", _deaf),
)
"""What stands in the reason, and what is to be tried then; the first that fits."""


def no_end(seen: Seen) -> tuple[Advice, ...]:
    """What to try when the end of a turn was not seen."""
    if seen.last.state is AgentState.UNKNOWN:
        return _unknown(seen, Profile("", "", ""))
    what = f"title {seen.last.title!r}, status {seen.last.status!r}, progress {seen.last.progress!r}"
    return (Advice("states", "see why it was not READY", f"{seen.last.state} at the end; {what}"),)
