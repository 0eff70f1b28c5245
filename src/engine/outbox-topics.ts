/** The names under which a store meets its workers on a broker. */
import { randomUUID } from 'node:crypto';

const HOME_CHARS = 8;

/** A name for a store that has none yet; two stores can then share a broker. */
export function newHome(): string {
  return randomUUID().slice(0, HOME_CHARS);
}

/** Where the messages of a queue go. */
export function topicOf(home: string, queue_key: number): string {
  return `relay.${home}.${queue_key}`;
}
