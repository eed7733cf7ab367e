"""The reasons for which a message waits, is held or has ended that the program itself asks about.

A task has its reason as text: people read it, and histories of all versions keep it. `Reason.of` reads it.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    OTHER = ""
    # Before a message is typed
    AGENT_EXITED = "agent exited"  # while its host still runs
    NO_PROFILE = "release it to allow messages"  # the program has no profile; more follows
    STATE_UNKNOWN = "state unknown"
    NO_COMPOSER = "composer not visible"
    VI_NORMAL = "composer in vi's normal mode"
    UNSTEADY = "composer just changed"
    DRAFT = "you have a draft"
    TYPING = "you are typing"
    PRESSED = "a key was just pressed"
    TYPED_FIRST = "something else is typed first"  # an interrupt, or the answer to a dialog
    UNREAD = "agent does not read its input"
    WORKING = "working"
    BEHIND = "other messages go first"
    FOLLOW_UP_WAITS = "a message that goes on with it waits"
    HELD_BY_USER = "held by you"
    # Once its text was typed
    NOT_SHOWN = "the composer does not show the message"
    NO_TEXT = "agent did not take the text"
    NO_ENTER = "agent did not take Enter"
    NO_PROOF = "Enter was pressed, and the screen does not tell whether it went"
    LEFT_OVER = "another message is left in the composer"
    LEFT_IN = "the text was left in the composer: clear it there, then release the message"
    UNCERTAIN = "uncertain whether it was sent"  # more may follow
    # In the inbox, for the agent to read in place of being typed
    IN_INBOX = "in the inbox"
    READ = "read"
    UNANSWERED = "read, and not answered yet"
    # After the end of its turn
    GAVE_UP = "the watch gave up"  # more follows
    WATCH_STOPPED = "the watch was stopped"  # by whom follows
    # After the end of its host, or of its agent's pane
    BEFORE_RESTART = "from before the restart"
    WHILE_CLOSED = "kept while the agent was closed"
    AGENT_CLOSED = "the agent was closed"
    HOST_ENDED = "the host had ended"
    GOES_ON = "the host ended; a message that goes on with it waits"
    WATCHED = "the host ended; its watch goes on when the agent is opened again"

    @classmethod
    def of(cls, text: str) -> Reason:
        """Return the reason with which a text begins; `OTHER` if none does."""
        return max((each for each in cls if text.startswith(each)), key=len)
