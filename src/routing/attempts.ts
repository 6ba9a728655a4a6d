import { asRouterError } from '../core/errors.ts'
import type { Target } from '../manifest/target.ts'

/** What the first target that answered gave, and how many were asked. */
export type Attempted<Answer> = { answer: Answer; target: Target; attempts: number }

/** Asks each target in turn until one answers; a failure that another target would share ends the round. */
export async function attempt<Answer>(
  targets: readonly Target[],
  send: (target: Target, attempts: number) => Promise<Answer>,
): Promise<Attempted<Answer>> {
  for (const [index, target] of targets.entries()) {
    try {
      return { answer: await send(target, index + 1), target, attempts: index + 1 }
    } catch (thrown) {
      const error = asRouterError(thrown)
      if (!error.retryable || index === targets.length - 1) throw error
    }
  }
  throw new Error('there must be a target')
}
