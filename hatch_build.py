"""Puts the compiled catalogue into the wheel, and refuses to build one of rules that do not load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledRules(BuildHookInterface[Any]):
    """Writes `torchmigrate/catalogue/_compiled.rules` from `rules/`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel is built; an editable install reads the YAML itself."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root / "src"))
        try:
            from torchmigrate.catalogue.store import compile_own

            data = compile_own(root / "rules", made_from="")
        finally:
            sys.path.remove(str(root / "src"))
        target = Path(self.directory) / "_compiled.rules"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        build_data["force_include"][str(target)] = "torchmigrate/catalogue/_compiled.rules"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        (Path(self.directory) / "_compiled.rules").unlink(missing_ok=True)
