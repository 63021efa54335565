import { randomUUID } from "node:crypto";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import type { Redis } from "ioredis";

import { required } from "../environment.js";
import { mailboxKey } from "../limiter.js";
import type { Log } from "../log.js";
import { compose } from "../mail.js";

/** A Redis with the module, with rolling windows. */
export const redisUrl = required("MAILRL_REDIS");
/** A graph-sim, for the login server and Graph alike. */
export const graphUrl = required("MAILRL_GRAPH_URL");

export interface Logged extends Record<string, unknown> {
  event: string;
}

/** A log that can be read. */
export function memoryLog(): { log: Log; entries: Logged[] } {
  const entries: Logged[] = [];
  return { log: (event, fields) => void entries.push({ event, ...fields }), entries };
}

/** Tests share one Redis and one graph-sim: each has a mailbox and queues of its own. */
export function ownMailbox(): string {
  return `${randomUUID()}@example.com`;
}

export function mailFrom(mailbox: string, fields: { to?: string[]; bcc?: string } = {}): Promise<Buffer> {
  return compose({ from: mailbox, to: "a@example.net", subject: "Hello", text: "Hello.", ...fields });
}

/** What the module knows of a mailbox, as `MAILRL.STATUS` names it. */
export async function statusOf(redis: Redis, mailbox: string): Promise<{ messages: number; open: number }> {
  const fields = (await redis.call("MAILRL.STATUS", mailboxKey(mailbox))) as unknown[];
  const after = (list: unknown[], name: string) => list[list.indexOf(name) + 1];
  const minute = after(fields, "minute") as unknown[];
  return { messages: Number(after(minute, "used")), open: Number(after(fields, "open")) };
}

/** What graph-sim accepted from this mailbox. */
export async function accepted(mailbox: string): Promise<{ subject: string; recipients: string[] }[]> {
  const response = await fetch(`${graphUrl}/sim/messages?mailbox=${encodeURIComponent(mailbox)}`);
  return (await response.json()) as { subject: string; recipients: string[] }[];
}

/** Has graph-sim misbehave at the next mail of this mailbox. */
export async function inject(mailbox: string, fault: Record<string, unknown>): Promise<void> {
  const response = await fetch(`${graphUrl}/sim/faults`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ mailbox, ...fault }),
  });
  if (!response.ok) {
    throw new Error(`no such fault: ${await response.text()}`);
  }
}

export async function eventually<T>(
  what: string,
  condition: () => Promise<T | undefined | false>,
): Promise<T> {
  // A machine that is busy with other tests is not what is tested here.
  const giveUp = performance.now() + 60_000;
  while (performance.now() < giveUp) {
    const value = await condition();
    if (value !== undefined && value !== false) {
      return value;
    }
    await sleep(25);
  }
  throw new Error(`never happened: ${what}`);
}

/** An address at which nobody listens. */
export async function nobodysUrl(scheme: string): Promise<string> {
  const { server, port } = await listen();
  server.close();
  return `${scheme}://127.0.0.1:${port}`;
}

async function listen(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

/** Stands between a client and Redis and can hold the answers back. */
export class Proxy {
  private readonly held: (() => void)[] = [];
  private readonly sockets = new Set<Socket>();
  private holds = false;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<Proxy> {
    const target = new URL(redisUrl);
    const { server, port } = await listen();
    const proxy = new Proxy(server, `redis://127.0.0.1:${port}`);
    server.on("connection", (client) => {
      const redis = connect(Number(target.port), target.hostname);
      client.pipe(redis);
      redis.on("data", (data) => {
        const pass = () => void client.write(data);
        if (proxy.holds) proxy.held.push(pass);
        else pass();
      });
      for (const socket of [client, redis]) {
        proxy.sockets.add(socket.on("error", () => {}));
      }
    });
    return proxy;
  }

  hold(): void {
    this.holds = true;
  }

  letGo(): void {
    this.holds = false;
    this.held.splice(0).forEach((pass) => pass());
  }

  stop(): void {
    this.server.close();
    this.sockets.forEach((socket) => socket.destroy());
  }
}
