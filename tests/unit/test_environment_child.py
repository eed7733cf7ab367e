"""The environment of an agent."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from synapse_tui.agents.environment import child_environment, command_folder, installed_command
from synapse_tui.agents.profiles.profile import Profile, Quirks
from synapse_tui.system.paths import UserPaths

PROFILE = Profile(
    "claude", "Claude", "claude", env={"EXTRA": "1", "SYNAPSE_AGENT_ID": "forged", "TERM": "xterm"}
)


def environment(tmp_path: Path, base: dict[str, str], profile: Profile = PROFILE) -> dict[str, str]:
    return child_environment(
        base,
        profile=profile,
        agent_id="synapse-claude-8100",
        endpoint="http://127.0.0.1:8100",
        token="secret",
        spool=tmp_path / "spool",
        paths=UserPaths(tmp_path),
    )


def test_the_agent_is_told_who_it_is(tmp_path: Path) -> None:
    env = environment(tmp_path, {"HOME": "/home/me"})
    assert env["HOME"] == "/home/me"
    assert env["COLORTERM"] == "truecolor"
    assert env["SYNAPSE_AGENT_ID"] == "synapse-claude-8100"
    assert env["SYNAPSE_ENDPOINT"] == "http://127.0.0.1:8100"
    assert env["SYNAPSE_TOKEN"] == "secret"
    assert env["SYNAPSE_SPOOL"] == str(tmp_path / "spool")
    assert env["SYNAPSE_BIN"] == str(installed_command())
    assert env["SYNAPSE_LANGUAGE"] == "en"


@pytest.mark.usefixtures("japanese")
def test_all_that_is_in_a_session_speaks_its_language(tmp_path: Path) -> None:
    env = environment(tmp_path, {"SYNAPSE_LANGUAGE": "en"})
    assert env["SYNAPSE_LANGUAGE"] == "ja"


def test_term_is_ours_whatever_the_outer_terminal_is(tmp_path: Path) -> None:
    plain = Profile("claude", "Claude", "claude")
    env = environment(tmp_path, {"TERM": "tmux-256color", "COLORTERM": "24bit"}, plain)
    assert (env["TERM"], env["COLORTERM"]) == ("xterm-256color", "truecolor")


@pytest.mark.parametrize(
    "name",
    [
        "TMUX", "TMUX_PANE", "STY", "LINES", "COLUMNS", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE", "ITERM_SESSION_ID", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID",
        "WT_SESSION",
        "VTE_VERSION", "ZELLIJ", "ZELLIJ_SESSION_NAME", "WINDOWID", "VSCODE_INJECTION",
        "GHOSTTY_RESOURCES_DIR",
        "SYNAPSE_API_KEYS", "SYNAPSE_ADMIN_KEY", "SYNAPSE_DATABASE_PASSWORD", "NO_COLOR", "LC_TERMINAL",
    ],
)  # fmt: skip
def test_what_an_agent_must_not_hear(tmp_path: Path, name: str) -> None:
    assert name not in environment(tmp_path, {name: "x", "PATH": "/bin"})


@pytest.mark.parametrize(
    "name", ["LANG", "LC_ALL", "ANTHROPIC_API_KEY", "VIRTUAL_ENV", "SYNAPSE_AUTH_ENABLED", "EDITOR"]
)
def test_the_rest_of_the_users_environment_stays(tmp_path: Path, name: str) -> None:
    assert environment(tmp_path, {name: "x"})[name] == "x"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://ann:pa%40ss@db.lan:5433/team", "postgresql://ann@db.lan:5433/team"),
        ("postgresql://db.lan/team?user=ann&password=x", "postgresql://db.lan/team?user=ann"),
        ("postgresql://ann:p@ss/w@db.lan/team", "of-the-host"),
        ("nonsense", "of-the-host"),
    ],
)
def test_an_agent_knows_the_database_but_not_its_password(tmp_path: Path, url: str, told: str) -> None:
    assert environment(tmp_path, {"SYNAPSE_DATABASE_URL": url})["SYNAPSE_DATABASE_URL"] == told


def test_who_an_outer_agent_is_does_not_pass_on(tmp_path: Path) -> None:
    outer = {"SYNAPSE_TOKEN": "outer", "SYNAPSE_AGENT_ID": "outer", "SYNAPSE_SPOOL": "outer"}
    env = environment(tmp_path, outer)
    assert (env["SYNAPSE_TOKEN"], env["SYNAPSE_AGENT_ID"]) == ("secret", "synapse-claude-8100")
    without = child_environment(
        outer, profile=PROFILE, agent_id="a", endpoint="", token="t", paths=UserPaths(tmp_path)
    )
    assert "SYNAPSE_SPOOL" not in without


def test_the_profile_adds_variables_and_a_terminal_program(tmp_path: Path) -> None:
    assert environment(tmp_path, {})["EXTRA"] == "1"
    profile = Profile("claude", "Claude", "claude", quirks=Quirks(term_program=("iTerm.app", "3.6.6")))
    env = environment(tmp_path, {"TERM_PROGRAM": "Apple_Terminal"}, profile)
    assert (env["TERM_PROGRAM"], env["TERM_PROGRAM_VERSION"]) == ("iTerm.app", "3.6.6")


def test_synapse_comes_first_on_path_and_brings_nothing_else(tmp_path: Path) -> None:
    env = environment(tmp_path, {"PATH": f"/usr/bin::{os.pathsep}/bin"})
    first, *rest = env["PATH"].split(os.pathsep)
    assert rest == ["/usr/bin", "/bin"]
    assert [path.name for path in Path(first).iterdir()] == ["synapse"]
    assert (Path(first) / "synapse").readlink() == installed_command()
    assert Path(first).stat().st_mode & 0o777 == 0o700


RESET = "export PATH=/usr/local/bin:/usr/bin:/bin\n"


def run(arguments: list[str], env: dict[str, str]) -> list[str]:
    """What a bash prints that gets these arguments."""
    done = subprocess.run(["bash", *arguments], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def reset(tmp_path: Path) -> dict[str, str]:
    """The environment of an agent whose person sets PATH anew in the start-up file of login shells."""
    (tmp_path / ".bash_profile").write_text(RESET)
    return {"HOME": str(tmp_path), "PATH": "/usr/local/bin:/usr/bin:/bin", "WHERE": str(tmp_path)}


@pytest.mark.parametrize("flags", [["-c"], ["-lc"], ["--login", "-c"], ["-eu", "-c"]], ids=" ".join)
def test_a_shell_that_sets_path_anew_finds_synapse_first_and_nothing_else(
    tmp_path: Path, reset: dict[str, str], flags: list[str]
) -> None:
    env = environment(tmp_path, reset)
    first = env["PATH"].split(os.pathsep)[0]
    assert run([*flags, "command -v synapse; echo $PATH"], env) == [
        f"{first}/synapse",
        f"{first}:/usr/local/bin:/usr/bin:/bin",
    ]
    assert [path.name for path in Path(first).iterdir()] == ["synapse"]


def test_a_shell_whose_input_is_a_socket_does_too(tmp_path: Path, reset: dict[str, str]) -> None:
    """Codex starts it so; bash reads .bashrc then, as for rshd, in the first of shells below one another."""
    (tmp_path / ".bashrc").write_text(RESET)
    env = environment(tmp_path, reset)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            ["bash", "-c", "command -v synapse"],
            env=env,
            stdin=theirs.fileno(),
            capture_output=True,
            check=False,
        )
    assert done.stdout.decode().strip() == f"{env['PATH'].split(os.pathsep)[0]}/synapse"


def test_synapse_stays_first_once_in_shells_below_that_put_others_before(
    tmp_path: Path, reset: dict[str, str]
) -> None:
    env = environment(tmp_path, reset)
    first = env["PATH"].split(os.pathsep)[0]
    below = 'PATH="/opt/one:$PATH" bash -c "PATH=\\"/opt/two:\\$PATH\\" bash -c \'echo \\$PATH\'"'
    assert run(["-c", below], env) == [f"{first}:/opt/two:/opt/one:/usr/local/bin:/usr/bin:/bin"]


def test_the_file_that_the_person_lets_bash_read_is_read_too(tmp_path: Path, reset: dict[str, str]) -> None:
    (tmp_path / "mine").write_text("PATH=/mine:$PATH MINE=yes\n")
    env = environment(tmp_path, {**reset, "BASH_ENV": "$WHERE/mine"})
    first = env["PATH"].split(os.pathsep)[0]
    shown = [f"yes {first}:/mine:/usr/local/bin:/usr/bin:/bin"]
    assert run(["-lc", "echo $MINE $PATH"], env) == shown
    inner = environment(tmp_path, env)
    assert run(["-lc", "echo $MINE $PATH"], inner) == shown, "an agent of an agent"
    profile = Profile("claude", "Claude", "claude", env={"BASH_ENV": str(tmp_path / "mine")})
    assert run(["-lc", "echo $MINE $PATH"], environment(tmp_path, reset, profile)) == shown


def test_a_home_with_quotes_and_blanks_does_no_harm(tmp_path: Path) -> None:
    home = tmp_path / "it's a $HOME"
    home.mkdir()
    env = environment(home, {"HOME": str(home), "PATH": "/usr/bin:/bin"})
    first = env["PATH"].removesuffix(":/usr/bin:/bin")
    assert run(["-c", 'echo "$PATH"'], {**env, "PATH": f"/bin:{first}"}) == [f"{first}:/bin"]


def test_the_folder_of_the_command_follows_a_moved_installation(tmp_path: Path) -> None:
    paths = UserPaths(tmp_path)
    one = command_folder(tmp_path / "one" / "synapse", paths)
    other = command_folder(tmp_path / "other" / "synapse", paths)
    assert one != other
    (one / "synapse").unlink()
    (one / "synapse").symlink_to("/elsewhere")
    (one / "git").write_text("planted while others could write here")
    (one / "more").mkdir()
    (one / "more" / "ls").symlink_to("/bin/ls")
    assert command_folder(tmp_path / "one" / "synapse", paths) == one
    assert (one / "synapse").readlink() == tmp_path / "one" / "synapse"
    assert [path.name for path in one.iterdir()] == ["synapse"]
