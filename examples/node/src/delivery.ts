import { setTimeout as sleep } from "node:timers/promises";

import { DelayedError, type Job, UnrecoverableError } from "bullmq";

import type { Claims } from "./claims.js";
import type { GraphMailer } from "./graph.js";
import { type MailJob, parseJob } from "./job.js";
import type { Decision, MailRateLimiter } from "./limiter.js";
import { describe, type Log } from "./log.js";
import { headersOf } from "./mail.js";
import { spreadMs } from "./spread.js";

/** How long a mail waits here for a place among the concurrent sends before it is put off. */
const CONCURRENCY_WAIT_MS = 2_000;

interface Parts {
  limiter: MailRateLimiter;
  mailer: GraphMailer;
  claims: Claims;
  log: Log;
}

interface OutgoingMail {
  id: string;
  mailbox: string;
  recipients: number;
  mime: Uint8Array;
}

/** Sends the mails of a queue's jobs, each within the budget of its mailbox. */
export class Delivery {
  constructor(private readonly parts: Parts) {}

  /** Does one job; how it ends is what BullMQ does with it. */
  readonly process = async (job: Job<MailJob>, token?: string): Promise<void> => {
    const { limiter, mailer, claims, log } = this.parts;
    const mail = await outgoing(job);
    const { id, mailbox } = mail;

    const decision = await this.reserve(mail);
    if (decision.kind === "tooLarge") {
      throw this.failed(mail, decision.error);
    }
    if (decision.kind === "denied") {
      return this.putOff(job, token, mail, decision);
    }
    // Without a decision the mail goes out, and there is nothing to settle.
    const reservation = decision.kind === "allowed" ? decision.reservation : undefined;
    const release = async () => {
      if (reservation !== undefined) await limiter.release(reservation);
    };
    const commit = async () => {
      if (reservation !== undefined) await limiter.commit(reservation);
    };

    const claim = await claims.claim(id).catch(async (error: unknown) => {
      await release();
      throw error;
    });
    if (claim !== "claimed") {
      await release();
      if (claim === "sent") return;
      throw this.mayBeSent(mail, "a worker began to send it and ended without a word");
    }

    const outcome = await mailer.send(mailbox, mail.mime);
    switch (outcome.kind) {
      case "sent":
        await commit();
        log("mail.sent", { message_id: id, mailbox });
        return claims.settle(id);
      case "unknown":
        await commit();
        throw this.mayBeSent(mail, outcome.error);
      case "throttled":
        await Promise.all([release(), limiter.pause(mailbox, outcome.retryAfterMs), claims.withdraw(id)]);
        return this.putOff(job, token, mail, { reason: "upstream", retryAfterMs: outcome.retryAfterMs });
      case "notSent":
        await Promise.all([release(), claims.withdraw(id)]);
        throw outcome.permanent ? this.failed(mail, outcome.error) : new Error(outcome.error);
    }
  };

  /** Reserves budget, and waits a little if all that is missing is a place among the concurrent sends. */
  private async reserve({ mailbox, recipients }: OutgoingMail): Promise<Decision> {
    const giveUp = performance.now() + CONCURRENCY_WAIT_MS;
    for (;;) {
      const decision = await this.parts.limiter.reserve(mailbox, recipients);
      const isForNow = decision.kind === "denied" && decision.reason === "concurrent";
      if (!isForNow || performance.now() >= giveUp) {
        return decision;
      }
      // A quarter more or less, so that those who wait together do not come back together.
      await sleep(decision.retryAfterMs * (0.75 + Math.random() / 2));
    }
  }

  /** Having to wait is no failure and uses up no attempt. */
  private async putOff(
    job: Job<MailJob>,
    token: string | undefined,
    { id, mailbox }: OutgoingMail,
    { reason, retryAfterMs }: { reason: string; retryAfterMs: number },
  ): Promise<never> {
    const spread = spreadMs(id);
    const scheduledOn = Date.now() + retryAfterMs + spread;
    await job.moveToDelayed(scheduledOn, token);
    this.parts.log("mail.rateLimit.deferred", {
      message_id: id,
      mailbox,
      reason,
      retry_after_ms: retryAfterMs,
      spread_ms: spread,
      scheduled_on: scheduledOn,
    });
    throw new DelayedError();
  }

  private failed({ id, mailbox }: OutgoingMail, error: string): UnrecoverableError {
    this.parts.log("mail.failed", { message_id: id, mailbox, error });
    return new UnrecoverableError(`not sent: ${error}`);
  }

  private mayBeSent({ id, mailbox }: OutgoingMail, error: string): UnrecoverableError {
    this.parts.log("mail.unknown", { message_id: id, mailbox, error });
    return new UnrecoverableError(`may have been sent, please decide: ${error}`);
  }
}

/** What a job asks to be sent, or an error that ends it. */
async function outgoing({ data }: Job<MailJob>): Promise<OutgoingMail> {
  try {
    const { message_id: id, tenant, from, to, mime: base64 } = parseJob(data);
    if (tenant !== undefined) {
      throw new Error("this worker has one tenant's mailer and no other: leave tenant out of the job");
    }
    const mime = Buffer.from(base64, "base64");
    const headers = await headersOf(mime);
    const mailbox = from ?? headers.from;
    if (mailbox === undefined) {
      throw new Error("nobody sends the mail: give it a From, or the job a from");
    }
    if (headers.recipients.length === 0) {
      throw new Error("nobody is to get the mail: give it a To, Cc or Bcc");
    }
    // Graph knows no envelope and sends to whom the mail names.
    if (to !== undefined && !isSame(to, headers.recipients)) {
      throw new Error("the job's to must name those whom the mail names in To, Cc and Bcc");
    }
    return { id, mailbox, recipients: headers.recipients.length, mime };
  } catch (error) {
    throw new UnrecoverableError(`not sent: ${describe(error)}`);
  }
}

function isSame(one: string[], other: string[]): boolean {
  const set = (list: string[]) => JSON.stringify([...new Set(list.map((item) => item.toLowerCase()))].sort());
  return set(one) === set(other);
}
