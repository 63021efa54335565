import { randomUUID } from "node:crypto";

import type { Redis } from "ioredis";

/** How long it is known what became of a message: 7 days, in s. */
const KEPT_S = 7 * 24 * 60 * 60;
const SENT = "sent";

export type Claim =
  | "claimed"
  /** The mail is out. */
  | "sent"
  /** Somebody began to send it and has not said what became of it. */
  | "unsettled";

/**
 * Who sends a message: claimed before the POST and settled after it.
 *
 * BullMQ delivers at least once: a worker that was killed, or lost its connection as it finished,
 * gets its job a second time. The mail must go out at most once.
 */
export class Claims {
  constructor(
    private readonly redis: Redis,
    private readonly queue: string,
  ) {}

  async claim(messageId: string): Promise<Claim> {
    const key = this.key(messageId);
    const own = randomUUID();
    if ((await this.redis.set(key, own, "EX", KEPT_S, "NX")) === "OK") {
      return "claimed";
    }
    const holder = await this.redis.get(key);
    if (holder === own) {
      // The answer was lost with its connection, and the client asked again.
      return "claimed";
    }
    return holder === SENT ? "sent" : "unsettled";
  }

  /** The mail is out. */
  async settle(messageId: string): Promise<void> {
    await this.redis.set(this.key(messageId), SENT, "EX", KEPT_S);
  }

  /** The mail certainly is not out: it may be claimed again. */
  async withdraw(messageId: string): Promise<void> {
    await this.redis.del(this.key(messageId));
  }

  private key(messageId: string): string {
    return `mailrl-node:${this.queue}:${messageId}`;
  }
}
