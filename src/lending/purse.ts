import { RouterError } from '../core/errors.ts'
import type { Answer, Held, Kind, Named, Need, Standing, Use } from './account.ts'

/** An account as this event loop sees it. It may spend and hold `share` in all; null is without limit. */
export type PurseAccount = {
  readonly name: string
  readonly kind: Kind
  /** The limit under which the share was lent; undefined after a recall of a share without limit. */
  limit: bigint | null | undefined
  share: bigint
  spent: bigint
  reserved: bigint
  /** Grows whenever more is reserved or used. */
  admitted: number
  /** How many calls run, or are not recorded yet. */
  open: number
  used: boolean
  /** What the bank had left when it was asked last. */
  left: bigint
  /** What comes free belongs to the bank, which has lent too much. */
  isOverdrawn: boolean
  /** More is asked for when less than this is free. */
  low: bigint
  isAsking: boolean
  /** Uses that the bank has not heard of, by the time at which they end. */
  unreported: Map<number, { uses: bigint; lent: bigint }>
}

/** The way to the bank. What is told and asked arrives in this order; the answer is handled before anything that comes later. */
export type BankLink = {
  lend(needs: readonly Need[], onAnswer: (answer: Answer | Error) => void): void
  giveBack(account: string, amount: bigint, closes: boolean): void
}

/**
 * What a call has been granted: it is kept for the call until `use` admits it, also from recalls that are heard in the middle of that.
 * `refused` has the standings when the bank granted nothing.
 */
export type Loan = { use<Admitted>(admit: () => Admitted): Admitted; refused?: readonly Standing[] }
type Granted = readonly { account: PurseAccount; amount: bigint }[]

/** Thrown where the purse is too small: the call waits for `lent` and is admitted again, or gets the error of `refusal`. */
export class Borrowing extends RouterError {
  readonly needs: readonly Need[]
  /** What the bank grants of these needs, among which are those of this. */
  readonly lent: (needs?: readonly Need[]) => Promise<Loan>
  readonly refusal: (standings: readonly Standing[]) => RouterError

  constructor(purse: Purse, needs: readonly Need[], refusal: Borrowing['refusal']) {
    super('unavailable', 'The limits of this call could not be read. Try again.')
    this.needs = needs
    this.lent = (all = needs) => purse.borrow(all)
    this.refusal = refusal
  }
}

/** What this event loop has been lent. A call is admitted against it in one synchronous step, without asking anybody. */
export class Purse {
  readonly #link: BankLink
  readonly #mostIdle: number
  readonly #accounts = new Map<string, PurseAccount>()
  #unreported = new Set<PurseAccount>()
  /** How many answers of the bank are on their way, by account. */
  readonly #asked = new Map<string, number>()
  /** What was granted to the call that is being admitted. */
  #admitting: Granted = []
  #sweepAt: number
  #admitted = 0

  /** An empty purse. */
  constructor(link: BankLink, { mostIdle = 10_000 } = {}) {
    this.#link = link
    this.#mostIdle = mostIdle
    this.#sweepAt = mostIdle
  }

  /** The account; undefined where nothing was lent under this limit. */
  find({ account: name, limit }: Named): PurseAccount | undefined {
    const account = this.#accounts.get(name)
    if (account?.limit !== limit) return undefined
    account.used = true
    return account
  }

  /** What the bank grants for a call. Rejects when the bank cannot be asked. */
  borrow(needs: readonly Need[]): Promise<Loan> {
    const { promise, resolve, reject } = Promise.withResolvers<Loan>()
    this.#ask(needs, (loan) => (loan instanceof Error ? reject(loan) : resolve(loan)))
    return promise
  }

