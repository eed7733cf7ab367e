"""The texts that a person reads, found in the source: what a catalogue of `synapse_tui/languages` must hold.

python -m tests.texts          # what `ja.json` lacks, as JSON to be filled in; and what nothing says any more
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import synapse_tui
from synapse_tui.messages.reasons import Reason

PRODUCT = Path(synapse_tui.__file__).parent
CATALOGUES = PRODUCT / "languages"
EXAMPLES = sorted((PRODUCT / "agents" / "teams" / "examples").glob("*.yaml"))

SPOKEN = {  # the functions that translate, and which of their arguments (None: all)
    "tr": (0,),
    "note": (0,),
    "say": (0,),
    "notice": (0,),
    "_subtitle": (0,),
    "refuse": (1,),
    "show_error": (0,),
    "Hint": (1,),
    "_hint": (2,),
    "UsageError": (0,),
    "BadParameter": (0,),
    "confirm": (0,),
    "fail": (0,),
    "show_table": (0,),
    "show_list": (1, 3),
    "section": (0,),
    "ClickException": (0,),
    "_row": (0,),
    "_fact": (0,),
    "FileAction": (2,),
}
REASONS = (
    "agents/delivery",
    "messages/",
    "host",
    "agents/turns.py",
    "agents/session.py",
    "agents/composer.py",
    "agents/composer_box.py",
    "agents/dialogs.py",
    "agents/watch.py",
    "agents/watcher.py",
    "a2a/external/conversation.py",
    "a2a/external/discovery.py",
    "a2a/external/transport.py",
    "a2a/external/worker.py",
    "daemon/display.py",
    "daemon/workspace.py",
    "cli/trials/versions.py",
    "workspace.py",
    "agents/worktrees/setup.py",
)
"""Where the sentences are written that become reasons and notices."""
FAULTS = ("settings/",)
"""Where a `ValueError` says what is wrong with a value of a setting, after its name."""
UNSAID = (
    "tools/a2a.py",
    "agents/delivery/typed_text.py",
    "messages/records.py",
    "messages/quick.py",
    "messages/storage/location.py",
)
"""Modules for programs, and texts that agents read."""
FACTS = (
    *("alias", "name", "url", "card", "protocol", "endpoint", "allowed", "credentials", "card hash"),
    *(
        "restart",
        "close",
        "added",
        "last seen",
        "exited with status {0}",
        "killed by {0}",
        "in the inbox",
        "{0} nudge",
        "{0} nudges",
        "agent exited",
        "canceled by its sender",
        "synapse-tui ended while it was sent: it is not known whether the agent has received it",
        (
            "the card of @{0} has changed; the old one stays in use until you add it again: "
            "synapse external add {1} --alias {2}"
        ),
        "not read yet",
    ),
    *(
        *(f"wants to {verb} {{0}}" for verb in ("run", "reach", "edit", "read", "use")),
        "1 message waits; it is kept until the agent is opened again.",
        "{0} message waits; it is kept for the next start.",
        "{0} messages wait; they are kept for the next start.",
        *(
            f"{{0}} messages wait; they are kept until {whose} opened again."
            for whose in ("the agent is", "their agents are")
        ),
        *("make room on the disk, then try it again", "check its permissions", "make it shorter"),
        "put a regular file there, or remove it",
        *("accepted", "watched", "permission: {0}", "question: {0}", "notice: {0}"),
        *("stopped by you", "the value must not be empty: Del removes it"),
        *("asks: {0}", "asks you", "watch", "process", "opened by", "folder", "address", "begins", "stopped"),
    ),
)
FROM_CLICK = (
    "Error",
    "Usage",
    "Did you mean '{0}'?",
    "Options",
    "Commands",
    "Arguments",
    "Examples:",
    "Show this message and exit.",
    "Show the version and exit.",
    "{0} [default: {1}]",
    "{0} [required]",
    "'{0}' is not one of {1}.",
    "'{0}' is not a valid integer.",
    "'{0}' is not a valid integer range.",
    "'{0}' is not a valid float.",
    "'{0}' is not a valid float range.",
    "No such option '{0}'.",
    "No such option '{0}'. Did you mean {1}?",
    "No such option '{0}'. (Did you mean one of: {1}?)",
    "No such option: {0}",
    "No such option: {0} Did you mean {1}?",
    "No such option: {0} (Possible options: {1})",
    "Missing argument '{0}'.",
    "Missing option '{0}'.",
    "Missing command.",
    "Got unexpected extra argument ({0})",
    "Got unexpected extra arguments ({0})",
    "Option '{0}' requires an argument.",
    "Option '{0}' does not take a value.",
    "Invalid value for {0}: {1}",
    "Invalid value: {0}",
)
"""What the library of the command line says."""
VALUE = "\0"
ATTRIBUTES = {"TITLE_TEXT", "SUBTITLE", "VERB", "KEYS", "TITLE", "SUB_TITLE"}
_SAYS = re.compile(r"[A-Za-z]{2}")
_LOG = re.compile(r"(_?log|logging|re|warnings)\.|text$|execute$")
_TWO_WORDS = re.compile(r"(?s)^(?!.*(?:import |SELECT |INSERT |UPDATE |DELETE )).*[a-z]{2}[,:;]? [a-z{]")


def texts() -> dict[str, str]:
    """Return every text, with values as `{0}`, and the file that says it first."""
    found: dict[str, str] = {}
    paths = [path for path in sorted(PRODUCT.rglob("*.py")) if str(path.relative_to(PRODUCT)) not in UNSAID]
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    modules = {path: [*ast.walk(ast.parse(source))] for path, source in sources.items()}
    errors = error_classes(modules.values())
    for path, nodes in modules.items():
        place = str(path.relative_to(PRODUCT))
        reader = _Reader(errors | {"ValueError"} if place.startswith(FAULTS) else errors)
        said = [*reader.read(nodes)]
        if place.startswith(REASONS) and "sqlalchemy" not in sources[path]:
            said += reader.sentences(nodes)
        for text in map(str.strip, said):
            if _SAYS.search(re.sub(r"\{\d+\}", "", text)):
                found.setdefault(text, place)
    for text in (*FROM_CLICK, *FACTS):
        found.setdefault(text, "elsewhere")
    for text in tables():
        found.setdefault(_template([text]), "tables")
    for text in tables_of_templates():
        found.setdefault(_template([*chain(*((part, None) for part in text.split(VALUE)))][:-1]), "tables")
    return {text: where for text, where in found.items() if text}


def lists() -> Iterator[str]:
    """Yield the texts in which names are listed, the list as `{0:n}`."""
    for path in sorted(PRODUCT.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        reader = _Reader(set())
        joined = {
            name
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            for name, value in _assigned(part for part in ast.walk(node) if isinstance(part, ast.Assign))
            if _is_list(value)
        }
        for node in nodes:
            if isinstance(node, ast.JoinedStr) and any(_is_list(part, joined) for part in node.values):
                marked = [ast.Constant(VALUE) if _is_list(part, joined) else part for part in node.values]
                for text in reader.templates(ast.JoinedStr(marked)):
                    yield _numbered(text.strip())


def _numbered(text: str) -> str:
    """Return a text with its places numbered from the left, those of lists as such."""
    parts = re.split(rf"({VALUE}|(?<!\{{)\{{\d+\}})", text)
    for number, at in enumerate(range(1, len(parts), 2)):
        parts[at] = f"{{{number}{':n' if parts[at] == VALUE else ''}}}"
    return "".join(parts)


def _is_list(node: ast.AST, joined: Container[str] = ()) -> bool:
    """Whether this joins names with commas, or is a variable with what was joined so."""
    match node:
        case ast.FormattedValue(value=value):
            return _is_list(value, joined)
        case ast.Name(id=name):
            return name in joined
        case ast.IfExp(body=body, orelse=orelse):
            return _is_list(body, joined) or _is_list(orelse, joined)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=", "), attr="join")):
            return True
        case ast.Call(func=ast.Name(id="listed" | "_agents") | ast.Attribute(attr="listed")):
            return True
        case ast.Call(args=[value, *_]):
            return _is_list(value, joined)
    return False


def error_classes(modules: Iterable[Sequence[ast.AST]]) -> set[str]:
    """Return the names of SynapseError and of all classes derived from it."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for nodes in modules
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    known = {"SynapseError"}
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return known - {"HttpProblem"}  # HTTP speaks English


