/** The page about the HTTP API, from the contract. */
import { allRoutes, type Route } from '../client/src/index.ts';

/** Every route in a table per resource. */
export function renderHttpPage(): string {
  const groups = new Map<string, Route[]>();
  for (const { name, route } of allRoutes()) {
    const [group = ''] = name.split('.');
    groups.set(group, [...(groups.get(group) ?? []), route]);
  }
  const sections = [...groups].map(
    ([name, routes]) => `## ${title(name)}

| route | scope | what it does | query | body |
|---|---|---|---|---|
${routes.map(row).join('\n')}`,
  );
  return `# The HTTP API

Below \`/api/v1\`, except \`/openapi.json\` (OpenAPI 3.1, with the shape of everything), \`/docs\` (the same for people), \`/healthz\`,
\`/readyz\` and \`/metrics\`. Every call needs \`Authorization: Bearer TOKEN\`; a \`POST\` needs \`content-type: application/json\`. Errors are
\`{"error": {"code", "message", "hint", "details"}}\` with the [codes](errors.md) of the table, lists are \`{"items", "next_cursor"}\`. Routes marked
with * also answer as server-sent events when asked with \`Accept: text/event-stream\`, and go on after \`Last-Event-ID\`.

${sections.join('\n\n')}
`;
}

function title(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`;
}

function row(route: Route): string {
  const { method, path, scope, summary, query, body, streams, takesBytes } = route;
  const content = takesBytes ? 'bytes' : fields(body.shape);
  return `| \`${method} ${path}\`${streams ? ' *' : ''} | ${scope} | ${summary} | ${fields(query.shape)} | ${content} |`;
}

function fields(shape: Readonly<Record<string, unknown>>): string {
  return Object.keys(shape)
    .map((name) => `\`${name}\``)
    .join(' ');
}
