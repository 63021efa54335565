import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { type Job, Worker } from "bullmq";
import { Redis } from "ioredis";

import { Claims } from "../claims.js";
import { Delivery } from "../delivery.js";
import { GraphMailer } from "../graph.js";
import type { MailJob } from "../job.js";
import { type LimiterOptions, MailRateLimiter, mailboxKey } from "../limiter.js";
import { enqueue, openQueue, waitingMessages } from "../queue.js";
import { spreadMs } from "../spread.js";
import {
  accepted,
  eventually,
  graphUrl,
  inject,
  mailFrom,
  memoryLog,
  nobodysUrl,
  ownMailbox,
  redisUrl,
  statusOf,
} from "./support.js";

const redis = new Redis(redisUrl);
const closed: (() => unknown)[] = [() => redis.disconnect()];
after(() => Promise.all(closed.map((close) => close())));

interface Options {
  graphUrl?: string;
  loginUrl?: string;
  limiter?: Partial<LimiterOptions>;
}

/** A worker on a queue of its own, and a mailbox of its own. */
function start({ limiter: limiterOptions, ...graph }: Options = {}) {
  const name = `node-${randomUUID()}`;
  const mailbox = ownMailbox();
  const { log, entries } = memoryLog();
  const limiter = new MailRateLimiter({ redisUrl, log, deadlineMs: 5_000, ...limiterOptions });
  const mailer = new GraphMailer({
    tenant: "tenant",
    clientId: "app",
    clientSecret: "secret",
    loginUrl: graphUrl,
    graphUrl,
    ...graph,
  });
  const claims = new Claims(redis, name);
  const delivery = new Delivery({ limiter, mailer, claims, log });
  const worker = new Worker<MailJob>(name, delivery.process, { connection: { url: redisUrl } });
  const queue = openQueue(redisUrl, name);
  closed.push(async () => {
    await worker.close();
    await queue.obliterate({ force: true });
    await queue.close();
    limiter.close();
  });
  const send = async (id: string = randomUUID()) => enqueue(queue, { id, mime: await mailFrom(mailbox) });
  /** The job once it is in this state. */
  const comesTo = (state: string, { id = "" }: Job<MailJob>) =>
    eventually(`${id} is ${state}`, async () => (await queue.getJobState(id)) === state && queue.getJob(id));
  return { queue, mailbox, entries, claims, send, comesTo };
}

test("the worker that is told to end finishes what is under way", async (t) => {
  const queue = openQueue(redisUrl, `node-${randomUUID()}`);
  const mailbox = ownMailbox();
  await inject(mailbox, { delay: { min_ms: 500, max_ms: 500 }, then: "proceed" });
  const job = await enqueue(queue, { id: "under-way", mime: await mailFrom(mailbox) });
  const program = fileURLToPath(new URL("../worker.js", import.meta.url));
  const worker = spawn(process.execPath, [program, "--queue", queue.name], {
    env: {
      MAILRL_REDIS: redisUrl,
      MAILRL_LOGIN_URL: graphUrl,
      MAILRL_GRAPH_URL: graphUrl,
      MAILRL_TENANT: "tenant",
      MAILRL_CLIENT_ID: "app",
      MAILRL_CLIENT_SECRET: "secret",
    },
    stdio: "inherit",
  });
  // Left alone by a test that failed, it would keep the whole run from ending.
  t.after(() => worker.kill("SIGKILL"));
  await eventually("the mail is under way", async () => (await job.getState()) === "active");
  worker.kill("SIGTERM");
  assert.deepEqual(await once(worker, "exit"), [0, null]);
  assert.equal(await job.getState(), "completed");
  assert.equal((await accepted(mailbox)).length, 1);
  await queue.close();
});

test("a mail is sent once, and its budget stays used", async () => {
  const { send, comesTo, mailbox, entries } = start();
  await comesTo("completed", await send("m-1"));
  assert.deepEqual(
    (await accepted(mailbox)).map((mail) => mail.subject),
    ["Hello"],
  );
  assert.deepEqual(await statusOf(redis, mailbox), { messages: 1, open: 0 });
  assert.deepEqual(entries, [{ event: "mail.sent", message_id: "m-1", mailbox }]);
});

test("a denied mail is put off by its turn and its spread, uses no attempt, and is sent later", async () => {
  const { queue, send, comesTo, mailbox, entries } = start({ limiter: { limits: { perMinute: 1 } } });
  await comesTo("completed", await send());
  const before = Date.now();
  const denied = await comesTo("delayed", await send("foobar"));
  const deferred = entries.find(({ event }) => event === "mail.rateLimit.deferred");
  assert.ok(deferred !== undefined);
  const { retry_after_ms, spread_ms, scheduled_on, reason } = deferred;
  assert.equal(reason, "minute");
  assert.equal(spread_ms, spreadMs("foobar"));
  assert.ok(Number(scheduled_on) >= before + Number(retry_after_ms) + spreadMs("foobar"));
  assert.deepEqual(
    (await waitingMessages(queue)).map(({ job, due }) => [job.id, due]),
    [["foobar", scheduled_on]],
  );
  assert.equal(denied.attemptsMade, 0);
  assert.equal((await accepted(mailbox)).length, 1);

  await redis.call("MAILRL.LIMITS", mailboxKey(mailbox), "PERMINUTE", 10);
  await denied.promote();
  await comesTo("completed", denied);
  assert.equal((await accepted(mailbox)).length, 2);
});

