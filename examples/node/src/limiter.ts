import { Redis, ReplyError } from "ioredis";

import { describe, type Log } from "./log.js";

/** The furthest turn that a denial ever names. */
const MAX_RETRY_AFTER_MS = 25 * 60 * 60 * 1_000;
const LOG_INTERVAL_MS = 1_000;

const DENIAL_REASONS = ["minute", "day", "concurrent", "paused"] as const;
export type DenialReason = (typeof DENIAL_REASONS)[number];

/** Why Redis gave no decision. */
export type FailOpenCause = "timeout" | "connection" | "refused" | "unexpectedReply";

/** What a mail may use of its mailbox's budget until it is committed or released. */
export interface Reservation {
  readonly key: string;
  readonly id: string;
}

/** Redis gave no decision: send the mail all the same, for it matters more than its budget. */
export interface FailOpen {
  kind: "failOpen";
  cause: FailOpenCause;
  error: string;
}

/** More recipients than a whole day of the mailbox: no time will ever do. */
export interface TooLarge {
  kind: "tooLarge";
  error: string;
}

export type Decision =
  | { kind: "allowed"; reservation: Reservation; minuteLeft: number; dayLeft: number }
  | { kind: "denied"; reason: DenialReason; retryAfterMs: number }
  | TooLarge
  | FailOpen;

/** The limits to ask for; those that are left out are the module's. */
export interface Limits {
  perMinute?: number;
  recipientsPerDay?: number;
}

export interface LimiterOptions {
  /** Redis with the module, as `redis://[user:password@]host:port[/database]`. */
  redisUrl: string;
  log: Log;
  limits?: Limits;
  /** How many sends of a mailbox may be under way at once, over all processes. (3) */
  concurrent?: number;
  /** When a reservation that nobody settled ends: a little longer than a send may take. (120 s) */
  leaseMs?: number;
  /** The longest that a question to Redis holds a mail up, whatever Redis does. (100 ms) */
  deadlineMs?: number;
}

/** A mailbox's key: trimmed and lower-cased in ASCII only, as in every other language. */
export function mailboxKey(address: string): string {
  const trimmed = address.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "");
  return `mailrl:${trimmed.replace(/[A-Z]/g, (letter) => letter.toLowerCase())}`;
}

/** Asks Redis whether a mail may go out: one for a process, with a connection of its own. */
export class MailRateLimiter {
  private readonly redis: Redis;
  private readonly log: Log;
  private readonly deadlineMs: number;
  private readonly options: string[];
  private lastLogged = -Infinity;
  private suppressed = 0;

  constructor({ redisUrl, log, limits = {}, concurrent = 3, leaseMs, deadlineMs = 100 }: LimiterOptions) {
    this.redis = new Redis(redisUrl, {
      connectTimeout: 1_000,
      // Back within a second of Redis, and no question is asked a second time.
      retryStrategy: (times) => Math.min(times * 50, 500),
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    });
    // Each question that fails says so itself.
    this.redis.on("error", () => {});
    this.log = log;
    this.deadlineMs = deadlineMs;
    const pairs = {
      PERMINUTE: limits.perMinute,
      PERDAY: limits.recipientsPerDay,
      CONCURRENT: concurrent,
      LEASE: leaseMs ?? 120_000,
    };
    this.options = Object.entries(pairs).flatMap(([name, value]) =>
      value === undefined ? [] : [name, String(value)],
    );
  }

  /** In one atomic step: is there room for one more message to so many recipients? If so, it is reserved. */
  async reserve(mailbox: string, recipients: number): Promise<Decision> {
    const key = mailboxKey(mailbox);
    const answer = this.redis
      .call("MAILRL.RESERVE", key, recipients, ...this.options)
      .then((reply) => readDecision(key, reply), readError);
    const decision = (await within(this.deadlineMs, answer)) ?? this.timedOut();
    if (decision.kind === "failOpen") {
      this.logFailOpen(key, decision);
      // The mail goes out now. If it is counted after all, that is right, but it must be settled.
      void answer.then((late) => (late.kind === "allowed" ? this.commit(late.reservation) : undefined));
    }
    return decision;
  }

  /** The mail is out: its budget stays used, its place among the concurrent sends comes free. */
  commit(reservation: Reservation): Promise<void> {
    return this.tell("MAILRL.COMMIT", reservation.key, reservation.id);
  }

  /** The mail certainly did not go out: its budget is given back. */
  release(reservation: Reservation): Promise<void> {
    return this.tell("MAILRL.RELEASE", reservation.key, reservation.id);
  }

  /** Nobody sends from this mailbox for so long, in no process; of two pauses the longer one wins. */
  pause(mailbox: string, ms: number): Promise<void> {
    return this.tell("MAILRL.PAUSE", mailboxKey(mailbox), ms);
  }

  close(): void {
    this.redis.disconnect();
  }

  /** A failure is logged and no more: an open reservation ends with its lease. */
  private async tell(command: string, key: string, argument: string | number): Promise<void> {
    const answer = this.redis.call(command, key, argument).then(() => "told" as const, readFailure);
    const outcome = (await within(this.deadlineMs, answer)) ?? this.timedOut();
    if (outcome !== "told") {
      this.logFailOpen(key, outcome);
    }
  }

  private timedOut(): FailOpen {
    return failOpen("timeout", `no answer within ${this.deadlineMs} ms`);
  }

  /** At most once a second. */
  private logFailOpen(key: string, { cause, error }: FailOpen): void {
    const now = performance.now();
    if (now - this.lastLogged < LOG_INTERVAL_MS) {
      this.suppressed += 1;
      return;
    }
    this.log("mail.rateLimit.redisError", { key, cause, error, suppressed: this.suppressed });
    this.lastLogged = now;
    this.suppressed = 0;
  }
}

/** Reads the six parts strictly: what is not exactly what the command promises is no decision. */
function readDecision(key: string, reply: unknown): Decision {
  if (Array.isArray(reply) && reply.length === 6) {
    const [allowed, reason, retryAfterMs, minuteLeft, dayLeft, id] = reply as unknown[];
    if (!isCount(retryAfterMs) || !isCount(minuteLeft) || !isCount(dayLeft) || typeof id !== "string") {
      return unexpected(reply);
    }
    if (allowed === 1 && reason === "ok" && retryAfterMs === 0 && id !== "") {
      return { kind: "allowed", reservation: { key, id }, minuteLeft, dayLeft };
    }
    const denied = DENIAL_REASONS.find((known) => known === reason);
    const inRange = retryAfterMs >= 1 && retryAfterMs <= MAX_RETRY_AFTER_MS;
    if (allowed === 0 && denied !== undefined && inRange && id === "") {
      return { kind: "denied", reason: denied, retryAfterMs };
    }
  }
  return unexpected(reply);
}

/** `TOOLARGE` is the one error reply that is a decision. */
function readError(error: unknown): TooLarge | FailOpen {
  const failure = readFailure(error);
  const isTooLarge = failure.cause === "refused" && failure.error.startsWith("TOOLARGE ");
  return isTooLarge ? { kind: "tooLarge", error: failure.error } : failure;
}

function readFailure(error: unknown): FailOpen {
  return failOpen(error instanceof ReplyError ? "refused" : "connection", describe(error));
}

function unexpected(reply: unknown): FailOpen {
  return failOpen("unexpectedReply", `not an answer to MAILRL.RESERVE: ${JSON.stringify(reply)}`);
}

function failOpen(cause: FailOpenCause, error: string): FailOpen {
  return { kind: "failOpen", cause, error };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** What a promise that never fails comes to, or nothing if that takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
