import { writeSync } from 'node:fs'
import { openLedger } from '../../src/money/ledger.ts'
import { openStore } from '../../src/store/open.ts'
import { plainRecord } from './plain-record.ts'

/** Settles calls without end, 100 at a time, and names each one that was settled on its output. Ends by being killed. */
const store = await openStore(`sqlite:${process.argv[2]}`)
const ledger = openLedger(store.ledger.openWriter(), {
  // A busy machine takes its time to start the writing thread.
  patienceMs: 60_000,
  onError: (error) => {
    throw error
  },
})

async function settleForEver(): Promise<void> {
  for (;;) {
    const record = plainRecord()
    await ledger.settle(record)
    say(`${record.id}\n`)
  }
}

/** At once, without a buffer that would die with the process; who listens may be slow. */
function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, line)
      return
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EAGAIN') throw thrown
    }
  }
}

await Promise.all(Array.from({ length: 100 }, settleForEver))
