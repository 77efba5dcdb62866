"""What a project asks for, from its metadata and its lists, and what of it is installed for a target."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from torchmigrate.files.reading import SOURCE, UnreadableError, read
from torchmigrate.patterns import pattern
from torchmigrate.versions.releases import ABSENT, COMPANIONS, Version, companion, show_version
from torchmigrate.versions.requirement_lists import OTHER_PURPOSE, StatingFile, requirement_lines, silent

_LISTS = ("*req*.txt", "requirements/*.txt")
_TESTS = frozenset(["test", "tests", "testing", "dev"])
# What no test runs.
_CHECKS = frozenset(
    "autopep8 bandit black build codecov flake8 isort mypy pip pre-commit pycodestyle pydocstyle pyflakes"
    " pylint pyroma pytest-black pytest-flake8 pytest-isort pytest-mypy pytest-pep8 pytest-pycodestyle"
    " pytest-pydocstyle pytest-pylint ruff setuptools sphinx sphinx-rtd-theme tox twine wheel yapf".split()
)
_IMPORT = pattern(rb"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
# Import name -> package.
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "pkg_resources": "setuptools<81",  # the last one that has it
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    **{
        name: name
        for name in (
            "attrs einops future h5py hypothesis imageio joblib librosa matplotlib networkx nltk numba numpy"
            " pandas parameterized psutil requests scipy seaborn six soundfile sympy tensorboard tqdm"
        ).split()
    },
}


def asked_by(project: Path) -> list[str]:
    """The requirements in the lists of a project that are not for documentation or for checks."""
    found: list[str] = []
    lists = dict.fromkeys(path for pattern in _LISTS for path in sorted(project.glob(pattern)))
    for path in lists:
        if re.search(OTHER_PURPOSE, path.stem):
            continue
        file = StatingFile(path, project, silent, silent, set(), {})
        with suppress(UnreadableError):
            found += requirement_lines(file, file.read(), constraints=False)
    return found


def wanted(texts: Iterable[str], python: Version) -> dict[str, str]:
    """The requirements that hold for a Python, by name; those of tests, too, but not of checks.

    Torch and its companions are left out, and pytest and its plugins lose their versions. The first one of
    a name counts; what cannot be read as a requirement is its own name.
    """
    found: dict[str, str] = {}
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            if re.match(r"(?:git\+|https?:)\S+$", text):
                found.setdefault(text, text)
            continue
        name = canonicalize_name(requirement.name)
        if name in COMPANIONS or name == "torch" or not _holds(requirement, python):
            continue
        requirement.marker = None
        if name in _CHECKS:
            continue
        if name == "pytest" or name.startswith("pytest-"):
            requirement.specifier = SpecifierSet()  # those of the time fail on a new Python
        found.setdefault(name, str(requirement))
    return found


def _holds(requirement: Requirement, python: Version) -> bool:
    if requirement.marker is None:
        return True
    short = show_version(python)
    values = {"python_version": short, "python_full_version": f"{short}.0"}
    return any(requirement.marker.evaluate({**values, "extra": extra}) for extra in ("", *sorted(_TESTS)))


def of_torch(texts: Iterable[str], imported: Collection[str], target: Version) -> dict[str, str]:
    """torch and those companions that a project asks for or imports, as requirements for a target."""
    asked = {canonicalize_name(name) for text in texts for name in re.findall(r"^[\w.-]+", text)}
    found = {"torch": f"torch=={show_version(target)}.*"}
    for name in COMPANIONS:
        release = companion(name, target)
        if release != ABSENT and name != "functorch" and (name in asked or name in imported):
            found[name] = f"{name}=={show_version(release)}.*"
    return found


def imported_by(files: Iterable[Path]) -> set[str]:
    """The top-level modules that some files import."""
    names: set[str] = set()
    for path in files:
        if path.suffix == ".py":
            with suppress(UnreadableError):
                names.update(name.decode() for name in _IMPORT.findall(read(path, SOURCE)))
    return names


def well_known(imported: Collection[str]) -> dict[str, str]:
    """What to install for well-known imported modules, by name.

    Not every project asks for what it imports, and old torch brought NumPy along.
    """
    found = [_PACKAGES[name] for name in sorted(imported) if name in _PACKAGES]
    return {canonicalize_name(re.split("[<=]", text)[0]): text for text in found}


def loosened(requirement: str) -> str:
    """A requirement without its versions."""
    match = re.match(r"[\w.-]+(?:\[[\w, -]*\])?", requirement)
    return requirement if match is None or "://" in requirement else match[0]
