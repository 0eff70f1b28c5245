/** The pages that come from the code: path and text. */
import { ERROR_CODES } from '../src/base/error-codes.ts';
import { COMMANDS } from '../src/cli/commands/registry.ts';
import { PROBLEM_CODES } from '../src/definition/problem.ts';
import { renderTransitionDiagram } from '../src/domain/transition-diagram.ts';
import { BUILT_IN_HANDLERS } from '../src/handlers/registry.ts';
import { renderCliPage } from './cli-page.ts';
import { renderHandlersPage } from './handlers-page.ts';
import { renderHttpPage } from './http-page.ts';

const GENERATED = '<!-- Written by `npm run generate`; change the code, not this page. -->';

/** Commands are loaded when they are called, so their page alone has to be waited for. */
const CLI_PAGE = await renderCliPage(COMMANDS);

/** A page and where it belongs. */
export interface GeneratedPage {
  readonly path: string;
  readonly text: string;
}

/** All generated pages. */
export function generatedPages(): readonly GeneratedPage[] {
  const page = (path: string, body: string): GeneratedPage => ({
    path,
    text: `${GENERATED}\n\n${body.trimEnd()}\n`,
  });
  return [
    page('docs/reference/cli.md', CLI_PAGE),
    page('docs/reference/errors.md', errorsPage()),
    page('docs/reference/http-api.md', renderHttpPage()),
    page('docs/reference/problems.md', problemsPage()),
    page('docs/reference/transitions.md', renderTransitionDiagram()),
    page('docs/reference/handlers.md', renderHandlersPage(BUILT_IN_HANDLERS)),
  ];
}

function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, exit, retryable, summary, hint }]) =>
      `| \`${code}\` | ${status} | ${exit} | ${retryable ? 'yes' : 'no'} | ${summary} | ${hint} |`,
  );
  return `# Error codes

Every error has the shape \`{"error": {"code", "message", "hint", "details"}}\`, on the wire and under \`--json\`.

| code | HTTP | exit | try again | what happened | what to do |
|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function problemsPage(): string {
  const rows = Object.entries(PROBLEM_CODES).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return `# Problems in workflow files

\`relay validate\` reports all of them at once, each with its path, line and column, and a hint where one helps.

| code | meaning |
|---|---|
${rows.join('\n')}
`;
}
