// Starts the server. Nothing here needs VS Code.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { ARGUMENTS } from "./program";

export type Probed = { kind: "works" } | { kind: "broken"; reason: string };

const CLIENT_IS_GONE = 1; // the exit code of the server when its input ends without a shutdown
const FAILURE = /^(Traceback|error:|\w*Error\b)/m; // warnings on stderr are none
const KEPT = 4000; // characters of what a program writes before it fails
const PATIENCE = 60_000; // milliseconds; a first start on a slow disk compiles many modules

/**
 * Whether a program can be a server: start it with an empty input.
 *
 * The language client would show messages of its own about a server that ends before it answers.
 */
export function probe(program: string, cwd: string, patience = PATIENCE): Promise<Probed> {
  return new Promise((resolve) => {
    const child = startServer(program, cwd);
    let written = "";
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      resolve({ kind: "broken", reason: `it did not end within ${patience / 1000} seconds` });
    }, patience);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      written = (written + text).slice(-KEPT);
    });
    child.stdout.resume();
    child.stdin.on("error", () => {}); // it may end before it reads
    child.stdin.end();
    child.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      const reason =
        error.code === "ENOENT" ? "the interpreter in its first line does not exist" : error.message;
      resolve({ kind: "broken", reason });
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === CLIENT_IS_GONE && !FAILURE.test(written)) {
        resolve({ kind: "works" });
      } else {
        const reason = written.trim() || `it ended with ${signal ?? `exit code ${code}`}`;
        resolve({ kind: "broken", reason });
      }
    });
  });
}

/** Start the server. It speaks on its stdin and stdout. */
export function startServer(program: string, cwd: string): ChildProcessWithoutNullStreams {
  return spawn(program, ARGUMENTS, { cwd, windowsHide: true });
}
