"""When a process counts as ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from synapse_tui.system.process_times import process_start
from synapse_tui.system.pty.guardian_process import alive, read_row
from tests.waiting import wait_until

# exit(2) ends the calling thread alone
THREAD_GOES_ON = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists() or os.uname().machine not in ("x86_64", "aarch64"),
    reason="needs /proc and the number of a system call",
)
def test_a_process_has_ended_once_its_last_thread_has() -> None:
    process = subprocess.Popen([sys.executable, "-c", THREAD_GOES_ON], stdout=subprocess.PIPE)
    with process:
        try:
            look(process)
        finally:
            process.kill()


def look(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    row = read_row(process.pid)
    assert row is not None
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "the end of its first thread")
    assert alive(row.key), "a thread of it may hold ports"
    assert process_start(process.pid) is not None
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(row.key)
    assert process_start(process.pid) is None
