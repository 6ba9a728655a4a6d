import type { Books } from './books.ts'
import type { Handover } from './handover.ts'
import type { SharedState } from './routing/shared-state.ts'
import type { LinesHolder } from './serving-threads.ts'
import { AdoptedLines, type Handed } from './threads/adopted-lines.ts'
import type { FromOld } from './threads/handover-messages.ts'
import type { Lines } from './threads/lines.ts'

/** Lets the lines of other processes, whose last calls still run there, use the books of this one. */
export type Adoption = {
  /** Those of the process that has handed over its books. */
  first(handed: Handed): void
  /** Those of a process before that, when the one that had adopted them has ended. Throws the engine's errors. */
  later(handed: Handed): void
}

type AdoptionParts = {
  holder: LinesHolder
  books: Books
  routing: SharedState
  handover(): Handover
  lines(): Lines
}

export function openAdoption({ holder, books, routing, handover, lines }: AdoptionParts): Adoption {
  const onSaid = (said: FromOld) => {
    if (said.kind === 'found') routing.adopt(said.findings)
    if (said.kind === 'key' || said.kind === 'organization' || said.kind === 'signatures' || said.kind === 'found')
      lines().tell(said)
  }
  // They are listened to when the bank can recall what they hold, which it may have to for the first thing that they say.
  const adopt = (handed: Handed): AdoptedLines => {
    const adopted = new AdoptedLines(handed, { money: handover().money, isWritten: books.isWritten, onSaid })
    holder.adopted = adopted
    return adopted
  }
  return {
    first: (handed) => adopt(handed).listen(),
    later(handed) {
      holder.adopted?.release()
      const adopted = adopt(handed)
      adopted.tell({ kind: 'adopted' })
      adopted.tell({ kind: 'failure', failure: handover().money().writeFailure() })
      adopted.tell({ kind: 'found', findings: routing.findings() })
      adopted.tell({ kind: 'retire' })
      adopted.listen()
    },
  }
}
