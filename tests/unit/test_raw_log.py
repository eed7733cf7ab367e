"""The log of an agent's output."""

import asyncio

from synapse_tui.agents import raw_log
from synapse_tui.agents.raw_log import GAP, RawLog


async def test_bytes_are_appended_in_order(tmp_path):
    log = RawLog(tmp_path / "logs" / "a.log")
    for number in range(200):
        log.write(b"%d\n" % number)
        if number % 50 == 0:
            await asyncio.sleep(0)
    await log.close()
    assert (tmp_path / "logs" / "a.log").read_bytes() == b"".join(b"%d\n" % number for number in range(200))


async def test_only_the_owner_may_read_it(tmp_path):
    path = tmp_path / "logs" / "a.log"
    path.parent.mkdir(mode=0o755)
    path.write_bytes(b"old")
    path.chmod(0o644)
    log = RawLog(path)
    log.write(b"new")
    await log.close()
    assert path.read_bytes() == b"oldnew"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_its_size_is_bounded(tmp_path):
    log = RawLog(tmp_path / "a.log", max_bytes=100)
    for number in range(20):
        log.write(b"%02d" % number * 20)
        await log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert set(files) <= {"a.log", "a.log.1"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 240


async def test_what_the_disk_cannot_take_is_left_out_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_log, "MAX_WAITING", 60)
    log = RawLog(tmp_path / "a.log")
    log.write(b"x" * 10)
    log.write(b"y" * 100)
    log.write(b"z")
    await log.close()
    assert (tmp_path / "a.log").read_bytes() == b"x" * 10 + GAP + b"z"


async def test_a_folder_that_cannot_be_made_stops_the_log_only(tmp_path, caplog):
    (tmp_path / "logs").write_text("a file in the way")
    log = RawLog(tmp_path / "logs" / "a.log")
    log.write(b"x")
    await log.close()
    log.write(b"y")
    assert "cannot be written" in caplog.text


async def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / "a.log").symlink_to(target)
    log = RawLog(tmp_path / "a.log")
    log.write(b"x")
    await log.close()
    assert target.read_bytes() == b""
