"""The pace of a playback: speed, pauses, steps, leaps; the manual of `synapse-tui play`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from synapse_tui.cli.play import command
from synapse_tui.recording import playback as playback_module
from synapse_tui.recording.asciicast import Event, Recording
from synapse_tui.recording.playback import FASTEST, SLOWEST, Playback, Player


class Clock:
    """A clock that the test moves."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    lines: list[object] = [{"version": 2, "width": 20, "height": 2}]
    lines += [[float(number), "o", str(number)] for number in range(10)]
    path = tmp_path / "a.cast"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    opened = Recording(path)
    yield opened
    opened.close()


def shown(playback: Playback) -> str:
    return playback.mirror.terminal.display[0].rstrip()


def test_it_plays_at_the_pace_of_the_clock(recording: Recording, clock: Clock) -> None:
    playback = Playback(recording)
    player = Player(playback, clock)
    player.advance()
    assert (shown(playback), player.wait) == ("0", 1.0)
    clock.now += 2.25
    player.advance()
    assert (shown(playback), player.wait) == ("012", 0.75)
    clock.now += 100
    player.advance()
    assert shown(playback) == "0123456789"
    assert player.ended
    assert player.wait is None


def test_speed_counts_from_now_on(recording: Recording, clock: Clock) -> None:
    playback = Playback(recording)
    player = Player(playback, clock, speed=2)
    clock.now += 1
    player.advance()
    assert (shown(playback), player.wait) == ("012", 0.5)
    player.accelerate(1 / 4)
    assert player.wait == 2.0
    clock.now += 1.5
    player.accelerate(4)
    assert player.wait == 0.125
    for _ in range(20):
        player.accelerate(2)
    assert player.speed == FASTEST
    for _ in range(20):
        player.accelerate(1 / 2)
    assert player.speed == SLOWEST


def test_a_pause_takes_no_time(recording: Recording, clock: Clock) -> None:
    playback = Playback(recording)
    player = Player(playback, clock)
    clock.now += 1.5
    player.advance()
    player.pause()
    clock.now += 1000
    player.advance()
    assert (shown(playback), player.wait) == ("01", None)
    player.pause()
    assert player.wait == 0.5


def test_a_step_goes_to_the_next_event_and_stops(recording: Recording, clock: Clock) -> None:
    playback = Playback(recording)
    player = Player(playback, clock)
    player.advance()
    player.step()
    clock.now += 1000
    player.advance()
    assert (shown(playback), playback.time) == ("01", 1.0)
    for _ in range(20):
        player.step()
    assert (shown(playback), playback.time, player.ended) == ("0123456789", 9.0, True)


def test_leaps_go_both_ways(recording: Recording, clock: Clock) -> None:
    playback = Playback(recording)
    player = Player(playback, clock)
    player.advance()
    player.move(5.5)
    assert (shown(playback), player.wait) == ("012345", 0.5)
    player.move(-3)
    assert (shown(playback), player.wait) == ("012", 0.5)
    player.move(-100)
    assert (shown(playback), playback.time) == ("0", 0.0)
    player.move(100)
    assert (shown(playback), playback.time) == ("0123456789", 9.0)
    player.move(-1)
    assert (shown(playback), player.ended) == ("012345678", False)


def test_more_than_can_be_played_at_once_slows_down(
    recording: Recording, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playback_module, "TURN_CHARACTERS", 3)
    playback = Playback(recording)
    player = Player(playback, clock)
    clock.now += 8.5
    player.advance()
    assert (shown(playback), player.wait) == ("012", 1.0)


def test_pauses_are_shortened(recording: Recording) -> None:
    playback = Playback(recording, idle_limit=0.5)
    playback.seek(2.25)
    assert (shown(playback), playback.next_time) == ("01234", 2.5)


def test_times_that_go_back_count_as_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    path.write_text('{"version": 2, "width": 20, "height": 2}\n[5, "o", "a"]\n[1, "o", "b"]\n[6, "x", "c"]\n')
    recording = Recording(path)
    playback = Playback(recording)
    playback.seek(5)
    assert (shown(playback), playback.next_time) == ("ab", 6.0)
    recording.close()


def test_pictures_are_kept_to_go_back_to(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_module, "KEYFRAME_CHARACTERS", 2)
    playback = Playback(recording)
    playback.finish()
    read: list[int] = []
    events = recording.events

    def noted(offset: int) -> Iterator[tuple[Event, int]]:
        read.append(offset)
        return events(offset)

    monkeypatch.setattr(recording, "events", noted)
    playback.seek(7.5)
    assert shown(playback) == "01234567"
    assert read[0] > recording.first


def test_every_option_and_key_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    section = manual.partition("## synapse-tui play")[2].partition("\n## ")[0]
    for parameter in command.params:
        for option in parameter.opts:
            assert not option.startswith("--") or f"`{option}" in section, option
    epilog = command.get_help(click.Context(command))
    for key in ("Space", "+", "-", ".", "Left", "Right", "q"):
        assert key in epilog
        assert key in section
