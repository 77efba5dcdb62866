// What the extension asks of the real server, and what it makes of its answers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Diagnostic } from "vscode-languageserver-protocol";
import { notStarted } from "../src/messages";
import { documentSelector, serverOptions } from "../src/options";
import { probe } from "../src/process";
import { interpreterOf } from "../src/program";
import { Client } from "./client";
import { directory, here, realProgram, write } from "./support";

const OLD = "import torch\nx = torch.ger(a, b)\ny = torch.ger(c, d)\n";
const ON_POSIX = { skip: process.platform === "win32" && "programs are scripts with a first line" };

function codes(found: Diagnostic[]): unknown[] {
  return found.map((each) => each.code);
}

/** Wait until something that the server sends has come. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await setTimeout(20);
  }
}

test("a file: diagnostics, a quick fix, fix all, shutdown", async (context) => {
  const client = await Client.start(
    context,
    directory(context),
    serverOptions(() => undefined),
  );
  const uri = await client.open("a.py", OLD);
  const found = await client.diagnostics(uri);
  assert.deepEqual(codes(found), ["TM110", "TM110"]);
  const [first] = found;
  assert.ok(first);
  assert.equal(first.source, "torchmigrate");
  assert.deepEqual(first.range.start, { line: 1, character: 4 });
  assert.match(JSON.stringify(await client.hover(uri, first.range.start)), /torch\.outer/);

  const actions = await client.actions(uri, first.range, ["quickfix"]);
  const [preferred] = actions.filter((each) => each.isPreferred);
  assert.ok(preferred);
  assert.equal(preferred.title, "torchmigrate (TM110): Replace with `torch.outer`");
  await client.choose(preferred);
  assert.equal(client.text(uri), OLD.replace("ger(a", "outer(a"));
  await client.changed(uri);
  assert.equal((await client.diagnostics(uri)).length, 1);

  const [all] = await client.actions(uri, first.range, ["source.fixAll.torchmigrate"]);
  assert.ok(all);
  await client.choose(all);
  assert.equal(client.text(uri), OLD.replaceAll("ger", "outer"));
  await client.changed(uri);
  assert.deepEqual(await client.diagnostics(uri), []);

  await client.close(uri);
  assert.deepEqual(client.shown, []);
  assert.equal(await client.end(), 0);
});

test("the command that fixes a file", async (context) => {
  const client = await Client.start(context, directory(context), {});
  const uri = await client.open("a.py", OLD);
  await client.fixAll(uri);
  assert.equal(client.text(uri), OLD.replaceAll("ger", "outer"));
  assert.equal(await client.end(), 0);
});

test("a notebook: diagnostics in its cells, and the command that fixes it", async (context) => {
  const client = await Client.start(context, directory(context), {});
  const cells = await client.openNotebook("a.ipynb", ["import torch\n", "x = torch.ger(a, b)\n"]);
  const [first, second] = cells;
  assert.ok(first && second);
  await until(() => client.published.has(second));
  assert.deepEqual(codes(client.published.get(second) ?? []), ["TM110"]);
  await client.fixAll(client.uri("a.ipynb"));
  assert.deepEqual(
    cells.map((cell) => client.text(cell)),
    ["import torch\n", "x = torch.outer(a, b)\n"],
  );
  assert.equal(await client.end(), 0);
});

test("a file of another language", async (context) => {
  const client = await Client.start(context, directory(context), {});
  const script = await client.open("run.sh", "python -m torch.distributed.launch a.py\n", "shellscript");
  assert.deepEqual(codes(await client.diagnostics(script)), ["TM970"]);
  assert.ok(documentSelector({}).some((each) => each.language === "shellscript"));
  assert.equal(await client.end(), 0);
});

test("settings become options that the server takes", async (context) => {
  const settings: Record<string, unknown> = {
    target: "2.9",
    minimum: "2.0",
    select: ["ALL"],
    extendSelect: ["TM1"],
    ignore: ["TM110"],
    exclude: ["build"],
    extendExclude: ["old"],
    unsafeFixes: true,
    configuration: "torchmigrate.toml",
    embedded: false,
    evidence: false,
    showSyntaxErrors: false,
  };
  const options = serverOptions((name) => settings[name]);
  assert.deepEqual(options, settings);
  const root = directory(context);
  write(join(root, "torchmigrate.toml"), "");
  const client = await Client.start(context, root, options);
  const uri = await client.open("a.py", OLD);
  assert.ok(!codes(await client.diagnostics(uri)).includes("TM110"));
  assert.deepEqual(client.shown, []);
  assert.equal(await client.end(), 0);
});

test("without settings the configuration of the project holds", async (context) => {
  const root = directory(context);
  write(join(root, "pyproject.toml"), '[tool.torchmigrate]\nignore = ["TM110"]\n');
  const client = await Client.start(
    context,
    root,
    serverOptions(() => undefined),
  );
  const uri = await client.open("a.py", OLD);
  assert.deepEqual(await client.diagnostics(uri), []);
  await until(() => client.configurationRequests > 0); // which the extension answers with the same options
  assert.deepEqual(client.shown, []);
  assert.equal(await client.end(), 0);
});

test("the whole section of settings is no answer for the server", async (context) => {
  const section = { enable: true, path: "", interpreter: "", trace: { server: "messages" } };
  const client = await Client.start(context, directory(context), {}, section);
  await until(() => client.shown.length === 3);
  assert.match(client.shown.join("\n"), /torchmigrate\.path: unknown option/);
  assert.equal(await client.end(), 0);
});

test("the real program passes the probe", async (context) => {
  assert.deepEqual(await probe(realProgram(), directory(context)), { kind: "works" });
});

/** A program that runs code with the interpreter of the real one. */
function program(root: string, code: string): string {
  const real = realProgram();
  const python = interpreterOf(real, here()) ?? readFileSync(real, "utf8").split("\n")[0]?.slice(2);
  return write(join(root, "torchmigrate"), `#!${python}\n${code}`, 0o755);
}

