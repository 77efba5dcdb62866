"""What is said about the rules that are made from the API data."""

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
        summary="A name that some release had and the target does not have",
        library=_LIBRARY,
        symbols={},
        why="Most upgrades fail with `module has no attribute` or `cannot import name`. torchmigrate knows "
        "every name of torch, torchvision, torchaudio, torchtext, torchdata and functorch in every release. "
        "A name that is gone and has no rule of its own is reported here. Names that were assigned in the "
        "file, code that asks before it uses a name, and what compiled code makes are left alone.",
        advice="look for the change in the release notes of the release that is named",
    ),
    Rule(
        code=UNKNOWN_API,
        name="unknown-api",
        summary="A name, or a parameter of a function, that no release has",
        library=_LIBRARY,
        symbols={},
        why="A misspelt name, one from a nightly build, or one that a fork has. It is never in the released "
        "library, so that the code fails where it gets there.",
        advice="check the spelling",
        opt_in=True,
    ),
    Rule(
        code=REMOVED_PARAMETER,
        name="removed-parameter",
        summary="An argument that a function once took and does not take at the target",
        library=_LIBRARY,
        symbols={},
        why="The call raises `unexpected keyword argument`, or `takes n positional arguments`. It is only "
        "reported where every signature of the function is known and no `**kwargs` could take the argument.",
        advice="look for the change in the release notes of the release that is named",
    ),
    Rule(
        code=MOVED_ARGUMENT,
        name="moved-argument",
        summary="A positional argument that is for another parameter than it was",
        library=_LIBRARY,
        raises="sometimes",
        symbols={},
        why="A parameter was put in before others or taken out, so that an argument without a keyword now "
        "means something else, often without an error. It is reported where the project supports releases "
        "from before and after the change, or where the argument itself looks like the old parameter. That "
        "a parameter was only renamed is not reported.",
        advice="pass the argument by keyword",
    ),
    Rule(
        code=NEEDS_NEWER,
        name="needs-newer",
        summary="A name or parameter that the oldest supported release does not have",
        library=_LIBRARY,
        symbols={},
        why="The project says that it supports this release (`minimum`, or what its own requirements say), "
        "and there the code fails. What is behind a version test, `hasattr` or `try` is not reported, and "
        "nothing is where no minimum is known, nor in tests, examples, benchmarks and documentation, which "
        "need not run on every release. In a file, all that needs the same release is one finding.",
        advice="raise the minimum, or test for the release",
        once="file",
    ),
    Rule(
        code=DEPRECATED_API,
        name="deprecated-api",
        summary="A name or argument of which the library warns that it is deprecated",
        library=_LIBRARY,
        symbols={},
        why="What the target warns of and has no rule of its own: functions, classes and modules, settings "
        "of configuration modules, and arguments of which a function warns. The words are the library's own. "
        "What stands in `warnings.catch_warnings()`, behind a version test, or beside the new name is left "
        "alone.",
        advice="look for what replaces it in the documentation",
    ),
    Rule(
        code=UNREAD_SETTING,
        name="unread-setting",
        summary="A setting of a configuration module that nothing in the library reads",
        library=_LIBRARY,
        symbols={},
        why="Settings of `torch._dynamo.config` and its like are kept for those who still set them when what "
        "they were for is gone. It is found by looking for the name in all modules of the release. PyTorch "
        "says nothing about most of them, so that the rule is off unless it is selected.",
        advice="remove it",
        opt_in=True,
    ),
    Rule(
        code=DOCUMENTED_DEPRECATION,
        name="documented-deprecation",
        summary="A name that only the documentation calls deprecated",
        library=_LIBRARY,
        symbols={},
        why="The same as `deprecated-api`, of what does not warn. Such names often stay for years, and few "
        "have a replacement: `torch.jit.ignore` marks hundreds of methods in code that is not compiled. "
        "Therefore the rule is off unless it is selected; what has a replacement has a rule of its own.",
        advice="look for what replaces it in the documentation",
        opt_in=True,
    ),
    Rule(
        code=RENAMED_SETTING,
        name="renamed-setting",
        summary="A setting of a configuration module that has become another name of a new one",
        library=_LIBRARY,
        symbols={},
        why="`torch._dynamo.config.cache_size_limit` is kept as another name of `recompile_limit`. Both do "
        "the same and nothing warns, so that the rule is off unless it is selected. Nothing is said where "
        "the minimum does not have the new name.",
        advice="use the new name",
        opt_in=True,
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
