import type { Queue } from "bullmq";

import type { MailJob } from "./job.js";
import { describe } from "./log.js";
import { openQueue } from "./queue.js";

/** Redis, as the tool `mailrl` is told where it is. */
export const redisUrl = process.env.MAILRL_REDIS ?? "redis://127.0.0.1:6379";

/** A setting without which there is nothing to do. */
export function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    console.error(`please set ${name}`);
    process.exit(2);
  }
  return value;
}

/** The queue for a program that a person waits for: without Redis it says so and ends. */
export function queueForPerson(name: string | undefined): Queue<MailJob> {
  const queue = openQueue(redisUrl, name);
  queue.on("error", (error) => {
    console.error(`the queue's Redis: ${describe(error)} (MAILRL_REDIS says where it is)`);
    process.exit(1);
  });
  return queue;
}
