import type { CallId, Decide, Mode } from './provider.ts'
import type { Got } from './sdk.ts'
import type { VirtualTime } from './virtual-time.ts'

/** A way from clients to providers. `asked` has the times of all requests that reached the first provider. */
export type Way = {
  asked: number[]
  /** Starts a call, and returns what makes one of its tries. */
  call(id: CallId): (signal: AbortSignal) => Promise<Got>
}

/** Calls that go to the first provider without a router. */
export function direct({ decide, mode, time }: { decide: Decide; mode: Mode; time: VirtualTime }): Way {
  const asked: number[] = []
  return {
    asked,
    call(id) {
      let number = 0
      return async (signal) => {
        asked.push(time.now)
        const outcome = decide(id, number++)
        switch (outcome.kind) {
          case 'status':
            await time.sleep(outcome.ms, signal)
            return { kind: 'error', status: outcome.status, headers: outcome.headers }
          case 'reset':
            await time.sleep(outcome.ms, signal)
            return { kind: 'broken connection' }
          case 'silence':
            return await new Promise<Got>(() => {})
          case 'cut':
            await time.sleep(outcome.lastMs, signal)
            // A whole answer that is cut has begun as well: its headers are there.
            return { kind: 'broken answer' }
          case 'answer':
            await time.sleep(mode === 'whole' ? outcome.lastMs : outcome.firstMs, signal)
            return { kind: 'answer' }
        }
      }
    },
  }
}
