"""Parts for the dummy agent: what it says and does in the tour and in the demo.

A text is performed from left to right: words are written, and directives (`script.DIRECTIVES_HELP`) are
carried out where they stand. `{text}` is what was asked. All of it is said in the language of the person, who
may ask in it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .script import DIRECTIVE, SENDER, Directive

_CUES = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True)
class DummyRole:
    """What an agent plays.

    Attributes:
        hello: Its first words, shown instead of the banner.
        answers: Patterns of messages, and what each is answered with; the first that matches counts.
    """

    hello: str
    answers: tuple[tuple[str, str], ...]

    @property
    def greeting(self) -> str:
        return tr(self.hello)

    def perform(self, text: str) -> Iterator[str | Directive] | None:
        """Yield the words and directives that answer a message; None if the part has no answer."""
        match = SENDER.match(text)
        asked = text[match.end() :] if match else text
        if DIRECTIVE.search(asked):
            return None
        for pattern, answer in self.answers:
            if re.search(f"{pattern}|{tr(pattern)}", asked, _CUES):
                return _steps(tr(answer.replace("{text}", " ".join(asked.split())[:160])))
        return None


def invitation(name: str) -> str:
    """What an agent with a part shows in its empty composer."""
    return tr(f"Write to {name}")


def _steps(text: str) -> Iterator[str | Directive]:
    at = 0
    for match in DIRECTIVE.finditer(text):
        if words := text[at : match.start()].strip(" "):
            yield words
        yield Directive(match[1], (match[2] or "").strip())
        at = match.end()
    if words := text[at:].strip(" "):
        yield words


# fmt: off
PARTS: Mapping[str, DummyRole] = MappingProxyType({
    # The tour: `ui/screens/tour.py` sends what these two are asked.
    "alice": DummyRole(
        "I am alice. I follow a script and cost nothing. Write to me, or to bob.",
        (("", "You wrote: {text}"),),
    ),
    "bob": DummyRole(
        "I am bob. I read what alice sends me, and I delete nothing without permission.",
        (
            ("remove the build folder", "I do it if I may.%%perm:rm -rf build%%That is settled."),
            ("", "I have your message: {text}"),
        ),
    ),
    # The demo: `ui/screens/demo.py` plays the person.
    "mia": DummyRole(
        "I am mia. I write the cart.",
        (
            (
                "totals",
                ("I lock the file that I write.%%do:synapse file-safety lock src/cart.py%%And I ask leo."
                '%%do:synapse send leo "which tests cover the cart?" --response%%Good. I write the totals.'
                "%%hang:14%%%%do:synapse file-safety unlock src/cart.py%%Done: the cart has totals."),
            ),
            ("", "I have your message: {text}"),
        ),
    ),
    "leo": DummyRole(
        "I am leo. I write the tests.",
        (
            ("which tests", "tests/test_cart.py, 12 of them."),
            (
                "test the totals",
                ("%%do:synapse file-safety lock src/cart.py%%mia is writing it, so I wait. ada should know."
                '%%do:synapse send ada "totals are coming: note them" --no-response%%I test them next.'),
            ),
            ("", "I have your message: {text}"),
        ),
    ),
    "ada": DummyRole("I am ada. I keep the README.", (("", "Noted in the README: {text}"),)),
    "tom": DummyRole(
        "I am tom. I tidy up.",
        (("clean up", "I do it if I may.%%perm:rm -rf build%%That is settled."), ("", "Noted: {text}")),
    ),
})
# fmt: on
