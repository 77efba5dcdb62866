"""An editor: pygls' own client, which talks to `torchmigrate server` in a process of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from harness.launcher import quick_command
from harness.project import environment

T = TypeVar("T")
PATIENCE = 120  # seconds, on a busy machine
ENCODINGS = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}


class _Client(LanguageClient):
    def __init__(self) -> None:
        super().__init__("test", "1")
        self.errors: list[str] = []

    def report_server_error(self, error: Exception, source: object) -> None:
        self.errors.append(str(error))


class Editor:
    """An editor with some directories open, which ends its server when it is left.

    Args:
        roots: the directories.
        pull: it asks for diagnostics.
        resolve: it asks for the edits of actions when they are wanted.
        encodings: of positions, those that it likes best first.
        options: its initializationOptions.
        settings: what it answers when it is asked for its settings; None: it cannot be asked.
        watches: it can watch files.
        program: what starts the server.
    """

    def __init__(
        self,
        *roots: Path,
        pull: bool = False,
        resolve: bool = False,
        encodings: list[str] | None = None,
        options: Any = None,
        settings: Any = None,
        watches: bool = False,
        program: list[str] | None = None,
    ) -> None:
        self.roots = roots
        self.settings = settings
        self.watched: list[str] = []
        self.messages: list[types.ShowMessageParams] = []
        self.logged: list[str] = []
        self.edits: list[types.WorkspaceEdit] = []
        self.refreshes = 0
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._published: defaultdict[str, list[types.PublishDiagnosticsParams]] = defaultdict(list)
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = _Client()
        self._listen()
        self._begin(pull, resolve, encodings, options, watches, program or quick_command("server"))

    def _begin(
        self,
        pull: bool,
        resolve: bool,
        encodings: list[str] | None,
        options: Any,
        watches: bool,
        program: list[str],
    ) -> None:
        here = str(self.roots[0]) if self.roots else None
        self.wait(self.client.start_io(*program, env=environment(), cwd=here))
        action = types.ClientCodeActionLiteralOptions(types.ClientCodeActionKindOptions([]))
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=encodings) if encodings else None,
            notebook_document=types.NotebookDocumentClientCapabilities(
                types.NotebookDocumentSyncClientCapabilities()
            ),
            text_document=types.TextDocumentClientCapabilities(
                diagnostic=types.DiagnosticClientCapabilities() if pull else None,
                hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
                code_action=types.CodeActionClientCapabilities(
                    code_action_literal_support=action,
                    resolve_support=types.ClientCodeActionResolveOptions(["edit"]) if resolve else None,
                ),
            ),
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=resolve),
                configuration=self.settings is not None,
                diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                    dynamic_registration=watches
                ),
            ),
        )
        folders = [types.WorkspaceFolder(uri(root), root.name) for root in self.roots]
        asked = types.InitializeParams(
            capabilities, initialization_options=options, workspace_folders=folders or None
        )
        self.server = self.wait(self.client.initialize_async(asked)).capabilities
        encoding = self.server.position_encoding
        self.encoding = getattr(encoding, "value", encoding) or "utf-16"
        self.do(lambda: self.client.initialized(types.InitializedParams()))

    def _listen(self) -> None:
        client = self.client

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            with self._news:
                self._published[params.uri].append(params)
                self._news.notify_all()

        @client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            with self._news:
                self.messages.append(params)
                self._news.notify_all()

        @client.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            with self._news:
                self.logged.append(params.message)
                self._news.notify_all()

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.edits.append(params.edit)
            self.apply(params.edit)
            return types.ApplyWorkspaceEditResult(True)

        @client.feature(types.WORKSPACE_CONFIGURATION)
        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [self.settings if item.section == "torchmigrate" else None for item in params.items]

        @client.feature(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        def refresh(params: None) -> None:
            with self._news:
                self.refreshes += 1
                self._news.notify_all()

        @client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            with self._news:
                self.watched += [
                    watcher["globPattern"]
                    for each in params.registrations
                    if each.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
                    for watcher in each.register_options["watchers"]
                ]
                self._news.notify_all()

    # ---- how it talks --------------------------------------------------------------------------------

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop of the client, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def do(self, action: Callable[[], Any]) -> None:
        """Send a notification."""

        async def send() -> None:
            action()

        self.wait(send())

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something is so."""
        with self._news:
            assert self._news.wait_for(holds, PATIENCE), (self.messages, self.logged)

    def __enter__(self) -> Editor:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.returncode is None:
            assert self.close() == 0 or raised[0] is not None
        self._loop.call_soon_threadsafe(self._loop.stop)

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The process of the server."""
        assert self.client._server is not None
        return self.client._server

    def close(self) -> int:
        """End the server as the protocol says; its exit code."""
        self.wait(self.client.shutdown_async(None))
        self.do(lambda: self.client.exit(None))
        return self.wait(self.process.wait())

    # ---- documents -----------------------------------------------------------------------------------

    def open(self, path: Path | str, text: str, language: str = "python") -> str:
        """Open a text; its URI."""
        name = path if isinstance(path, str) else uri(path)
        self.texts[name], self.versions[name] = text, 1
        item = types.TextDocumentItem(name, language, 1, text)
        self.do(lambda: self.client.text_document_did_open(types.DidOpenTextDocumentParams(item)))
        return name

    def change(self, name: str, *changes: tuple[types.Range | None, str]) -> None:
        """Type: replace ranges, one after the other, or the whole text."""
        self.versions[name] += 1
        events: list[Any] = []
        for area, text in changes:
            if area is None:
                self.texts[name] = text
                events.append(types.TextDocumentContentChangeWholeDocument(text))
            else:
                self.texts[name] = self.replaced(self.texts[name], area, text)
                events.append(types.TextDocumentContentChangePartial(area, text))
        where = types.VersionedTextDocumentIdentifier(version=self.versions[name], uri=name)
        self.do(
            lambda: self.client.text_document_did_change(types.DidChangeTextDocumentParams(where, events))
        )

    def save(self, name: str) -> None:
        """Say that a text was saved."""
        where = types.TextDocumentIdentifier(name)
        self.do(lambda: self.client.text_document_did_save(types.DidSaveTextDocumentParams(where)))

    def leave(self, name: str) -> None:
        """Close a text."""
        where = types.TextDocumentIdentifier(name)
        self.do(lambda: self.client.text_document_did_close(types.DidCloseTextDocumentParams(where)))

    def touched(self, *paths: Path) -> None:
        """Say that files have changed on disk."""
        events = [types.FileEvent(uri(path), types.FileChangeType.Changed) for path in paths]
        self.do(
            lambda: self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))
        )

    def open_notebook(self, name: str, *cells: tuple[str, str]) -> list[str]:
        """Open a notebook with cells, each a language and a text; the URIs of the cells."""
        uris = [f"vscode-notebook-cell:{name.partition(':')[2]}#C{number}" for number in range(len(cells))]
        made, items = [], []
        for where, (language, text) in zip(uris, cells, strict=True):
            is_code = language != "markdown"
            kind = types.NotebookCellKind.Code if is_code else types.NotebookCellKind.Markup
            made.append(types.NotebookCell(kind, where))
            items.append(types.TextDocumentItem(where, language, 1, text))
            self.texts[where], self.versions[where] = text, 1
        notebook = types.NotebookDocument(name, "jupyter-notebook", 1, made)
        params = types.DidOpenNotebookDocumentParams(notebook, items)
        self.do(lambda: self.client.notebook_document_did_open(params))
        return uris

    def change_notebook(self, name: str, version: int, cells: types.NotebookDocumentCellChanges) -> None:
        """Change the cells of a notebook."""
        where = types.VersionedNotebookDocumentIdentifier(version, name)
        change = types.NotebookDocumentChangeEvent(cells=cells)
        params = types.DidChangeNotebookDocumentParams(where, change)
        self.do(lambda: self.client.notebook_document_did_change(params))

    # ---- what comes back -----------------------------------------------------------------------------

    def diagnostics(self, name: str, *, after: int | None = None) -> list[types.Diagnostic]:
        """What is sent for the text as it is now. after: so many were sent before."""

        def has_come() -> bool:
            sent = self._published[name]
            if after is not None:
                return len(sent) > after
            return bool(sent) and sent[-1].version == self.versions[name]

        self.until(has_come)
        return list(self._published[name][-1].diagnostics)

    def sent(self, name: str) -> int:
        """How often something was sent for a text."""
        return len(self._published[name])

    def pull(self, name: str, before: str | None = None) -> Any:
        """What is answered for a text."""
        where = types.TextDocumentIdentifier(name)
        params = types.DocumentDiagnosticParams(where, previous_result_id=before)
        return self.wait(self.client.text_document_diagnostic_async(params))

    def hover(self, name: str, line: int, character: int) -> str | None:
        """What is shown at a place."""
        params = types.HoverParams(types.TextDocumentIdentifier(name), types.Position(line, character))
        found = self.wait(self.client.text_document_hover_async(params))
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        assert found.contents.kind == types.MarkupKind.Markdown
        return found.contents.value

    def actions(
        self, name: str, area: types.Range | None = None, only: list[str] | None = None
    ) -> list[types.CodeAction]:
        """What can be done in a range; None: in the whole text."""
        area = area or types.Range(types.Position(0, 0), types.Position(100_000, 0))
        where = types.TextDocumentIdentifier(name)
        params = types.CodeActionParams(where, area, types.CodeActionContext([], only))
        found = self.wait(self.client.text_document_code_action_async(params)) or []
        assert all(isinstance(each, types.CodeAction) for each in found)
        return list(found)  # type: ignore[arg-type]

    def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """An action with its edit."""
        return self.wait(self.client.code_action_resolve_async(action))

    def run(self, name: str, *arguments: Any) -> None:
        """Run a command of the server."""
        params = types.ExecuteCommandParams(name, list(arguments))
        self.wait(self.client.workspace_execute_command_async(params))

    # ---- texts ---------------------------------------------------------------------------------------

    def apply(self, edit: types.WorkspaceEdit | None) -> dict[str, str]:
        """Make edits in the texts that are open, without a word to the server; the texts that change."""
        assert edit is not None
        changes: dict[str, Any] = dict(edit.changes or {})
        for each in edit.document_changes or ():
            assert isinstance(each, types.TextDocumentEdit)
            assert each.text_document.version == self.versions[each.text_document.uri]
            changes[each.text_document.uri] = each.edits
        for name, edits in changes.items():
            last = [(each.range.end.line, each.range.end.character) for each in edits]
            for _, each in sorted(zip(last, edits, strict=True), key=lambda pair: pair[0], reverse=True):
                self.texts[name] = self.replaced(self.texts[name], each.range, each.new_text)
        return {name: self.texts[name] for name in changes}

    def replaced(self, text: str, area: types.Range, new: str) -> str:
        """A text with something else in a range."""
        return text[: self._offset(text, area.start)] + new + text[self._offset(text, area.end) :]

    def inside(self, name: str, area: types.Range) -> str:
        """What is in a range of a text."""
        text = self.texts[name]
        return text[self._offset(text, area.start) : self._offset(text, area.end)]

    def area(self, name: str, part: str) -> types.Range:
        """The range of the first place of something in a text."""
        start = self.texts[name].index(part)
        return types.Range(self._position(name, start), self._position(name, start + len(part)))

    def _position(self, name: str, offset: int) -> types.Position:
        before = self.texts[name][:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return types.Position(len(before) - 1, ENCODINGS[self.encoding](before[-1]))

    def _offset(self, text: str, position: types.Position) -> int:
        row = column = 0
        for offset, character in enumerate(text):
            if (row, column) >= (position.line, position.character):
                return offset
            if character == "\n" or (character == "\r" and text[offset + 1 : offset + 2] != "\n"):
                if row == position.line:  # beyond its end is the end
                    return offset
                row, column = row + 1, 0
            else:
                column += ENCODINGS[self.encoding](character)
        return len(text)


def uri(path: Path) -> str:
    """The URI of a file."""
    return path.as_uri()
