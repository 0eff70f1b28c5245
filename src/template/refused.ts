/** What Jinja2 has and Relay leaves out on purpose, with the reason and what to do instead. */

/** Why something is refused. */
export interface Refusal {
  readonly message: string;
  readonly hint?: string;
}

const NO_CODE = 'is not supported because templates cannot load or define code';
const TAGS: Readonly<Record<string, Refusal>> = {
  ...Object.fromEntries(
    ['block', 'endblock', 'extends', 'include', 'import', 'from', 'macro', 'endmacro', 'call', 'endcall'].map(
      (name) => [name, { message: `\`{% ${name} %}\` ${NO_CODE}` }],
    ),
  ),
  do: {
    message: '`{% do %}` is not supported because nothing in a template can be changed',
    hint: 'use `{% set %}`',
  },
  with: { message: '`{% with %}` is not supported', hint: 'use `{% set %}`' },
  autoescape: {
    message: '`{% autoescape %}` is not supported',
    hint: 'use the filter `escape` where it is needed',
  },
  break: { message: '`{% break %}` is not supported', hint: 'filter the list: `{% for x in xs if … %}`' },
  continue: {
    message: '`{% continue %}` is not supported',
    hint: 'filter the list: `{% for x in xs if … %}`',
  },
  elseif: { message: '`elseif` is not a statement', hint: 'write `elif`' },
  elsif: { message: '`elsif` is not a statement', hint: 'write `elif`' },
};

const NO_REGEX = 'is not supported because a regular expression can take unbounded time';
const FILTERS: Readonly<Record<string, Refusal>> = {
  random: {
    message: 'the filter `random` is not supported because a rendering must give the same result every time',
    hint: 'use `first`, or pass the choice in as an input',
  },
  regex_search: {
    message: `the filter \`regex_search\` ${NO_REGEX}`,
    hint: 'use `in`, `.split()` or `.startswith()`',
  },
  regex_replace: { message: `the filter \`regex_replace\` ${NO_REGEX}`, hint: 'use `replace`' },
  attr: { message: 'the filter `attr` is not supported', hint: 'use brackets: `value[name]`' },
  pprint: { message: 'the filter `pprint` is not supported', hint: 'use `tojson(indent=2)`' },
  xmlattr: { message: 'the filter `xmlattr` is not supported', hint: 'use `escape` on each value' },
  keys: {
    message: 'there is no filter `keys`',
    hint: 'use `.keys()`, or `list`, which gives the keys of a map',
  },
  values: { message: 'there is no filter `values`', hint: 'use `.values()`' },
};

const METHODS: Readonly<Record<string, Refusal>> = {
  format: {
    message: 'the method `.format()` is not supported',
    hint: "use the filter: `'%s' | format(value)`",
  },
  append: {
    message: '`.append()` is not supported because lists cannot be changed',
    hint: 'write `xs + [x]`',
  },
  update: {
    message: '`.update()` is not supported because maps cannot be changed',
    hint: 'write `dict(a, key=value)`',
  },
};

/** Why a statement is refused, or null when it is not known at all. */
export const refusedTag = (name: string): Refusal | null => find(TAGS, name);
/** Why a filter is refused, or null when it is not known at all. */
export const refusedFilter = (name: string): Refusal | null => find(FILTERS, name);
/** Why a method is refused, or null when it is not known at all. */
export const refusedMethod = (name: string): Refusal | null => find(METHODS, name);

function find(table: Readonly<Record<string, Refusal>>, name: string): Refusal | null {
  return Object.hasOwn(table, name) ? (table[name] ?? null) : null;
}
