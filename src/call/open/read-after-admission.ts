import type { Key } from '../../access/keys.ts'
import type { OperationBody } from '../../api/operation-api.ts'
import type { Caller, ConcurrencyLimiter, Release } from '../../routing/health/concurrency-limiter.ts'
import type { BodyProgress, Call } from '../types.ts'

/**
 * Waits until one more call may run, which it does until its end, and reads its body: a call that is refused is refused unread. A call
 * whose body is slow gives its place to others until the body has arrived. Rejects with RouterError `rate_limited`.
 */
export async function readAfterAdmission(
  key: Pick<Key, 'id' | 'organization' | 'labels'>,
  { signal, atEnd, onAdmitted, readBody }: Pick<Call, 'signal' | 'atEnd' | 'onAdmitted' | 'readBody'>,
  { gate, onField }: { gate: ConcurrencyLimiter } & Pick<BodyProgress, 'onField'>,
): Promise<OperationBody> {
  const caller = callerOf(key)
  let leave: Release = () => {}
  const enter = async () => {
    const entering = gate.enter(caller, signal)
    leave = entering instanceof Promise ? await entering : entering
    atEnd(leave)
  }
  await enter()
  onAdmitted?.({
    giveWay() {
      const yields = gate.mustYield(caller)
      if (yields) leave()
      return yields
    },
    offer: () => gate.offer(leave),
  })
  let isSlow = false
  const onSlow = () => {
    isSlow = true
    leave()
  }
  const body = await readBody({ onSlow, onField })
  if (isSlow) await enter()
  return body
}

/** Returns the caller, for limits of concurrency. Calls of keys with the label `priority: low` are refused first. */
export function callerOf({ id, organization, labels }: Pick<Key, 'id' | 'organization' | 'labels'>): Caller {
  return { organization, key: id, isLow: labels.priority === 'low' }
}
