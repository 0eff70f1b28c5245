/** A binary heap of indexes kept in a plain array; whoever owns the array changes it only through these two. */

/** Adds an index to a heap. */
export function pushIndex(heap: number[], item: number): void {
  let at = heap.push(item) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above] as number;
    if (parent <= item) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = item;
}

/** Takes the smallest index out of a heap, or gives undefined when it is empty. */
export function popIndex(heap: number[]): number | undefined {
  const smallest = heap[0];
  const item = heap.pop();
  if (item === undefined || heap.length === 0) return smallest;
  let at = 0;
  for (let below = 1; below < heap.length; below = 2 * at + 1) {
    const right = heap[below + 1];
    if (right !== undefined && right < (heap[below] as number)) below += 1;
    const child = heap[below] as number;
    if (child >= item) break;
    heap[at] = child;
    at = below;
  }
  heap[at] = item;
  return smallest;
}
