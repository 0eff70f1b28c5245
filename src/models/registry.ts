/** The model providers of this build. Adding one is a file and a line here. */
import { didYouMean } from '../base/suggest.ts';
import type { ModelProvider } from './model.ts';
import { offline } from './offline.ts';

const PROVIDERS: ReadonlyMap<string, ModelProvider> = new Map([offline].map((one) => [one.name, one]));

/** A provider with the name of one of its models, or why there is none. */
export type FoundModel =
  | { readonly ok: true; readonly provider: ModelProvider; readonly model: string }
  | { readonly ok: false; readonly message: string };

/** Finds the provider that a reference such as `offline/brief` names. */
export function findModel(reference: string): FoundModel {
  const slash = reference.indexOf('/');
  const name = reference.slice(0, Math.max(slash, 0));
  const provider = PROVIDERS.get(name);
  if (provider !== undefined) return { ok: true, provider, model: reference.slice(slash + 1) };
  const known = [...PROVIDERS.keys()];
  const hint = didYouMean(name, known) ?? 'more providers come with a later version';
  return {
    ok: false,
    message: `there is no model provider \`${name}\`; known: ${known.join(', ')}; ${hint}`,
  };
}
