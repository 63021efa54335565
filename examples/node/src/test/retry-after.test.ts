import assert from "node:assert/strict";
import { test } from "node:test";

import { retryAfterMs } from "../retry-after.js";

const NOON = Date.parse("Wed, 21 Oct 2015 12:00:00 GMT");
const wait = (header: string | null) => retryAfterMs(header, NOON) / 1_000;

test("seconds, fractions and dates are taken as they are", () => {
  assert.equal(wait("120"), 120);
  assert.equal(wait("2.5"), 2.5);
  assert.equal(wait("Wed, 21 Oct 2015 12:02:00 GMT"), 120);
});

test("of several the longest counts", () => {
  assert.equal(wait("5, 30"), 30);
  assert.equal(wait("3, Wed, 21 Oct 2015 12:00:10 GMT, 4"), 10);
  assert.equal(wait("3, soon"), 3);
});

test("nothing waits less than a second or more than a day", () => {
  for (const header of ["0", "0.2", "Wed, 21 Oct 2015 11:00:00 GMT"]) {
    assert.equal(wait(header), 1, header);
  }
  assert.equal(wait("99999999999999999999"), 86_400);
});

test("what cannot be understood waits a minute", () => {
  for (const header of [null, "", ",", "soon", "-1", "0x10", "120s", "Wed, 99 Oct 2015 12:00:00 GMT"]) {
    assert.equal(wait(header), 60, String(header));
  }
});
