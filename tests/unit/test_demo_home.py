"""The home folder of the demo."""

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.cli.demo import PORTS, scratch_project
from synapse_tui.paths import UserPaths, shipped_profiles


def test_the_agents_of_the_demo_have_ports_of_their_own():
    with scratch_project():
        found = load_profiles(shipped_profiles(), UserPaths.of_environment().profiles)
    assert not found.problems
    assert found.find("dummy").ports == PORTS
