"""The releases of torch, and which release of a companion library goes with each.

The table was read from the metadata of the published wheels (`Requires-Dist: torch==...`); where a wheel pins
nothing, from the compatibility tables in the libraries' READMEs and on the PyTorch wiki ("PyTorch Versions").
"""

from __future__ import annotations

from torchmigrate.patterns import pattern

Version = tuple[int, ...]  # (2, 6); patch releases do not change the API

_VERSION = pattern(
    r"v?(\d+)\.(\d+)(?:\.\d+)*(?:[-_.]?(?:a|b|rc|post|dev|alpha|beta|nightly)[-_.]?\d*)*(?:\+[\w.-]+)?"
)

RELEASES: tuple[Version, ...] = (*((1, minor) for minor in range(14)), *((2, minor) for minor in range(16)))
NEWEST = "2.15"
FIRST = "1.0"

# The last patch release of each, where there is one: the wheels on PyPI.
_LAST_PATCH: dict[Version, int] = {
    (1, 0): 1,
    (1, 3): 1,
    (1, 5): 1,
    (1, 7): 1,
    (1, 8): 1,
    (1, 9): 1,
    (1, 10): 2,
    (1, 12): 1,
    (1, 13): 1,
    (2, 0): 1,
    (2, 1): 2,
    (2, 2): 2,
    (2, 3): 1,
    (2, 4): 1,
    (2, 5): 1,
    (2, 7): 1,
    (2, 9): 1,
    (2, 12): 1,
    (2, 14): 1,
}
MOST_PATCHES = 4  # patch releases of torchvision and torchaudio: 0.11.3 is one
# Every release with its patch number, oldest first.
PATCH_RELEASES: tuple[Version, ...] = tuple(
    (*release, patch) for release in RELEASES for patch in range(_LAST_PATCH.get(release, 0) + 1)
)

# The first torch with wheels on PyPI for each Python.
PYTHONS: dict[Version, Version] = {
    (3, 5): (1, 0),
    (3, 6): (1, 0),
    (3, 7): (1, 0),
    (3, 8): (1, 4),
    (3, 9): (1, 7),
    (3, 10): (1, 10),
    (3, 11): (1, 13),
    (3, 12): (2, 2),
    (3, 13): (2, 5),
    (3, 14): (2, 9),
    (3, 15): (2, 15),
}

# The oldest Python that the wheels of a torch, and of those that follow it, are for.
OLDEST_PYTHONS: dict[Version, Version] = {
    (1, 0): (2, 7),
    (1, 6): (3, 6),
    (1, 11): (3, 7),
    (2, 0): (3, 8),
    (2, 5): (3, 9),
    (2, 9): (3, 10),
    (2, 15): (3, 11),
}

# The packages that a library installs.
LIBRARIES: dict[str, tuple[str, ...]] = {
    # caffe2 was part of the torch wheel up to 2.3; the next two became parts of torch. The last torchtext
    # does not load with torch 2.4 and later.
    "torch": ("torch", "caffe2", "torchdynamo", "torchelastic", "torchtext"),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio", "torio"),
    "torchtext": ("torchtext",),
    "torchdata": ("torchdata",),
    "functorch": ("functorch",),
    "apex": ("apex",),
    "torchao": ("torchao",),
    "torchcodec": ("torchcodec",),
    "torchmetrics": ("torchmetrics",),
    "transformers": ("transformers",),
    # One library under two names, with the same releases.
    "lightning": ("lightning", "pytorch_lightning"),
    "pytorch_lightning": ("pytorch_lightning",),
    "torchx": ("torchx",),
    "fairscale": ("fairscale",),
    "tensorboardX": ("tensorboardX",),
    "torcharrow": ("torcharrow",),
    "optimum": ("optimum",),
    "pytorch_quantization": ("pytorch_quantization",),
    "torch_tensorrt": ("torch_tensorrt",),
    "torchserve": ("ts", "model_archiver"),
}

# These have no releases of their own that would tell anything: their rules count in releases of torch.
# apex is installed from its repository; what it removed counts from the torch that was newest then (apex.amp,
# apex.parallel and apex.fp16_utils: 2025-05-08, torch 2.7); of fairscale and tensorboardX it only matters
# since when torch has the same; torch_tensorrt has the numbers of torch; the others ended, each about when
# that torch came out.
COUNTED_AS_TORCH = frozenset(
    {
        "torch",
        "apex",
        "fairscale",
        "tensorboardX",
        "torcharrow",
        "optimum",
        "pytorch_quantization",
        "torch_tensorrt",
        "torchserve",
        "torchx",
    }
)

