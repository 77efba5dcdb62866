import assert from "node:assert/strict";
import { test } from "node:test";
import { documentSelector, explicit, serverOptions } from "../src/options";

function options(settings: Record<string, unknown>) {
  return serverOptions((name) => settings[name]);
}

test("what is not set is left to the project", () => {
  assert.deepEqual(options({}), {});
  assert.deepEqual(options({ target: "", minimum: null, select: [], configuration: undefined }), {});
});

test("what is set is passed on, also if it is the default", () => {
  const settings = { target: "2.9", ignore: ["TM110"], unsafeFixes: false, evidence: true };
  assert.deepEqual(options(settings), settings);
});

test("settings of the extension itself are no options", () => {
  assert.deepEqual(options({ path: "/usr/bin/tm", interpreter: "python", enable: true, trace: {} }), {});
});

test("the innermost value that is set", () => {
  assert.equal(explicit(undefined), undefined);
  assert.equal(explicit({}), undefined);
  assert.equal(explicit({ globalValue: "1", workspaceValue: "2", workspaceFolderValue: "3" }), "3");
  assert.equal(explicit({ globalValue: true, workspaceValue: false }), false);
  assert.equal(explicit({ globalValue: "1" }), "1");
});

test("Markdown only if its code is checked", () => {
  const languages = (given: object) => new Set(documentSelector(given).map((each) => each.language));
  assert.ok(!languages({}).has("markdown"));
  assert.ok(!languages({ embedded: false }).has("markdown"));
  assert.ok(languages({ embedded: true }).has("markdown"));
});

test("only documents that the server can read", () => {
  const selector = documentSelector({});
  assert.deepEqual(
    new Set(selector.map((each) => each.scheme)),
    new Set(["file", "untitled", "vscode-notebook-cell"]),
  );
  assert.ok(selector.some(({ scheme, language }) => scheme === "file" && language === "python"));
});
