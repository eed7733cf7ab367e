"""The section `doctor` of a profile file: the messages and facts that `synapse doctor` tries it with."""

from __future__ import annotations

import re
from types import MappingProxyType

from .key_names import key_bytes
from .profile import DOCTOR_PROMPTS, DoctorPrompt, DoctorRules, DoctorYes
from .yaml_nodes import Section

PLACEHOLDERS = ("first", "second", "filler", "command", "seconds", "chars", "lines")
"""What may stand in braces in a message or in the pattern of its answer."""


def read_doctor(section: Section) -> DoctorRules:
    """Read the section; what is missing gets its default."""
    base = DoctorRules()
    prompts = section.section("prompts")
    found = DoctorRules(
        version=section.text("version"),
        version_args=section.strings("version_args", base.version_args),
        free=section.flag("free", default=False),
        args=section.strings("args"),
        trust=tuple(filter(None, map(_yes, section.sections("trust", alone=True)))),
        approve=_yes(section.section("approve")),
        prompts=MappingProxyType({name: _prompt(prompts, name) for name in DOCTOR_PROMPTS}),
    )
    prompts.finish()
    section.finish()
    return found


def _yes(section: Section) -> DoctorYes | None:
    screen = section.pattern("screen")
    keys = section.convert("keys", key_bytes)
    section.finish()
    if screen is None:
        return None
    return DoctorYes(screen, keys) if keys else DoctorYes(screen)


def _prompt(prompts: Section, name: str) -> DoctorPrompt:
    section = prompts.section(name)
    expect = section.text("expect")
    try:
        re.compile(filled(expect, dict.fromkeys(PLACEHOLDERS, "1")))
    except re.error as error:
        section.fault("expect", f"'{expect}' is no regular expression: {error}")
    found = DoctorPrompt(text=section.text("text").strip(), expect=expect)
    section.finish()
    return found


def filled(text: str, fields: dict[str, str]) -> str:
    """A text with `{name}` replaced for the fields given; other braces stay, as patterns need them."""
    names = "|".join(map(re.escape, fields))
    return re.sub(rf"\{{({names})\}}", lambda match: fields[match[1]], text) if fields else text
