/**
 * Puts mails into the queue of the Rust worker:
 *
 *   node dist/producer.js [--queue NAME] [--tenant NAME] FILE.eml…
 *   node dist/producer.js [--queue NAME] [--tenant NAME] [--count N] --from A --to B --subject S --text T
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { queueForPerson } from "./environment.js";
import { describe } from "./log.js";
import { compose, headersOf, nameOf } from "./mail.js";
import { enqueue } from "./queue.js";

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    queue: { type: "string" },
    tenant: { type: "string" },
    from: { type: "string" },
    to: { type: "string", multiple: true },
    subject: { type: "string" },
    text: { type: "string" },
    count: { type: "string", default: "1" },
  },
});

async function* mails(): AsyncGenerator<Buffer> {
  for (const file of files) {
    yield await readFile(file);
  }
  const { from, to, subject = "Hello", text = "Hello from Node.", count } = options;
  if (from !== undefined && to !== undefined) {
    for (let nth = 1; nth <= Number(count); nth += 1) {
      yield await compose({ from, to, subject, text });
    }
  } else if (files.length === 0) {
    throw new Error("name files with mails in them, or give --from and --to");
  }
}

const queue = queueForPerson(options.queue);
try {
  for await (const mime of mails()) {
    const { messageId } = await headersOf(mime);
    const id = nameOf(mime, messageId);
    await enqueue(queue, { id, mime, ...(options.tenant === undefined ? {} : { tenant: options.tenant }) });
    console.log(`queued ${id}`);
  }
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
} finally {
  await queue.close();
}
