import assert from "node:assert/strict";
import { test } from "node:test";

import { fnv1a64, MOST_SPREAD_MS, spreadMs } from "../spread.js";

test("the hash gives the test vectors of its authors", () => {
  const vectors = { "": "cbf29ce484222325", a: "af63dc4c8601ec8c", foobar: "85944171f73967e8" };
  for (const [text, hash] of Object.entries(vectors)) {
    assert.equal(fnv1a64(text).toString(16), hash);
  }
});

test("the spread is the hash within 30 s, the same each time", () => {
  assert.equal(spreadMs("foobar"), Number(0x85944171f73967e8n % 30_001n));
  assert.equal(spreadMs("foobar"), spreadMs("foobar"));
});

test("many messages spread evenly over the 30 s", () => {
  const seconds = new Array<number>(31).fill(0);
  for (let nth = 0; nth < 3_000; nth += 1) {
    const spread = spreadMs(`campaign-${nth}@example.com`);
    assert.ok(spread >= 0 && spread <= MOST_SPREAD_MS);
    const second = Math.floor(spread / 1_000);
    seconds[second] = (seconds[second] ?? 0) + 1;
  }
  assert.ok(
    seconds.slice(0, 30).every((count) => count >= 60 && count <= 140),
    String(seconds),
  );
});
