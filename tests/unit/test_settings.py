"""The layers of settings, and what is said of what cannot be used."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from synapse_tui.core.errors import ConfigError
from synapse_tui.settings import SCHEMA, Setting, Settings, load_settings
from synapse_tui.settings import files as editing
from synapse_tui.settings.files import SettingsFile, SettingsFiles, turn_at
from synapse_tui.settings.layers import check_file
from synapse_tui.settings.schema import AREAS, find_setting, nearest_key
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore
from tests.odd_files import put_odd
from tests.waiting import PATIENCE


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def load(
    home: Path, project: Path, environ: dict[str, str] | None = None, *, trusted: bool = True
) -> Settings:
    return load_settings(
        project, paths=UserPaths(home), environ=environ or {}, trusted=lambda path, data: trusted
    )


def test_later_layers_win_and_say_where_a_value_came_from(home: Path, project: Path) -> None:
    write(home / ".synapse/settings.json", {"tui": {"layout": "grid", "sidebar": True}})
    write(
        project / ".synapse/settings.json",
        {"tui": {"layout": "columns"}, "env": {"SYNAPSE_LOG_LEVEL": "DEBUG"}},
    )
    write(project / ".synapse/settings.local.json", {"tui.layout": "main"})
    settings = load(home, project, {"SYNAPSE_LOG_LEVEL": "ERROR"})
    assert settings.text("tui.layout") == "main"
    assert settings.flag("tui.sidebar")
    assert settings.text("env.SYNAPSE_LOG_LEVEL") == "ERROR"
    assert settings.origins["tui.layout"] == str(project / ".synapse/settings.local.json")
    assert settings.origins["tui.sidebar"] == str(home / ".synapse/settings.json")
    assert settings.origins["env.SYNAPSE_LOG_LEVEL"] == "environment"


def test_an_untrusted_project_sets_nothing(home: Path, project: Path) -> None:
    write(project / ".synapse/settings.json", {"tui": {"layout": "grid"}})
    settings = load(home, project, trusted=False)
    assert settings.text("tui.layout") == "tabs"
    assert settings.untrusted == (project / ".synapse/settings.json",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must contain a JSON object"),
        ({"tui": {"layuot": "grid"}}, "did you mean 'tui.layout'?"),
        ({"tui": {"layout": "circle"}}, "must be one of tabs, columns, grid, main"),
        ({"tui": {"sidebar": "perhaps"}}, "must be true or false"),
        ({"tui": {"scrollback": "many"}}, "must be a whole number"),
        ({"tui": {"agents": "claude"}}, "must be a list of strings"),
        ({"tui": {"leader": 7}}, "must be a string"),
    ],
)
def test_what_cannot_be_used_is_said_with_the_file_and_the_rest_holds(
    home: Path, project: Path, content: object, said: str
) -> None:
    write(home / ".synapse/settings.json", content)
    write(project / ".synapse/settings.json", {"a2a": {"flow": "oneway"}})
    settings = load(home, project)
    assert len(settings.problems) == 1
    assert said in str(settings.problems[0])
    assert str(home / ".synapse/settings.json") in str(settings.problems[0])
    assert settings.text("a2a.flow") == "oneway"
    assert settings.text("tui.layout") == "tabs"


def test_every_setting_accepts_its_own_default() -> None:
    for setting in SCHEMA.values():
        assert setting.convert(setting.default) == setting.default
        assert setting.help.endswith(".")


def test_every_setting_has_an_area_and_a_sentence_that_fits() -> None:
    for setting in (*SCHEMA.values(), find_setting("instructions.other")):
        assert setting is not None
        assert setting.area in AREAS, setting.key
        values = setting.choices or (("true", "false") if setting.kind == "boolean" else ())
        for value in values or ("7",):
            before, words, after = setting.around(value)
            assert before[:1].isupper(), f"{setting.key} has no sentence"
            assert not set("{}|=`") & set(f"{before}{words}{after}"), setting.key
        blank = setting.sentence.partition("{")[2].partition("}")[0]
        named = {each.partition("=")[0] for each in blank.split("|") if each}
        taken = {*values, "none", "0", *re.findall(r"`(\w+)`", setting.help)}
        assert named <= taken, f"{setting.key} has words for values that it does not take"


def test_in_the_home_folder_the_files_are_the_users_own(home: Path) -> None:
    write(home / ".synapse/settings.json", {"tui": {"layout": "grid"}})
    settings = load(home, home, trusted=False)
    assert settings.text("tui.layout") == "grid"
    assert not settings.untrusted


def test_any_type_may_have_instructions_and_a_misspelt_one_is_told(home: Path, project: Path) -> None:
    content = {"instructions": {"claude": "a.md", "gemeni": "b.md", "codex": "../c.md"}}
    write(home / ".synapse/settings.json", content)
    assert load(home, project).values["instructions.gemeni"] == "b.md"
    found = load_settings(
        project,
        paths=UserPaths(home),
        environ={},
        trusted=lambda *_: True,
        types=("claude", "gemini", "codex"),
    )
    assert found.values["instructions.claude"] == "a.md"
    assert found.origins["instructions.claude"] == str(home / ".synapse/settings.json")
    assert "instructions.gemeni" not in found.values
    assert [problem.hint for problem in found.problems] == [
        "did you mean 'instructions.gemini'?",
        "the value was ignored",
    ]
    assert "without folders" in found.problems[1].message


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("instructions.gemeni", "instructions.gemini"),
        ("instructions.foo", None),
        ("instruction.foo", None),
        ("env.SYNAPSE_FOO", None),
        ("env.SYNAPSE_LOG_LEVL", "env.SYNAPSE_LOG_LEVEL"),
        ("SYNAPSE_AUTH_ENABLED", "env.SYNAPSE_AUTH_ENABLED"),
        ("a2a.rate", "a2a.rate_limit"),
        ("theme", "tui.theme"),
        ("a2a.layout", "tui.layout"),
    ],
)
def test_only_a_key_of_a_name_that_is_alike_may_be_meant(key: str, near: str | None) -> None:
    assert nearest_key(key, ("claude", "gemini", "copilot", "codex")) == near


def test_a_variable_that_means_nothing_is_told(home: Path, project: Path) -> None:
    found = load(home, project, {"SYNAPSE_FILE_SAFETY_ENABLED": "perhaps"})
    assert not found.flag("env.SYNAPSE_FILE_SAFETY_ENABLED")
    (problem,) = found.problems
    assert problem.message == "the variable SYNAPSE_FILE_SAFETY_ENABLED must be true or false"


GUARDS = {
    "env.SYNAPSE_AUTH_ENABLED",
    "env.SYNAPSE_API_KEYS",
    "env.SYNAPSE_ADMIN_KEY",
    "env.SYNAPSE_ALLOW_LOCALHOST",
}


@pytest.mark.parametrize(
    ("content", "environ", "doubtful"),
    [
        ({"env": {"SYNAPSE_AUTH_ENABLED": True}}, {}, set()),
        ({"env": {"SYNAPSE_AUTH_ENABLED": "perhaps"}}, {}, {"env.SYNAPSE_AUTH_ENABLED"}),
        ({"env": {"SYNAPSE_API_KEYS": "a,,b"}}, {}, {"env.SYNAPSE_API_KEYS"}),
        ({"env": {"SYNAPSE_API_KEYS": "a,,b"}}, {"SYNAPSE_API_KEYS": "a"}, set()),
        ({}, {"SYNAPSE_ALLOW_LOCALHOST": "perhaps"}, {"env.SYNAPSE_ALLOW_LOCALHOST"}),
        (
            {"env": {"SYNAPSE_ALLOW_LOCALHOST": False}},
            {"SYNAPSE_ALLOW_LOCALHOST": ""},
            {"env.SYNAPSE_ALLOW_LOCALHOST"},
        ),
        ('{"env": {"SYNAPSE_AUTH_ENABLED": true', {}, {"env.SYNAPSE_AUTH_ENABLED"}),
        ('{"env": {"SYNAPSE_AUTH_ENABLED": true', {"SYNAPSE_AUTH_ENABLED": "1"}, set()),
        ('{"tui.layout": ', {}, set()),
        ("", {}, set()),
        ({"tui": {"layout": "circle"}, "env": {"SYNAPSE_AUTH_ENABLED": True}}, {}, set()),
    ],
)
def test_what_keeps_callers_out_is_not_taken_for_its_default(
    home: Path, project: Path, content: object, environ: dict[str, str], doubtful: set[str]
) -> None:
    write(home / ".synapse/settings.json", content)
    assert load(home, project, environ).doubtful == doubtful


def test_nothing_is_known_of_a_file_that_cannot_be_read(home: Path, project: Path) -> None:
    (home / ".synapse/settings.json").mkdir(parents=True)
    assert load(home, project).doubtful == GUARDS


def test_a_project_has_no_say_in_who_is_let_in(home: Path, project: Path) -> None:
    wished = dict.fromkeys(key.removeprefix("env.") for key in GUARDS)
    write(
        project / ".synapse/settings.json",
        {"env": wished | {"SYNAPSE_ALLOW_LOCALHOST": True}, "a2a.bind": "0.0.0.0"},
    )
    settings = load(home, project, {"SYNAPSE_AUTH_ENABLED": "true", "SYNAPSE_ALLOW_LOCALHOST": "false"})
    assert (settings.flag("env.SYNAPSE_AUTH_ENABLED"), settings.flag("env.SYNAPSE_ALLOW_LOCALHOST")) == (
        True,
        False,
    )
    assert settings.words("a2a.bind") == []
    assert not settings.doubtful
    assert len(settings.problems) == 5


def test_keys_are_kept_as_hashes_only(home: Path, project: Path) -> None:
    settings = load(home, project, {"SYNAPSE_API_KEYS": "ci=hunter2", "SYNAPSE_ADMIN_KEY": "hunter3"})
    assert settings.words("env.SYNAPSE_API_KEYS")[0].startswith("ci=sha256:f52fbd32")
    assert "hunter" not in repr(settings)
    broken = load(home, project, {"SYNAPSE_API_KEYS": "hunter2,hun ter4"})
    assert "hunter" not in repr(broken) + str(broken.problems)


ENV = {
    "SYNAPSE_HISTORY_ENABLED": "true",
    "SYNAPSE_FILE_SAFETY_ENABLED": "false",
    "SYNAPSE_FILE_SAFETY_DB_PATH": ".synapse/file_safety.db",
    "SYNAPSE_FILE_SAFETY_RETENTION_DAYS": "30",
    "SYNAPSE_AUTH_ENABLED": "false",
    "SYNAPSE_API_KEYS": "",
    "SYNAPSE_ADMIN_KEY": "",
    "SYNAPSE_ALLOW_LOCALHOST": "true",
    "SYNAPSE_LOG_LEVEL": "INFO",
    "SYNAPSE_LOG_FILE": "false",
}


def test_the_variables_are_those_of_synapse_a2a_and_their_values_are_texts() -> None:
    assert {
        setting.key.removeprefix("env."): setting.written(setting.default)
        for setting in SCHEMA.values()
        if setting.key.startswith("env.")
    } == ENV | {"SYNAPSE_DATABASE_URL": ""}
    texts = {
        key.removeprefix("instructions."): setting.default
        for key, setting in SCHEMA.items()
        if key.startswith("instructions.")
    }
    assert texts == {
        "default": "default.md",
        "claude": "",
        "gemini": "gemini.md",
        "codex": "",
        "opencode": "",
        "copilot": "",
    }


def test_a_whole_file_of_synapse_a2a_can_be_read(home: Path, project: Path) -> None:
    write(home / ".synapse/settings.json", {"env": ENV, "a2a": {"flow": "auto"}})
    found = load(home, project)
    assert not found.problems
    assert {key: value for key, value in found.values.items() if key not in SCHEMA} == {}
    assert all(found.values[key] == SCHEMA[key].default for key in SCHEMA)


@pytest.mark.parametrize("kind", ["pipe", "device", "long"])
def test_a_project_cannot_keep_a_host_reading(home: Path, project: Path, kind: str) -> None:
    path = project / ".synapse/settings.json"
    put_odd(path, kind)
    write(home / ".synapse/settings.json", {"tui.layout": "grid"})
    settings = load(home, project)
    assert settings.text("tui.layout") == "grid"
    (problem,) = settings.problems
    assert ("longer than" if kind == "long" else "no regular file") in problem.message


@pytest.mark.parametrize(
    ("kind", "reason", "hint"),
    [
        ("pipe", "it is no regular file", "put a regular file there, or remove it"),
        ("device", "it is no regular file", "put a regular file there, or remove it"),
        ("folder", "it is no regular file", "put a regular file there, or remove it"),
        ("long", "it is longer than 1024 KiB", "make it shorter"),
    ],
)
def test_a_settings_file_that_cannot_be_read_says_why(home: Path, kind: str, reason: str, hint: str) -> None:
    path = home / ".synapse/settings.json"
    put_odd(path, kind)
    with pytest.raises(ConfigError, match=reason) as told:
        SettingsFile(path)
    assert told.value.hint == hint


@pytest.mark.parametrize("value", [-1, "500001", "9" * 5000, "1.5", None, True])
def test_a_count_is_a_number_of_days_before_now_at_most(home: Path, project: Path, value: object) -> None:
    write(home / ".synapse/settings.json", {"env": {"SYNAPSE_FILE_SAFETY_RETENTION_DAYS": value}})
    settings = load(home, project)
    assert settings.number("env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS") == 30
    assert len(settings.problems) == 1


# -- The table of all settings in the documents is that of the schema ---


PAGE = Path(__file__).parents[2] / "docs/settings.md"
KINDS = {
    "boolean": "`true`, `false`",
    "text": "a string",
    "count": "a whole number",
    "number": "a whole number",
    "list": "a list of strings",
    "words": "a list of strings, or one with commas",
    "file": "name of a file in `.synapse`",
    "keys": "keys",
    "table": "a table of strings",
    "leader": "a key with Ctrl or Alt, or a function key",
    "bindings": "a table of keys by action",
}
"""What the table says of kinds; any other is what it is called."""


def row(setting: Setting) -> str:
    """A setting as a row of the table."""
    default = setting.written(setting.default)
    text = default if isinstance(default, str) and default else json.dumps(default)
    values = ", ".join(f"`{choice}`" for choice in setting.choices) or KINDS.get(setting.kind, setting.kind)
    where = "yours" if not setting.project else "yours, project"
    counts = "restart" if setting.restart else ""
    return f"| `{setting.key}` | `{text}` | {values} | {where} | {counts} | {setting.help} |"


def test_the_table_of_all_settings_is_the_schema() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    told = [
        line
        for line in page
        if line.startswith(
            tuple(f"| `{part}." for part in ("tui", "a2a", "worktrees", "spawn", "file_safety", "env"))
        )
    ]
    told += [line for line in page if line.startswith(("| `instructions.", "| `delegation."))]
    wanted = [row(setting) for setting in SCHEMA.values()]
    missing = [line for line in wanted if line not in told]
    odd = [line for line in told if line not in wanted]
    assert not missing, "to be written into docs/settings.md:\n" + "\n".join(missing)
    assert not odd, "not so in the schema:\n" + "\n".join(odd)


# -- Settings files that several change at the same time ---


@pytest.fixture
def files(tmp_path: Path) -> SettingsFiles:
    paths = UserPaths(tmp_path)
    return SettingsFiles(
        tmp_path / "project", paths=paths, environ={}, trust=TrustStore(paths.trusted), types=lambda: ()
    )


def test_two_who_change_a_file_at_once_are_both_heard(files: SettingsFiles) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(file: SettingsFile) -> None:
        reading.set()
        go_on.wait(PATIENCE)
        file.put("tui.layout", "grid")

    first = threading.Thread(target=files.change, args=("user", slow))
    first.start()
    assert reading.wait(PATIENCE)
    second = threading.Thread(target=files.change, args=("user", lambda file: file.put("tui.sidebar", True)))
    second.start()
    second.join(0.1)  # one who did not wait would be done by now, and lost
    go_on.set()
    first.join(PATIENCE)
    second.join(PATIENCE)
    written = json.loads(files.path("user").read_text())
    assert written == {"tui": {"layout": "grid", "sidebar": True}}


def test_what_is_said_of_a_file_grows_with_the_file_only(tmp_path: Path) -> None:
    """A long table with many keys: each would be said, and compared, with the whole name of its table."""
    said = []
    for times in (1, 10):
        table: dict[str, object] = {f"key{number}": 1 for number in range(20 * times)}
        file = tmp_path / "settings.json"
        file.write_text(json.dumps({"x" * 500 * times: table}))
        said.append(sum(len(problem.message) for problem in check_file(file, own=True)))
    assert said[0] < said[1] < 12 * said[0]


def test_one_who_never_finishes_is_told(files: SettingsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "LOCK_TIMEOUT", 0.0)
    files.paths.synapse.mkdir()
    with turn_at(files.paths.synapse), pytest.raises(ConfigError, match="another process is writing"):
        files.change("user", lambda file: file.put("tui.layout", "grid"))
    assert not files.path("user").exists()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("worktrees.place", "beside", "The place of worktrees is beside the repository"),
        ("worktrees.place", "inside", "The place of worktrees is inside its .synapse"),
        ("worktrees.place", "/srv/trees", "The place of worktrees is /srv/trees"),
        ("tui.quiet_hours", "none", "Quiet hours, without bells and notifications: none"),
        ("tui.quiet_hours", "22:00-08:00", "Quiet hours, without bells and notifications: 22:00-08:00"),
    ],
)
def test_the_sentence_of_a_setting_is_said_with_its_value(key: str, value: str, said: str) -> None:
    assert " ".join(SCHEMA[key].around(value)).strip() == said
