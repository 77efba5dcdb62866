import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { expand, findProgram, interpreterOf } from "../src/program";
import { computer, directory, here, write } from "./support";

const ON_PATH = "/usr/bin/torchmigrate";
const IN_ENVIRONMENT = "/project/.venv/bin/torchmigrate";
const SELECTED = "/project/.venv/bin/python";
const PATH = { PATH: "/usr/local/bin:/usr/bin" };
const WINDOWS = {
  platform: "win32",
  home: "C:\\Users\\me",
  environment: { Path: "C:\\bin;D:\\tools" },
} as const;

test("the program on the PATH", () => {
  const found = findProgram(computer([ON_PATH], { environment: PATH }));
  assert.deepEqual(found, { kind: "found", program: ON_PATH, source: "PATH" });
});

test("the selected environment before the PATH", () => {
  const where = computer([ON_PATH, IN_ENVIRONMENT], { environment: PATH, selected: SELECTED });
  assert.deepEqual(findProgram(where), { kind: "found", program: IN_ENVIRONMENT, source: "selected" });
});

test("the PATH where the selected environment does not have it", () => {
  const where = computer([ON_PATH], { environment: PATH, selected: SELECTED });
  assert.deepEqual(findProgram(where), { kind: "found", program: ON_PATH, source: "PATH" });
});

test("the settings before everything else", () => {
  const files = [ON_PATH, IN_ENVIRONMENT, "/other/bin/torchmigrate", "/usr/bin/tm"];
  const where = computer(files, { environment: PATH, selected: SELECTED, interpreter: "/other/bin/python" });
  assert.deepEqual(findProgram(where), {
    kind: "found",
    program: "/other/bin/torchmigrate",
    source: "interpreter",
  });
  assert.deepEqual(findProgram({ ...where, path: "/usr/bin/tm" }), {
    kind: "found",
    program: "/usr/bin/tm",
    source: "path",
  });
});

test("a setting that leads nowhere is not replaced by another program", () => {
  const where = computer([ON_PATH, IN_ENVIRONMENT], { environment: PATH, selected: SELECTED });
  assert.equal(findProgram({ ...where, path: "/usr/bin/tm" }).kind, "missing");
  assert.equal(findProgram({ ...where, interpreter: "/other/bin/python" }).kind, "missing");
});

test("a path without a directory is on the PATH, a relative one in the first folder", () => {
  const where = computer([ON_PATH, IN_ENVIRONMENT], { environment: PATH, folders: ["/project", "/else"] });
  for (const [path, program] of [
    ["torchmigrate", ON_PATH],
    [".venv/bin/torchmigrate", IN_ENVIRONMENT],
    ["./.venv/bin/torchmigrate", IN_ENVIRONMENT],
    ["${workspaceFolder}/.venv/bin/torchmigrate", IN_ENVIRONMENT],
  ] as const) {
    assert.deepEqual(findProgram({ ...where, path }), { kind: "found", program, source: "path" }, path);
  }
  const relative = { ...where, interpreter: ".venv/bin/python" };
  assert.deepEqual(findProgram(relative), { kind: "found", program: IN_ENVIRONMENT, source: "interpreter" });
});

test("variables", () => {
  const where = computer([], { folders: ["/project"], environment: { ENVS: "/envs", ODD: "$& ${userHome}" } });
  for (const [text, expected] of [
    ["~/bin/tm", "/home/me/bin/tm"],
    ["~", "/home/me"],
    ["a~/b", "a~/b"],
    ["${userHome}/tm", "/home/me/tm"],
    ["${workspaceFolder}/tm", "/project/tm"],
    ["${env:ENVS}/tm", "/envs/tm"],
    ["${env:ODD}", "$& ${userHome}"],
    ["${env:NONE}/tm", "${env:NONE}/tm"],
    ["${env:userHome}/tm", "${env:userHome}/tm"],
    ["${unknown}/tm", "${unknown}/tm"],
  ] as const) {
    assert.equal(expand(text, where), expected, text);
  }
  assert.equal(expand("${workspaceFolder}/tm", computer([])), "${workspaceFolder}/tm");
});

