"""Compiles the hot path of the terminal core while a wheel or an editable install is built.

Without a C compiler the package is built in plain Python, which does the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "synapse_tui.terminal._core"
SOURCE = "synapse_tui/terminal/_core.pyx"


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        try:
            built = compile_core(Path(self.root))
        except (Exception, SystemExit) as error:  # whatever a compiler may lack
            self.app.display_warning(f"the terminal core is not compiled, and is slower: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(built.relative_to(self.root).as_posix())


def compile_core(root: Path, *flags: str) -> Path:
    """Compile the core into the source tree, where Python finds it; return its file.

    Args:
        root: Folder of the project.
        flags: More flags for the compiler and the linker, such as `-fsanitize=address`.
    """
    from Cython.Build import cythonize  # noqa: PLC0415 - the import may fail, and so may the next
    from setuptools import Distribution, Extension  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        extension = Extension(
            MODULE,
            [str(root / SOURCE)],
            extra_compile_args=["-O2", "-g0", *flags],
            extra_link_args=list(flags),
        )
        modules = cythonize([extension], build_dir=folder, force=True, quiet=True)
        command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(root), folder
        command.ensure_finalized()
        command.run()
        return Path(command.get_ext_fullpath(MODULE))


if __name__ == "__main__":
    print(compile_core(Path(__file__).parent))
