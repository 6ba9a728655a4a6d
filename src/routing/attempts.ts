import type { RouterError } from '../core/errors.ts'
import type { Target } from '../manifest/target.ts'
import type { Targets } from './resolve.ts'

/** The target that was tried last, and the number of attempts. */
export type Attempted = { target: Target; attempts: number }

/**
 * Tries the targets in turn, and returns the result of the first that succeeds, else that of the last one tried: an error
 * that every target would share ends the attempts. `superseded` gets the failures after which another target is tried.
 */
export async function attempt<Result extends { error?: RouterError | undefined }>(
  targets: Targets,
  tryTarget: (target: Target) => Promise<Result>,
  superseded: (failed: Result & Attempted) => void = () => {},
): Promise<Result & Attempted> {
  let [target, ...others] = targets
  for (let attempts = 1; ; attempts++) {
    const result = await tryTarget(target)
    const next = result.error?.retryable ? others.shift() : undefined
    if (!next) return { ...result, target, attempts }
    superseded({ ...result, target, attempts })
    target = next
  }
}
