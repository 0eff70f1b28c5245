/** Durations as people write them (`500ms 30s 5m 2h 1d`) and as programs count them (milliseconds). */

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNIT_MS;

const DURATION = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/;

/** The longest duration Relay accepts: about ten years, well inside what every clock and timer arithmetic holds. */
const DURATION_MS_MAX = 3_660 * UNIT_MS.d;

/** The pattern of a written duration, for schemas and messages. */
export const DURATION_PATTERN = DURATION.source;

/** Milliseconds of a written duration, or null when the text is not one (or is too long). */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text);
  if (match === null) return null;
  const ms = Math.round(Number(match[1]) * UNIT_MS[match[2] as Unit]);
  return ms <= DURATION_MS_MAX ? ms : null;
}

/** The one canonical spelling: the largest unit that divides the duration evenly. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (ms >= UNIT_MS[unit] && ms % UNIT_MS[unit] === 0) return `${ms / UNIT_MS[unit]}${unit}`;
  }
  return `${ms}ms`;
}
