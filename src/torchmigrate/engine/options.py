"""The options of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from torchmigrate.engine.choosing import Chooser
    from torchmigrate.engine.focus import Focus
    from torchmigrate.project.discover import SettingsIn
    from torchmigrate.project.questions import Questions
    from torchmigrate.texts.file import Read


class EngineOptions(Struct, frozen=True):
    """Options of an engine that no configuration sets.

    settings_in: what holds in other directories of the project, whose files may need names of a file.
    everywhere: whether needs-newer findings are reported for tests and examples as well.
    keeps_history: whether results say what was found before fixes, and what these did.
    by_place: whether an import and its uses are findings of their own, for views that count places.
    unfixed: codes of rules whose fixes are not made.
    most: the number of findings in a file that are wanted, unless a baseline hides some; None: all.
    focus: the lines that findings may be about; None: all.
    chooser: decides about each fix; None: all wanted fixes are applied.
    questions: records queries about other files; None disables recording.
    read_other: gives the text of other files, where they are not read.
    """

    settings_in: SettingsIn | None = None
    everywhere: bool = False
    keeps_history: bool = False
    by_place: bool = False
    unfixed: frozenset[str] = frozenset()
    most: int | None = None
    focus: Focus | None = None
    chooser: Chooser | None = None
    questions: Questions | None = None
    read_other: Read | None = None


PLAIN = EngineOptions()
