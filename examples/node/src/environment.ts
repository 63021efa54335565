/** Redis, as the tool `mailrl` is told where it is. */
export const redisUrl = process.env.MAILRL_REDIS ?? "redis://127.0.0.1:6379";

/** A setting without which there is nothing to do. */
export function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    console.error(`please set ${name}`);
    process.exit(2);
  }
  return value;
}