  /** Asks for more, in the background, when little is left. */
  refill(account: PurseAccount): void {
    const { name, kind, limit, isAsking, left, low } = account
    if (isAsking || limit === undefined || limit === null || left <= 0n || freeIn(account) >= low) return
    account.isAsking = true
    this.#ask([{ account: name, kind, limit, least: 0n, wish: 0n }], (loan) => {
      account.isAsking = false
      if (!(loan instanceof Error)) loan.use(() => {})
    })
  }

  /** What was spent beyond the share is borrowed afterwards. */
  cover(account: PurseAccount): void {
    const free = freeIn(account)
    if (account.limit === null || free >= 0n) return
    account.share -= free
    this.#link.giveBack(account.name, free, false)
  }

  /** Gives back what is idle. What was reported before must reach the bank first. */
  recall(names: readonly string[]): Held[] {
    return names.map((name) => {
      const account = this.#accounts.get(name)
      if (!account) return { account: name, held: 0n }
      if (account.limit === null) account.limit = undefined
      const held = account.reserved + this.#keptOf(account)
      account.share = account.spent + held
      account.left = 0n
      return { account: name, held, admitted: account.admitted }
    })
  }

  /** What is idle, but belongs to the call that is being admitted. */
  #keptOf(account: PurseAccount): bigint {
    const granted = this.#admitting.find((one) => one.account === account)?.amount ?? 0n
    const idle = idleIn(account)
    return granted < idle ? granted : idle > 0n ? idle : 0n
  }

  /** Counts uses that end at a time; `lent` of them come from the share, the others were over or under an estimate. */
  use(account: PurseAccount, endsAt: number, uses: bigint, lent: bigint): void {
    const before = account.unreported.get(endsAt) ?? { uses: 0n, lent: 0n }
    account.unreported.set(endsAt, { uses: before.uses + uses, lent: before.lent + lent })
    account.spent += lent
    if (lent > 0n) account.admitted = ++this.#admitted
    this.#unreported.add(account)
  }

  /** The uses since the last time. */
  takeUses(): Use[] {
    if (this.#unreported.size === 0) return []
    const taken: Use[] = []
    for (const account of this.#unreported) {
      for (const [endsAt, counts] of account.unreported) taken.push({ account: account.name, endsAt, ...counts })
      account.unreported.clear()
    }
    this.#unreported.clear()
    return taken
  }

  /** How many accounts have a share, and the sum of what is held of them. */
  totals(): { accounts: number; reserved: bigint } {
    const reserved = [...this.#accounts.values()].reduce((sum, account) => sum + account.reserved, 0n)
    return { accounts: this.#accounts.size, reserved }
  }

  #ask(needs: readonly Need[], onLoan: (loan: Loan | Error) => void): void {
    this.#countAsked(needs, 1)
    this.#link.lend(needs, (answer) => {
      this.#countAsked(needs, -1)
      onLoan(answer instanceof Error ? answer : this.#receive(answer))
    })
  }

  #countAsked(needs: readonly Need[], change: 1 | -1): void {
    for (const { account } of needs) {
      const count = (this.#asked.get(account) ?? 0) + change
      if (count === 0) this.#asked.delete(account)
      else this.#asked.set(account, count)
    }
  }

  #receive({ isGranted, standings }: Answer): Loan {
    const granted = standings.map((standing) => {
      const account = this.#opened(standing)
      if (typeof account.limit !== 'bigint') account.share = account.spent + account.reserved
      account.limit = standing.limit
      account.share += standing.granted + standing.extra
      account.reserved += standing.granted
      account.left = standing.left
      account.isOverdrawn = standing.isOverdrawn
      account.low = standing.extra / 2n
      account.used = true
      return { account, amount: standing.granted }
    })
    let isKept = true
    const use = <Admitted>(admit: () => Admitted): Admitted => {
      if (isKept) for (const { account, amount } of granted) account.reserved -= amount
      // What was asked for in the background may arrive while a call is being admitted.
      const outer = this.#admitting
      this.#admitting = isKept ? granted : []
      isKept = false
      try {
        return admit()
      } finally {
        this.#admitting = outer
      }
    }
    return { use, ...(!isGranted && { refused: standings }) }
  }

  #opened({ account: name, kind }: Named): PurseAccount {
    const known = this.#accounts.get(name)
    if (known) return known
    if (this.#accounts.size >= this.#sweepAt) this.#sweep()
    const sums = { share: 0n, spent: 0n, left: 0n, low: 0n, open: 0, admitted: 0 }
    const flags = { used: true, isAsking: false, isOverdrawn: false }
    const admit = () => ++this.#admitted
    let reserved = 0n
    const made: PurseAccount = {
      ...{ name, kind, limit: undefined, ...sums, ...flags, unreported: new Map() },
      get reserved() {
        return reserved
      },
      set reserved(amount) {
        if (amount > reserved) made.admitted = admit()
        reserved = amount
      },
    }
    this.#accounts.set(name, made)
    return made
  }

  /** Gives back accounts not used since the last sweep, but for those that the bank is lending to. */
  #sweep(): void {
    for (const account of this.#accounts.values()) {
      const { open, reserved, unreported, name } = account
      if (open > 0 || reserved > 0n || unreported.size > 0 || this.#asked.has(name)) continue
      if (account.used) account.used = false
      else this.#close(account)
    }
    this.#sweepAt = Math.max(this.#mostIdle, 2 * this.#accounts.size)
  }

  #close(account: PurseAccount): void {
    this.#accounts.delete(account.name)
    this.#link.giveBack(account.name, idleIn(account), true)
  }
}

/** What calls may use. */
export function freeIn(account: PurseAccount): bigint {
  const idle = idleIn(account)
  return account.isOverdrawn && idle > 0n ? 0n : idle
}

/** What is neither spent nor held. */
export function idleIn({ share, spent, reserved }: PurseAccount): bigint {
  return share - spent - reserved
}
