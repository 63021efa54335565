/** Logs an event; its name and the names of its fields are those of the Rust side. */
export type Log = (event: string, fields: Record<string, unknown>) => void;

/** One JSON object a line on stderr. */
export const logJson: Log = (event, fields) => {
  console.error(JSON.stringify({ time: new Date().toISOString(), event, ...fields }));
};

/** What an error says, whatever was thrown. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
