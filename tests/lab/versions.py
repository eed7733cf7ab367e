"""Tries the newest version of each agent that its registry serves, and compares it with what is recorded.

    python -m tests.lab.versions [-f FOLDER] [--known] [--write] [AGENT]...

Each agent is installed below FOLDER (see `run`), examined by `synapse doctor` and given messages, a dialog,
an interrupt and a long answer, offline, one agent at a time. The exit status is 0 if everything is as
recorded in `versions.json`, 1 if a check fails or can no longer be made, or an agent cannot be installed,
and 3 if only versions are new. --known tries the recorded versions. --write records the results, in
docs/agents.md too, and the version in the profile of an agent without a failed check. What was printed is in
FOLDER/results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.lab.agents import AGENTS, VERSIONS, known_version
from tests.lab.install import NotInstalled, install, latest
from tests.lab.run import CHECKOUT, folder_of_agents, run

TESTS = "tests/lab/test_lab_delivery.py"
CHECKS = {
    "doctor": "",
    "messages": "test_every_kind_of_text_arrives_whole_and_once",
    "dialog": "test_messages_wait_for_work_drafts_and_dialogs",
    "interrupt": "test_priority_5_stops_within_two_seconds_and_the_agent_lives",
    "answer": "test_an_answer_longer_than_the_screen_is_whole",
}
NOT_SHOWN = "not shown: "
DOCS = CHECKOUT / "docs/agents.md"
TABLE = re.compile(r"(?<=<!-- versions -->\n).*?(?=<!-- /versions -->)", re.DOTALL)
PROVED = re.compile(r"(?m)^( +version: )\S+")


@dataclass(slots=True)
class Result:
    agent: str
    version: str
    date: str = ""
    checks: dict[str, str] = field(default_factory=dict)  # check: `ok`, or what failed
    trouble: str = ""  # why it could not be tried

    @property
    def ok(self) -> bool:
        return not self.trouble and not any(map(failed, self.checks.values()))

    def row(self) -> list[str]:
        return [
            self.agent,
            self.version or "?",
            *(self.checks.get(check, "-") for check in CHECKS),
            self.date,
        ]


def failed(found: str) -> bool:
    return found != "ok" and not found.startswith(NOT_SHOWN)


def not_shown(found: str) -> set[str]:
    """The checks of the doctor that could not be made, as the agent did not do what they are about."""
    return set(found.removeprefix(NOT_SHOWN).split()) if found.startswith(NOT_SHOWN) else set()


def shipped() -> list[str]:
    return [name for name in AGENTS if (CHECKOUT / f"profiles/{name}.yaml").exists()]


def record() -> dict[str, Result]:
    known = json.loads(VERSIONS.read_text()) if VERSIONS.exists() else {}
    return {name: Result(name, **found) for name, found in known.items()}


def examine(name: str, version: str, folder: Path) -> Result:
    result = Result(name, version, datetime.date.today().isoformat())  # noqa: DTZ011 - a date for people
    place = folder / "results" / f"{name}@{version}"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    tests = [f"{CHECKOUT}/{TESTS}::{test}[{name}]" for test in CHECKS.values() if test]
    project = ["-c", f"{CHECKOUT}/pyproject.toml", "--rootdir", str(CHECKOUT)]
    pytest = ["pytest", *project, "-p", "no:cacheprovider", "-q", "--junitxml", f"{place}/tests.xml", *tests]
    script = (
        f"synapse doctor {name} --yes --json >{place}/doctor.json 2>{place}/doctor.log\n"
        f"{shlex.join(pytest)} >{place}/tests.log 2>&1\n"
    )
    run([f"{name}@{version}"], ["sh", "-c", script], folder, {})
    result.checks = {"doctor": doctor_result(place / "doctor.json"), **test_results(place / "tests.xml")}
    return result


def doctor_result(report: Path) -> str:
    try:
        (found,) = json.loads(report.read_text())
    except (OSError, ValueError):
        return "no report"
    outcomes = [(check["check"], check["outcome"]) for check in found["checks"]]
    if bad := [check for check, outcome in outcomes if outcome in ("failed", "skipped")]:
        return f"failed: {' '.join(bad)}"
    missing = [check for check, outcome in outcomes if outcome == "not shown"]
    return f"{NOT_SHOWN}{' '.join(missing)}" if missing else "ok"


def test_results(report: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    for case in cases:
        test = str(case.get("name")).partition("[")[0]
        bad = case.find("failure") is not None or case.find("error") is not None
        found[test] = "failed" if bad else "skipped" if case.find("skipped") is not None else "ok"
    return {check: found.get(test, "no report") for check, test in CHECKS.items() if test}


def table(results: list[Result]) -> str:
    rows = [["agent", "version", *CHECKS, "date"], *(result.row() for result in results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(map(str.ljust, row, widths))} |\n" for row in rows)


def write(results: dict[str, Result]) -> None:
    content = {
        name: {"version": result.version, "date": result.date, "checks": result.checks}
        for name, result in results.items()
    }
    VERSIONS.write_text(json.dumps(content, indent=1) + "\n")
    DOCS.write_text(TABLE.sub(lambda _: table(list(results.values())), DOCS.read_text()))
    for name, result in results.items():
        profile = CHECKOUT / f"profiles/{name}.yaml"
        if result.ok and profile.exists():
            profile.write_text(PROVED.sub(rf"\g<1>{result.version}", profile.read_text(), count=1))


def try_one(name: str, folder: Path, *, known: bool) -> Result:
    try:
        version = known_version(name) if known else latest(name)
        install(name, version, folder)
    except NotInstalled as error:
        return Result(name, "", trouble=str(error))
    print(f"{name} {version} ...", file=sys.stderr, flush=True)
    return examine(name, version, folder)


def status_of(results: list[Result], before: dict[str, Result]) -> int:
    if not all(result.ok for result in results):
        return 1
    for result in results:
        recorded = before.get(result.agent, result).checks
        for name, found in result.checks.items():
            if not_shown(found) - not_shown(recorded.get(name, found)):
                return 1  # it could be made before
    same = all(
        (known := before.get(result.agent)) is not None
        and (known.version, known.checks) == (result.version, result.checks)
        for result in results
    )
    return 0 if same else 3


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.versions", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-f", "--folder", type=Path, default=folder_of_agents())
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("agents", nargs="*", metavar="AGENT")
    given = parser.parse_args(words)
    if unknown := set(given.agents) - set(shipped()):
        parser.error(f"no shipped profile {', '.join(sorted(unknown))}: use {', '.join(shipped())}")
    before, results = record(), []
    for name in given.agents or shipped():
        result = try_one(name, given.folder.absolute(), known=given.known)
        results.append(result)
        if result.trouble:
            print(f"{name}: {result.trouble}", file=sys.stderr)
        for check, found in result.checks.items():
            was = before[name].checks.get(check, "-") if name in before else "-"
            if found != was:
                print(f"{name} {result.version}: {check} is {found}, was {was}", file=sys.stderr, flush=True)
    print(table(results), end="")
    if given.write:
        tried = {result.agent: result for result in results if not result.trouble}
        write({name: {**before, **tried}[name] for name in AGENTS if name in {**before, **tried}})
    return status_of(results, before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