class _Reader:
    """Reads the texts of one module."""

    def __init__(self, errors: set[str]) -> None:
        self._errors = errors
        self._constants: dict[str, ast.expr] = {}

    def read(self, nodes: Sequence[ast.AST]) -> Iterator[str]:
        module = nodes[0]
        assert isinstance(module, ast.Module)
        self._constants = dict(_assigned(module.body))
        for node in nodes:
            if isinstance(node, ast.Call):
                for argument in self._said(node):
                    yield from self.templates(argument)
            elif isinstance(node, ast.ClassDef):
                yield from self._of_class(node)
            elif isinstance(node, ast.Assign):
                for name, value in _assigned([node]):
                    if name == "heads":  # of a table
                        yield from self.templates(value)
            elif isinstance(node, ast.FunctionDef) and _is_command(node):
                yield from paragraphs(ast.get_docstring(node) or "")

    def _said(self, call: ast.Call) -> Iterator[ast.expr]:
        name = ast.unparse(call.func).rpartition(".")[2]
        if name in self._errors:
            yield from call.args
            yield from (each.value for each in call.keywords if each.arg in ("message", "hint"))
        elif name in SPOKEN:
            yield from (call.args[at] for at in SPOKEN[name] if at < len(call.args))
        elif name == "plural" and isinstance(call.args[1], ast.Constant):
            noun = str(call.args[1].value)
            yield from (ast.Constant(f"# {noun}"), ast.Constant(f"# {noun}s"))
        elif name == "one_of":
            yield from (flag.elts[2] for flag in call.args if isinstance(flag, ast.Tuple))
        yield from (
            each.value for each in call.keywords if each.arg == "help" and name not in ("add", "add_argument")
        )

    def _of_class(self, node: ast.ClassDef) -> Iterator[str]:
        for name, value in _assigned(node.body):
            if name in ATTRIBUTES:
                yield from self.templates(value)
        if node.name in self._errors:
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__":
                    for argument in call.args:
                        yield from self.templates(argument)

    def sentences(self, nodes: Sequence[ast.AST]) -> Iterator[str]:
        """Return all that has at least two words and is neither documentation nor for the log."""
        other = {id(part) for node in nodes for part in _unsaid(node)}
        for node in nodes:
            if id(node) not in other and isinstance(node, ast.Constant | ast.JoinedStr):
                yield from (text for text in self.templates(node) if _TWO_WORDS.search(text))

    def templates(self, expression: ast.expr) -> Iterator[str]:
        """Return the texts that an expression may be; values that are not known here are numbered."""
        for parts in self._alternatives(expression):
            if any(part is not None for part in parts):
                yield _template(parts)

    def _alternatives(self, node: ast.expr) -> list[list[str | None]]:  # noqa: C901, PLR0912 - a case each
        match node:
            case ast.Constant(value=str(text)):
                return [[text]]
            case ast.JoinedStr(values=values):
                return self._product(values)
            case ast.FormattedValue(value=ast.Name(id=name)) if name in self._constants:
                return self._alternatives(self._constants[name])
            case ast.FormattedValue(value=ast.Attribute() as value):
                return self._alternatives(value)
            case ast.Attribute(value=ast.Name(id="Reason"), attr=name) if name in Reason.__members__:
                return [[Reason[name].value]]
            case ast.FormattedValue(value=ast.IfExp() as value):
                return self._alternatives(value)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self._alternatives(body), *self._alternatives(orelse)]
            case ast.BoolOp(values=values):
                return [each for value in values for each in self._alternatives(value)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._product([left, right])
            case ast.Name(id=name) if name in self._constants:
                return self._alternatives(self._constants[name])
            case ast.Dict(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
                return [each for value in values for each in self._alternatives(value)]
            case ast.Subscript(value=ast.Name() as value):
                return self._alternatives(value)
            case ast.Call(func=ast.Attribute(value=ast.Name() as value, attr="get")):
                return self._alternatives(value)
            case ast.Call(func=ast.Name(id="MappingProxyType"), args=[value]):
                return self._alternatives(value)
        return [[None]]

    def _product(self, values: Iterable[ast.expr]) -> list[list[str | None]]:
        found: list[list[str | None]] = [[]]
        for value in values:
            found = [[*before, *each] for before in found for each in self._alternatives(value)]
        return found


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Return the names to which a body assigns, and the values."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _template(parts: Iterable[str | None]) -> str:
    text, at = "", 0
    for part in parts:
        if part is None:
            text += f"{{{at}}}"
            at += 1
        else:
            text += part.replace("{", "{{").replace("}", "}}")
    return text


def _unsaid(node: ast.AST) -> Iterator[ast.AST]:
    """Return the parts of a node that nobody reads."""
    log = isinstance(node, ast.Call) and _LOG.match(ast.unparse(node.func))
    if log or isinstance(node, ast.Compare):
        yield from ast.walk(node)
    elif isinstance(node, ast.Expr):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (part for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Assert):
        yield from ast.walk(node)
    elif isinstance(node, ast.Raise) and node.exc is not None:
        yield from ast.walk(node.exc)  # an error of ours is found as such


def _is_command(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] in ("command", "group")
        for each in node.decorator_list
    )


def paragraphs(docstring: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        if paragraph and not paragraph.startswith("Examples:"):
            text = " ".join(paragraph.split())
            yield from (_template([text]), _template([text.partition(". ")[0].removesuffix(".") + "."]))


def tables() -> Iterator[str]:
    """Return the texts of the tables that are read at run time."""
    from synapse_tui.cli.group import TOPICS
    from synapse_tui.cli.trials.report import Outcome
    from synapse_tui.settings.actions import ACTIONS, BOARD_KEYS, GROUPS, PLACES
    from synapse_tui.settings.schema import AREAS, SCHEMA, own_text
    from tests.profiles import shipped

    for action in ACTIONS:
        yield from (action.title, action.help, action.hint)
    yield from (key.hint for key in BOARD_KEYS)
    for place in PLACES.values():
        yield place.title
        yield from (means for _keys, means in place.keys)
        yield from (keys for keys, _means in place.keys if keys in ("arrows", "letters"))
    for key, setting in SCHEMA.items():
        if setting.sentence != own_text(key.rpartition(".")[2]).sentence:
            yield from (setting.sentence, setting.help)
    yield from (profile.description for profile in shipped().profiles.values())
    yield from re.findall(r"^about: (.+)", "\n".join(each.read_text() for each in EXAMPLES), re.MULTILINE)
    for topic, commands in TOPICS.items():
        yield from (topic, *commands.values())
    yield from (*GROUPS, *AREAS, *Outcome)


def tables_of_templates() -> Iterator[str]:
    """Return the texts of such tables that have values, each as `VALUE`."""
    from synapse_tui.dummy.parts import PARTS
    from synapse_tui.settings.schema import own_text

    own = own_text(VALUE)
    yield from (own.sentence, own.help)
    for part in PARTS.values():
        yield part.hello
        for pattern, answer in part.answers:
            yield from (pattern, answer.replace("{text}", VALUE))


def main() -> None:
    found = texts()
    said: Mapping[str, str] = json.loads((CATALOGUES / "ja.json").read_text(encoding="utf-8"))
    lacking = {text: where for text, where in found.items() if text not in said}
    print(json.dumps(lacking, ensure_ascii=False, indent=1))
    print(
        f"{len(found)} texts, {len(lacking)} lacking, {len(said.keys() - found.keys())} said nowhere",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
