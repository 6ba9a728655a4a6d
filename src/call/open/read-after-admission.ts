import type { Key } from '../../access/keys.ts'
import type { Caller } from '../../routing/gate.ts'
import type { Services } from '../handle-call.ts'
import type { Call } from '../types.ts'

/**
 * Waits until one call more may run, which it does until its end, and reads its body: who is refused is refused unread. A call whose
 * body is slow gives its place to others until the body has come. Rejects with RouterError `rate_limited`.
 */
export async function readInTurn<Body>(
  key: Pick<Key, 'organization' | 'labels'>,
  { signal, atEnd, readBody }: Pick<Call, 'signal' | 'atEnd'> & { readBody(onSlow: () => void): Promise<Body> },
  { gate }: Pick<Services, 'gate'>,
): Promise<Body> {
  const caller = callerOf(key)
  const entering = gate.enter(caller, signal)
  const leave = entering instanceof Promise ? await entering : entering
  atEnd(leave)
  let isSlow = false
  const body = await readBody(() => {
    isSlow = true
    leave()
  })
  if (isSlow) atEnd(await gate.enter(caller, signal))
  return body
}

/** Whose call it is. Keys with the label `priority: low` are the first whose calls are refused. */
export function callerOf({ organization, labels }: Pick<Key, 'organization' | 'labels'>): Caller {
  return { organization, isLow: labels.priority === 'low' }
}
