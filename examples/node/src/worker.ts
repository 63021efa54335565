/**
 * A worker that sends the mails of its queue through Microsoft Graph, and asks Redis for the
 * mailbox's budget before each: `node dist/worker.js [--queue NAME]`. SIGTERM finishes what is under way.
 */
import { parseArgs } from "node:util";

import { Worker } from "bullmq";
import { Redis } from "ioredis";

import { Claims } from "./claims.js";
import { Delivery } from "./delivery.js";
import { redisUrl, required } from "./environment.js";
import { GraphMailer } from "./graph.js";
import type { MailJob } from "./job.js";
import { MailRateLimiter } from "./limiter.js";
import { describe, logJson } from "./log.js";

const { values } = parseArgs({ options: { queue: { type: "string", default: "node-messages" } } });
const queue = values.queue ?? "node-messages";

const { MAILRL_LOGIN_URL: loginUrl, MAILRL_GRAPH_URL: graphUrl } = process.env;
const mailer = new GraphMailer({
  tenant: required("MAILRL_TENANT"),
  clientId: required("MAILRL_CLIENT_ID"),
  clientSecret: required("MAILRL_CLIENT_SECRET"),
  ...(loginUrl === undefined ? {} : { loginUrl }),
  ...(graphUrl === undefined ? {} : { graphUrl }),
});
const limiter = new MailRateLimiter({ redisUrl, log: logJson });
const redis = new Redis(redisUrl);
redis.on("error", (error) => logJson("queue.redisError", { error: describe(error) }));

const delivery = new Delivery({ limiter, mailer, claims: new Claims(redis, queue), log: logJson });
const worker = new Worker<MailJob>(queue, delivery.process, {
  connection: { url: redisUrl },
  concurrency: 10,
  // A worker that is killed is not the mail's fault; whether it goes out again, its claim decides.
  maxStalledCount: 10,
});
worker.on("error", (error) => logJson("queue.error", { error: describe(error) }));
worker.on("failed", (job, error) =>
  logJson("queue.failed", { job: job?.id, attempts: job?.attemptsMade, error: error.message }),
);

async function stop(): Promise<void> {
  await worker.close();
  limiter.close();
  redis.disconnect();
}
process.once("SIGTERM", () => void stop());
process.once("SIGINT", () => void stop());
