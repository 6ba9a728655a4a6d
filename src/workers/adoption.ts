import type { Accounting } from '../app/accounting.ts'
import type { SharedState } from '../routing/shared-state.ts'
import type { Handover } from './handover.ts'
import { AdoptedLines, type Handed } from './threads/adopted-lines.ts'
import type { FromOld } from './threads/handover-messages.ts'
import type { Lines } from './threads/lines.ts'
import type { Adoption } from './types.ts'

type AdoptionParts = { books: Accounting; routing: SharedState; handover(): Handover; lines(): Lines }

export function openAdoption({ books, routing, handover, lines }: AdoptionParts): Adoption {
  const processes = new Set<AdoptedLines>()
  let lastPurse = 0
  const onSaid = (said: FromOld) => {
    if (said.kind === 'found') routing.merge(said.findings)
    if (said.kind === 'key' || said.kind === 'organization' || said.kind === 'signatures' || said.kind === 'found')
      lines().tell(said)
  }
  const options: ConstructorParameters<typeof AdoptedLines>[1] = {
    money: () => handover().money(),
    isWritten: books.isWritten,
    underWay: new Map(),
    newPurse: () => --lastPurse,
    onSaid,
  }
  // They are listened to when the bank can recall what they hold, which it may have to for the first thing that they say.
  const adopt = (handed: Handed): AdoptedLines => {
    const adopted = new AdoptedLines(handed, options)
    processes.add(adopted)
    return adopted
  }
  /** Lines whose process has ended have come by themselves now, with new purses. */
  const release = () => {
    for (const one of processes) {
      if (!one.isGone) continue
      one.release()
      processes.delete(one)
    }
  }
  return {
    first: (handed) => adopt(handed).listen(),
    later(handed) {
      const adopted = adopt(handed)
      release()
      adopted.tell({ kind: 'adopted' })
      adopted.tell({ kind: 'failure', failure: handover().money().writeFailure() })
      adopted.tell({ kind: 'found', findings: routing.findings() })
      adopted.tell({ kind: 'retire' })
      adopted.listen()
    },
    tell(told) {
      for (const one of processes) one.tell(told)
    },
    async recall(purse, accounts) {
      const found = [...processes].find((one) => one.purses().includes(purse))
      if (!found) throw new Error('the process ended')
      return await found.recall(purse, accounts)
    },
    purses: () => [...processes].flatMap((one) => one.purses()),
    async ended() {
      for (;;) {
        const running = [...processes].filter(({ isGone }) => !isGone)
        if (running.length === 0) return
        await Promise.all(running.map((one) => one.ended()))
        // They leave when that is heard.
        await null
      }
    },
    close() {
      for (const one of processes) one.close()
    },
  }
}
