const SHORTEST_MS = 1_000;
const WHEN_NONE_IS_UNDERSTOOD_MS = 60_000;
/** The longest pause that `MAILRL.PAUSE` takes. */
const LONGEST_MS = 24 * 60 * 60 * 1_000;

/** One entry of a list; dates have a comma of their own after the day's name. */
const ENTRY = /[a-z]{3}, \d{2} [a-z]{3} \d{4} \d{2}:\d{2}:\d{2} GMT|[^,]+/gi;
const SECONDS = /^\d+(\.\d+)?$/;
const DATE = / GMT$/i;

/**
 * The longest wait that a `Retry-After` names, from 1 s to 24 h in ms; 60 s if it names none.
 *
 * RFC 9110, section 10.2.3, allows whole seconds or a date. Graph has been seen to send fractions
 * and several values too; `fetch` joins several headers to one list.
 */
export function retryAfterMs(header: string | null, now = Date.now()): number {
  const waits = (header ?? "").match(ENTRY)?.map((entry) => waitMs(entry.trim(), now)) ?? [];
  const understood = waits.filter((wait) => !Number.isNaN(wait));
  const longest = understood.length > 0 ? Math.max(...understood) : WHEN_NONE_IS_UNDERSTOOD_MS;
  return Math.ceil(Math.min(Math.max(longest, SHORTEST_MS), LONGEST_MS));
}

function waitMs(entry: string, now: number): number {
  if (SECONDS.test(entry)) {
    return Number(entry) * 1_000;
  }
  return DATE.test(entry) ? Date.parse(entry) - now : NaN;
}
