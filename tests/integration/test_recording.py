"""The log of an agent, recorded as it runs and played again."""

from __future__ import annotations

from synapse_tui.agents.raw_log import Begun, times_path
from synapse_tui.daemon.recording.log_reader import LogCast, read_log
from synapse_tui.daemon.recording.transcript import Transcript
from synapse_tui.terminal import Terminal
from tests.asciicast import play
from tests.integration.session_rig import open_rig


def picture(terminal: Terminal) -> tuple[object, ...]:
    cells = [[terminal.cell(x, y) for x in range(terminal.columns)] for y in range(terminal.lines)]
    return [[(cell.text, cell.style) for cell in row] for row in cells], terminal.cursor


async def test_the_log_of_an_agent_is_its_screen_again(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        await rig.done(rig.send("何か %%lines:40%%"))
        rig.session.resize(90, 25)
        await rig.ready()
        await rig.done(rig.send("second"))
        await rig.ready()
    terminal = rig.session.terminal
    log = rig.logs / "synapse-dummy-8190.log"
    cast = LogCast("dummy")
    items = list(read_log(log, 10**9))
    assert isinstance(items[0], Begun)
    assert (items[0].columns, items[0].lines) == (100, 30)
    path = tmp_path / "log.cast"
    path.write_text("".join([*cast.lines(items), *cast.end()]), encoding="utf-8", newline="\n")
    assert picture(play(path)) == picture(terminal)
    transcript = Transcript()
    transcript.take(items)
    said = transcript.said() + transcript.screen()
    for row in terminal.display:
        assert not row.strip() or row.rstrip() in said
    assert any("何か" in line for line in said)
    assert times_path(log).stat().st_mode & 0o777 == 0o600
