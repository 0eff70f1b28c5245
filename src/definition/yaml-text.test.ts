/** What is shown as YAML can be run as YAML (SPEC S1.1). */
import { expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowText, requireWorkflow } from './load.ts';
import { toYaml } from './yaml-text.ts';

it('keeps a key `<<` of a value apart from the one that takes over keys', async () => {
  const value = { a: { '<<': { b: 1 } }, '<<': false };
  const workflow = { name: 'a', tasks: { one: { uses: 'transform', with: { value } } } };
  const read = requireWorkflow(await checkWorkflowText(toYaml(workflow), { handlers: BUILT_IN_HANDLERS }));
  expect(read.tasks).toMatchObject({ one: { with: { value } } });
});
