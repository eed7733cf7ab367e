"""`synapse status`: the state of agents, and how it was detected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import click

from synapse_tui.a2a import calls
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import SynapseError
from synapse_tui.core.model import DeliveryState, TaskState
from synapse_tui.core.wording import duration, moment, sender_called, since, state_word, task_word, time_of
from synapse_tui.system.language import name_list, tr

from .caller import Caller, sender_of
from .commands import Command, json_option
from .completion import complete_agents
from .output import end_with, error_json, fail, note, one_line, padded, plain, show, show_json, show_table

THREADS = 8
TEXT_CELLS = 60
TIMELINE = 20
"""Number of states shown in the timeline."""
_STATE_CELLS = 10
_NAME_CELLS = 10


@click.command(name="status", cls=Command)
@click.argument("agent", required=False, default="", shell_complete=complete_agents)
@click.option(
    "--why", is_flag=True, help="Show the rule and its match, the last states, and why messages wait."
)
@click.option(
    "--composer", is_flag=True, help="Show the screen, where the composer is, and why it is read so."
)
@json_option
@click.pass_context
def status_command(context: click.Context, agent: str, why: bool, composer: bool, as_json: bool) -> None:
    """Show the state of AGENT, or of all agents of this project.

    Examples:
      synapse status
      synapse status claude --why
      synapse status mine --composer
    """
    caller = Caller.of()
    agents = caller.find(agent) if agent else caller.here()
    client = caller.client()

    def ask(each: Address) -> Mapping[str, Any] | SynapseError:
        try:
            return client.call(each.endpoint, calls.status(why=True, composer=composer))
        except SynapseError as error:
            return error

    with ThreadPoolExecutor(min(THREADS, len(agents)) or 1) as pool:
        answers = list(zip(agents, pool.map(ask, agents), strict=True))
    errors = [answer for _, answer in answers if isinstance(answer, SynapseError)]
    for error in errors:
        fail(error, name="synapse")
    if as_json:
        data = [_json(each, answer, timeline=why) for each, answer in answers]
        show_json(data[0] if agent and len(data) == 1 else data)
    else:
        shown = [(_label(each), found) for each, found in answers if not isinstance(found, SynapseError)]
        if composer:
            show(
                "\n\n".join("\n".join(composer_lines(who, answer)) for who, answer in shown)
            ) if shown else None
        else:
            _show(shown, why)
        if not agents:
            note("no agents are running in this project; start one, for example: synapse claude")
    end_with(context, errors)


def _label(agent: Address) -> str:
    return agent.agent_id + (f" ({agent.name})" if agent.name else "")


def _json(agent: Address, answer: Mapping[str, Any] | SynapseError, *, timeline: bool) -> dict[str, Any]:
    who = {"agent_id": agent.agent_id, "agent_type": agent.agent_type, "name": agent.name}
    if isinstance(answer, SynapseError):
        return {**who, "error": error_json(answer)}
    data = {key: value for key, value in answer.items() if key != "context"}
    if not timeline and isinstance(why := data.get("why"), dict):
        data["why"] = {key: value for key, value in why.items() if key != "timeline"}
    return who | data


def _show(answers: Sequence[tuple[str, Mapping[str, Any]]], why: bool) -> None:
    if why:
        show("\n\n".join("\n".join(explanation(who, answer)) for who, answer in answers)) if answers else None
    elif answers:
        rows = [row(who, answer) for who, answer in answers]
        show_table(("AGENT", "STATE", "FOR", "WHY", "WAITING"), rows, shrinking=("WHY", "WAITING"))


# -- formats the answer of `GET /status?why=1`; fields that a peer omits are skipped ---


def row(who: str, answer: Mapping[str, Any]) -> tuple[str, ...]:
    why, outbox = _table(answer, "why"), _table(answer, "outbox")
    reason = _text(why, "detail") or _text(why, "rule")
    return (
        who,
        tr(state_word(_text(answer, "status"))),
        since(_number(why, "seconds")) if why else "",
        one_line(tr(reason)),
        one_line(_waiting(outbox)),
    )


def explanation(who: str, answer: Mapping[str, Any], now: datetime | None = None) -> Iterator[str]:
    now = now or datetime.now(UTC)
    why, outbox, task = (_table(answer, name) for name in ("why", "outbox", "task"))
    held = tr(f"  for {duration(_number(why, 'seconds'))}, since {_moment(why, 'since', now)}") if why else ""
    yield f"{who}  {tr(state_word(_text(answer, 'status')))}{held}"
    for name in ("rule", "matched", "detail"):
        if _text(why, name):
            yield _fact(name, tr(_text(why, name)))
    yield from _opened_by(answer)
    if task:
        yield _fact("task", f"{_message(task)} ({tr(_task_word(_text(task, 'status')))})")
    if watch := _table(answer, "watch"):
        times = f"{_number(watch, 'sent'):.0f}/{_number(watch, 'times'):.0f}"
        state = _text(watch, "state")
        yield _fact("watch", f"{tr('watched') if state == 'on' else tr(state)} {times}")
    if outbox:
        yield _fact("waiting", _waiting(outbox) or tr("nothing"))
        following = _table(outbox, "next")
        if following:
            yield _fact("next", _message(following))
    timeline = why.get("timeline")
    if isinstance(timeline, list) and timeline:
        yield tr("  timeline")
        passages = [passage for passage in timeline if isinstance(passage, dict)]
        for passage in reversed(passages[-TIMELINE:]):
            yield _passage(passage, now)


def _task_word(state: str) -> str:
    """Return the word for a task's state, also for one of a later version."""
    known = any(state == each for each in TaskState)
    return task_word(TaskState(state), DeliveryState.SUBMITTED) if known else state


