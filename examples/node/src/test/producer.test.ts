import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { parseJob } from "../job.js";
import { headersOf } from "../mail.js";
import { enqueue, openQueue } from "../queue.js";
import { mailFrom, nobodysUrl, redisUrl } from "./support.js";

const producer = fileURLToPath(new URL("../producer.js", import.meta.url));
const run = (...args: string[]) => runWith(process.env, ...args);
const runWith = (env: NodeJS.ProcessEnv, ...args: string[]) =>
  promisify(execFile)(process.execPath, [producer, ...args], { env });

const closed: (() => Promise<unknown>)[] = [];
after(() => Promise.all(closed.map((close) => close())));

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "mailrl-"));
  closed.push(() => rm(path, { recursive: true }));
  return path;
}

function ownQueue() {
  const queue = openQueue(redisUrl, `node-${randomUUID()}`);
  closed.push(async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  });
  return queue;
}

test("a mail in a file becomes a job that holds it, named by its Message-ID", async () => {
  const queue = ownQueue();
  const mime = await mailFrom("news@example.com", { to: ["a@example.net"], bcc: "b@example.net" });
  const { messageId } = await headersOf(mime);
  const file = join(await directory(), "mail.eml");
  await writeFile(file, mime);
  await run("--queue", queue.name, "--tenant", "contoso", file);

  const [job, ...others] = await queue.getJobs();
  assert.deepEqual(others, []);
  const data = parseJob(job?.data);
  assert.match(messageId ?? "", /^[^<>]+@[^<>]+$/);
  assert.equal(job?.id, messageId);
  assert.deepEqual([data.message_id, data.tenant], [messageId, "contoso"]);
  assert.ok(Math.abs(Date.now() - Number(data.created_at)) < 60_000);
  assert.deepEqual(Buffer.from(data.mime, "base64"), mime);
});

test("the same mail is in the queue once, also if it has no Message-ID", async () => {
  const queue = ownQueue();
  const file = join(await directory(), "mail.eml");
  await writeFile(file, "From: news@example.com\r\nTo: a@example.net\r\n\r\nHello.\r\n");
  await run("--queue", queue.name, file, file);
  await run("--queue", queue.name, file);
  assert.equal((await queue.getJobCounts("waiting")).waiting, 1);
});

test("mails that are composed are a message each", async () => {
  const queue = ownQueue();
  await run("--queue", queue.name, "--count", "3", "--from", "news@example.com", "--to", "a@example.net");
  assert.equal((await queue.getJobCounts("waiting")).waiting, 3);
});

test("a composed mail keeps its Bcc, for that is how Graph knows of it", async () => {
  const mime = await mailFrom("news@example.com", {
    to: ["a@example.net", "A <a@example.net>"],
    bcc: "b@example.net",
  });
  assert.deepEqual((await headersOf(mime)).recipients, ["a@example.net", "a@example.net", "b@example.net"]);
});

test("a name that no message can have is refused, and it is said what one looks like", async () => {
  for (const id of ["", "4711", "-5", "NaN", "a b", "a:b", "a\n", "ä", "x".repeat(201)]) {
    await assert.rejects(enqueue(ownQueue(), { id, mime: Buffer.from("") }), /use 1 to 200 printable ASCII/);
  }
});

test("without a mail the producer says what it needs", async () => {
  await assert.rejects(run(), /name files with mails in them, or give --from and --to/);
});

test("without Redis the producer says so and ends", async () => {
  const env = { ...process.env, MAILRL_REDIS: await nobodysUrl("redis") };
  const compose = ["--from", "news@example.com", "--to", "a@example.net"];
  await assert.rejects(runWith(env, ...compose), /the queue's Redis: connect ECONNREFUSED/);
});
