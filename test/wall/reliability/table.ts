import { direct, type Way } from './direct.ts'
import { type Fault, failingAtRandom, failingUntil, faults, type Mode } from './provider.ts'
import { type RoutedWay, routed } from './routed.ts'
import { callBySdk, type Sdk, sdks } from './sdk.ts'
import { seeded, VirtualTime } from './virtual-time.ts'

/** One kind of failure, how often attempts fail, and who calls. */
export type Cell = { fault: Fault; rate: number; mode: Mode; clients: number; sdk: Sdk }

export const rates = [0.05, 0.3, 0.5] as const

/** All combinations. */
export const cells: readonly Cell[] = faults.flatMap((fault) =>
  rates.flatMap((rate) =>
    (['streamed', 'whole'] as const).flatMap((mode) =>
      [1, 10].flatMap((clients) => sdks.map((sdk) => ({ fault, rate, mode, clients, sdk }))),
    ),
  ),
)

export function nameOf({ fault, rate, mode, clients, sdk }: Cell): string {
  return `${fault}, ${rate * 100} %, ${mode}, ${clients} × ${sdk}`
}

/** Shares of successful calls: without a router, through it to one target, and to two that fail alike. */
export type Rates = { direct: number; one: number; two: number }

/** Calls of a cell as it was called, and what the router made of them. */
type Played = { succeeded: number; way: Way }

/** A router sees so many calls; then another one begins with the next seed. */
const callsOfRouter = 100

/** Makes so many calls in each of the three ways; every attempt of a call fails or not by the same draw. */
export async function measure(cell: Cell, calls: number): Promise<Rates> {
  const rounds = Math.ceil(calls / callsOfRouter)
  const sums = { direct: 0, one: 0, two: 0 }
  for (let seed = 1; seed <= rounds; seed++) {
    sums.direct += (await play(cell, { seed, targets: 0 })).succeeded
    sums.one += (await play(cell, { seed, targets: 1 })).succeeded
    sums.two += (await play(cell, { seed, targets: 2 })).succeeded
  }
  const share = (sum: number) => sum / (rounds * callsOfRouter)
  return { direct: share(sums.direct), one: share(sums.one), two: share(sums.two) }
}

/** Makes the calls of one seed; without targets they go to the provider itself. */
export async function play(cell: Cell, { seed, targets }: { seed: number; targets: number }): Promise<Played> {
  const { fault, rate, mode, clients, sdk } = cell
  const time = new VirtualTime()
  const decide = failingAtRandom(fault, { rate, seed })
  const way =
    targets === 0
      ? direct({ decide, mode, time })
      : routed({ decide, mode, time, targets, random: seeded(seed * 7 + targets) })
  const all = Array.from({ length: clients }, async (_, client) => {
    const random = seeded(seed * 1_000 + client)
    let succeeded = 0
    for (let call = 0; call < callsOfRouter / clients; call++) {
      await time.sleep(random() * 2 * pauseMs)
      const result = await callBySdk(sdk, way.call({ client, call }), { time, random })
      if (result.succeeded) succeeded++
    }
    return succeeded
  })
  const succeeded = (await time.run(Promise.all(all))).reduce((sum, one) => sum + one, 0)
  return { succeeded, way }
}

/** Plays the calls of one seed through the router. */
export async function playRouted(cell: Cell, at: { seed: number; targets: 1 | 2 }): Promise<RoutedWay> {
  return (await play(cell, at)).way as RoutedWay
}

/** The mean time between two calls of a client. Milliseconds. */
const pauseMs = 1_500

export type Outage = { fault: Fault; clients: number; sdk: Sdk; targets: 0 | 1 | 2; seed: number }

/** Calls while all providers are down. `asked`: the requests that the first one got; `tries`: those that the clients made. */
export async function outage({
  fault,
  clients,
  sdk,
  targets,
  seed,
}: Outage): Promise<{ asked: number; tries: number }> {
  const time = new VirtualTime()
  const decide = failingUntil(fault, outageMs, time)
  const mode = 'whole'
  const way =
    targets === 0
      ? direct({ decide, mode, time })
      : routed({ decide, mode, time, targets, random: seeded(seed * 7 + targets) })
  let tries = 0
  const all = Array.from({ length: clients }, async (_, client) => {
    const random = seeded(seed * 1_000 + client)
    for (let call = 0; ; call++) {
      await time.sleep(random() * 2 * pauseMs)
      if (time.now >= outageMs) return
      const send = way.call({ client, call })
      const counted = (signal: AbortSignal) => {
        if (time.now < outageMs) tries++
        return send(signal)
      }
      await callBySdk(sdk, counted, { time, random })
    }
  })
  await time.run(Promise.all(all))
  return { asked: way.asked.filter((at) => at < outageMs).length, tries }
}

const outageMs = 20_000
