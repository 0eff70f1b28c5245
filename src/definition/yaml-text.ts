/** Values as YAML text that reads back as the same value. */
import { Document, isScalar, visit } from 'yaml';

/** The library writes a key `<<` without quotes, and then it would take over the keys below it. */
export function toYaml(value: unknown): string {
  const document = new Document(value);
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && key.value === '<<') key.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}