# Not yet released, or not for this torch: older than every version that a rule can name.
ABSENT: Version = (0,)
# For unknown libraries, every release that a rule names counts as reached.
UNKNOWN: Version = (10**9,)


def _lines(first: Version, companions: str) -> dict[Version, Version]:
    """Companion releases, in words, for `first` and the torch releases after it."""
    start = RELEASES.index(first)
    versions = [parse_version(word) for word in companions.split()]
    # The last release of a library that has ended stays for every later torch.
    versions += versions[-1:] * (len(RELEASES) - start - len(versions))
    return dict(zip(RELEASES[start:], versions, strict=True))


def parse_version(text: str) -> Version:
    """Major and minor number of "2.6", "1.10", "2.6.1+cu118", "2.1.0a0+git123" or "1.8.0.dev20210101".

    Raises:
        ValueError: it is not a release; the message says what is allowed.
    """
    major, _, minor = text.partition(".")
    if major.isdecimal() and minor.isdecimal():  # nearly always; the pattern takes a while to compile
        return int(major), int(minor)
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a release such as 2.6, 1.10 or 2.6.1+cu118")
    return int(match[1]), int(match[2])


def show_version(version: Version) -> str:
    """(2, 6) -> "2.6"."""
    return ".".join(map(str, version))


_FIRST = RELEASES[0]
COMPANIONS: dict[str, dict[Version, Version]] = {
    # Wheels 0.3.0 (torch>=1.1), 0.4.0 (1.2.0), 0.4.2 (1.3.1), 0.5.0 (1.4.0), 0.6.0 (1.5.0), 0.14.1 (1.13.1),
    # 0.15.1 (2.0.0), 0.16.0 (2.1.0), 0.25.0 (2.10.0), 0.27.0 (2.12.0), 0.28.0 (2.13.0), 0.29.0 (2.14.0) and
    # 0.29.2 (torch>=2.14, so that it serves 2.15 as well); README: 1.0 -> 0.2, and those between.
    "torchvision": _lines(
        _FIRST,
        "0.2 0.3 0.4 0.4 0.5 0.6 0.7 0.8 0.9 0.10 0.11 0.12 0.13 0.14"
        " 0.15 0.16 0.17 0.18 0.19 0.20 0.21 0.22 0.23 0.24 0.25 0.26 0.27 0.28 0.29 0.29",
    ),
    # Wheels 0.3.0 (torch 1.2.0), 0.3.2 (1.3.1), 0.4.0 (1.4.0), 0.5.0 (1.5.0), 0.13.1 (1.13.1), 2.0.1
    # (2.0.0), 2.1.0, 2.8.0, 2.9.1 and 2.10.0 (the same number), 2.11.0 (no requirement; the last one); wiki:
    # those between.
    "torchaudio": _lines(
        (1, 2),
        "0.3 0.3 0.4 0.5 0.6 0.7 0.8 0.9 0.10 0.11 0.12 0.13"
        " 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11",
    ),
    # Wheels 0.9.0 (torch 1.8.0), 0.14.1 (1.13.1), 0.15.1 (2.0.0), 0.16.0 (2.1.0), 0.17.0 (2.2.0),
    # 0.18.0 (torch>=2.3; the last one); README: 1.4 -> 0.5 ... 1.7 -> 0.8. Before 1.4 by date of release.
    "torchtext": _lines(
        _FIRST, "0.3 0.3 0.4 0.4 0.5 0.6 0.7 0.8 0.9 0.10 0.11 0.12 0.13 0.14 0.15 0.16 0.17 0.18"
    ),
    # Wheels 0.3.0 (torch 1.11.0), 0.4.0 (1.12.0), 0.5.1 (1.13.1), 0.6.0 (2.0.0), 0.7.0 (2.1.0); 0.7.1 and
    # later ask for torch>=2 only: from here on the release that came out with that torch. 0.11 is the last.
    "torchdata": _lines((1, 11), "0.3 0.4 0.5 0.6 0.7 0.7 0.7 0.8 0.9 0.10 0.11"),
    # Wheels 0.1.0 (torch 1.11), 0.2.0 (1.12), 1.13.0 (1.13); since then it is part of the torch wheel, and
    # `functorch.__version__` is torch's. The wheel 2.0.0 is empty and asks for torch 2.0.
    "functorch": _lines(
        (1, 11), " ".join(["0.1 0.2", *(show_version(release) for release in RELEASES[13:])])
    ),
}


