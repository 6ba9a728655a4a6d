import { effect, signal } from '@preact/signals'

/** False from the first request that finds no router until one is answered. */
export const isReachable = signal(true)

/** Count of the router's returns: what was loaded before one may be out of date. */
export const returns = signal(0)

const probeMs = 5_000
const againMs = 1_000

/** Asks now and then whether the router answers, and more often as long as it does not. */
export function watchRouter(): void {
  effect(() => {
    const timer = setInterval(probe, isReachable.value ? probeMs : againMs)
    return () => clearInterval(timer)
  })
  let was = true
  effect(() => {
    if (isReachable.value && !was) returns.value++
    was = isReachable.value
  })
}

async function probe(): Promise<void> {
  if (document.hidden) return
  const isAnswered = await fetch('../health', { cache: 'no-store', signal: AbortSignal.timeout(probeMs) }).then(
    () => true,
    () => false,
  )
  isReachable.value = isAnswered
}
