/**
 * A workflow as a TypeScript value. It is the file as an object, so everything a file can say can be said here, and
 * the compiler knows the tasks: a `needs` that names none of them does not compile.
 *
 * In a project of your own the import is `from 'relay'`.
 */
import { task, workflow } from '../../src/index.ts';

/** Parts that several workflows share are plain values. */
const patient = { timeout: '2m', retry: { max_attempts: 3, initial: '1s' } } as const;

/** One task per language, made by a function. */
const translation = (language: string) =>
  task({
    ...patient,
    uses: 'llm',
    with: { model: 'offline/translator', prompt: `Translate into ${language}: {{ tasks.draft.output }}` },
  });

export const brief = workflow({
  name: 'typed-brief',
  inputs: { topic: { type: 'string', default: 'tides' } },
  tasks: {
    draft: {
      ...patient,
      uses: 'llm',
      with: { model: 'offline/brief', prompt: 'Three sentences about {{ inputs.topic }}.' },
    },
    french: translation('French'),
    german: translation('German'),
    page: {
      needs: ['french', 'german'], // 'frensh' would be a compile error
      uses: 'transform',
      with: { value: ['{{ tasks.french.output }}', '{{ tasks.german.output }}'] },
    },
  },
  outputs: { page: '{{ tasks.page.output }}' },
});
