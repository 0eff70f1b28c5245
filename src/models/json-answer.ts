/** JSON in a model's text (SPEC S9.2): the whole text, else a fenced block, else the first balanced object or list. */

/** Openings tried in a text that is mostly not JSON. */
const CANDIDATES_MAX = 50;

/** The JSON value in a text, or null when there is none. */
export function parseJsonAnswer(text: string): { readonly value: unknown } | null {
  const whole = tryParse(text);
  if (whole !== null) return whole;
  for (const [, block = ''] of text.matchAll(/```[^\n`]*\n([\s\S]*?)```/g)) {
    const parsed = tryParse(block);
    if (parsed !== null) return parsed;
  }
  return firstBalanced(text);
}

function firstBalanced(text: string): { readonly value: unknown } | null {
  let candidates = 0;
  for (let at = text.search(/[{[]/); at >= 0 && candidates < CANDIDATES_MAX; candidates++) {
    const end = balancedEnd(text, at);
    const parsed = end === null ? null : tryParse(text.slice(at, end));
    if (parsed !== null) return parsed;
    const next = text.slice(at + 1).search(/[{[]/);
    at = next < 0 ? -1 : at + 1 + next;
  }
  return null;
}

/** Where the object or list that opens at `start` ends; brackets inside strings do not count. */
function balancedEnd(text: string, start: number): number | null {
  let depth = 0;
  let isInString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (isInString) {
      if (character === '\\') at++;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return null;
}

function tryParse(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    // Not JSON as it stands; the next rung of the ladder is tried.
    return null;
  }
}