test("a 429 gives the budget back, pauses the mailbox for everybody and puts the mail off", async () => {
  const { queue, send, comesTo, mailbox, entries } = start();
  await inject(mailbox, { then: { answer: { status: 429, retry_after: ["300"] } } });
  const before = Date.now();
  const throttled = await comesTo("delayed", await send("throttled"));
  assert.equal(throttled.attemptsMade, 0);
  assert.deepEqual(await statusOf(redis, mailbox), { messages: 0, open: 0 });
  const [waiting] = await waitingMessages(queue);
  assert.ok(waiting !== undefined && waiting.due >= before + 300_000 + spreadMs("throttled"));

  await comesTo("delayed", await send());
  assert.deepEqual(
    entries.map(({ reason }) => reason),
    ["upstream", "paused"],
  );
  assert.equal((await accepted(mailbox)).length, 0);
});

test("what certainly was not sent gives its budget back and is tried again", async () => {
  const { send, comesTo, mailbox } = start();
  await inject(mailbox, { then: { answer: { status: 503 } } });
  const failed = await comesTo("delayed", await send());
  assert.equal(failed.attemptsMade, 1);
  assert.deepEqual(await statusOf(redis, mailbox), { messages: 0, open: 0 });
  await failed.promote();
  await comesTo("completed", failed);
  assert.equal((await accepted(mailbox)).length, 1);
});

test("without a connection to Graph or its login server nothing was sent", async () => {
  const nobody = await nobodysUrl("http");
  for (const unreachable of [{ graphUrl: nobody }, { loginUrl: nobody }]) {
    const { send, comesTo, mailbox } = start(unreachable);
    const failed = await comesTo("delayed", await send());
    assert.equal(failed.attemptsMade, 1);
    assert.match(failed.failedReason, /ECONNREFUSED/);
    assert.deepEqual(await statusOf(redis, mailbox), { messages: 0, open: 0 });
  }
});

test("a mail that Graph refuses is not tried again", async () => {
  const { send, comesTo, mailbox, entries } = start();
  await inject(mailbox, { then: { answer: { status: 403, code: "ErrorAccessDenied" } } });
  const failed = await comesTo("failed", await send());
  assert.match(failed.failedReason, /^not sent: .*403 ErrorAccessDenied/);
  assert.equal(failed.attemptsMade, 1);
  assert.deepEqual(await statusOf(redis, mailbox), { messages: 0, open: 0 });
  assert.equal(entries.at(-1)?.event, "mail.failed");
});

test("what may have been sent keeps its budget and is never sent again", async () => {
  const doubts = [
    { at: "accepted", then: { answer: { status: 504 } } },
    { at: "accepted", then: { answer: { status: 500, code: "UnknownError" } } },
    { at: "accepted", then: "reset" },
  ];
  for (const doubt of doubts) {
    const { send, comesTo, mailbox, entries } = start();
    await inject(mailbox, doubt);
    const failed = await comesTo("failed", await send());
    assert.match(failed.failedReason, /^may have been sent/);
    assert.deepEqual(await statusOf(redis, mailbox), { messages: 1, open: 0 });
    assert.equal(entries.at(-1)?.event, "mail.unknown");

    await failed.retry();
    await eventually("it is refused again", async () => entries.length === 2);
    assert.equal((await accepted(mailbox)).length, 1);
    assert.deepEqual(await statusOf(redis, mailbox), { messages: 1, open: 0 });
  }
});

test("a mail of which a killed worker said nothing is not sent again", async () => {
  const { send, comesTo, claims, mailbox } = start();
  assert.equal(await claims.claim("orphan"), "claimed");
  const failed = await comesTo("failed", await send("orphan"));
  assert.match(failed.failedReason, /^may have been sent/);
  assert.equal((await accepted(mailbox)).length, 0);
});

test("a mail that is out already ends its second job in peace", async () => {
  const { send, comesTo, claims, mailbox } = start();
  await claims.settle("twice");
  await comesTo("completed", await send("twice"));
  assert.equal((await accepted(mailbox)).length, 0);
  assert.deepEqual(await statusOf(redis, mailbox), { messages: 0, open: 0 });
});

test("without the limiter's Redis mail goes out, and it is logged why", async () => {
  const { send, comesTo, mailbox, entries } = start({
    limiter: { redisUrl: await nobodysUrl("redis"), deadlineMs: 100 },
  });
  await comesTo("completed", await send());
  assert.equal((await accepted(mailbox)).length, 1);
  assert.deepEqual(
    entries.map(({ event }) => event),
    ["mail.rateLimit.redisError", "mail.sent"],
  );
});

test("a job that is none fails with its reason, and the worker goes on", async () => {
  const { queue, send, comesTo, mailbox } = start();
  const mime = (await mailFrom(mailbox)).toString("base64");
  const wrong: [data: object, reason: RegExp][] = [
    [{ message_id: "a:b", mime }, /is no message id/],
    [{ message_id: "a" }, /the job holds no mail/],
    [{ message_id: "a", mime, subject: "Hello" }, /knows no subject/],
    [{ message_id: "a", mime, to: "a@example.net" }, /to a list of texts/],
    [{ message_id: "a", mime, tenant: "contoso" }, /leave tenant out of the job/],
    [{ message_id: "a", mime, to: ["else@example.net"] }, /must name those whom the mail names/],
    [{ message_id: "a", mime: "SGVsbG8=" }, /nobody sends the mail/],
  ];
  for (const [data, reason] of wrong) {
    const failed = await comesTo("failed", await queue.add("send", data as MailJob));
    assert.match(failed.failedReason, reason);
  }
  await comesTo("completed", await send());
});
