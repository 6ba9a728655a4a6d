/**
 * Reads the plain part of YAML that most files are written in: block maps and lists, numbers, words, quoted texts,
 * literal blocks, flow collections on one line, comments. Answers undefined for anything else, right or wrong: then the
 * whole parser has to read it. It is there for speed: a catalog takes a tenth of the time.
 */
export function readPlainYaml(text: string): unknown {
  if (/[\t\r\uFEFF]/.test(text)) return undefined
  try {
    const lines = significantLines(text)
    if (lines.length === 0) return undefined
    const reader: Reader = { lines, next: 0 }
    const value = readBlock(reader, (lines[0] as Line).indent)
    return reader.next === lines.length ? value : undefined
  } catch (thrown) {
    if (thrown === notPlain) return undefined
    throw thrown
  }
}

/** A line that says something; a line that ends with `|` or `|-` carries the block below it. */
type Line = { indent: number; text: string; block?: string }
type Reader = { lines: Line[]; next: number }

/** Thrown, and caught above, where something is not plain. */
const notPlain = Symbol('not plain')

function significantLines(text: string): Line[] {
  const all = text.split('\n')
  const lines: Line[] = []
  for (let next = 0; next < all.length; ) {
    const raw = all[next++] as string
    const content = raw.trim()
    if (content === '' || content.startsWith('#')) continue
    const line: Line = { indent: indentOf(raw), text: content }
    lines.push(line)
    const [, ending] = /: \|(-?)$/.exec(content) ?? []
    if (ending === undefined) continue
    const start = next
    while (next < all.length && (isBlank(all[next]) || indentOf(all[next] as string) > line.indent)) next++
    const said = literal(all.slice(start, next))
    line.block = ending === '-' ? said.slice(0, -1) : said
  }
  return lines
}

/** The text of a literal block: its lines without their common indentation, one line break at the end. */
function literal(lines: string[]): string {
  while (lines.length > 0 && isBlank(lines.at(-1))) {
    // Spaces beyond the indentation would belong to the text.
    if (lines.pop() !== '') throw notPlain
  }
  const first = lines.find((line) => !isBlank(line))
  if (first === undefined) throw notPlain
  const indent = indentOf(first)
  const said = lines.map((line) => {
    if (isBlank(line) ? line.length > indent : indentOf(line) < indent) throw notPlain
    return line.slice(indent)
  })
  return `${said.join('\n')}\n`
}

