/** One request that reached the simulator. Times are milliseconds since 1970. */
export type Entry = {
  /** What the model is called, without a suffix, and with it. */
  model: string
  target: string
  /** Whose request it is: what a text of the request says after `case:`, else its key. */
  caller: string
  path: string
  stream: boolean
  at: number
  /** The number of the connection, and how many requests it has had with this one. */
  connection: number
  requestsOfConnection: number
  headers: { [name: string]: string | string[] | undefined }
  body: unknown
  /** When the response ended or its connection was closed, and by whom. */
  endedAt?: number
  endedBy?: 'simulator' | 'gateway'
}

/** Which entries: those of a model, of a name with its suffix, of a caller. */
export type Wanted = { model?: string | undefined; target?: string | undefined; caller?: string | undefined }

/** Remembers all requests until it is told to forget them. */
export class Journal {
  #entries: Entry[] = []
  readonly #byCaller = new Map<string, Entry[]>()
  readonly #counts = new Map<string, { count: number; first: number }>()

  /** Adds a request; how many of the same caller for the same name came before, and when the first of them came. */
  add(entry: Entry): { earlier: number; first: number } {
    this.#entries.push(entry)
    const ofCaller = this.#byCaller.get(entry.caller)
    if (ofCaller) ofCaller.push(entry)
    else this.#byCaller.set(entry.caller, [entry])
    const name = `${entry.target} ${entry.caller}`
    const known = this.#counts.get(name) ?? { count: 0, first: entry.at }
    this.#counts.set(name, { ...known, count: known.count + 1 })
    return { earlier: known.count, first: known.first }
  }

  entries(wanted: Wanted = {}): Entry[] {
    const { caller } = wanted
    const all = caller === undefined ? this.#entries : (this.#byCaller.get(caller) ?? [])
    return all.filter((entry) => isWanted(entry, wanted))
  }

  /** Forgets all requests, those of `once` among them. */
  reset(): void {
    this.#entries = []
    this.#byCaller.clear()
    this.#counts.clear()
  }
}

function isWanted(entry: Entry, { model, target }: Wanted): boolean {
  return (model === undefined || entry.model === model) && (target === undefined || entry.target === target)
}
