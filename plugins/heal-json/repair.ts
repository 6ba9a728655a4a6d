/**
 * Returns the JSON text that is meant by a text which is almost JSON: in a fence, with words around it, comments, single quotes, quotes
 * within strings, names without quotes, commas too many or missing, and brackets that are not closed. Undefined where there is no
 * object or list, or its meaning stays unclear. A text that is JSON already stays as it is.
 */
export function repairJson(text: string): string | undefined {
  if (isJson(text)) return text
  const inside = /```[a-z0-9]{0,12}[ \t]*\n([\s\S]*?)(?:\n[ \t]*```|$)/i.exec(text)?.[1]
  for (const given of inside === undefined ? [text] : [inside, text]) {
    if (isJson(given)) return given.trim()
    const start = given.search(/[[{]/)
    const read = start === -1 ? undefined : new LooseReader(given, start).read()
    if (read !== undefined && isJson(read)) return read
  }
  return undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A reader that reads one value of a text and writes it as JSON, in one pass. */
class LooseReader {
  readonly #text: string
  #at: number
  #isUnclear = false

  constructor(text: string, start: number) {
    this.#text = text
    this.#at = start
  }

  read(): string | undefined {
    const written = this.#value(0)
    return this.#isUnclear ? undefined : written
  }

  /** Reads a value and returns it as JSON; an empty text where none begins. */
  #value(depth: number): string {
    this.#skip()
    const char = this.#text[this.#at]
    if (char === undefined || depth > deepest) return this.#unclear(char !== undefined)
    if (char === '{') return this.#members(depth)
    if (char === '[') return this.#elements(depth)
    if (char in closing) return this.#quoted(closing[char] as string)
    return this.#bare()
  }

  #members(depth: number): string {
    const members: string[] = []
    this.#at++
    for (;;) {
      if (this.#ends('}')) return `{${members.join(',')}}`
      const before = this.#at
      const name = this.#name()
      this.#skip()
      const isNamed = name !== '' && this.#text[this.#at] === ':'
      if (isNamed) this.#at++
      // A name whose value did not come any more is left out.
      else if (this.#at < this.#text.length) return this.#unclear(true)
      const value = isNamed ? this.#value(depth + 1) : ''
      if (value) members.push(`${name}:${value}`)
      if (this.#at === before) return this.#unclear(true)
    }
  }

  #elements(depth: number): string {
    const elements: string[] = []
    this.#at++
    for (;;) {
      if (this.#ends(']')) return `[${elements.join(',')}]`
      const before = this.#at
      const value = this.#value(depth + 1)
      if (value) elements.push(value)
      if (this.#at === before) return this.#unclear(true)
    }
  }

  /** Checks whether the open value ends here: by its bracket, or with the text. */
  #ends(bracket: string): boolean {
    this.#skip(',')
    const char = this.#text[this.#at]
    if (char === bracket) this.#at++
    return char === undefined || char === bracket
  }

  #name(): string {
    const quote = closing[this.#text[this.#at] ?? '']
    if (quote !== undefined) return this.#quoted(quote)
    const name = this.#match(/[\p{L}_$][\p{L}\p{N}_$-]*/uy)
    return name ? JSON.stringify(name) : ''
  }

  #quoted(quote: string): string {
    let written = '"'
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at] as string
      if (char === quote && this.#closes()) {
        this.#at++
        return `${written}"`
      }
      written += char === '\\' ? this.#escape() : JSON.stringify(char).slice(1, -1)
    }
    return `${written}"`
  }

  /** Checks whether a string may end at this quote: it does not end where words go on. */
  #closes(): boolean {
    afterString.lastIndex = this.#at + 1
    return afterString.test(this.#text)
  }

  /** Reads an escape. One that JSON does not know stands for itself; one that is cut off is left out. */
  #escape(): string {
    const known = this.#match(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y)
    if (known) {
      this.#at--
      return known
    }
    const next = this.#text[this.#at + 1]
    if (next === undefined || (next === 'u' && this.#text.length - this.#at < 6)) {
      this.#at = this.#text.length
      return ''
    }
    this.#at++
    return next === '\n' ? '' : JSON.stringify(next).slice(1, -1)
  }

  /** Reads a number or a word of JSON, Python or JavaScript; one that is cut off is left out. */
  #bare(): string {
    const token = this.#match(/[^\s,:{}[\]"'`“”]+/y)
    const isCut = this.#at === this.#text.length
    const word = words[token]
    if (word !== undefined) return word
    const number = token
      .replace(/^\+|_/g, '')
      .replace(/^(-?)\./, '$10.')
      .replace(/\.$/, '')
    if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(number) && !isCut) return number
    return isCut ? '' : this.#unclear(true)
  }

  /** Passes blanks, comments and these signs. */
  #skip(signs = ''): void {
    for (;;) {
      this.#match(/\s+/y)
      if (this.#match(/\/\/[^\n]*|#[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/|$)/y)) continue
      const char = this.#text[this.#at]
      if (char === undefined || !signs.includes(char)) return
      this.#at++
    }
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  #unclear(isUnclear: boolean): string {
    if (isUnclear) {
      this.#isUnclear = true
      this.#at = this.#text.length
    }
    return ''
  }
}

const deepest = 200
/** The end, a sign of JSON, another string, a comment or a name. */
const afterString =
  /\s{0,200}(?:$|[,:{}[\]"'`“”#/\d.+-]|[\p{L}_$][\p{L}\p{N}_$-]{0,100}\s{0,9}:|(?:true|false|null|None|True|False)\b)/uy
const closing: { readonly [quote: string]: string } = { '"': '"', "'": "'", '`': '`', '“': '”' }
const words: { readonly [word: string]: string } = {
  true: 'true',
  false: 'false',
  null: 'null',
  True: 'true',
  False: 'false',
  None: 'null',
  undefined: 'null',
  NaN: 'null',
}
