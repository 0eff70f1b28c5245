/** Places: the caret stands exactly under the reference, however the text is written (SPEC S1.4). */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowText } from './load.ts';

const HEAD = 'name: a\ntasks:\n  one:\n    uses: transform\n    with:\n';

/** What stands in the file where the only problem is shown. */
async function shownAt(value: string, head = HEAD): Promise<string> {
  const text = `${head}${value}\n`;
  const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
  expect(errors).toHaveLength(1);
  const [{ line, column } = { line: 0, column: 0 }] = errors;
  return (text.split(/\r?\n/)[(line ?? 0) - 1] ?? '').slice((column ?? 0) - 1);
}

// SPEC S1.4
describe('the place of a problem in a template', () => {
  for (const [style, value] of [
    ['plain text', '      value: say {{ nope }} now'],
    ['plain text over two lines', '      value: say\n        and {{ nope }} now'],
    ['single quotes', "      value: 'say {{ nope }} now'"],
    ['single quotes with quotes in them', "      value: 'it''s ''it'' {{ nope }} now'"],
    ['single quotes over two lines', "      value: 'say it''s\n        {{ nope }} now'"],
    ['double quotes', '      value: "say {{ nope }} now"'],
    ['double quotes with escapes', '      value: "\\"a\\"\\n\\t\\u00e9\\x41\\\\ \\U0001F600 {{ nope }} now"'],
    ['double quotes over lines', '      value: "say\n        this\\\n        \\ or {{ nope }} now"'],
    ['a literal block', '      value: |\n        first\n          second {{ nope }} now'],
    [
      'a literal block with a header',
      '      value: |2-  # note: it is {{ x }}\n        first\n          second {{ nope }} now',
    ],
    ['a folded block', '      value: >-\n        first\n        second\n\n        third {{ nope }} now'],
    ['a folded block with deeper lines', '      value: >\n        first\n          {{ nope }} now'],
    ['a flow mapping', '      { value: { a: ["x", "{{ nope }} now"] } }'],
    ['a line with emoji before it', '      value: "👩‍🔬 {{ nope }} now"'],
    ['a key that needs quotes', '      value: { "a b": "{{ nope }} now" }'],
  ] as const) {
    it(`is exact in ${style}`, async () => {
      expect(await shownAt(value)).toMatch(/^nope \}\} now/);
    });
  }

  it('is exact with Windows line ends', async () => {
    const value = '      value: |\r\n        first\r\n        say {{ nope }} now';
    expect(await shownAt(value, HEAD.replaceAll('\n', '\r\n'))).toMatch(/^nope \}\} now/);
  });

  it('is exact for an expression at the very start of quoted text', async () => {
    const head = 'name: a\ntasks:\n  one:\n    uses: transform\n    with: { value: 1 }\n';
    expect(await shownAt('    if: "nope > 1"', head)).toBe('nope > 1"');
  });

  it('is where the anchor stands when the text comes through an alias', async () => {
    const head =
      'name: a\nlabels: { x: &text "say {{ nope }}" }\ntasks:\n  one:\n    uses: transform\n    with:\n';
    expect(await shownAt('      value: *text', head)).toBe('nope }}" }');
  });

  it('is in the merged mapping when the key comes from there', async () => {
    const text =
      'name: a\ntasks:\n  one: &one { uses: transform, with: { value: 1 }, timeout: soon }\n  two: { <<: *one, needs: one }\n';
    const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
    expect(errors.map(({ path, line, column }) => ({ path, line, column }))).toEqual([
      { path: 'tasks.one.timeout', line: 3, column: 61 },
      { path: 'tasks.two.timeout', line: 3, column: 61 },
    ]);
  });
});

// SPEC S1.4
describe('the words for broken YAML', () => {
  for (const [text, message, hint] of [
    ['name: a\n\ttasks: {}', 'tabs are not allowed as indentation', 'indent with spaces'],
    ['name: a\ntasks: {', 'a `{` is not closed by a `}`', 'mend the indentation, or close the bracket'],
    ['name: a\ntasks: [1', 'a `[` is not closed by a `]`', 'mend the indentation, or close the bracket'],
    [
      'name: "a\ntasks: {}\n',
      'the closing `"` is missing',
      'a quote, a bracket or the `:` after a key is missing',
    ],
    ['name: a\n}', '`}` does not belong here', 'mend the indentation, or put quotes around the text'],
    [
      'name: a\nvalue: {{ x }} y\n',
      'the value has ended; text after it is unexpected',
      'put quotes around a value that starts with `{`: "{{ … }}"',
    ],
    [
      'name: a: b\n',
      'nested mappings are not allowed in compact mappings',
      'put quotes around text that has `: ` in it, or mend the indentation',
    ],
    [
      'name: a\n---\nname: b\n',
      'a file holds one workflow',
      'remove the `---` that starts a second document',
    ],
    [
      'name: *x\n',
      'there is no anchor `&x` before this alias',
      'put quotes around text that starts with `*`',
    ],
  ] as const) {
    it(`are: ${message}`, async () => {
      const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
      expect(errors[0]).toMatchObject({ code: 'syntax', message, hint });
    });
  }

  it('are said once for one mistake, not for every word after it', async () => {
    const text = 'name: a\ntasks:\n  one: { uses: >-\n    x {{ y }} z }\n  two: 3\n  three: 4\n';
    const { errors } = await checkWorkflowText(text, { handlers: BUILT_IN_HANDLERS });
    expect(errors.length).toBeLessThanOrEqual(2);
  });

  it('name a template without quotes, which YAML reads as a mapping', async () => {
    const { errors } = await checkWorkflowText(`${HEAD}      value: {{ inputs.x }}\n`, {
      handlers: BUILT_IN_HANDLERS,
    });
    expect(errors).toMatchObject([
      {
        message: 'a key must be plain text',
        hint: 'put quotes around a value that starts with `{`: "{{ … }}"',
      },
    ]);
  });
});
