"""What the server does about each message of the client."""

from __future__ import annotations

from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified
from pygls.workspace import PositionCodec

from torchmigrate.server import actions, edits
from torchmigrate.server.diagnostics import diagnostics_of
from torchmigrate.server.documents import Documents
from torchmigrate.server.hover import hover
from torchmigrate.server.options import are_ours, read_options
from torchmigrate.server.server import NAME, Server
from torchmigrate.server.watching import can_watch, is_relevant, watchers
from torchmigrate.source.text import SourceError


def made_server() -> Server:
    """A server that knows what to do with every message that it gets."""
    server = Server()
    code_actions = types.CodeActionOptions(code_action_kinds=actions.KINDS, resolve_provider=True)

    # ---- beginning and end ---------------------------------------------------------------------------

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        documents = Documents.like(server.workspace)
        server.protocol._workspace = documents  # pygls has no other way to one's own documents
        server.schedule.codec = PositionCodec(documents.position_encoding)
        server.schedule.roots = documents.roots
        text = params.capabilities.text_document
        server.pulls = text is not None and text.diagnostic is not None
        server.resolves = can_resolve(params)
        code_actions.resolve_provider = server.resolves
        server.first_options = params.initialization_options
        server.schedule.options, wrong = read_options(server.first_options)
        for message in wrong:
            server.show(message)

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        server.start(server.schedule.warm_up())
        registrations = watchers(server.client_capabilities)
        if registrations:
            server.start(server.client_register_capability_async(types.RegistrationParams(registrations)))
        if server.can_be_asked and server.schedule.options == read_options(None)[0]:
            server.start(server.ask_options())

    @server.feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.was_shut_down = True

    # ---- documents -----------------------------------------------------------------------------------

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(server.documents.owner(params.text_document.uri))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        # A client that watches files will report it.
        if not can_watch(server.client_capabilities) and is_relevant(params.text_document.uri):
            server.everything_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.schedule.closed(uri)
        if not server.pulls:
            server.publish(uri, [])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(params: types.DidOpenNotebookDocumentParams) -> None:
        server.changed(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        structure = cells.structure if cells else None
        for cell in (structure.did_close if structure else None) or ():
            server.publish(cell.uri, [])
        server.changed(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save_notebook(params: types.DidSaveNotebookDocumentParams) -> None:
        if not can_watch(server.client_capabilities):
            server.everything_changed()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close_notebook(params: types.DidCloseNotebookDocumentParams) -> None:
        server.schedule.closed(params.notebook_document.uri)
        for cell in params.cell_text_documents:
            server.publish(cell.uri, [])

    # ---- what is around them -------------------------------------------------------------------------

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        if not are_ours(params.settings):
            return
        if params.settings:
            server.use_options(params.settings)
        elif server.can_be_asked:
            await server.ask_options()
        else:
            server.use_options(None)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        if any(is_relevant(change.uri) for change in params.changes):
            server.everything_changed()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.everything_changed()

    # ---- requests ------------------------------------------------------------------------------------

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(inter_file_dependencies=False, workspace_diagnostics=False, identifier=NAME),
    )
    async def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        uri = params.text_document.uri
        known = None
        if server.documents.owner(uri) == uri:  # the findings in cells are sent
            known = await server.schedule.latest(uri)
        if known is None:
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        stamp, checked = known
        server.tell(checked)
        result_id = ":".join(map(str, stamp))
        if params.previous_result_id == result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
        items = diagnostics_of(checked)[uri]
        return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=result_id)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, code_actions)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        known = await server.schedule.latest(server.documents.owner(uri))
        if known is None:
            return []
        stamp, checked = known
        only = params.context.only

        def work() -> list[types.CodeAction]:
            found = actions.actions(checked, uri, params.range, only, list(stamp))
            return found if server.resolves else [each for each in map(with_edit, found) if each.edit]

        def with_edit(action: types.CodeAction) -> types.CodeAction:
            order = actions.Order.read(action.data)
            assert order is not None, "it is ours"
            try:
                changes = actions.carried_out(checked, order)
            except SourceError:
                return action
            action.data = None
            action.edit = edits.workspace_edit(changes, versioned=server.knows_versions) if changes else None
            return action

        return await server.schedule.do(checked, work)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(params: types.CodeAction) -> types.CodeAction:
        order = actions.Order.read(params.data)
        if order is None:
            return params
        known = await server.schedule.latest(order.uri)
        if known is None or list(known[0]) != order.stamp:
            raise JsonRpcContentModified("the document has changed")
        checked = known[1]
        try:
            changes = await server.schedule.do(checked, lambda: actions.carried_out(checked, order))
        except SourceError as error:
            server.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"{params.title}: {error.reason}")
            )
            changes = []
        params.edit = edits.workspace_edit(changes, versioned=server.knows_versions)
        return params

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def show(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        known = await server.schedule.latest(server.documents.owner(uri))
        if known is None:
            return None
        checked = known[1]
        return await server.schedule.do(
            checked, lambda: hover(checked, uri, params.position, markdown=server.shows_markdown)
        )

    @server.command(actions.COMMAND)
    async def apply_all(*arguments: object) -> None:  # pygls asks for a class, which `Any` is not on 3.10
        for uri in filter(None, map(_uri, arguments)):
            owner = server.documents.owner(uri)
            known = await server.schedule.latest(owner)
            if known is None or known[1].source is None:
                continue
            checked = known[1]
            order = actions.Order(actions.FIX_ALL, owner, 0, list(known[0]))
            changes = await server.schedule.do(checked, partial(actions.carried_out, checked, order))
            if changes:
                await server.apply(checked, changes, "torchmigrate: Apply all fixes")

    return server


def can_resolve(params: types.InitializeParams) -> bool:
    """Whether the client asks for the edits of an action when they are wanted.

    lsp-mode, which calls itself "emacs", asks every server that can do that about the actions of all, and
    cannot use several answers (`lsp--merge-results` in its release 10.0.0): with another server running, it
    would carry out neither the actions of that one nor ours.
    """
    if params.client_info is not None and params.client_info.name == "emacs":
        return False
    text = params.capabilities.text_document
    action = text.code_action if text else None
    support = action.resolve_support if action else None
    return support is not None and "edit" in support.properties


def _uri(argument: Any) -> str | None:
    """The URI in an argument of a command: itself, or an object that has it."""
    if isinstance(argument, dict):
        argument = argument.get("uri")
    else:
        argument = getattr(argument, "uri", argument)
    return argument if isinstance(argument, str) else None
