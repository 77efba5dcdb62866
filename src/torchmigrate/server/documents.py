"""What the client has open, kept as it is typed, and snapshots of it for the thread that checks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from lsprotocol import types
from msgspec import Struct
from pygls.uris import to_fs_path, urlparse
from pygls.workspace import TextDocument, Workspace

from torchmigrate.server.positions import lines_of
from torchmigrate.source.kinds import KINDS, kind_of, source_of_text
from torchmigrate.source.other import OtherSource, other_kind
from torchmigrate.source.text import Source

PYTHON = "python"
# Bytes of a path on most systems, and characters of a name in it with room for an ending.
_LONGEST, _LONGEST_NAME = 4000, 240
# What the end of a name would say, where only the editor knows the language.
_LANGUAGES = {
    PYTHON: ".py",
    "shellscript": ".sh",
    "bash": ".sh",
    "sh": ".sh",
    "makefile": ".mk",
    "dockerfile": ".dockerfile",
    "yaml": ".yaml",
    "markdown": ".md",
    "c": ".c",
    "cpp": ".cpp",
    "cuda": ".cu",
    "cuda-cpp": ".cu",
    "pip-requirements": "-requirements.txt",
    "requirements": "-requirements.txt",
}


class Document(TextDocument):
    """A text whose lines are those of the protocol; those of pygls end at form feeds and others, too."""

    @property
    def lines(self) -> Sequence[str]:
        return lines_of(self.source)


class Documents(Workspace):
    """All texts and notebooks that are open."""

    @classmethod
    def like(cls, workspace: Workspace) -> Documents:
        """An empty workspace with the roots and the encoding of another one."""
        return cls(
            workspace.root_uri,
            types.TextDocumentSyncKind.Incremental,
            list(workspace.folders.values()),
            workspace.position_encoding,
        )

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> Document:
        made = Document(
            "untitled:" if path_of(doc_uri) is None else doc_uri,  # pygls takes others for paths
            source,
            version,
            language_id,
            sync_kind=self._sync_kind,
            position_codec=self.position_codec,
        )
        made.uri = doc_uri
        return made

    @property
    def roots(self) -> list[Path]:
        """The directories that the client has open."""
        uris = [folder.uri for folder in self.folders.values()] or [self.root_uri or ""]
        return [path for path in map(path_of, uris) if path]

    def open_uris(self) -> list[str]:
        """What is open: texts, and notebooks for their cells."""
        texts = [text.uri for text in self.text_documents.values() if self.notebook_of(text.uri) is None]
        return [*texts, *(notebook.uri for notebook in self.notebook_documents.values())]

    def notebook_of(self, uri: str) -> types.NotebookDocument | None:
        """The notebook that has a text as a cell."""
        return self.get_notebook_document(cell_uri=uri)

    def owner(self, uri: str) -> str:
        """What is checked for a text: the notebook that it is in, or itself."""
        notebook = self.notebook_of(uri)
        return uri if notebook is None else notebook.uri

    def snapshot(self, uri: str) -> Snapshot | None:
        """A text or a notebook as it is now; None: it is not open."""
        text = self.text_documents.get(unquote(uri))
        if text is not None:
            part = DocumentPart(text.uri, text.version, text.source, text.language_id or "")
            return Snapshot(uri, self._path(uri, part.language), part.language, (part,))
        notebook = self.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            return None
        return Snapshot(uri, self._path(uri, ""), PYTHON, tuple(map(self._cell, notebook.cells)), True)

    def _cell(self, cell: types.NotebookCell) -> DocumentPart:
        text = self.text_documents.get(unquote(cell.document))
        is_code = cell.kind == types.NotebookCellKind.Code
        if text is None:  # a client that moves a cell may close it last
            return DocumentPart(cell.document, None, "", PYTHON, is_code)
        return DocumentPart(text.uri, text.version, text.source, text.language_id or PYTHON, is_code)

    def _path(self, uri: str, language: str) -> Path:
        """The path of a file, or the one that a text which is none would have."""
        if (path := path_of(uri)) is not None:
            return _named(path, language)
        root = self.roots[0] if self.roots else Path.cwd()
        try:
            named = root / (Path(urlparse(uri)[2]).name or "untitled")
        except ValueError:
            named = root / "untitled"
        return _named(named if _can_be(named) else root / "untitled", language)


def path_of(uri: str) -> Path | None:
    """The path of a file; None where a URI is of something else, or of what no file system can hold."""
    try:
        found = to_fs_path(uri)
    except ValueError:
        return None
    path = Path(found) if found else None
    return path if path is not None and _can_be(path) else None


def _can_be(path: Path) -> bool:
    """Whether there can be a file with a path."""
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return (
        b"\0" not in data and len(data) < _LONGEST and all(len(part) < _LONGEST_NAME for part in path.parts)
    )


def _named(path: Path, language: str) -> Path:
    """A path whose name says what kind of file it is, or the kind of the editor's language."""
    end = _LANGUAGES.get(language)
    if end is None or path.suffix in KINDS or other_kind(path) is not None:
        return path
    return path if language == PYTHON and path.exists() else path.with_name(path.name + end)


class DocumentPart(NamedTuple):
    """A text of the client: a file, or a cell."""

    uri: str
    version: int | None
    text: str
    language: str
    is_code: bool = True


class Snapshot(Struct, frozen=True):
    """What is checked as one file, as it was at one moment.

    uri: of the text, or of the notebook. parts: the text; of a notebook all cells, in order.
    """

    uri: str
    path: Path
    language: str
    parts: tuple[DocumentPart, ...]
    is_notebook: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it has a place in the file system."""
        return path_of(self.uri) is not None

    def has_kind(self, *, embedded: bool) -> bool:
        """Whether it is of a kind that is checked, by its name or its language."""
        kind = kind_of(self.path, embedded=embedded)
        return self.is_notebook or self.language == PYTHON or kind is not Source or self.path.suffix in KINDS

    def source(self, *, embedded: bool) -> Source:
        """Its text for the rules. Raises SourceError where it is none of its kind."""
        if not self.is_notebook:
            return source_of_text(self.parts[0].text, self.path, embedded=embedded)
        from torchmigrate.source.notebook import Notebook

        return Notebook.from_text(self._as_file(), self.path)

    def part_of(self, cell: int | None) -> DocumentPart:
        """The text with a number of a cell."""
        return self.parts[cell - 1 if cell is not None and self.is_notebook else 0]

    def _as_file(self) -> str:
        """The notebook in the form that it is read in."""
        cells = [
            {
                "cell_type": "code" if part.is_code else "markdown",
                "metadata": {"vscode": {"languageId": part.language}},
                "source": part.text,
            }
            for part in self.parts
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


__all__ = ["PYTHON", "Document", "DocumentPart", "Documents", "OtherSource", "Snapshot"]
