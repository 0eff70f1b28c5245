/** `/docs`: the OpenAPI document as a page that needs nothing from elsewhere: no script, no style of another host. */
import { allRoutes, type Route } from '#client';
import { jsonSchemaOf } from './validation.ts';

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h2{margin-top:2.5rem;text-transform:capitalize}details{border-top:1px solid #ddd;padding:.4rem 0}summary{cursor:pointer}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f5f5f5;padding:.75rem;overflow:auto}
b{display:inline-block;min-width:4.5rem}small{color:#666}
@media(prefers-color-scheme:dark){body{color:#e4e4e4;background:#161616}pre{background:#222}details{border-color:#333}small{color:#999}}`;

/** The page. */
export function docsPage(): string {
  const groups = new Map<string, string[]>();
  for (const { name, route } of allRoutes()) {
    const [group = ''] = name.split('.');
    groups.set(group, [...(groups.get(group) ?? []), entry(route)]);
  }
  const sections = [...groups].map(
    ([name, entries]) => `<h2>${escapeHtml(name.replaceAll('_', ' '))}</h2>${entries.join('')}`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Relay API</title>
<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body><h1>Relay API</h1>
<p>Machine-readable: <a href="/openapi.json">/openapi.json</a>. Every call needs <code>Authorization: Bearer TOKEN</code>,
bodies are JSON, errors are <code>{"error": {"code", "message", "hint", "details"}}</code>, lists are
<code>{"items", "next_cursor"}</code>.</p>${sections.join('')}</body></html>`;
}

function entry(route: Route): string {
  const parts = [
    ...(Object.keys(route.query.shape).length === 0 ? [] : [block('query', route.query, 'input')]),
    ...(route.method === 'POST' ? [block('body', route.body, 'input')] : []),
    ...(route.response === 'bytes'
      ? ['<p>answers with bytes</p>']
      : [block('answer', route.response, 'output')]),
  ];
  const stream = route.streams ? ' <small>also as text/event-stream</small>' : '';
  return `<details><summary><b>${route.method}</b> <code>/api/v1${escapeHtml(route.path)}</code> ${escapeHtml(
    route.summary,
  )} <small>${route.scope}</small>${stream}</summary>${parts.join('')}</details>`;
}

function block(title: string, schema: Parameters<typeof jsonSchemaOf>[0], io: 'input' | 'output'): string {
  return `<p>${title}</p><pre>${escapeHtml(JSON.stringify(jsonSchemaOf(schema, io), null, 2))}</pre>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
