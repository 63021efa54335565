/** The data of a job, as `docs/send-scheduled-messages.schema.json` describes it. */
export interface MailJob {
  /** The message's name: a second job that names it does not send it again. */
  message_id: string;
  /** The tenant whose mailer sends it; else one of our own mailboxes, the envelope's sender. */
  tenant?: string;
  /** The envelope's sender; else the mail's own Sender or From. */
  from?: string;
  /** The envelope's recipients; else the mail's own To, Cc and Bcc. */
  to?: string[];
  /** Since when the mail is to be sent, in ms since 1970; else the job's own time. */
  created_at?: number;
  /** The mail (RFC 5322) in base64; either this or `mime_path`. */
  mime?: string;
  /** Where the mail is in the store that the Rust worker has. */
  mime_path?: string;
}

/** True for 1 to 200 printable ASCII characters without spaces and colons that are no number. */
export function isMessageId(id: string): boolean {
  return /^[!-9;-~]{1,200}$/.test(id) && !/^(-?\d+|NaN)$/.test(id);
}

/** A job that no worker can do anything with. */
export class JobError extends Error {}

/** Reads what somebody put into the queue. */
export function parseJob(data: unknown): MailJob & { mime: string } {
  if (typeof data !== "object" || data === null) {
    throw new JobError("the job has no data; docs/send-scheduled-messages.schema.json says what it holds");
  }
  const { message_id, tenant, from, to, created_at, mime, ...rest } = data as Record<string, unknown>;
  const unknown = Object.keys(rest);
  if (unknown.length > 0) {
    throw new JobError(`this worker knows no ${unknown.join(", ")} in a job`);
  }
  if (typeof message_id !== "string" || !isMessageId(message_id)) {
    throw new JobError(`${JSON.stringify(message_id)} is no message id`);
  }
  if (typeof mime !== "string") {
    throw new JobError("the job holds no mail: this worker takes it as mime, in base64");
  }
  const isTextOrMissing = (value: unknown) => value === undefined || typeof value === "string";
  const isList = to === undefined || (Array.isArray(to) && to.every((one) => typeof one === "string"));
  if (
    ![tenant, from].every(isTextOrMissing) ||
    !isList ||
    !["undefined", "number"].includes(typeof created_at)
  ) {
    throw new JobError("tenant and from must be texts, to a list of texts, created_at a number");
  }
  return data as MailJob & { mime: string };
}