test("without the extra, the message has the command that installs it", ON_POSIX, async (context) => {
  const root = directory(context);
  const code = "import sys\nsys.modules['pygls'] = None\nfrom torchmigrate.__main__ import main\nmain()\n";
  const path = program(root, code);
  const probed = await probe(path, root);
  assert.ok(probed.kind === "broken");
  const { text, command } = notStarted(path, "/env/bin/python", probed, "linux");
  assert.equal(command, '/env/bin/python -m pip install "torchmigrate[lsp]"');
  assert.equal(text, `${path} lacks what the language server needs, the extra "lsp". Install it: ${command}`);
});

test("a program that is broken", ON_POSIX, async (context) => {
  const root = directory(context);
  const path = join(root, "torchmigrate");
  for (const [text, mode, reason] of [
    ["#!/bin/sh\nexit 3\n", 0o755, /^it ended with exit code 3$/],
    ["#!/bin/sh\nkill -9 $$\n", 0o755, /^it ended with SIGKILL$/],
    ["#!/bin/sh\necho 'error: no such command' >&2\nexit 2\n", 0o755, /^error: no such command$/],
    ["#!/bin/sh\necho 'Traceback (most recent call last):' >&2\nexit 1\n", 0o755, /^Traceback/],
    ["#!/nowhere/python\n", 0o755, /^the interpreter in its first line does not exist$/],
    ["#!/bin/sh\n", 0o644, /EACCES/],
  ] as const) {
    write(path, text, mode);
    const probed = await probe(path, root);
    assert.ok(probed.kind === "broken", text);
    assert.match(probed.reason, reason);
  }
});

test("a program that warns works", ON_POSIX, async (context) => {
  const root = directory(context);
  const path = write(
    join(root, "torchmigrate"),
    "#!/bin/sh\necho 'x.py:1: DeprecationWarning: old' >&2\nexit 1\n",
    0o755,
  );
  assert.deepEqual(await probe(path, root), { kind: "works" });
});

test("a program that does not end is ended", ON_POSIX, async (context) => {
  const root = directory(context);
  const path = write(join(root, "torchmigrate"), "#!/bin/sh\nexec sleep 600\n", 0o755);
  const probed = await probe(path, root, 200);
  assert.deepEqual(probed, { kind: "broken", reason: "it did not end within 0.2 seconds" });
});
