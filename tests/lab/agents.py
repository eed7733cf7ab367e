"""The agents of the lab: where they come from, and how they are set up to talk to the fake model.

To add one, add an entry to `AGENTS`; with a shipped profile, prove it by `python -m tests.lab.versions NAME`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

KEY = "test-key"
VERSIONS = Path(__file__).with_name("versions.json")
"""What `python -m tests.lab.versions` found last."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where an agent runs."""

    home: Path
    project: Path  # a small git repository
    model: str  # the fake model's address

    @property
    def openai(self) -> str:
        return f"{self.model}/v1"

    def write(self, path: str, content: str | dict[str, object]) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))


@dataclass(frozen=True, slots=True)
class LabAgent:
    """A program of a package registry.

    `setup` writes its configuration below the home folder and returns its environment variables.
    """

    package: str
    setup: Callable[[Bench], dict[str, str]]
    registry: Literal["npm", "pypi"] = "npm"
    command: str = ""  # the program, if it has not the agent's name
    args: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 11)  # the oldest Python that it runs on
    asks: bool = True  # whether it asks before it runs a command
    version: str = ""  # for agents without a shipped profile, whose versions are not recorded


def claude(bench: Bench) -> dict[str, str]:
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
    bench.write(
        ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 3,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(bench.project): project},
        },
    )
    return {
        "ANTHROPIC_BASE_URL": bench.model,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def codex(bench: Bench) -> dict[str, str]:
    """CODEX_MODE: `read-only`, `workspace-write` (default), `workspace-write+net` or `danger-full-access`."""
    mode, _, network = os.environ.get("CODEX_MODE", "workspace-write").partition("+")
    reach = "[sandbox_workspace_write]\nnetwork_access = true\n" if network else ""
    bench.write(
        ".codex/config.toml",
        f"""\
approval_policy = "on-request"
sandbox_mode = "{mode}"
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "{bench.openai}"
env_key = "FAKE_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
{reach}[projects."{bench.project}"]
trust_level = "trusted"
""",
    )
    return {"FAKE_API_KEY": KEY}


def gemini(bench: Bench) -> dict[str, str]:
    bench.write(
        ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True, "disableUpdateNag": True},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "ui": {"theme": "Default"},
        },
    )
    bench.write(".gemini/trustedFolders.json", {str(bench.project): "TRUST_FOLDER"})
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": bench.model}


def _opencode_config(bench: Bench) -> dict[str, object]:
    model = {"name": "Fake Model", "tool_call": True, "limit": {"context": 100_000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": bench.openai, "apiKey": KEY},
        "models": {"fake-model": model},
    }
    return {
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"fake": provider},
    }


def opencode(bench: Bench) -> dict[str, str]:
    bench.write(".config/opencode/opencode.json", _opencode_config(bench))
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def copilot(bench: Bench) -> dict[str, str]:
    bench.write(".copilot/config.json", {"trusted_folders": [str(bench.project)], "banner": "never"})
    return {
        "COPILOT_PROVIDER_BASE_URL": bench.openai,
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "fake-model",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def qwen(bench: Bench) -> dict[str, str]:
    bench.write(
        ".qwen/settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "ui": {"theme": "Default"},
        },
    )
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": bench.openai, "OPENAI_MODEL": "fake-model"}


def aider(bench: Bench) -> dict[str, str]:
    return {"OPENAI_API_BASE": bench.openai, "OPENAI_API_KEY": KEY}


def kimi(bench: Bench) -> dict[str, str]:
    folder = str(bench.project)
    trusted = f"wd_{bench.project.name}_{hashlib.sha256(folder.encode()).hexdigest()[:12]}"
    bench.write(f".kimi-code/workspace-trust/{trusted}", {"root": folder, "trustedAt": 1_700_000_000_000})
    return {
        "KIMI_MODEL_NAME": "fake-model",
        "KIMI_MODEL_API_KEY": KEY,
        "KIMI_MODEL_BASE_URL": bench.openai,
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
        "KIMI_DISABLE_TELEMETRY": "1",
    }


