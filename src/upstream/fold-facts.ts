import { randomUUID } from 'node:crypto'
import type { FoldFacts } from '../core/fold.ts'
import type { Provider } from '../manifest/provider.ts'

/** The facts for folding an answer of this provider. */
export function foldFacts({ maker }: Provider): FoldFacts {
  return { maker, newId: randomUUID, now: () => Math.floor(Date.now() / 1_000) }
}
