import { describe } from "./log.js";
import { retryAfterMs } from "./retry-after.js";

/** What became of a mail, by the table in the README. */
export type Outcome =
  | { kind: "sent" }
  /** It certainly was not sent; permanent if it never will be as it is. */
  | { kind: "notSent"; permanent: boolean; error: string }
  /** It was not sent, and its mailbox must wait. */
  | { kind: "throttled"; retryAfterMs: number; error: string }
  /** It may have been sent: sending it again may send it twice. */
  | { kind: "unknown"; error: string };

export interface GraphOptions {
  tenant: string;
  clientId: string;
  clientSecret: string;
  loginUrl?: string;
  graphUrl?: string;
  /** How long one request may take. (30 s) */
  timeoutMs?: number;
}

/** Tokens are renewed so long before they end. */
const RENEWED_BEFORE_MS = 5 * 60 * 1_000;

/** Codes after which the mail has been seen to arrive all the same. */
const MAY_HAVE_DELIVERED = ["unknownerror", "commandconcurrencylimitreached"];

/** Failures of a connection over which no request has gone yet. */
const NOT_CONNECTED = [
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** Sends mail through Microsoft Graph as MIME, with an app's own permission (`Mail.Send`). */
export class GraphMailer {
  private readonly options: Required<GraphOptions>;
  private token: Promise<string> | undefined;
  /** When a new token is asked for, in ms since 1970; never while one is on its way. */
  private renewAt = 0;

  constructor(options: GraphOptions) {
    this.options = {
      loginUrl: "https://login.microsoftonline.com",
      graphUrl: "https://graph.microsoft.com",
      timeoutMs: 30_000,
      ...options,
    };
  }

  /** Posts the mail once. Who gets it stands in its To, Cc and Bcc; Graph knows no envelope. */
  async send(mailbox: string, mime: Uint8Array): Promise<Outcome> {
    let token: string;
    try {
      token = await this.freshToken();
    } catch (error) {
      return { kind: "notSent", permanent: false, error: `no access token: ${describe(error)}` };
    }
    try {
      const url = `${this.options.graphUrl}/v1.0/users/${encodeURIComponent(mailbox)}/sendMail`;
      const response = await fetch(url, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "text/plain" },
        body: Buffer.from(mime).toString("base64"),
        // A redirect that is followed is a second POST.
        redirect: "manual",
        signal: AbortSignal.timeout(this.options.timeoutMs),
      });
      if (response.status === 401) {
        this.forgetToken();
      }
      return await outcomeOf(response);
    } catch (error) {
      return outcomeOfFailure(error);
    }
  }

  /** One token for all, renewed once at a time: Entra throttles those who ask for each mail. */
  private freshToken(): Promise<string> {
    if (this.token === undefined || Date.now() >= this.renewAt) {
      this.renewAt = Infinity;
      this.token = this.requestToken();
      this.token.catch(() => this.forgetToken());
    }
    return this.token;
  }

  private forgetToken(): void {
    this.token = undefined;
  }

  private async requestToken(): Promise<string> {
    const { tenant, clientId, clientSecret, loginUrl, timeoutMs } = this.options;
    const response = await fetch(`${loginUrl}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "client_credentials",
        scope: "https://graph.microsoft.com/.default",
        client_id: clientId,
        client_secret: clientSecret,
      }),
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer: unknown = await response.json().catch(() => undefined);
    const value = field(answer, "access_token");
    const seconds = field(answer, "expires_in");
    if (!response.ok || typeof value !== "string" || typeof seconds !== "number") {
      // Entra's own code and no more: an answer can quote what was sent.
      throw new Error(
        `the login server answered ${response.status} ${String(field(answer, "error") ?? "")}`.trim(),
      );
    }
    const lifetimeMs = seconds * 1_000;
    this.renewAt = Date.now() + Math.max(lifetimeMs - RENEWED_BEFORE_MS, lifetimeMs / 2);
    return value;
  }
}

/** By status and code, never by message: Microsoft changes messages without notice. */
async function outcomeOf(response: Response): Promise<Outcome> {
  const { status, headers } = response;
  if (status === 202) {
    // Final, whatever follows it.
    await response.body?.cancel();
    return { kind: "sent" };
  }
  // An answer that breaks off is one whose code is unknown: it throws, and the outcome is unknown.
  const code = errorCode(await response.text());
  const error = `Microsoft Graph answered ${status} ${code} (request-id ${headers.get("request-id") ?? "none"})`;
  if (MAY_HAVE_DELIVERED.includes(code.toLowerCase())) {
    return { kind: "unknown", error };
  }
  if (status === 429 || (status === 503 && headers.has("retry-after"))) {
    return { kind: "throttled", retryAfterMs: retryAfterMs(headers.get("retry-after")), error };
  }
  if ((status >= 400 && status < 500) || status === 500 || status === 503) {
    // 401 speaks of the token, not of the mail.
    return { kind: "notSent", permanent: status < 500 && status !== 401, error };
  }
  return { kind: "unknown", error };
}

function outcomeOfFailure(failure: unknown): Outcome {
  const cause: unknown = failure instanceof Error ? (failure.cause ?? failure) : failure;
  const error = `the request to Microsoft Graph failed: ${describe(cause)}`;
  const code = field(cause, "code");
  const connected = typeof code !== "string" || !NOT_CONNECTED.includes(code);
  return connected ? { kind: "unknown", error } : { kind: "notSent", permanent: false, error };
}

function errorCode(body: string): string {
  try {
    const code = field(field(JSON.parse(body), "error"), "code");
    return typeof code === "string" ? code : "";
  } catch {
    return "";
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
