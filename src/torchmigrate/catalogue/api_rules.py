"""The texts of the rules that are made from the API data."""

from __future__ import annotations

from torchmigrate.catalogue.codes import (
    DEPRECATED_API,
    DOCUMENTED_DEPRECATION,
    MOVED_ARGUMENT,
    NEEDS_NEWER,
    REMOVED_API,
    REMOVED_PARAMETER,
    RENAMED_SETTING,
    UNKNOWN_API,
    UNREAD_SETTING,
)
from torchmigrate.catalogue.model import Rule

_LIBRARY = "torchmigrate"  # they are about every library

RULES = (
    Rule(
        code=REMOVED_API,
        name="removed-api",
        summary="a name that an older release has, but the target does not",
        library=_LIBRARY,
        symbols={},
        why="Most upgrades fail with `module has no attribute` or `cannot import name`. torchmigrate knows "
        "every name of torch, torchvision, torchaudio, torchtext, torchdata and functorch in every "
        "release, and the names that Lightning, transformers, torchao, torchcodec and torchmetrics "
        "removed. This rule reports a name that was removed and that no other rule covers. It ignores "
        "names that the file assigns, code that checks for a name before it uses it, and names that "
        "compiled code creates.",
        advice="look for the change in the release notes of that release",
    ),
    Rule(
        code=UNKNOWN_API,
        name="unknown-api",
        summary="a name or function parameter that no release has",
        library=_LIBRARY,
        symbols={},
        why="The name is misspelled, or belongs to a nightly build or a fork. No released library has it, "
        "so the code raises an error when it runs.",
        advice="check the spelling",
        opt_in=True,
        group="api-hints",
    ),
    Rule(
        code=REMOVED_PARAMETER,
        name="removed-parameter",
        summary="an argument that a function does not take at the target, or requires there",
        library=_LIBRARY,
        symbols={},
        why="The call raises `unexpected keyword argument`, `takes n positional arguments` or `missing a "
        "required argument`, but worked in an older release. The rule only reports it if every signature of "
        "the function is known and no `*args` or `**kwargs` could take or give the argument.",
        advice="look for the change in the release notes of that release",
    ),
    Rule(
        code=MOVED_ARGUMENT,
        name="moved-argument",
        summary="a positional argument that now sets another parameter",
        library=_LIBRARY,
        raises="sometimes",
        symbols={},
        why="A parameter was inserted before others or removed, so a positional argument now has another "
        "meaning, often without an error. The rule reports it if the project supports releases from "
        "before and after the change, or if the argument looks like a value for the old parameter. It "
        "does not report parameters that were only renamed.",
        advice="pass the argument by keyword",
    ),
    Rule(
        code=NEEDS_NEWER,
        name="needs-newer",
        summary="a name or parameter that the oldest supported release does not have",
        library=_LIBRARY,
        symbols={},
        why="The project declares that it supports this release (through `minimum`, or through its own "
        "requirements), but the code fails there. The rule ignores code guarded by a version check, "
        "`hasattr` or `try`, and tests, examples, benchmarks and documentation, which need not run on "
        "every release. It needs a known minimum. One finding per file lists all uses that need the "
        "same release.",
        advice="raise the minimum, or check the torch version before you use it",
        once="file",
    ),
    Rule(
        code=DEPRECATED_API,
        name="deprecated-api",
        summary="a name or argument that is deprecated: the library warns about it",
        library=_LIBRARY,
        symbols={},
        why="The target warns about this name, and no other rule covers it: functions, classes and "
        "modules, settings of configuration modules, and arguments of functions. The message quotes "
        "the library. The rule ignores code in `warnings.catch_warnings()`, code guarded by a version "
        "check, and code that also uses the new name.",
        advice="look for the replacement in the documentation",
    ),
    Rule(
        code=UNREAD_SETTING,
        name="unread-setting",
        summary="a setting of a configuration module that the library does not read",
        library=_LIBRARY,
        symbols={},
        why="`torch._dynamo.config` and similar modules keep settings for code that still sets them after "
        "the feature was removed. The rule finds them by looking for the name in all modules of the "
        "release. PyTorch does not document most of them, so the rule is off unless you select it.",
        advice="remove it",
        opt_in=True,
        group="api-hints",
    ),
    Rule(
        code=DOCUMENTED_DEPRECATION,
        name="documented-deprecation",
        summary="a name that is deprecated only in the documentation",
        library=_LIBRARY,
        symbols={},
        why="The rule is like `deprecated-api`, but for names that do not warn. Such names often stay for "
        "years, and few have a replacement: `torch.jit.ignore` marks hundreds of methods in code that "
        "is not compiled. The rule is therefore off unless you select it. Names with a replacement "
        "have their own rules.",
        advice="look for the replacement in the documentation",
        opt_in=True,
        group="api-hints",
    ),
    Rule(
        code=RENAMED_SETTING,
        name="renamed-setting",
        summary="a setting of a configuration module that is now an alias of a new one",
        library=_LIBRARY,
        symbols={},
        why="`torch._dynamo.config.cache_size_limit` is kept as an alias of `recompile_limit`. Both do the "
        "same and nothing warns, so the rule is off unless you select it. The rule is silent if the "
        "minimum does not have the new name.",
        advice="use the new name",
        opt_in=True,
        group="newer-names",
    ),
)

# Those of TM004 and TM005 are found where the project supports torch 1.7.
EXAMPLES: dict[str, tuple[str, str | None]] = {
    REMOVED_API: ("torch.distributed.all_reduce_multigpu(tensors)", None),
    UNKNOWN_API: ("torch.zeroes(3)", None),
    REMOVED_PARAMETER: ("torch.autograd.profiler.profile(enabled, use_cuda=True)", None),
    MOVED_ARGUMENT: ('torchvision.utils.save_image(images, "grid.png", 4)', None),
    NEEDS_NEWER: ("torch.func.vmap(f)", None),
    RENAMED_SETTING: ("torch._dynamo.config.cache_size_limit = 64", None),
    UNREAD_SETTING: ("torch._dynamo.config.report_guard_failures = True", None),
    DOCUMENTED_DEPRECATION: ("@torch.jit.ignore\ndef f(x): ...", None),
    DEPRECATED_API: ("torch._inductor.config.use_mixed_mm = False", None),
}