def _supported(text: str) -> dict[Version, Version]:
    """For each torch the newest release that supports it, from words such as `1.10:1.9`, oldest torch first.

    A torch between two of them has the release of the older one.
    """
    words = [word.split(":") for word in text.split()]
    firsts = {parse_version(torch): parse_version(release) for torch, release in words}
    newest: dict[Version, Version] = {}
    release = ABSENT
    for torch in RELEASES:
        release = firsts.get(torch, release)
        newest[torch] = release
    return newest


# Libraries that users of torch import, and that support many releases of it: the newest one that does is the
# target, and a project's minimum is what it declares. From the metadata of the wheels (`Requires-Dist:
# torch`); torchcodec's README; torchao, whose metadata name no torch, by the date of its releases.
_LIGHTNING = (
    "1.3:1.1 1.4:1.3 1.6:1.4 1.7:1.5 1.8:1.6 1.9:1.8 1.10:1.9 1.11:2.0 1.12:2.1 1.13:2.2 2.0:2.3 2.1:2.6"
)
NEIGHBORS: dict[str, dict[Version, Version]] = {
    "lightning": _supported(_LIGHTNING),
    "pytorch_lightning": _supported(_LIGHTNING),
    "torchmetrics": _supported("1.3:0.10 1.8:1.2 1.10:1.5 2.0:1.9"),
    "transformers": _supported(
        "1.0:4.22 1.7:4.27 1.9:4.32 1.10:4.36 1.11:4.47 2.0:4.51 2.1:4.55 2.2:5.0 2.4:5.14 2.5:5.19 2.6:5.24"
    ),
    "torchao": _supported(
        "2.2:0.1 2.3:0.3 2.4:0.5 2.5:0.7 2.6:0.10 2.7:0.12 2.8:0.13 2.9:0.15 2.10:0.16 2.11:0.18"
    ),
    "torchcodec": _supported("2.4:0.0 2.5:0.1 2.6:0.2 2.7:0.5 2.8:0.7 2.9:0.9 2.10:0.10 2.11:0.17"),
}


# The patch releases that go with a torch, where a series goes with two of them: by the metadata of wheels,
# torchvision 0.4.0 (torch==1.2.0), 0.4.1 (1.3.0), 0.4.2 (1.3.1), 0.29.0 (2.14.0), 0.29.1 (>=2.14.0);
# torchaudio 0.3.0 (1.2.0), 0.3.1 (1.3.0), 0.3.2 (1.3.1). Every other wheel that names a torch names one of
# the release that `COMPANIONS` gives to its series.
_PATCHES: dict[tuple[str, Version], range] = {
    ("torchvision", (1, 2)): range(1),
    ("torchvision", (1, 3)): range(1, MOST_PATCHES),
    ("torchvision", (2, 15)): range(1, MOST_PATCHES),
    ("torchaudio", (1, 2)): range(1),
    ("torchaudio", (1, 3)): range(1, MOST_PATCHES),
}


def companion_patches(library: str, torch: Version) -> range:
    """The patch numbers of the releases of `library` that go with one of torch; there may be fewer."""
    return _PATCHES.get((library, torch), range(MOST_PATCHES))


def companion(library: str, torch: Version) -> Version:
    """The release of `library` that goes with a release of torch, in which its rules count.

    Before the first release it is `ABSENT`; for a library that is not known, `UNKNOWN`. A torch that is
    newer than every release known here counts as the newest one, but for libraries that follow its number.
    """
    if library in COUNTED_AS_TORCH:
        return torch
    table = COMPANIONS.get(library) or NEIGHBORS.get(library)
    if table is None:
        return UNKNOWN
    if torch > RELEASES[-1]:
        return torch if library == "functorch" else table[RELEASES[-1]]
    return table.get(torch, ABSENT)


def torch_release(library: str, version: Version) -> Version | None:
    """The first release of torch that goes with this or a newer release of `library`; None: none known.

    For a library that is not known that is the first of all, as `companion` counts.
    """
    if library in COUNTED_AS_TORCH:
        return version
    return next((release for release in RELEASES if companion(library, release) >= version), None)
