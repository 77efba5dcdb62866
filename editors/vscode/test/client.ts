// A client of the real server that has the capabilities of VS Code, and none of its windows.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import * as lsp from "vscode-languageserver-protocol/node";
import { TextDocument } from "vscode-languageserver-textdocument";
import type { ServerOptions } from "../src/options";
import { startServer } from "../src/process";
import { realProgram } from "./support";

const CAPABILITIES: lsp.ClientCapabilities = {
  workspace: {
    applyEdit: true,
    configuration: true,
    workspaceEdit: { documentChanges: true },
    didChangeConfiguration: { dynamicRegistration: true },
    didChangeWatchedFiles: { dynamicRegistration: true },
    workspaceFolders: true,
    diagnostics: { refreshSupport: true },
  },
  textDocument: {
    diagnostic: { dynamicRegistration: true },
    codeAction: {
      dynamicRegistration: true,
      dataSupport: true,
      isPreferredSupport: true,
      resolveSupport: { properties: ["edit", "command"] },
      codeActionLiteralSupport: { codeActionKind: { valueSet: ["", "quickfix", "source", "source.fixAll"] } },
    },
    hover: { contentFormat: ["markdown", "plaintext"] },
    publishDiagnostics: { versionSupport: true },
  },
  notebookDocument: { synchronization: { dynamicRegistration: true, executionSummarySupport: true } },
};

export class Client {
  readonly documents = new Map<string, TextDocument>();
  readonly published = new Map<string, lsp.Diagnostic[]>();
  readonly shown: string[] = [];
  configurationRequests = 0;
  private readonly connection: lsp.ProtocolConnection;
  private readonly ended: Promise<unknown[]>;

