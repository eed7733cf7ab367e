"""What a host's log leaves out."""

import io
import logging

from synapse_tui.daemon.logs import PAUSE, Repeats


class Log:
    """A log whose records come when they are told to."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self._handler = logging.StreamHandler(self.file)
        self._handler.addFilter(Repeats())

    def say(self, at: float, words: str, *args: object, level: int = logging.WARNING) -> None:
        record = logging.LogRecord("synapse", level, __file__, 1, words, args, None)
        record.created = at
        self._handler.handle(record)

    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()


def test_the_same_words_are_written_once_a_minute_and_counted():
    log = Log()
    for second in range(int(PAUSE) + 1):
        log.say(float(second), "history not written: %s", "disk full")
    assert log.lines() == [
        "history not written: disk full",
        f"history not written: disk full (and {int(PAUSE) - 1} times since)",
    ]
    log.say(3 * PAUSE, "history not written: %s", "disk full")
    assert log.lines()[-1] == "history not written: disk full"


def test_other_words_and_severities_are_written():
    log = Log()
    for name in ("a", "b", "a"):
        log.say(1.0, "%s is gone", name)
    log.say(1.0, "%s is gone", "a", level=logging.ERROR)
    assert log.lines() == ["a is gone", "b is gone", "a is gone"]
