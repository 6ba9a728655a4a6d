import fc from 'fast-check'
import type { Standing } from '../../src/lending/account.ts'
import { type Bank, openBank } from '../../src/lending/bank.ts'
import { type BankLink, Purse } from '../../src/lending/purse.ts'

/** Lets everything go on that waits for no message. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await null
}

/** How long the bank waits for a purse that does not deliver what it holds. */
export const patienceMs = 60_000

/** A purse and its wire each way: messages arrive in order, when a test delivers them. */
export type WiredPurse = {
  id: number
  purse: Purse
  toBank: (() => void)[]
  toPurse: (() => void)[]
  /** Says what the purse's thread has to say, as it does before every other message. */
  flush(): void
  isDead: boolean
  whenDead: (() => void)[]
}

/** Many steps, each kind as often as its weight says. */
export function manySteps<What extends string, More extends object>(
  weights: Record<What, number>,
  more: { [Name in keyof More]: fc.Arbitrary<More[Name]> },
): fc.Arbitrary<({ what: What } & More)[]> {
  const kinds = (Object.keys(weights) as What[]).map((what) => ({
    weight: weights[what],
    arbitrary: fc.constant(what),
  }))
  const step = fc.record({ what: fc.oneof(...kinds), ...more }) as fc.Arbitrary<{ what: What } & More>
  return fc.array(step, { maxLength: 120, size: 'max' })
}

/** What a call that waits needs of an account. */
export type Wanted<Call> = { call: Call; account: string; need: number }

/**
 * Whether a refusal is right: at some moment while the call waited, less was free than it needs, when all the others that waited then and
 * are not refused come first.
 */
export class Refusals<Call extends { error?: unknown }> {
  readonly #moments = new Map<Call, { free: number; need: number; rivals: Wanted<Call>[] }[]>()

  /** All that wait at one moment, and what is free of an account then. */
  observe(waiting: readonly Wanted<Call>[], freeOf: (account: string) => number): void {
    for (const { call, account, need } of waiting) {
      const rivals = waiting.filter((other) => other.call !== call && other.account === account)
      const moments = this.#moments.get(call) ?? []
      this.#moments.set(call, [...moments, { free: freeOf(account), need, rivals }])
    }
  }

  isRight(call: Call): boolean {
    return (this.#moments.get(call) ?? []).some(({ free, need, rivals }) => {
      const first = rivals.filter((rival) => rival.call.error === undefined)
      return free - first.reduce((sum, rival) => sum + rival.need, 0) < need
    })
  }
}

/** What tests do with the wires: `unsaid` are messages that a purse has not sent yet, `onWay` hears of loans that travel to a purse. */
export type WireOptions = {
  now?: () => number
  mostIdle?: number | undefined
  readSpent?(account: string): bigint
  unsaid(wired: WiredPurse, bank: Bank): (() => void)[]
  onWay(standings: readonly Standing[], sign: 1n | -1n): void
}

export type Wires = ReturnType<typeof openWires>

/** A bank and purses. */
export function openWires(count: number, options: WireOptions) {
  const { mostIdle, now } = options
  const links = new Map<number, WiredPurse>()
  const bank = openBank({
    readSpent: options.readSpent ?? (() => 0n),
    recall: (id, accounts) =>
      new Promise((resolve, reject) => {
        const wired = links.get(id)
        if (!wired) return reject(new Error('gone'))
        wired.whenDead.push(() => reject(new Error('gone')))
        wired.toPurse.push(() => {
          wired.flush()
          const held = wired.purse.recall(accounts)
          wired.toBank.push(() => resolve(held))
        })
      }),
    patienceMs,
    longestMs: Number.POSITIVE_INFINITY,
    ...(now && { now }),
    ...(mostIdle !== undefined && { mostIdle }),
  })

  let last = 0
  const join = (): WiredPurse => {
    const id = ++last
    const toBank: (() => void)[] = []
    const toPurse: (() => void)[] = []
    const flush = () => void toBank.push(...options.unsaid(wired, bank))
    const link = linkOf({ id, toBank, toPurse, flush }, bank, options)
    const purse = new Purse(link, mostIdle === undefined ? {} : { mostIdle })
    const wired: WiredPurse = { id, purse, toBank, toPurse, flush, isDead: false, whenDead: [] }
    links.set(id, wired)
    bank.join(id)
    return wired
  }
  const purses = Array.from({ length: count }, join)
  return {
    bank,
    purses,
    /** A purse whose thread dies: what it had said arrives, the rest is lost, it cannot be asked, and leaves; another takes its place. */
    async die(index: number) {
      const dead = purses[index] as WiredPurse
      for (const message of dead.toBank.splice(0)) message()
      links.delete(dead.id)
      dead.isDead = true
      dead.toPurse.length = 0
      for (const end of dead.whenDead) end()
      await settleDown()
      bank.leave(dead.id)
      purses[index] = join()
    },
    /** All that is on its way to a purse and from it. `watch` looks at the state after each message. */
    async deliver(index: number, watch = () => {}) {
      const { toBank, toPurse, flush } = purses[index] as WiredPurse
      flush()
      for (const wire of [toBank, toPurse]) {
        for (const message of wire.splice(0)) {
          message()
          await settleDown()
          watch()
        }
      }
    },
    async deliverAll(watch = () => {}) {
      for (let isBusy = true; isBusy; ) {
        await settleDown()
        isBusy = false
        for (const { toBank, toPurse, flush } of purses) {
          flush()
          for (const message of [...toBank.splice(0), ...toPurse.splice(0)]) {
            isBusy = true
            message()
            // As between the messages of a port.
            await settleDown()
            watch()
          }
        }
      }
    },
  }
}

function linkOf(
  { id, toBank, toPurse, flush }: Pick<WiredPurse, 'id' | 'toBank' | 'toPurse' | 'flush'>,
  bank: Bank,
  { onWay }: WireOptions,
): BankLink {
  return {
    lend(needs, onAnswer) {
      flush()
      toBank.push(() => {
        bank.lend(id, needs, (answer) => {
          const standings = answer instanceof Error ? [] : answer.standings
          onWay(standings, 1n)
          toPurse.push(() => {
            onWay(standings, -1n)
            onAnswer(answer)
          })
        })
      })
    },
    giveBack(account, amount, closes) {
      flush()
      toBank.push(() => bank.giveBack(id, account, amount, closes))
    },
  }
}
