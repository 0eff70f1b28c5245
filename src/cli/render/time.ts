/** Times and durations as people read them. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took: `38ms`, `4.2s`, `3m 05s`, `2h 10m`, `3d 4h`. */
export function spanText(ms: number): string {
  const rounded = Math.max(0, Math.round(ms));
  if (rounded < SECOND) return `${rounded}ms`;
  if (rounded < 10 * SECOND) return `${(rounded / SECOND).toFixed(1)}s`;
  if (rounded < MINUTE) return `${Math.floor(rounded / SECOND)}s`;
  if (rounded < HOUR) return two(rounded, [MINUTE, 'm'], [SECOND, 's']);
  return rounded < DAY ? two(rounded, [HOUR, 'h'], [MINUTE, 'm']) : two(rounded, [DAY, 'd'], [HOUR, 'h']);
}

function two(ms: number, [big, bigName]: [number, string], [small, smallName]: [number, string]): string {
  const rest = Math.floor((ms % big) / small);
  return `${Math.floor(ms / big)}${bigName} ${String(rest).padStart(2, '0')}${smallName}`;
}

/** How long ago a moment was, in one unit: `12s ago`, `3d ago`; `in 5m` when it is still to come. */
export function agoText(iso: string | null, nowMs: number): string {
  if (iso === null) return '–';
  const ms = nowMs - Date.parse(iso);
  const size = Math.abs(ms);
  const text =
    size < MINUTE
      ? `${Math.floor(size / SECOND)}s`
      : size < HOUR
        ? `${Math.floor(size / MINUTE)}m`
        : size < DAY
          ? `${Math.floor(size / HOUR)}h`
          : `${Math.floor(size / DAY)}d`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** Time between two moments, or up to now; a dash before the first. */
export function betweenText(from: string | null, to: string | null, nowMs: number): string {
  if (from === null) return '–';
  return spanText((to === null ? nowMs : Date.parse(to)) - Date.parse(from));
}

/** The time of day in the machine's own zone. */
export function clockText(iso: string): string {
  const at = new Date(iso);
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}
