/** Logs an event; its name and the names of its fields are those of the Rust side. */
export type Log = (event: string, fields: Record<string, unknown>) => void;

/** One JSON object a line on stderr. */
export const logJson: Log = (event, fields) => {
  console.error(JSON.stringify({ time: new Date().toISOString(), event, ...fields }));
};

/** What an error says at its root, whatever was thrown. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  // A connection that was tried at several addresses fails with a code and no message.
  const { cause, message, code } = error as NodeJS.ErrnoException;
  return cause === undefined ? message || code || error.name : describe(cause);
}
