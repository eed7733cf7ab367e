"""`synapse delegate`: a task to whom the rules of delegation give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from synapse_tui.addresses import Address
from synapse_tui.errors import AgentNotFound
from synapse_tui.instructions import Pick, TextFile, load_rules
from synapse_tui.instructions.files import TextFolders
from synapse_tui.model import Sender

from .caller import Caller
from .options import json_option
from .output import end_with, fail, note, show, show_json
from .reporting import outcome_json, report
from .sending import Sending, sending_options
from .texts import TextCommand, read_message


@click.command(name="delegate", cls=TextCommand)
@click.argument("task")
@click.option("--dry-run", is_flag=True, help="Only tell to whom it would go, and why.")
@sending_options()
@json_option
@click.pass_context
def command(context: click.Context, /, task: str, *, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Send TASK to the agent that the table in .synapse/delegate.md names for it.

    The row with the longest keyword in TASK decides; standard error tells which one.
    """
    sending = Sending(**options)
    text = read_message(task)
    caller = Caller.of()
    who = caller.sender(sending.sender)
    pick, file = pick_for(caller, text)
    targets = _receivers(caller, who, pick)
    note(f"synapse: {', '.join(target.agent_id for target in targets)}: {pick.why}, {file.path}")
    rule = _rule_json(pick, file)
    if dry_run:
        _show_dry(targets, rule, as_json=as_json)
        return
    order = sending.order(caller, who, text)
    outcomes = order.deliver(targets)
    if as_json:
        values = [outcome_json(outcome) | {"rule": rule} for outcome in outcomes]
        show_json(values if len(values) > 1 else values[0])
    for outcome in outcomes:
        if not as_json:
            report(outcome, waiting=order.waits, alone=len(outcomes) == 1)
        elif outcome.error:
            fail(outcome.error, name="synapse")
    end_with(context, (outcome.error for outcome in outcomes))


def pick_for(caller: Caller, text: str) -> tuple[Pick, TextFile]:
    """The rule that a task falls under, and the file with it.

    Raises:
        RulesBroken: There are no rules, or they are broken.
        NoRuleFits: None fits.
        RulesUndecided: Several fit alike.
    """
    from synapse_tui.agents.profiles.finding import TrustStore

    project = Path(caller.project)
    trust = TrustStore(caller.paths.trusted)
    folders = TextFolders(project / ".synapse", caller.paths.synapse, trust.trusts)
    loaded = load_rules(folders)
    for fault in loaded.faults:
        note(f"synapse: left out: {fault}")
    return loaded.rules.pick(text), loaded.file


def _receivers(caller: Caller, who: Sender, pick: Pick) -> list[Address]:
    """Whom a rule means; never the sender itself.

    Raises:
        AddressError: It means nobody who could take the task; the message tells the rule.
    """
    try:
        return caller.find(pick.rule.agent, sender=who.sender_id)
    except AgentNotFound as error:
        own = who.sender_id in _ids(caller, pick.rule.agent)
        hint = "do it yourself, or name another agent with `synapse send`" if own else error.hint
        raise AgentNotFound(f"{error.message}: {pick.why}", hint) from error


def _ids(caller: Caller, address: str) -> list[str]:
    try:
        return [found.agent_id for found in caller.find(address)]
    except AgentNotFound:
        return []


def _show_dry(targets: list[Address], rule: dict[str, object], *, as_json: bool) -> None:
    values: list[dict[str, object]] = [{"target": target.agent_id, "rule": rule} for target in targets]
    if as_json:
        show_json(values if len(values) > 1 else values[0])
    else:
        for target in targets:
            show(target.agent_id)


def _rule_json(pick: Pick, file: TextFile) -> dict[str, object]:
    return {
        "kind": pick.rule.kind,
        "agent": pick.rule.agent,
        "keywords": list(pick.matched),
        "file": str(file.path),
        "line": pick.rule.line,
    }