test("relative directories on the PATH are not searched", () => {
  const environment = { PATH: ":.:bin:node_modules/.bin" };
  const found = findProgram(
    computer(["torchmigrate", "./torchmigrate", "bin/torchmigrate"], { environment }),
  );
  assert.equal(found.kind, "missing");
});

test("a PATH that is empty or not set", () => {
  assert.equal(findProgram(computer([ON_PATH])).kind, "missing");
  assert.equal(findProgram(computer([ON_PATH], { environment: { PATH: "" } })).kind, "missing");
});

test("on Windows", () => {
  const onPath = "D:\\tools\\torchmigrate.exe";
  const virtual = "C:\\project\\.venv\\Scripts\\torchmigrate.exe";
  const conda = "C:\\conda\\Scripts\\torchmigrate.exe";
  const where = computer([onPath, virtual, conda], WINDOWS);
  for (const [given, program] of [
    [{}, onPath],
    [{ path: "torchmigrate" }, onPath],
    [{ path: "torchmigrate.EXE" }, undefined],
    [{ path: "~\\torchmigrate.exe" }, undefined],
    [{ selected: "C:\\project\\.venv\\Scripts\\python.exe" }, virtual],
    [{ selected: "C:\\conda\\python.exe" }, conda],
    [{ interpreter: ".venv\\Scripts\\python.exe", folders: ["C:\\project"] }, virtual],
  ] as const) {
    const found = findProgram({ ...where, ...given } as typeof where);
    assert.equal(found.kind === "found" ? found.program : undefined, program, JSON.stringify(given));
  }
});

test("without trust, no program of the workspace", () => {
  const files = [ON_PATH, IN_ENVIRONMENT, "/projector/torchmigrate"];
  const where = computer(files, {
    trusted: false,
    folders: ["/project"],
    selected: SELECTED,
    environment: PATH,
  });
  assert.deepEqual(findProgram(where), { kind: "found", program: ON_PATH, source: "PATH" });
  const inside = { ...where, environment: { PATH: "/project/.venv/bin" } };
  assert.equal(findProgram(inside).kind, "missing");
  assert.equal(findProgram({ ...inside, trusted: true }).kind, "found");
  assert.deepEqual(findProgram({ ...where, path: "${workspaceFolder}/.venv/bin/torchmigrate" }), {
    kind: "untrusted",
    program: IN_ENVIRONMENT,
  });
  assert.equal(findProgram({ ...where, interpreter: ".venv/bin/python" }).kind, "untrusted");
  const beside = { ...where, path: "/projector/torchmigrate" };
  assert.equal(findProgram(beside).kind, "found", "the name of the folder only begins its path");
});

test("without trust, no link into the workspace", { skip: process.platform === "win32" }, (context) => {
  const root = directory(context);
  const program = write(join(root, "project", "tm"), "", 0o755);
  const link = join(root, "link");
  symlinkSync(program, link);
  const where = here({ trusted: false, folders: [join(root, "project")], path: link });
  assert.equal(findProgram(where).kind, "untrusted");
  assert.equal(findProgram({ ...where, trusted: true }).kind, "found");
});

test("the interpreter of a program that is linked to", { skip: process.platform === "win32" }, (context) => {
  const root = directory(context);
  const python = write(join(root, "env", "bin", "python"), "", 0o755);
  const program = write(join(root, "env", "bin", "torchmigrate"), "", 0o755);
  symlinkSync(program, join(root, "torchmigrate"));
  assert.equal(interpreterOf(join(root, "torchmigrate"), here()), python);
  assert.equal(interpreterOf("/nowhere/torchmigrate", here()), undefined);
});
