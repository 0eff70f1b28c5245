/** "Did you mean": the closest of some known names, when it is close enough to be a likely slip. */

/** The known name nearest to `word`, or null when none is near. */
export function nearest(word: string, known: Iterable<string>): string | null {
  const target = word.toLowerCase();
  const reach = Math.max(1, Math.floor(target.length / 3));
  let best: string | null = null;
  let bestDistance = reach + 1;
  for (const name of known) {
    if (Math.abs(name.length - target.length) >= bestDistance) continue;
    const distance = editDistance(target, name.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** A ready hint, `did you mean \`x\`?`, or undefined. */
export function didYouMean(word: string, known: Iterable<string>): string | undefined {
  const name = nearest(word, known);
  return name === null ? undefined : `did you mean \`${name}\`?`;
}

/** Edits (insert, delete, replace, swap of neighbours) between two words; stops counting at `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(replaced, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    if (Math.min(...row) >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? limit;
}
