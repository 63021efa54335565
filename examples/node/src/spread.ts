const OFFSET_BASIS = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;

/** The most that a message waits beyond what it was told, in ms. */
export const MOST_SPREAD_MS = 30_000;

/** FNV-1a, 64 bit, of the text in UTF-8. */
export function fnv1a64(text: string): bigint {
  let hash = OFFSET_BASIS;
  for (const byte of Buffer.from(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  }
  return hash;
}

/**
 * How much longer than it was told a message waits, from 0 to 30,000 ms, so that those that were
 * told the same time do not come at once. The same each time, and the same in Rust.
 */
export function spreadMs(messageId: string): number {
  return Number(fnv1a64(messageId) % BigInt(MOST_SPREAD_MS + 1));
}
