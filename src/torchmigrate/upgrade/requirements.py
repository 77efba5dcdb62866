"""What a project asks for, from its metadata and its lists, and what of it is installed for a target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from torchmigrate.files.reading import UnreadableError, read
from torchmigrate.versions.releases import ABSENT, COMPANIONS, Version, companion, show_version

_LISTS = ("*req*.txt", "requirements/*.txt")
_NOT_LISTS = re.compile(r"docs?\b|lint|mypy|style|black|flake8|release|publish", re.IGNORECASE)
_INCLUDED = re.compile(r"^(?:-r|--requirement|-c|--constraint)[ =]*(?P<path>\S+)")
_TESTS = frozenset(["test", "tests", "testing", "dev"])
# What no test runs.
_CHECKS = frozenset(
    "autopep8 bandit black build codecov flake8 isort mypy pip pre-commit pycodestyle pydocstyle pyflakes"
    " pylint pyroma pytest-black pytest-flake8 pytest-isort pytest-mypy pytest-pep8 pytest-pycodestyle"
    " pytest-pydocstyle pytest-pylint ruff setuptools sphinx sphinx-rtd-theme tox twine wheel yapf".split()
)
_MOST_BYTES = 1_000_000
_DEEPEST = 5  # lists that include lists
_IMPORTED = rb"^[ \t]*(?:import|from)[ \t]+%s\b"
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(\w+)", re.MULTILINE)
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


def lists_of(project: Path) -> list[Path]:
    """The lists of requirements that are not for documentation or for checks."""
    found = dict.fromkeys(path for pattern in _LISTS for path in sorted(project.glob(pattern)))
    return [path for path in found if path.is_file() and not _NOT_LISTS.search(path.name)]


def listed_in(path: Path, depth: int = 0) -> Iterator[str]:
    """The requirements in a list, and in those that it includes; options of pip are left out."""
    try:
        text = read(path, _MOST_BYTES).decode("utf-8", "replace")
    except UnreadableError:
        return
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        line = re.sub(r"(?:^|[ \t])#.*", "", line).strip()
        included = _INCLUDED.match(line)
        if included is not None and line.startswith(("-r", "--r")) and depth < _DEEPEST:
            yield from listed_in(path.parent / included["path"], depth + 1)
        elif line and not line.startswith("-"):
            yield re.sub(r"[ \t]--hash.*", "", line)


def asked_by(project: Path) -> list[str]:
    """The requirements in all lists of a project."""
    return [text for path in lists_of(project) for text in listed_in(path)]


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


def of_torch(texts: Iterable[str], project: Path, target: Version) -> dict[str, str]:
    """torch and those companions that a project asks for or imports, as requirements for a target."""
    asked: set[str] = set()
    for text in texts:
        asked.update(map(canonicalize_name, re.findall(r"^[\w.-]+", text)))
    found = {"torch": f"torch=={show_version(target)}.*"}
    for name in COMPANIONS:
        release = companion(name, target)
        if release != ABSENT and name != "functorch" and (name in asked or _imports(project, name)):
            found[name] = f"{name}=={show_version(release)}.*"
    return found


def _imports(project: Path, name: str) -> bool:
    pattern = re.compile(_IMPORTED % name.encode(), re.MULTILINE)
    for path in sorted(project.rglob("*.py")):
        try:
            if pattern.search(read(path, _MOST_BYTES)):
                return True
        except UnreadableError:
            continue
    return False


def imported(project: Path) -> dict[str, str]:
    """The well-known packages that a project imports, as requirements by name: not every project asks for
    them, and old torch brought NumPy along."""
    names: set[str] = set()
    for path in sorted(project.rglob("*.py")):
        try:
            names.update(name.decode() for name in _IMPORT.findall(read(path, _MOST_BYTES)))
        except UnreadableError:
            continue
    found = [_PACKAGES[name] for name in sorted(names & set(_PACKAGES))]
    return {canonicalize_name(re.split("[<=]", text)[0]): text for text in found}


def loosened(requirement: str) -> str:
    """A requirement without its versions."""
    match = re.match(r"[\w.-]+(?:\[[\w, -]*\])?", requirement)
    return requirement if match is None or "://" in requirement else match[0]


def shown(left_out: Mapping[str, str]) -> str:
    """What could not be installed, in a line."""
    return "; ".join(f"{name} ({reason})" for name, reason in left_out.items())
