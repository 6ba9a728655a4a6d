import type { Key } from '../access/keys.ts'
import type { Caller } from '../routing/gate.ts'
import type { Call } from './call.ts'
import type { Services } from './gateway.ts'

/** Waits until one call more may run, which it does until its end. Rejects with RouterError `rate_limited`. */
export async function letIn(
  key: Pick<Key, 'organization' | 'labels'>,
  { signal, atEnd }: Pick<Call, 'signal' | 'atEnd'>,
  { gate }: Pick<Services, 'gate'>,
): Promise<void> {
  const leave = gate.enter(callerOf(key), signal)
  atEnd(leave instanceof Promise ? await leave : leave)
}

/** Whose call it is. Keys with the label `priority: low` are the first whose calls are refused. */
export function callerOf({ organization, labels }: Pick<Key, 'organization' | 'labels'>): Caller {
  return { organization, isLow: labels.priority === 'low' }
}
