import type { AccountState, Answer, Named, Need, Use } from './account.ts'
import { type BankAccount, isShort, lendTo, lentBy, lentOf, mayHaveEnough, take } from './bank-account.ts'
import { type RecallOptions, Recalls } from './recalls.ts'
import { UseWindow } from './window.ts'

/**
 * Knows what all accounts have spent, and lends what is left to purses: one for each event loop that admits calls. It never
 * lends what it does not have, so no limit is exceeded, and refuses only what purses hold for running calls or have spent:
 * before that it calls back what lies idle. Where a purse does not tell, the call waits, and fails in the end.
 */
export type Bank = {
  /** A new purse. */
  join(purse: number): void
  /** A purse is gone, and so is what it held: all it was lent comes back, but for what it reported. */
  leave(purse: number): void
  /**
   * Answers when it is decided, at once where nothing has to be called back; with an error when the tables of spend cannot
   * be read, or a purse that may hold what is needed does not answer. The purse must get its answers and the recalls in the
   * order in which they are made here.
   */
  lend(purse: number, needs: readonly Need[], onAnswer: (answer: Answer | Error) => void): void
  /** A purse gives back, or, with a negative amount, has spent more than it was lent. `closes`: it forgets the account. */
  giveBack(purse: number, account: string, amount: bigint, closes?: boolean): void
  /** The cost of a settled call, whose row is not yet in the tables. Returns what is to be called when it is. */
  spend(purse: number, accounts: readonly string[], cost: bigint): () => void
  /** Uses of accounts that count for a minute. */
  use(purse: number, uses: readonly Use[]): void
  /** Everything that is needed to go on elsewhere. What waits for an answer gets none here: the bank must not be used again. */
  handOver(): { accounts: AccountState[]; waiting: Lending[] }
  /** Goes on with what another bank has handed over. Its purses have joined, and all costs are in the tables of spend. */
  adopt(accounts: readonly AccountState[]): void
  /** How many accounts are in memory, and the sum of what is lent. */
  totals(): { accounts: number; lent: bigint }
}

/** `readSpent` reads the spend of a money account. */
export type BankOptions = Omit<RecallOptions, 'onHeld'> & {
  readSpent(account: string): bigint
  now?: () => number
  /** How long a call waits for a purse that may hold what it needs. */
  longestMs?: number
  mostIdle?: number
}

type Asked = { need: Need; account: BankAccount }
/** What a purse has asked for. */
export type Lending = { purse: number; needs: readonly Need[]; onAnswer(answer: Answer | Error): void }
/**
 * `since` when it has been put off; undefined before. `recallsAll`: what it needs is called back, whether it is short or not, because
 * that became short while something else was called back. `rounds` after which it would have been refused, had no purse moved.
 */
type Waiting = Lending & { since?: number; recallsAll?: boolean; rounds?: number }

/** A purse is lent this part of what is left, divided by the number of purses: near a limit that is less than a call needs. */
const share = 4n
const defaultLongestMs = 10_000
/** Rounds after which a call is refused although purses admit others all the time: it does not wait for a quiet moment for ever. */
const mostRounds = 5

/** Opens a bank without purses. `now` returns milliseconds of a monotonic clock that the purses share. */
export function openBank(options: BankOptions): Bank {
  return new LendingBank(options)
}

class LendingBank implements Bank {
  readonly #options: BankOptions
  readonly #now: () => number
  readonly #accounts = new Map<string, BankAccount>()
  readonly #purses = new Set<number>()
  #waiting: Waiting[] = []
  /** Those whose accounts are being called back. */
  #deciding: readonly Waiting[] = []
  readonly #recalls: Recalls
  /** The accounts that are being called back: nothing of them is lent meanwhile. */
  #recalling: ReadonlySet<string> | undefined
  #sweepAt: number

  constructor(options: BankOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#sweepAt = options.mostIdle ?? 10_000
    const onHeld: RecallOptions['onHeld'] = (purse, name, amount, admitted) => {
      const account = this.#accounts.get(name)
      if (!account?.lent.has(purse)) return
      account.lent.set(purse, amount)
      account.isMoving ||= account.admitted.get(purse) !== admitted
      account.admitted.set(purse, admitted)
    }
    this.#recalls = new Recalls({ ...options, onHeld })
  }

  join(purse: number): void {
    this.#purses.add(purse)
  }

