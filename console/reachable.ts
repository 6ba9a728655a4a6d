import { effect, signal } from '@preact/signals'

/** False from the first request that finds no router until one is answered. */
export const isReachable = signal(true)

/** Count of the router's returns: what was loaded before one may be out of date. */
export const returns = signal(0)

/** Time of the last answer before the router stopped answering: what is displayed is not newer. Unix milliseconds. */
export const lastAnswer = signal(Date.now())

const probeMs = 5_000
const againMs = 1_000

/** Records whether a request was answered. */
export function noteAnswer(isAnswered: boolean): void {
  if (isAnswered) lastAnswer.value = Date.now()
  isReachable.value = isAnswered
}

/** Checks whether an answer comes from a proxy that finds no router behind it: the router's own errors are JSON. */
export function isFromProxy({ status, headers }: Response): boolean {
  return [502, 503, 504].includes(status) && !(headers.get('content-type') ?? '').includes('json')
}

/** Asks now and then whether the router answers, and more often as long as it does not; at once when somebody looks at the page again. */
export function watchRouter(): void {
  effect(() => {
    const timer = setInterval(probe, isReachable.value ? probeMs : againMs)
    return () => clearInterval(timer)
  })
  document.addEventListener('visibilitychange', probe)
  let was = true
  effect(() => {
    if (isReachable.value && !was) returns.value++
    was = isReachable.value
  })
}

/** Resolves as soon as the router answers. */
export function untilReachable(): Promise<void> {
  return new Promise((resolve) => {
    const end = isReachable.subscribe((isAnswered) => {
      if (!isAnswered) return
      resolve()
      // The first call comes before there is something to end.
      queueMicrotask(() => end())
    })
  })
}

let isProbing = false

async function probe(): Promise<void> {
  if (document.hidden || isProbing) return
  isProbing = true
  const isAnswered = await fetch('../health', { cache: 'no-store', signal: AbortSignal.timeout(probeMs) }).then(
    (response) => !isFromProxy(response),
    () => false,
  )
  isProbing = false
  noteAnswer(isAnswered)
}
