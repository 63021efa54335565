import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Redis } from "ioredis";

import { type LimiterOptions, mailboxKey, MailRateLimiter } from "../limiter.js";
import { eventually, memoryLog, nobodysUrl, ownMailbox, Proxy, redisUrl, statusOf } from "./support.js";

const redis = new Redis(redisUrl);
const opened: { close(): void }[] = [];
after(() => {
  redis.disconnect();
  opened.forEach((limiter) => limiter.close());
});

function limiterWith(options: Partial<LimiterOptions> = {}) {
  const { log, entries } = memoryLog();
  const limiter = new MailRateLimiter({ redisUrl, log, deadlineMs: 5_000, ...options });
  opened.push(limiter);
  return { limiter, entries };
}

async function allowed(limiter: MailRateLimiter, mailbox: string) {
  const decision = await limiter.reserve(mailbox, 1);
  assert.equal(decision.kind, "allowed", JSON.stringify(decision));
  assert.ok(decision.kind === "allowed");
  return decision;
}

test("addresses that differ in ASCII case and margin are one mailbox, and no other byte is touched", () => {
  assert.equal(mailboxKey("\tA.B@Example.COM "), "mailrl:a.b@example.com");
  assert.equal(mailboxKey("ÄRGER@MÜNCHEN.de"), "mailrl:Ärger@mÜnchen.de");
  assert.equal(mailboxKey("\u{a0}a@b\u{a0}"), "mailrl:\u{a0}a@b\u{a0}");
});

test("a reservation counts one message and its recipients", async () => {
  const { limiter } = limiterWith({ limits: { perMinute: 25, recipientsPerDay: 9_000 } });
  const decision = await limiter.reserve(ownMailbox(), 3);
  assert.ok(decision.kind === "allowed", JSON.stringify(decision));
  assert.deepEqual([decision.minuteLeft, decision.dayLeft], [24, 8_997]);
});

test("what exceeds the minute or the day is denied, with its reason and when to come again", async () => {
  const { limiter } = limiterWith({ limits: { perMinute: 1, recipientsPerDay: 5 } });
  const mailbox = ownMailbox();
  await allowed(limiter, mailbox);
  const minute = await limiter.reserve(mailbox, 1);
  assert.ok(minute.kind === "denied" && minute.reason === "minute", JSON.stringify(minute));
  assert.ok(minute.retryAfterMs > 50_000 && minute.retryAfterMs <= 61_000, String(minute.retryAfterMs));
  const day = await limiter.reserve(mailbox, 5);
  assert.ok(day.kind === "denied" && day.reason === "day", JSON.stringify(day));
});

test("only so many sends are under way at once, until one is committed", async () => {
  const { limiter } = limiterWith({ concurrent: 1 });
  const mailbox = ownMailbox();
  const { reservation } = await allowed(limiter, mailbox);
  const denied = await limiter.reserve(mailbox, 1);
  assert.ok(denied.kind === "denied" && denied.reason === "concurrent", JSON.stringify(denied));
  await limiter.commit(reservation);
  assert.equal((await allowed(limiter, mailbox)).minuteLeft, 23);
});

test("a released reservation gives its budget back", async () => {
  const { limiter } = limiterWith({ limits: { perMinute: 1 } });
  const mailbox = ownMailbox();
  const { reservation } = await allowed(limiter, mailbox);
  await limiter.release(reservation);
  await allowed(limiter, mailbox);
});

test("a paused mailbox is paused for every process", async () => {
  const mailbox = ownMailbox();
  await limiterWith().limiter.pause(` ${mailbox.toUpperCase()}`, 30_000);
  const decision = await limiterWith().limiter.reserve(mailbox, 1);
  assert.ok(decision.kind === "denied" && decision.reason === "paused", JSON.stringify(decision));
  assert.ok(decision.retryAfterMs > 20_000, String(decision.retryAfterMs));
});

test("more recipients than a whole day is no matter of time", async () => {
  const { limiter } = limiterWith({ limits: { recipientsPerDay: 5 } });
  const decision = await limiter.reserve(ownMailbox(), 6);
  assert.ok(decision.kind === "tooLarge" && decision.error.startsWith("TOOLARGE "), JSON.stringify(decision));
});

test("a Redis that is gone lets the mail out, and says so once a second", async () => {
  const { limiter, entries } = limiterWith({ redisUrl: await nobodysUrl("redis"), deadlineMs: 100 });
  for (let mail = 0; mail < 3; mail += 1) {
    assert.equal((await limiter.reserve("news@example.com", 1)).kind, "failOpen");
  }
  assert.deepEqual(
    entries.map(({ event, key }) => [event, key]),
    [["mail.rateLimit.redisError", "mailrl:news@example.com"]],
  );
});

test("a value that is not the module's lets the mail out, with what Redis says", async () => {
  const { limiter, entries } = limiterWith();
  const mailbox = ownMailbox();
  await redis.set(mailboxKey(mailbox), "something else", "EX", 60);
  const decision = await limiter.reserve(mailbox, 1);
  assert.ok(decision.kind === "failOpen" && decision.cause === "refused", JSON.stringify(decision));
  assert.match(String(entries[0]?.error), /^BADSTATE /);
});

test("a Redis that holds its answer back lets the mail out, and what it counts late is committed", async () => {
  const proxy = await Proxy.start();
  const { limiter } = limiterWith({ redisUrl: proxy.url, deadlineMs: 300 });
  const mailbox = ownMailbox();
  await limiter.commit((await allowed(limiter, mailbox)).reservation);
  proxy.hold();
  const decision = await limiter.reserve(mailbox, 1);
  assert.ok(decision.kind === "failOpen" && decision.cause === "timeout", JSON.stringify(decision));
  await eventually("the mail is counted", async () => (await statusOf(redis, mailbox)).open === 1);
  proxy.letGo();
  await eventually("its reservation is committed", async () => (await statusOf(redis, mailbox)).open === 0);
  assert.equal((await allowed(limiter, mailbox)).minuteLeft, 22);
  proxy.stop();
});
