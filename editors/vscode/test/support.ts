// What several tests use.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { findProgram, isFile, type Where } from "../src/program";

/** A computer with nothing but the given files. */
export function computer(files: string[], given: Partial<Where> = {}): Where {
  const known = new Set(files);
  return {
    path: "",
    interpreter: "",
    selected: undefined,
    folders: [],
    trusted: true,
    home: "/home/me",
    environment: {},
    platform: "linux",
    isFile: (path) => known.has(path),
    ...given,
  };
}

/** This computer. */
export function here(given: Partial<Where> = {}): Where {
  const { env, platform } = process;
  return computer([], { home: homedir(), environment: env, platform, isFile, ...given });
}

/** The `torchmigrate` that is tested: that of the variable TORCHMIGRATE, or on the PATH. */
export function realProgram(): string {
  const found = findProgram(here({ path: process.env.TORCHMIGRATE ?? "" }));
  assert.ok(
    found.kind === "found",
    "install torchmigrate[lsp], or set TORCHMIGRATE to the path of the program",
  );
  return found.program;
}

/** A directory for one test. */
export function directory(test: TestContext): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), "torchmigrate-")));
  test.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Write a file, and its directory. */
export function write(path: string, text: string, mode = 0o644): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}
