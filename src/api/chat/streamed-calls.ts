import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/** The calls of one choice, as they come piece by piece: each has its own number, and every piece has arguments. */
export class StreamedCalls {
  /** The calls by their number: the id of each, and whether it has arguments so far. */
  readonly #calls = new Map<number, { id: Json | undefined; hasArguments: boolean }>()
  /** The number of the call that each index of the provider means. */
  readonly #numbers = new Map<number, number>()
  /** The first number after all that are taken. */
  #next = 0

  /** The pieces of one delta, completed. */
  take(pieces: readonly Json[]): Json[] {
    return pieces.map((piece, position) => (isObject(piece) ? this.#complete(piece, position) : piece))
  }

  /** The numbers of the calls that got no arguments. */
  get silent(): number[] {
    return [...this.#calls].filter(([, { hasArguments }]) => !hasArguments).map(([number]) => number)
  }

  #complete(piece: JsonObject, position: number): JsonObject {
    const index = this.#numberOf(piece, typeof piece.index === 'number' ? piece.index : position)
    const members = present({ ...piece, index })
    const call = this.#calls.get(index)
    if (isObject(piece.custom)) {
      if (call) call.hasArguments = true
      return members
    }
    const called = isObject(piece.function) ? present(piece.function) : {}
    const text = called.arguments ?? ''
    if (call && text !== '') call.hasArguments = true
    return { ...members, function: { ...called, arguments: text } }
  }

  /** Some providers give several calls the same index: another id with a name is another call. */
  #numberOf({ id, function: called, custom }: JsonObject, at: number): number {
    const known = this.#numbers.get(at)
    const call = known === undefined ? undefined : this.#calls.get(known)
    const isNamed = (isObject(called) && Boolean(called.name)) || isObject(custom)
    const isOther = call !== undefined && isNamed && Boolean(id) && Boolean(call.id) && call.id !== id
    if (known !== undefined && !isOther) {
      if (call && id) call.id ??= id
      return known
    }
    const number = this.#calls.has(at) ? this.#next : at
    this.#next = Math.max(this.#next, number + 1)
    this.#numbers.set(at, number)
    this.#calls.set(number, { id: id || undefined, hasArguments: false })
    return number
  }
}

/** Pieces repeat what a call is named as null, which not every client takes for nothing. */
function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}
