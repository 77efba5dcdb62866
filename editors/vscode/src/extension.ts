// The extension: all code that needs VS Code. The other modules are tested without it.
import { homedir } from "node:os";
import { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient } from "vscode-languageclient/node";
import { Latest } from "./latest";
import { type Message, notFound, notStarted } from "./messages";
import { documentSelector, explicit, type ServerOptions, serverOptions } from "./options";
import { probe, startServer } from "./process";
import { findProgram, interpreterOf, isFile, type Where } from "./program";

const SECTION = "torchmigrate";
const FIX_ALL = "torchmigrate.applyAllFixes"; // a command of the server

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("torchmigrate", { log: true });
  const made = new Server(log);
  server = made;
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("torchmigrate.fixAll", () => made.fixAll()),
    vscode.commands.registerCommand("torchmigrate.restart", () => made.restart()),
    vscode.commands.registerCommand("torchmigrate.showLogs", () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) {
        made.update();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => made.update()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => made.update()),
  );
  await made.watchInterpreter(context);
  made.update();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** The language server of this window. */
class Server {
  private client: LanguageClient | undefined;
  private python: PythonExtension | undefined;
  private current = ""; // how the client was started
  private said = new Set<string>();
  private readonly updates = new Latest(() => this.apply());

  constructor(private readonly log: vscode.LogOutputChannel) {}

  /** Start, restart or stop the server if the settings, or what they lead to, have changed. */
  update(): void {
    this.updates.request().catch((error) => this.log.error(error));
  }

  restart(): void {
    this.current = "";
    this.said.clear();
    this.update();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.current = "";
    await client?.dispose().catch((error) => this.log.warn(error)); // of a server that has ended
  }

  async watchInterpreter(context: vscode.ExtensionContext): Promise<void> {
    if (vscode.extensions.getExtension("ms-python.python") === undefined) {
      return;
    }
    try {
      this.python = await PythonExtension.api();
      context.subscriptions.push(
        this.python.environments.onDidChangeActiveEnvironmentPath(() => this.update()),
      );
    } catch (error) {
      this.log.warn("The Python extension could not be used.", error);
    }
  }

  async fixAll(): Promise<void> {
    const notebook = vscode.window.activeNotebookEditor?.notebook;
    const uri = notebook?.uri ?? vscode.window.activeTextEditor?.document.uri;
    if (uri === undefined) {
      return;
    }
    if (!this.client?.isRunning()) {
      void vscode.window.showWarningMessage("torchmigrate: the server does not run.");
      return;
    }
    const document = this.client.code2ProtocolConverter.asUri(uri);
    await this.client.sendRequest(ExecuteCommandRequest.type, { command: FIX_ALL, arguments: [document] });
  }

  private async apply(): Promise<void> {
    const settings = vscode.workspace.getConfiguration(SECTION);
    if (!settings.get("enable", true)) {
      await this.stop();
      return;
    }
    const where = await this.where(settings);
    const options = serverOptions((name) => explicit(settings.inspect(name)));
    const found = findProgram(where);
    const next = JSON.stringify([found, options]);
    if (next === this.current && this.client !== undefined) {
      return;
    }
    await this.stop();
    if (found.kind !== "found") {
      this.show(notFound(found, where.platform));
      return;
    }
    this.log.info(`Starting ${found.program} (found by: ${found.source})`);
    const cwd = where.home; // the server works in the folders of the workspace, wherever it starts
    const probed = await probe(found.program, cwd);
    if (probed.kind === "broken") {
      this.show(notStarted(found.program, interpreterOf(found.program, where), probed, where.platform));
      return;
    }
    this.client = this.makeClient(found.program, cwd, options);
    await this.client.start();
    this.current = next;
  }

  private makeClient(program: string, cwd: string, options: ServerOptions): LanguageClient {
    return new LanguageClient(SECTION, "torchmigrate", async () => startServer(program, cwd), {
      documentSelector: documentSelector(options),
      initializationOptions: options,
      outputChannel: this.log,
      middleware: {
        workspace: {
          // The section also has settings that are none of the server.
          configuration: (params) => params.items.map((item) => (item.section === SECTION ? options : null)),
          didChangeConfiguration: async () => {}, // the server is started anew
        },
      },
    });
  }

  private async where(settings: vscode.WorkspaceConfiguration): Promise<Where> {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((each) => each.uri.scheme === "file");
    return {
      path: settings.get("path", "").trim(),
      interpreter: settings.get("interpreter", "").trim(),
      selected: await this.selectedInterpreter(folders[0]?.uri),
      folders: folders.map((each) => each.uri.fsPath),
      trusted: vscode.workspace.isTrusted,
      home: homedir(),
      environment: process.env,
      platform: process.platform,
      isFile,
    };
  }

  private async selectedInterpreter(folder: vscode.Uri | undefined): Promise<string | undefined> {
    const environments = this.python?.environments;
    if (environments === undefined) {
      return undefined;
    }
    const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
    return environment?.executable.uri?.fsPath;
  }

  /** Show a message once, with what can be done about it. */
  private show(message: Message): void {
    this.log.error(message.text);
    if (this.said.has(message.text)) {
      return;
    }
    this.said.add(message.text);
    const copy = "Copy Command";
    const open = "Open Settings";
    const buttons = message.command === undefined ? [open] : [copy, open];
    void vscode.window.showErrorMessage(message.text, ...buttons).then((button) => {
      if (button === copy && message.command !== undefined) {
        void vscode.env.clipboard.writeText(message.command);
      } else if (button === open) {
        void vscode.commands.executeCommand(
          "workbench.action.openSettings",
          "@ext:torchmigrate.torchmigrate",
        );
      }
    });
  }
}
