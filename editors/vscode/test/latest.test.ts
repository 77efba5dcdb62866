import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Latest } from "../src/latest";

test("one job at a time, and one more for all that was requested during it", async () => {
  let running = 0;
  let runs = 0;
  const latest = new Latest(async () => {
    assert.equal(++running, 1);
    await setImmediate();
    running--;
    runs++;
  });
  await Promise.all([latest.request(), latest.request(), latest.request()]);
  assert.equal(runs, 1, "requests before the job began");
  const first = latest.request();
  await setImmediate();
  await Promise.all([first, latest.request(), latest.request()]);
  assert.equal(runs, 3);
});

test("a request at the very end is not lost", async () => {
  for (let steps = 0; steps < 12; steps++) {
    let runs = 0;
    const latest = new Latest(async () => {
      runs++;
    });
    const first = latest.request();
    for (let step = 0; step < steps; step++) {
      await undefined;
    }
    const before = runs;
    await latest.request();
    assert.ok(runs > before, `after ${steps} steps`);
    await first;
  }
});

test("a failure that a later run has made good is none", async () => {
  let runs = 0;
  const latest: Latest = new Latest(async () => {
    if (++runs === 1) {
      void latest.request();
      throw new Error("it failed");
    }
  });
  await latest.request();
  assert.equal(runs, 2);
});

test("after a failure it goes on", async () => {
  let fails = true;
  let runs = 0;
  const latest = new Latest(async () => {
    runs++;
    if (fails) {
      throw new Error("it failed");
    }
  });
  await assert.rejects(latest.request(), /it failed/);
  fails = false;
  await latest.request();
  assert.equal(runs, 2);
});