  private constructor(
    test: TestContext,
    private readonly root: string,
    /** The answer to a request of the section `torchmigrate`. */
    private readonly configuration: unknown,
  ) {
    const child = startServer(realProgram(), root);
    test.after(() => child.kill());
    this.ended = once(child, "close");
    this.connection = lsp.createProtocolConnection(child.stdout, child.stdin);
    this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, ({ uri, diagnostics }) => {
      this.published.set(uri, diagnostics);
    });
    this.connection.onNotification(lsp.ShowMessageNotification.type, ({ message }) => {
      this.shown.push(message);
    });
    this.connection.onNotification(lsp.LogMessageNotification.type, () => {});
    this.connection.onRequest(lsp.RegistrationRequest.type, () => {});
    this.connection.onRequest(lsp.DiagnosticRefreshRequest.type, () => {});
    this.connection.onRequest(lsp.ConfigurationRequest.type, ({ items }) => {
      this.configurationRequests++;
      return items.map(() => this.configuration);
    });
    this.connection.onRequest(lsp.ApplyWorkspaceEditRequest.type, ({ edit }) => {
      this.apply(edit);
      return { applied: true };
    });
    this.connection.listen();
  }

  static async start(
    test: TestContext,
    root: string,
    options: ServerOptions,
    configuration: unknown = options,
  ): Promise<Client> {
    const client = new Client(test, root, configuration);
    const uri = pathToFileURL(root).href;
    const { capabilities } = await client.connection.sendRequest(lsp.InitializeRequest.type, {
      processId: process.pid,
      clientInfo: { name: "Visual Studio Code" },
      rootUri: uri,
      capabilities: CAPABILITIES,
      initializationOptions: options,
      workspaceFolders: [{ uri, name: "project" }],
    });
    assert.ok(capabilities.executeCommandProvider?.commands.includes("torchmigrate.applyAllFixes"));
    await client.connection.sendNotification(lsp.InitializedNotification.type, {});
    return client;
  }

  uri(name: string): string {
    return pathToFileURL(`${this.root}/${name}`).href;
  }

  async open(name: string, text: string, languageId = "python"): Promise<string> {
    const uri = this.uri(name);
    this.documents.set(uri, TextDocument.create(uri, languageId, 1, text));
    const textDocument = { uri, languageId, version: 1, text };
    await this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument });
    return uri;
  }

  /** Send the text of a document after edits were applied to it. */
  async changed(uri: string): Promise<void> {
    const { version } = this.document(uri);
    await this.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version },
      contentChanges: [{ text: this.text(uri) }],
    });
  }

  async close(uri: string): Promise<void> {
    this.documents.delete(uri);
    await this.connection.sendNotification(lsp.DidCloseTextDocumentNotification.type, {
      textDocument: { uri },
    });
  }

  /** Open a notebook with cells of Python. Gives the URIs of its cells. */
  async openNotebook(name: string, texts: string[]): Promise<string[]> {
    const uri = this.uri(name);
    const cells = texts.map((text, number) => {
      const cell = `vscode-notebook-cell:${new URL(uri).pathname}#${number}`;
      this.documents.set(cell, TextDocument.create(cell, "python", 1, text));
      return { uri: cell, languageId: "python", version: 1, text };
    });
    await this.connection.sendNotification(lsp.DidOpenNotebookDocumentNotification.method, {
      notebookDocument: {
        uri,
        notebookType: "jupyter-notebook",
        version: 1,
        cells: cells.map((cell) => ({ kind: lsp.NotebookCellKind.Code, document: cell.uri })),
      },
      cellTextDocuments: cells,
    });
    return cells.map((cell) => cell.uri);
  }

  async diagnostics(uri: string): Promise<lsp.Diagnostic[]> {
    const report = await this.connection.sendRequest(lsp.DocumentDiagnosticRequest.type, {
      textDocument: { uri },
    });
    assert.equal(report.kind, "full");
    return report.kind === "full" ? report.items : [];
  }

  async actions(uri: string, range: lsp.Range, only?: string[]): Promise<lsp.CodeAction[]> {
    const found = await this.connection.sendRequest(lsp.CodeActionRequest.type, {
      textDocument: { uri },
      range,
      context: { diagnostics: [], ...(only && { only }) },
    });
    return (found ?? []).filter((each): each is lsp.CodeAction => !lsp.Command.is(each));
  }

  /** Do what VS Code does when a user chooses an action. */
  async choose(action: lsp.CodeAction): Promise<void> {
    const { edit } = await this.connection.sendRequest(lsp.CodeActionResolveRequest.type, action);
    assert.ok(edit, action.title);
    this.apply(edit);
  }

  async hover(uri: string, position: lsp.Position): Promise<lsp.Hover | null> {
    return this.connection.sendRequest(lsp.HoverRequest.type, { textDocument: { uri }, position });
  }

  /** The command of the extension. */
  async fixAll(uri: string): Promise<void> {
    await this.connection.sendRequest(lsp.ExecuteCommandRequest.type, {
      command: "torchmigrate.applyAllFixes",
      arguments: [uri],
    });
  }

  text(uri: string): string {
    return this.document(uri).getText();
  }

  /** Shut the server down. Gives its exit code. */
  async end(): Promise<unknown> {
    await this.connection.sendRequest(lsp.ShutdownRequest.type);
    await this.connection.sendNotification(lsp.ExitNotification.type);
    const [code] = await this.ended;
    this.connection.dispose();
    return code;
  }

  private document(uri: string): TextDocument {
    const found = this.documents.get(uri);
    assert.ok(found, uri);
    return found;
  }

  private apply(edit: lsp.WorkspaceEdit): void {
    assert.ok(edit.documentChanges, "edits are for a version of a document");
    for (const change of edit.documentChanges) {
      assert.ok(lsp.TextDocumentEdit.is(change));
      const { uri, version } = change.textDocument;
      const document = this.document(uri);
      assert.equal(version, document.version);
      const text = TextDocument.applyEdits(document, change.edits as lsp.TextEdit[]);
      TextDocument.update(document, [{ text }], document.version + 1);
    }
  }
}