  leave(purse: number): void {
    this.#purses.delete(purse)
    this.#waiting = this.#waiting.filter((one) => one.purse !== purse)
    this.#deciding = this.#deciding.filter((one) => one.purse !== purse)
    for (const { lent, admitted } of this.#accounts.values()) {
      lent.delete(purse)
      admitted.delete(purse)
    }
    this.#recalls.left(purse)
  }

  lend(purse: number, needs: readonly Need[], onAnswer: Lending['onAnswer']): void {
    const waiting = { purse, needs, onAnswer }
    const at = this.#now()
    const mustWait = ({ need, account }: Asked) =>
      this.#recalling?.has(need.account) || account.isStale || isShort(account, need, at)
    if (!this.#answerIf((asked) => !asked.some(mustWait), { ...waiting, extra: true })) {
      this.#waiting.push(waiting)
      if (!this.#recalling) void this.#recallAndDecide()
    }
  }

  giveBack(purse: number, name: string, amount: bigint, closes = false): void {
    const lent = this.#accounts.get(name)?.lent
    if (!lent) return
    take(lent, purse, amount)
    // What is on its way to the purse stays lent.
    if (closes && !lent.get(purse)) lent.delete(purse)
  }

  spend(purse: number, names: readonly string[], cost: bigint): () => void {
    const accounts = this.#accountsOf(names)
    for (const account of accounts) {
      account.spent += cost
      account.unwritten++
      take(account.lent, purse, cost)
    }
    return () => {
      for (const account of accounts) account.unwritten--
    }
  }

  use(purse: number, uses: readonly Use[]): void {
    for (const { account: name, endsAt, uses: count, lent } of uses) {
      const account = this.#accounts.get(name)
      account?.uses.add(endsAt, count)
      if (account) take(account.lent, purse, lent)
    }
  }

  handOver(): { accounts: AccountState[]; waiting: Lending[] } {
    const waiting = [...this.#waiting, ...this.#deciding]
    this.#waiting = []
    this.#deciding = []
    const accounts = [...this.#accounts].map(([account, { kind, limit, uses, lent }]) => {
      return { account, kind, limit, uses: uses.all(), lent: [...lent] }
    })
    return { accounts, waiting }
  }

  adopt(accounts: readonly AccountState[]): void {
    // All are read before any is changed: a table that cannot be read leaves everything as it was.
    const opened = accounts.map((state) => ({ ...state, account: this.#accountOf(state) }))
    for (const { uses, lent, account } of opened) {
      for (const [endsAt, count] of uses) account.uses.add(endsAt, count)
      for (const [purse, amount] of lent) if (this.#purses.has(purse)) account.lent.set(purse, amount)
      account.isStale = account.limit !== null && [...account.lent.values()].includes(null)
    }
  }

  totals(): { accounts: number; lent: bigint } {
    const lent = [...this.#accounts.values()].reduce((sum, account) => sum + lentOf(account), 0n)
    return { accounts: this.#accounts.size, lent }
  }

  #open(needs: readonly Need[]): Asked[] {
    if (this.#accounts.size >= this.#sweepAt) this.#sweep()
    return needs.map((need) => ({ need, account: this.#accountOf(need) }))
  }

  #accountOf({ account: name, kind, limit }: Named): BankAccount {
    let account = this.#accounts.get(name)
    if (!account) {
      const spent = kind === 'money' ? this.#options.readSpent(name) : 0n
      const nothing = { uses: new UseWindow(), lent: new Map(), unwritten: 0, admitted: new Map() }
      account = { kind, limit, spent, ...nothing, isStale: false, isMoving: false }
      this.#accounts.set(name, account)
    }
    if (account.limit !== limit) {
      const isLowered = account.limit === null || (limit !== null && limit < account.limit)
      account.isStale ||= isLowered && account.lent.size > 0
      account.limit = limit
      if (limit === null) account.isStale = false
    }
    return account
  }

  #accountsOf(names: readonly string[]): BankAccount[] {
    return names.flatMap((name) => this.#accounts.get(name) ?? [])
  }

  /** Forgets accounts that nobody uses. */
  #sweep(): void {
    const at = this.#now()
    for (const [name, account] of this.#accounts) {
      if (account.lent.size === 0 && account.unwritten === 0 && account.uses.sum(at) === 0n) this.#accounts.delete(name)
    }
    this.#sweepAt = Math.max(this.#options.mostIdle ?? 10_000, 2 * this.#accounts.size)
  }

  /** Decides about all that wait, in the order of their arrival, once the idle money of their accounts is back. */
  async #recallAndDecide(): Promise<void> {
    while (this.#waiting.length > 0) {
      const [first, ...others] = this.#waiting as [Waiting, ...Waiting[]]
      this.#waiting = []
      // Calls may know different limits of one account: those of the first hold in this round, so that it at least is decided.
      const isOver = this.#answerIf(() => false, { ...first, extra: false })
      this.#deciding = isOver ? others : [first, ...others]
      const recalled = new Set(this.#deciding.flatMap((one) => this.#toRecall(one)))
      this.#recalling = recalled
      const late = await this.#recall([...recalled])
      this.#recalling = undefined
      const decided = this.#deciding
      this.#deciding = []
      for (const one of decided) if (this.#purses.has(one.purse)) this.#decide(one, { late, recalled })
    }
  }

  /** What is without limit needs no recall, unless it was lent under one. */
  #toRecall({ needs, recallsAll }: Waiting): string[] {
    const at = this.#now()
    return needs.flatMap((need) => {
      const account = this.#accounts.get(need.account)
      if (!account) return []
      const isNeeded = recallsAll ? account.limit !== null : isShort(account, need, at)
      return isNeeded || account.isStale ? [need.account] : []
    })
  }

  /** Resolves to the purses that have not answered. */
  async #recall(names: readonly string[]): Promise<readonly number[]> {
    const lentTo = (purse: number) => names.filter((name) => this.#accounts.get(name)?.lent.has(purse))
    for (const account of this.#accountsOf(names)) account.isMoving = false
    const late = await this.#recalls.from([...this.#purses], lentTo)
    for (const account of this.#accountsOf(names)) {
      // Null is what a purse was lent without limit that has not told what it holds of that.
      account.isStale &&= [...account.lent.values()].includes(null)
    }
    return late
  }

  /** Grants, refuses, or puts off for a time: what knows another limit, or needs what was not recalled or a late purse may hold. */
  #decide(waiting: Waiting, { late, recalled }: { late: readonly number[]; recalled: ReadonlySet<string> }): void {
    const at = this.#now()
    const { purse, onAnswer, since = at, rounds = 1 } = waiting
    let [mayBeEnough, recallsAll, isMoving] = [false, false, false]
    const fits = (asked: readonly Asked[]) => {
      const missing = asked.filter(({ need, account }) => account.isStale || isShort(account, need, at))
      mayBeEnough = missing.every(({ account, need }) => {
        const unknown = recalled.has(need.account) ? late : [...this.#purses]
        return account.isStale || mayHaveEnough(unknown, account, need, at)
      })
      recallsAll = missing.some(({ need }) => !recalled.has(need.account))
      isMoving = missing.some(({ account }) => account.isMoving)
      return missing.length === 0
    }
    // Nothing beyond what the call needs: others wait for what is left.
    if (this.#answerIf(fits, { ...waiting, extra: false })) return
    // A purse that has answered may have freed what another then admitted: both held it, but not at the same time.
    if (!mayBeEnough && isMoving && rounds < mostRounds) this.#waiting.push({ ...waiting, since, rounds: rounds + 1 })
    else if (!mayBeEnough) onAnswer(this.#answer(purse, this.#open(waiting.needs), { isGranted: false, extra: false }))
    else if (at - since < (this.#options.longestMs ?? defaultLongestMs))
      this.#waiting.push({ ...waiting, since, recallsAll })
    else onAnswer(new Error('A worker that holds part of the limit does not respond.'))
  }

  /** Grants where that is possible, and says whether it has answered. */
  #answerIf(
    isPossible: (asked: readonly Asked[]) => boolean,
    { purse, needs, onAnswer, extra }: Lending & { extra: boolean },
  ): boolean {
    try {
      const asked = this.#open(needs)
      if (!isPossible(asked)) return false
      onAnswer(this.#answer(purse, asked, { isGranted: true, extra }))
    } catch (thrown) {
      onAnswer(thrown instanceof Error ? thrown : new Error(String(thrown)))
    }
    return true
  }

  #answer(purse: number, asked: readonly Asked[], how: { isGranted: boolean; extra: boolean }): Answer {
    const at = this.#now()
    const extraOf = (rest: bigint) => (how.extra ? this.#extraOf(rest) : 0n)
    const standings = asked.map(({ need, account }) => {
      const standing = lendTo(purse, account, need, { isGranted: how.isGranted, extraOf, at })
      this.#recalls.lent(purse, need.account, lentBy(standing))
      return standing
    })
    return { isGranted: how.isGranted, standings }
  }

  #extraOf(rest: bigint): bigint {
    return this.#purses.size === 1 ? rest : rest / (share * BigInt(this.#purses.size))
  }
}
