// package.json and the code name the same settings and commands.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SERVER_OPTIONS } from "../src/options";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const settings = manifest.contributes.configuration.properties;
const code = readFileSync("src/extension.ts", "utf8");

test("every option of the server is a setting", () => {
  const own = ["enable", "path", "interpreter", "trace.server"];
  const expected = [...own, ...SERVER_OPTIONS].map((name) => `torchmigrate.${name}`);
  assert.deepEqual(Object.keys(settings).sort(), expected.sort());
});

test("settings that name programs are not taken from a workspace without trust", () => {
  const programs = ["torchmigrate.path", "torchmigrate.interpreter"];
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, programs);
  for (const name of programs) {
    assert.equal(settings[name].scope, "machine-overridable");
  }
});

test("every command is registered", () => {
  const declared = manifest.contributes.commands.map((each: { command: string }) => each.command);
  const registered = [...code.matchAll(/registerCommand\("(.+?)"/g)].map((found) => found[1]);
  assert.deepEqual(declared, registered);
});

test("settings are described in README.md", () => {
  const page = readFileSync("README.md", "utf8");
  const described = [...page.matchAll(/^\| `(torchmigrate\.[\w.]+)` \|/gm)].map((found) => found[1]);
  assert.deepEqual(described, Object.keys(settings));
});
