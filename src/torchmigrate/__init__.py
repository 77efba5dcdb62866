"""torchmigrate: find and rewrite outdated PyTorch code."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchmigrate.api import (
        ConfigError,
        Edit,
        Finding,
        Fix,
        FixedText,
        Problem,
        Report,
        UpgradePlan,
        check_paths,
        check_text,
        fix_text,
        plan,
    )

__version__ = "0.1.0"
__all__ = [
    "ConfigError",
    "Edit",
    "Finding",
    "Fix",
    "FixedText",
    "Problem",
    "Report",
    "UpgradePlan",
    "__version__",
    "check_paths",
    "check_text",
    "fix_text",
    "plan",
]


def __getattr__(name: str) -> Any:  # the command line needs none of it
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("torchmigrate.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
