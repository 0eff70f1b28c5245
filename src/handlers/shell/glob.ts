/** File patterns: `*` and `?` within a name, `**` for any folders. Nothing else is special. */

/** A pattern that can be asked folder by folder. */
export interface Glob {
  readonly pattern: string;
  /** False when the pattern is the name of one file. */
  readonly hasWildcard: boolean;
  matches(path: string): boolean;
  /** Whether a file below this folder could match. */
  mayContain(folder: string): boolean;
}

/** Compiles a pattern of `/`-separated names relative to a folder. */
export function compileGlob(pattern: string): Glob {
  const names = pattern.split('/').filter((name) => name !== '' && name !== '.');
  const tests = names.map((name) => (name === '**' ? null : nameTest(name)));
  return {
    pattern,
    hasWildcard: /[*?]/.test(pattern),
    matches: (path) => reachable(tests, path.split('/')).has(tests.length),
    mayContain: (folder) => [...reachable(tests, folder.split('/'))].some((at) => at < tests.length),
  };
}

type NameTest = (name: string) => boolean;

/** Compares one name in linear time: on a mismatch only the last `*` is asked to take one character more. */
function nameTest(pattern: string): NameTest {
  return (name) => {
    let at = 0;
    let star = -1;
    let resumeAt = 0;
    for (let index = 0; index < name.length; ) {
      if (pattern[at] === '*') {
        star = at++;
        resumeAt = index;
      } else if (pattern[at] === '?' || pattern[at] === name[index]) {
        at++;
        index++;
      } else if (star >= 0) {
        at = star + 1;
        index = ++resumeAt;
      } else return false;
    }
    return /^\**$/.test(pattern.slice(at));
  };
}

/** The places in the pattern where one can stand after `names`; `**` (null) may take none, one or many. */
function reachable(tests: readonly (NameTest | null)[], names: readonly string[]): ReadonlySet<number> {
  let places = withSkips(tests, new Set([0]));
  for (const name of names) {
    const next = new Set<number>();
    for (const at of places) {
      if (at >= tests.length) continue;
      const test = tests[at];
      if (test === null) next.add(at);
      else if (test?.(name)) next.add(at + 1);
    }
    places = withSkips(tests, next);
  }
  return places;
}

function withSkips(tests: readonly (NameTest | null)[], places: ReadonlySet<number>): ReadonlySet<number> {
  const all = new Set(places);
  for (const at of all) if (tests[at] === null) all.add(at + 1);
  return all;
}