function isBlank(line: string | undefined): boolean {
  return line !== undefined && line.trim() === ''
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

function readBlock(reader: Reader, indent: number): unknown {
  return reader.lines[reader.next]?.text.startsWith('- ') ? readList(reader, indent) : readMap(reader, indent)
}

function readList(reader: Reader, indent: number): unknown[] {
  const items: unknown[] = []
  for (let line = lineAt(reader, indent); line?.text.startsWith('- '); line = lineAt(reader, indent)) {
    const content = line.text.slice(2).trimStart()
    if (nameForm.test(content)) {
      // A map that begins beside the dash: its first line is indented as far as its text.
      const inner = indent + line.text.length - content.length
      // The block of a first line may stand left of the map's other lines only.
      if (line.block !== undefined) throw notPlain
      reader.lines[reader.next] = { indent: inner, text: content }
      items.push(readMap(reader, inner))
    } else {
      reader.next++
      items.push(readScalar(content))
      refuseContinuation(reader, indent)
    }
  }
  return items
}

/** Names of members: words, whole numbers and model ids; nothing that YAML would take for something else. */
const nameForm =
  /^(?:("(?:[^"\\]|\\.)*")|'([^']*)'|(0|[1-9]\d{0,14}|(?:~?[A-Za-z_]|\d[\w.]*[-/][A-Za-z])[\w./@+-]*(?:[: ][\w./@+-]+)*)) *:(?: +(.*))?$/
const wordsWithMeaning = /^(?:true|false|null|__proto__)$/i

function readMap(reader: Reader, indent: number): { [name: string]: unknown } {
  const map: { [name: string]: unknown } = {}
  for (let line = lineAt(reader, indent); line && !line.text.startsWith('- '); line = lineAt(reader, indent)) {
    const [, double, single, word, rest = ''] = nameForm.exec(line.text) ?? []
    const name = double === undefined ? (single ?? word) : unescaped(double)
    if (name === undefined || wordsWithMeaning.test(name) || Object.hasOwn(map, name)) throw notPlain
    reader.next++
    if (line.block !== undefined) {
      if (rest !== '|' && rest !== '|-') throw notPlain
      map[name] = line.block
    } else if (rest === '' || rest.startsWith('#')) {
      map[name] = readNested(reader, indent)
    } else {
      map[name] = readScalar(rest)
      refuseContinuation(reader, indent)
    }
  }
  return map
}

function readNested(reader: Reader, indent: number): unknown {
  const line = reader.lines[reader.next]
  if (!line || line.indent < indent) return null
  if (line.indent > indent) return readBlock(reader, line.indent)
  return line.text.startsWith('- ') ? readList(reader, indent) : null
}

/** The next line of a block; undefined when the block has ended. */
function lineAt({ lines, next }: Reader, indent: number): Line | undefined {
  const line = lines[next]
  if (!line || line.indent < indent) return undefined
  if (line.indent > indent) throw notPlain
  return line
}

function refuseContinuation({ lines, next }: Reader, indent: number): void {
  if ((lines[next]?.indent ?? 0) > indent) throw notPlain
}

const numberForm = /^(?:-?[1-9]\d*(?:\.\d+)?|-?0\.\d+|0)(?:[eE][-+]?\d+)?$/
/** Numbers in forms that are not usual: the whole parser knows what they mean. */
const otherNumber = /^(?:0o[0-7]+|0x[\dA-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)$/
const wordForm = /^[\w/$(^](?:[\w .,;/()@+%$=!?<>*&|'"^`[\]{}~-]|:(?=[^\s,[\]{}]))*$/
const meanings: { [word: string]: unknown } = { true: true, false: false, null: null }

function readScalar(written: string): unknown {
  if (written.startsWith('[') || written.startsWith('{')) return readFlow(written)
  const [, double, single] = /^(?:("(?:[^"\\]|\\.)*")|'([^']*)')(?: +#.*)?$/.exec(written) ?? []
  if (double !== undefined) return unescaped(double)
  if (single !== undefined) return single
  return readWord(written.replace(/ +#.*$/, ''), wordForm)
}

/** Quoted texts of JSON mean the same in YAML. */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted)
  } catch {
    throw notPlain
  }
}

function readWord(word: string, form: RegExp): unknown {
  if (numberForm.test(word)) return Number(word)
  if (Object.hasOwn(meanings, word)) return meanings[word]
  if (wordsWithMeaning.test(word) || otherNumber.test(word) || !form.test(word)) throw notPlain
  return word
}

type Flow = { text: string; at: number }

function readFlow(text: string): unknown {
  const flow: Flow = { text, at: 0 }
  const value = flowValue(flow)
  if (!/^(?: +#.*)?$/.test(text.slice(flow.at))) throw notPlain
  return value
}

const flowQuoted = /(?:("(?:[^"\\]|\\.)*")|'([^']*)')(?= *[,\]}])/y
const flowWord = /[^\s,[\]{}"':#&*!|>%@`?][^,[\]{}":#]*/y
const flowWordForm = /^[\w/$(^][\w ./()@+%$=;<>*&|^~?!'-]*$/
const flowName = /(?:("(?:[^"\\]|\\.)*")|'([^']*)'|([A-Za-z_][\w./-]*)): */y

function flowValue(flow: Flow): unknown {
  const opening = flow.text[flow.at]
  if (opening === '[') return flowList(flow)
  if (opening === '{') return flowMap(flow)
  const quoted = match(flow, flowQuoted)
  if (quoted) return quoted[1] === undefined ? quoted[2] : unescaped(quoted[1])
  const word = match(flow, flowWord)
  if (!word) throw notPlain
  return readWord(word[0].trimEnd(), flowWordForm)
}

function flowList(flow: Flow): unknown[] {
  const items: unknown[] = []
  eachItem(flow, ']', () => items.push(flowValue(flow)))
  return items
}

function flowMap(flow: Flow): { [name: string]: unknown } {
  const map: { [name: string]: unknown } = {}
  eachItem(flow, '}', () => {
    const found = match(flow, flowName)
    const name = found?.[1] === undefined ? (found?.[2] ?? found?.[3]) : unescaped(found[1])
    if (name === undefined || wordsWithMeaning.test(name) || Object.hasOwn(map, name)) throw notPlain
    map[name] = flowValue(flow)
  })
  return map
}

function eachItem(flow: Flow, closing: string, read: () => void): void {
  flow.at++
  skipSpaces(flow)
  while (flow.text[flow.at] !== closing) {
    read()
    skipSpaces(flow)
    if (flow.text[flow.at] === ',') flow.at++
    else if (flow.text[flow.at] !== closing) throw notPlain
    skipSpaces(flow)
  }
  flow.at++
}

function skipSpaces(flow: Flow): void {
  while (flow.text[flow.at] === ' ') flow.at++
}

function match(flow: Flow, form: RegExp): RegExpExecArray | null {
  form.lastIndex = flow.at
  const found = form.exec(flow.text)
  if (found) flow.at = form.lastIndex
  return found
}
