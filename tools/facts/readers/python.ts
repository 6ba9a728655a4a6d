/** A value that Python source states: a call keeps its name under `call` and its keyword arguments. */
export type PythonValue =
  | string
  | number
  | boolean
  | null
  | PythonValue[]
  | { call?: string; [member: string]: PythonValue | undefined }

/**
 * Reads an expression of Python that is data: literals, lists, dictionaries, and calls of constructors. Nothing is run. Throws an error
 * that gives the place of anything else.
 */
export function readPython(text: string, from = 0): PythonValue {
  return new Reader(text, from).value()
}

const token =
  /\s*(?:#[^\n]*\n\s*)*(?:([A-Za-z_][\w.]*)|(-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|([()[\]{},:=|]))/gy

class Reader {
  readonly #text: string
  #at: number
  constructor(text: string, from: number) {
    this.#text = text
    this.#at = from
  }

  value(): PythonValue {
    const start = this.#at
    const [, name, number, quoted, mark] = this.#next()
    if (number !== undefined) return Number(number.replaceAll('_', ''))
    if (quoted !== undefined) return this.#joined(unquoted(quoted))
    if (name !== undefined) return this.#named(name)
    if (mark === '[') return this.#items(']')
    if (mark === '(') return this.#joinedIn(this.#items(')'))
    if (mark === '{') return this.#members()
    throw new Error(`There is no value at character ${start}.`)
  }

  #named(name: string): PythonValue {
    if (name === 'None') return null
    if (name === 'True' || name === 'False') return name === 'True'
    if (!this.#takes('(')) return name
    const made: { call: string; [member: string]: PythonValue } = { call: name }
    for (let index = 0; !this.#takes(')'); index++) {
      const [member, value] = this.#argument(index)
      made[member] = value
      this.#separate(')')
    }
    return name === 'Decimal' ? Number(made[0]) : made
  }

  #argument(index: number): [string, PythonValue] {
    const before = this.#at
    const name = this.#next()[1]
    if (name !== undefined && this.#takes('=')) return [name, this.value()]
    this.#at = before
    return [String(index), this.value()]
  }

  #items(end: string): PythonValue[] {
    const items: PythonValue[] = []
    while (!this.#takes(end)) {
      items.push(this.value())
      this.#separate(end)
    }
    return items
  }

  #members(): PythonValue {
    const made: { [member: string]: PythonValue } = {}
    while (!this.#takes('}')) {
      const name = String(this.value())
      if (!this.#takes(':')) throw new Error(`There is no value of '${name}' at character ${this.#at}.`)
      made[name] = this.value()
      this.#separate('}')
    }
    return made
  }

  /** Joins the texts that follow each other. */
  #joined(text: string): string {
    const before = this.#at
    const following = this.#peek()
    if (following?.[3] === undefined) {
      this.#at = before
      return text
    }
    this.#next()
    return this.#joined(text + unquoted(following[3]))
  }

  /** One value in parentheses is that value. */
  #joinedIn(items: PythonValue[]): PythonValue {
    return items.length === 1 ? (items[0] as PythonValue) : items
  }

  /** Takes the comma after an item; the last one may be without it. */
  #separate(end: string): void {
    if (this.#takes(',') || this.#peek()?.[4] === end) return
    throw new Error(`There is neither , nor ${end} at character ${this.#at}.`)
  }

  #takes(mark: string): boolean {
    const found = this.#peek()
    if (found?.[4] !== mark) return false
    this.#next()
    return true
  }

  #peek(): RegExpExecArray | undefined {
    token.lastIndex = this.#at
    return token.exec(this.#text) ?? undefined
  }

  #next(): RegExpExecArray {
    const found = this.#peek()
    if (!found) throw new Error(`Character ${this.#at} cannot be read: ${this.#text.slice(this.#at, this.#at + 40)}`)
    this.#at += found[0].length
    return found
  }
}

function unquoted(text: string): string {
  const escapes: { readonly [letter: string]: string } = { n: '\n', t: '\t', r: '\r' }
  return text.slice(1, -1).replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter)
}