def kilo(bench: Bench) -> dict[str, str]:
    bench.write(".config/kilo/kilo.json", _opencode_config(bench))
    return {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1", "KILO_TELEMETRY_LEVEL": "off"}


def grok(bench: Bench) -> dict[str, str]:
    return {"GROK_API_KEY": KEY, "GROK_BASE_URL": bench.openai, "GROK_MODEL": "fake-model"}


def pi(bench: Bench) -> dict[str, str]:
    model = {"id": "fake-model", "name": "Fake Model", "contextWindow": 100_000, "maxTokens": 8000}
    model |= {
        "reasoning": False,
        "input": ["text"],
        "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
    }
    provider = {"baseUrl": bench.openai, "api": "openai-completions", "apiKey": KEY, "models": [model]}
    bench.write(".pi/agent/models.json", {"providers": {"fake": provider}})
    bench.write(".pi/agent/settings.json", {"defaultProvider": "fake", "defaultModel": "fake-model"})
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


def vibe(bench: Bench) -> dict[str, str]:
    bench.write(
        ".vibe/config.toml",
        f"""\
active_model = "fake"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "fake"
api_base = "{bench.openai}"
api_key_env_var = "FAKE_API_KEY"
backend = "generic"
[[models]]
name = "fake-model"
provider = "fake"
alias = "fake"
""",
    )
    bench.write(".vibe/trusted_folders.toml", f'trusted = ["{bench.project}"]\nuntrusted = []\n')
    return {"FAKE_API_KEY": KEY, "MISTRAL_API_KEY": KEY}


def cn(bench: Bench) -> dict[str, str]:
    bench.write(
        ".continue/config.yaml",
        f"""\
name: Lab
version: 1.0.0
schema: v1
models:
  - {{name: Fake, provider: openai, model: fake-model, apiKey: {KEY}, apiBase: "{bench.openai}"}}
""",
    )
    bench.write(".continue/.onboarding_complete", "")
    return {"CONTINUE_TELEMETRY_ENABLED": "0"}


def nanocoder(bench: Bench) -> dict[str, str]:
    provider = {"name": "Fake", "baseUrl": bench.openai, "apiKey": KEY, "models": ["fake-model"]}
    bench.write(".config/nanocoder/agents.config.json", {"nanocoder": {"providers": [provider]}})
    bench.write(
        ".config/nanocoder/nanocoder-preferences.json",
        {"trustedDirectories": [str(bench.project)], "lastProvider": "Fake", "lastModel": "fake-model"},
    )
    return {"NANOCODER_SKIP_UPDATE_CHECK": "1"}


def gptme(bench: Bench) -> dict[str, str]:
    bench.write(".config/gptme/config.toml", '[prompt]\nabout_user = "A tester."\n[env]\n')
    return {
        "MODEL": "local/fake-model",
        "OPENAI_BASE_URL": bench.openai,
        "OPENAI_API_KEY": KEY,
        "GPTME_TIKTOKEN_TIMEOUT": "0",  # what it would load is on the internet
    }


CLINE_NOTICES = ("cline-cli-cline-pass-intro", "cline-cli-desktop-launch", "cline-cli-zen")


def cline(bench: Bench) -> dict[str, str]:
    settings = {
        "provider": "openai-compatible",
        "apiKey": KEY,
        "model": "fake-model",
        "baseUrl": bench.openai,
    }
    provider = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    bench.write(
        ".cline/data/settings/providers.json",
        {
            "version": 1,
            "lastUsedProvider": settings["provider"],
            "modes": {},
            "providers": {settings["provider"]: provider},
        },
    )
    bench.write(".cline/data/settings/cli-notices.json", {"shown": dict.fromkeys(CLINE_NOTICES, True)})
    return {"CLINE_TELEMETRY_DISABLED": "1"}


AGENTS: dict[str, LabAgent] = {
    "claude": LabAgent("@anthropic-ai/claude-code", claude),
    "codex": LabAgent("@openai/codex", codex),
    "gemini": LabAgent("@google/gemini-cli", gemini),
    "opencode": LabAgent("opencode-ai", opencode),
    "copilot": LabAgent("@github/copilot", copilot),
    "qwen": LabAgent("@qwen-code/qwen-code", qwen),
    "pi": LabAgent("@mariozechner/pi-coding-agent", pi, asks=False),
    "aider": LabAgent(
        "aider-chat",
        aider,
        registry="pypi",
        args=(
            *("--model", "openai/fake-model", "--edit-format", "diff", "--no-gitignore"),
            *(
                "--no-check-update",
                "--no-show-model-warnings",
                "--no-show-release-notes",
                "--analytics-disable",
            ),
        ),
    ),
    "cline": LabAgent("cline", cline, args=("--auto-approve", "false")),
    "vibe": LabAgent("mistral-vibe", vibe, registry="pypi", python=(3, 12), version="3.0.2"),
    "cn": LabAgent("@continuedev/cli", cn, version="1.5.47", args=("--ask", "Bash")),
    "nanocoder": LabAgent("@nanocollective/nanocoder", nanocoder, version="1.30.0"),
    "kimi": LabAgent("@moonshot-ai/kimi-code", kimi, version="2.1.0"),
    "kilo": LabAgent("@kilocode/cli", kilo, version="7.7.7"),
    "grok": LabAgent("@vibe-kit/grok-cli", grok, version="0.0.34"),
    "gptme": LabAgent(
        "gptme", gptme, registry="pypi", version="0.35.1", args=("--name", "lab", "--workspace", "@log")
    ),
}


def known_version(name: str) -> str:
    """The version that was proved last; empty if none was."""
    if AGENTS[name].version:
        return AGENTS[name].version
    record = json.loads(VERSIONS.read_text()) if VERSIONS.exists() else {}
    return str(record.get(name, {}).get("version", ""))


def place_of(name: str, version: str, folder: Path) -> Path:
    return folder / f"{name}@{version}"


def programs_of(name: str, version: str, folder: Path) -> Path:
    """The folder of an installed agent's programs."""
    inside = "node_modules/.bin" if AGENTS[name].registry == "npm" else "bin"
    return place_of(name, version, folder) / inside


def make_bench(home: Path, model: str) -> Bench:
    """A home folder with a small git repository in it."""
    project = home / "proj"
    project.mkdir(parents=True, exist_ok=True)
    if not (project / ".git").is_dir():
        (project / "README.md").write_text("# test project\n")
        author = ("-c", "user.name=lab", "-c", "user.email=lab@example.invalid")
        for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "init")):
            subprocess.run(["git", *words], cwd=project, check=True)
    return Bench(home, project, model)


def find_python(least: tuple[int, int]) -> str:
    """An interpreter of at least a version: this one, or another on PATH."""
    if sys.version_info >= least:
        return sys.executable
    for minor in range(least[1], least[1] + 5):
        words = [f"python{least[0]}.{minor}", "-c", "import sys; print(sys.executable)"]
        try:
            return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            continue
    raise SystemExit(f"needs Python {least[0]}.{least[1]} or newer on PATH")