def _opened_by(answer: Mapping[str, Any]) -> Iterator[str]:
    found = answer.get("opened_by")
    if isinstance(found, list) and found:
        yield _fact("opened by", name_list([str(each) for each in found]))


def _fact(name: str, text: str) -> str:
    return f"  {padded(tr(name), _NAME_CELLS)} {one_line(text, 200)}"


_MARKS = {"draft": "▌", "suggestion": "░", "padding": "·", "frame": "─"}


def composer_lines(who: str, answer: Mapping[str, Any]) -> Iterator[str]:
    """Format how an agent's composer is read: the decision, then the screen with marks."""
    yield f"{who}  {tr(state_word(_text(answer, 'status')))}"
    if not (found := _table(answer, "composer")):
        yield tr("  its host is of an earlier version, which does not show composers")
        return
    yield from _composer_facts(found)
    cursor, refused = _table(found, "cursor"), _table(found, "refused")
    yield ""
    rows = found.get("rows")
    for row in rows if isinstance(rows, list) else ():
        number = int(_number(row, "row"))
        mark = "!" if number == _number(refused, "row") else _MARKS.get(_text(row, "part"), " ")
        at = "▸" if number == _number(cursor, "row") else " "
        yield f"  {number:3}{at}{mark} {_text(row, 'text')}"
    parts = {
        "draft": tr("draft"),
        "suggestion": tr("suggestion"),
        "padding": tr("padding"),
        "frame": tr("frame"),
    }
    marks = [f"▸ {tr('cursor')}", *(f"{mark} {parts[part]}" for part, mark in _MARKS.items())]
    yield "  " + ", ".join([*marks, f"! {tr('refused')}"] if refused else marks)


def _composer_facts(found: Mapping[str, Any]) -> Iterator[str]:
    rules = _text(found, "rules")
    names = {"profile": tr("the rules of the profile"), "auto": tr("its cursor (composer: auto)")}
    yield _fact("rules", names.get(rules) or tr("none: the profile has no composer"))
    dialog, refused = _table(found, "dialog"), _table(found, "refused")
    if dialog:
        yield _fact("dialog", " · ".join(filter(None, (_text(dialog, "name"), _text(dialog, "title")))))
    elif refused:
        row, reason = int(_number(refused, "row")), _text(refused, "reason")
        yield _fact("refused", f"{reason} ({tr(f'row {row}')})" if row else reason)
    elif found.get("visible"):
        if (by := _text(found, "found_by")) not in ("rules", ""):
            yield _fact("found by", by)
        yield _fact("draft at", _place(_table(found, "draft_at")))
        empty = tr("empty, a suggestion is shown") if found.get("suggestion") else tr("empty")
        if found.get("vi_normal"):
            yield _fact("mode", tr("normal mode of vi: keys are commands"))
        yield _fact("draft", empty if found.get("empty") else repr(_text(found, "draft")))
    cursor = _table(found, "cursor")
    place = _place(cursor)
    yield _fact("cursor", place if cursor.get("visible") else f"{place} ({tr('hidden')})")


def _place(at: Mapping[str, Any]) -> str:
    row, column = int(_number(at, "row")), int(_number(at, "column"))
    return tr(f"row {row}, column {column}")


def _passage(passage: Mapping[str, Any], now: datetime) -> str:
    took = duration(_number(passage, "seconds"))
    state = padded(tr(state_word(_text(passage, "state"))), _STATE_CELLS)
    reason, rule = one_line(_text(passage, "matched"), TEXT_CELLS), _text(passage, "rule")
    line = f"    {_moment(passage, 'at', now)}  {took:>7}  {state}  {tr(rule)}"
    return f"{line}: {tr(reason)}" if reason and reason != rule else line


def _waiting(outbox: Mapping[str, Any]) -> str:
    waiting, unread = int(_number(outbox, "waiting")), int(_number(outbox, "unread"))
    parts = [f"{waiting}: {tr(_text(outbox, 'reason'))}"] if waiting else []
    return ", ".join([*parts, *([tr(f"{unread} unread")] if unread else [])])


def _message(task: Mapping[str, Any]) -> str:
    sender = sender_called(sender_of(task), {})
    return tr(f"{_text(task, 'id')[:8]} from {sender}: {one_line(_text(task, 'text'), TEXT_CELLS)}")


def _moment(table: Mapping[str, Any], name: str, now: datetime) -> str:
    at = time_of(_text(table, name))
    return "?" if at is None else moment(at, now)


def _table(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = answer.get(name)
    return found if isinstance(found, dict) else {}


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    return plain(found) if isinstance(found, str) else ""


def _number(table: Mapping[str, Any], name: str) -> float:
    found = table.get(name)
    return float(found) if isinstance(found, int | float) else 0.0
