"""Messages that stand, or may stand, unsent in the composer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.recovery import UNCERTAIN
from synapse_tui.model import Task

from .after_dialog import Standing
from .typist import Typist


class Leftovers:
    """One that a dialog has covered, and one that is left for a person to look at.

    Args:
        outbox: Where they wait.
        typist: Who typed them.

    Attributes:
        covered: Typed, and then a dialog opened over it.
        standing: Left in the composer.
    """

    def __init__(self, outbox: Outbox, typist: Typist) -> None:
        self._outbox = outbox
        self._typist = typist
        self.covered: Standing | None = None
        self.standing: Standing | None = None

    def state(self) -> dict[str, Any]:
        """Both as JSON."""
        return {
            "covered": self.covered and dataclasses.asdict(self.covered),
            "standing": self.standing and dataclasses.asdict(self.standing),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on with those of which `state` was given; they wait in the outbox already."""
        self.covered, self.standing = (
            Standing(**state[name]) if state.get(name) else None for name in ("covered", "standing")
        )

    @property
    def ours(self) -> bool:
        """Whether what stands in the composer was left there by us."""
        return self.standing is not None and self._typist.stands(self.standing.text)

    def released(self, task: Task) -> Standing | None:
        """The message left in the composer, when a person lets it go on and it still stands there."""
        return self.standing if self.standing and self.standing.task_id == task.id and self.ours else None

    def abandon(self) -> None:
        """The process has ended: what stood in its composer stands there no more."""
        for standing in (self.covered, self.standing):
            if standing is not None and standing.task_id in self._outbox:
                if standing.entered:
                    self._outbox.park(standing.task_id, UNCERTAIN)
                elif self._outbox.is_parked(standing.task_id):
                    self._outbox.release(standing.task_id)
        self.covered = self.standing = None
