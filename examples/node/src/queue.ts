import { type Job, Queue } from "bullmq";

import { isMessageId, JobError, type MailJob } from "./job.js";

/** The queue of the Rust worker. */
export const QUEUE = "send-scheduled-messages";

/** What a job of the queue is called; workers do not look at it. */
const JOB = "send-message";

/** For how long jobs that have ended can be looked at, in s. A job holds its whole mail. */
const SENT_KEPT_S = 60 * 60;
const FAILED_KEPT_S = 7 * 24 * 60 * 60;

/** A mail that is to be sent once. */
export interface Message {
  /** Its name, by which a second job for it is known: 1 to 200 printable ASCII characters, no colon. */
  id: string;
  /** The mail itself (RFC 5322). */
  mime: Uint8Array;
  /** The tenant whose mailer sends it; else one of our own mailboxes. */
  tenant?: string;
  /** The envelope, where it is not what the mail itself says. */
  from?: string;
  to?: string[];
}

export function openQueue(redisUrl: string, name = QUEUE): Queue<MailJob> {
  return new Queue<MailJob>(name, { connection: { url: redisUrl } });
}

/**
 * Puts a message into the queue. One that is there already is not put there again, and workers do
 * not send one again that has ended within 7 days.
 */
export async function enqueue(
  queue: Queue<MailJob>,
  { id, mime, ...envelope }: Message,
): Promise<Job<MailJob>> {
  if (!isMessageId(id)) {
    throw new JobError(
      `${JSON.stringify(id)} is no message id: use 1 to 200 printable ASCII characters, ` +
        "without spaces and colons, and not digits alone",
    );
  }
  const job: MailJob = {
    message_id: id,
    ...envelope,
    created_at: Date.now(),
    mime: Buffer.from(mime).toString("base64"),
  };
  return queue.add(JOB, job, {
    jobId: id,
    // Having to wait is no attempt; these are for failures, after 30 s, 1, 2, 4 and 8 min.
    attempts: 6,
    backoff: { type: "exponential", delay: 30_000 },
    removeOnComplete: { age: SENT_KEPT_S },
    removeOnFail: { age: FAILED_KEPT_S },
  });
}

/** A message that is put off. */
export interface Waiting {
  job: Job<MailJob>;
  /** When its job wakes a worker up again, in ms since 1970. */
  due: number;
}

/** The messages that are put off, by whichever worker, the next one first. */
export async function waitingMessages(queue: Queue<MailJob>): Promise<Waiting[]> {
  const redis = await queue.backend.client;
  const jobs = await queue.getDelayed();
  const waiting = jobs.map(async (job) => {
    // `job.delay` counts from when the job was put off last, and that is not kept: the score is the time.
    const score = await redis.zscore(queue.toKey("delayed"), job.id ?? "");
    return { job, due: Math.floor(Number(score) / 0x1000) };
  });
  return Promise.all(waiting);
}
