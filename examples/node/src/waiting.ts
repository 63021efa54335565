/** Shows what waits in a queue and until when, whichever worker put it off: `node dist/waiting.js [--queue NAME]`. */
import { parseArgs } from "node:util";

import { queueForPerson } from "./environment.js";
import { waitingMessages } from "./queue.js";

const { values } = parseArgs({ options: { queue: { type: "string" } } });
const queue = queueForPerson(values.queue);
try {
  const counts = await queue.getJobCounts("waiting", "active", "delayed", "failed");
  console.log(
    Object.entries(counts)
      .map(([state, count]) => `${count} ${state}`)
      .join(", "),
  );
  for (const { job, due } of await waitingMessages(queue)) {
    console.log(`${new Date(due).toISOString()}  ${job.id}`);
  }
} finally {
  await queue.close();
}
