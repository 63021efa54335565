import { createHash } from "node:crypto";

import MailComposer from "nodemailer/lib/mail-composer/index.js";
import type Mail from "nodemailer/lib/mailer/index.js";
import PostalMime, { type Address } from "postal-mime";

import { isMessageId } from "./job.js";

/** What a mail says of itself. */
export interface Headers {
  /** The first address in Sender or From. */
  from: string | undefined;
  /** Everybody in To, Cc and Bcc, repeats included: that is what Graph counts. */
  recipients: string[];
  /** Without its angle brackets, as `mailrl enqueue` names it. */
  messageId: string | undefined;
}

/** Makes a mail (RFC 5322) with its Bcc in it: Graph reads the recipients there. */
export function compose(fields: Mail.Options): Promise<Buffer> {
  const mail = new MailComposer(fields).compile();
  mail.keepBcc = true;
  return mail.build();
}

export async function headersOf(mime: Uint8Array): Promise<Headers> {
  const { from, sender, to = [], cc = [], bcc = [], messageId } = await PostalMime.parse(mime);
  const senders = [sender, from].flatMap((one) => (one === undefined ? [] : addresses(one)));
  return {
    from: senders[0],
    recipients: [...to, ...cc, ...bcc].flatMap(addresses),
    messageId: messageId?.replace(/^<(.*)>$/, "$1"),
  };
}

/** The mail's own Message-ID if it can be a message's name, else a hash of the mail: the same for the same mail. */
export function nameOf(mime: Uint8Array, messageId: string | undefined): string {
  if (messageId !== undefined && isMessageId(messageId)) {
    return messageId;
  }
  return `sha256-${createHash("sha256").update(mime).digest("hex")}`;
}

function addresses(entry: Address): string[] {
  const members = entry.group ?? [entry];
  return members.flatMap(({ address }) => (address === undefined || address === "" ? [] : [address]));
}
