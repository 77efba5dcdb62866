"""The API data at the two ends of the version range, each answer remembered."""

from __future__ import annotations

from torchmigrate.match.signature import Signature, parse_signature
from torchmigrate.versions.range import VersionRange
from torchmigrate.versions.releases import NEIGHBORS, NEWEST
from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_model import ApiEntry, EntryKind, Status

Version = tuple[int, ...]
_CONFIG_CLASS = ".ConfigModule"  # what a configuration module makes itself an instance of
Signatures = tuple[Signature, ...]  # of all overloads; empty: not known


class Point:
    """What there is in one release of torch, and in the releases of the other libraries that go with it."""

    def __init__(self, release: str, versions: VersionRange | None = None, *, oldest: bool = False) -> None:
        """versions: the range. oldest: it begins with `release`; companions may have their own minimum."""
        self.release = release
        self._at = VersionRange(target=release)
        self._versions = versions or self._at
        self._oldest = oldest
        self._missing: dict[str, str | None] = {}
        self._signatures: dict[str, Signatures] = {}

    def version(self, name: str) -> Version:
        """The release of the library to which a name belongs."""
        library = name.partition(".")[0]
        target, minimum = self._versions.of(library)
        if library in NEIGHBORS:  # of torch's minimum nothing follows for them
            return minimum if self._oldest and minimum is not None else target
        declared = minimum if self._oldest else None
        return declared or self._at.of(library)[0]

    def status(self, name: str) -> Status:
        """Whether a name exists; UNKNOWN also for libraries without data."""
        surface = surface_of(name)
        return Status.UNKNOWN if surface is None else surface.status(name, self.version(name))

    def exists(self, name: str) -> bool | None:
        """Whether a name exists, or a parameter as in `HasName`, `torch.load(mmap)`; None: it is not
        known."""
        function, _, parameter = name.removesuffix(")").partition("(")
        if parameter:
            known = self.signatures(function)
            return any(_has(signature, parameter) for signature in known) if known else None
        return {Status.PRESENT: True, Status.ABSENT: False}.get(self.status(name))

    def entry(self, name: str) -> ApiEntry | None:
        """What a name is; None where it is not known, or only raises."""
        surface = surface_of(name)
        entry = surface.entry(name, self.version(name)) if surface is not None else None
        return None if entry is None or entry.gone else entry

    def missing(self, name: str) -> str | None:
        """The shortest prefix of a name that surely does not exist; None if there is none."""
        if name not in self._missing:
            self._missing[name] = self._first_missing(name)
        return self._missing[name]

    def _first_missing(self, name: str) -> str | None:
        surface = surface_of(name)
        if surface is None:
            return None
        version = self.version(name)
        end = name.find(".")
        while end >= 0:
            end = name.find(".", end + 1)
            prefix = name if end < 0 else name[:end]
            status = surface.status(prefix, version)
            if status is Status.ABSENT and end >= 0 and surface.entry(prefix, version) is not None:
                return None  # a function that only raises exists: reading its attribute works
            if status is not Status.PRESENT:
                owner = surface.definition(prefix.rpartition(".")[0], version) or ""
                compiled = owner.startswith("torch._C.")  # its stub need not have everything
                return prefix if status is Status.ABSENT and not compiled else None
        return None

    def signatures(self, name: str) -> Signatures:
        """How a function, or a class, can be called."""
        found = self._signatures.get(name)
        if found is None:
            surface = surface_of(name)
            found = self._signatures[name] = (
                () if surface is None else signatures(surface, name, self.version(name))
            )
        return found


def _has(signature: Signature, parameter: str) -> bool:
    if parameter not in ("*", "="):
        return parameter in signature.by_name
    return any(
        item.default is not None and (item.kind == "keyword-only") is (parameter == "*")
        for item in signature.parameters
    )


class Api:
    """The target, and the oldest release that the code has to run on.

    floor: the minimum. Where it is not known, an older target than the newest release counts: what came
    later is missing there as well. None: there is nothing to compare with.
    """

    def __init__(self, versions: VersionRange) -> None:
        self.target = Point(versions.target, versions)
        self.minimum = versions.minimum
        floor = versions.minimum or (versions.target if versions.target != NEWEST else None)
        self.floor = None if floor is None else Point(floor, versions, oldest=versions.minimum is not None)

    def gone_since(self, name: str) -> Version | None:
        """The release that removed a name that the target lacks; None: it never existed before."""
        surface = surface_of(name)
        target = self.target.version(name)
        ends = [end for _, end in surface.spans(name) if end is not None] if surface else []
        return max((end for end in ends if end <= target), default=None)

    def no_module_since(self, name: str) -> Version | None:
        """The release since which a name is a function, class or value and no module; None: it is a module,
        or never was one."""
        surface = surface_of(name)
        target = self.target.version(name)
        if surface is None or surface.status(name, target) is not Status.PRESENT:
            return None
        since: Version | None = None
        for version in reversed(surface.versions):
            if version <= target:
                if surface.is_module(name, version):
                    return since
                since = version
        return None

    def there_since(self, name: str) -> Version | None:
        """The first release after the floor that has a name; None: none has it, or it is not known.

        Where the data of a name begin, the releases before are unknown.
        """
        surface = surface_of(name)
        if surface is None or self.floor is None:
            return None
        floor = self.floor.version(name)
        start = min((start for start, _ in surface.spans(name) if start > floor), default=None)
        if start is None:
            return None
        before = max((version for version in surface.versions if version < start), default=None)
        known = before is not None and surface.status(name, before) is Status.ABSENT
        return start if known else None


def config_module(api: Api, name: str) -> str | None:
    """The configuration module that a name is in, or is, if it is one at either end of the range."""
    points = [api.target] if api.floor is None else [api.target, api.floor]
    end = name.find("config")
    while end >= 0:
        end = name.find(".", end)
        prefix = name if end < 0 else name[:end]
        if prefix.endswith("config") and any(_is_config(prefix, point) for point in points):
            return prefix
        end = name.find("config", end) if end >= 0 else -1
    return None


def _is_config(name: str, point: Point) -> bool:
    surface = surface_of(name)
    entry = surface.entry(name, point.version(name)) if surface is not None else None
    return (
        entry is not None
        and entry.kind is EntryKind.MODULE
        and any(base.endswith(_CONFIG_CLASS) for base in entry.bases)
    )


def signatures(surface: Surface, name: str, version: Version) -> Signatures:
    """How a function, or a class, can be called in a release; empty where not all of it is known."""
    return signatures_of(surface.entry(name, version))


def signatures_of(entry: ApiEntry | None) -> Signatures:
    """The same of what a name is in a release."""
    if entry is None or entry.gone or entry.kind not in (EntryKind.FUNCTION, EntryKind.CLASS):
        return ()
    try:
        return tuple(parse_signature(text) for text in entry.signatures)
    except ValueError:
        return ()
