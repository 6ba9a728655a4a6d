/** Rows of an INSERT statement. */
export type InsertedRows = { table: string; rows: { [column: string]: string | null }[] }

/** Reads `INSERT INTO table (columns) VALUES (…), (…);` as pg_dump writes it. Undefined while the statement has not ended. */
export function insertedRows(statement: string): InsertedRows | undefined {
  const [head = '', table = '', names = ''] = /^INSERT INTO (\S+) \(([^)]*)\) VALUES\s*/.exec(statement) ?? []
  if (head === '') return undefined
  const columns = names.split(', ').map((name) => name.replace(/^"|"$/g, ''))
  const rows: InsertedRows['rows'] = []
  let at = head.length
  for (;;) {
    if (statement[at] !== '(') return undefined
    const values: (string | null)[] = []
    at++
    for (;;) {
      const value = valueAt(statement, at)
      if (!value) return undefined
      values.push(value.value)
      at = value.end
      if (statement[at] === ')') break
      if (statement[at] !== ',') return undefined
      at += statement[at + 1] === ' ' ? 2 : 1
    }
    rows.push(Object.fromEntries(columns.map((column, index) => [column, values[index] ?? null])))
    at++
    const [separator = ''] = /^\s*[,;]\s*/.exec(statement.slice(at, at + 100)) ?? []
    if (separator === '') return undefined
    at += separator.length
    if (separator.includes(';')) return { table, rows }
  }
}

/** Reads one literal: a text in quotes, NULL, a number or a boolean. */
function valueAt(text: string, start: number): { value: string | null; end: number } | undefined {
  const isEscaped = text.startsWith("E'", start)
  const from = isEscaped ? start + 1 : start
  if (text[from] !== "'") {
    const [word] = /^[^,)]+/.exec(text.slice(start, start + 100)) ?? []
    return word === undefined ? undefined : { value: word === 'NULL' ? null : word, end: start + word.length }
  }
  let value = ''
  for (let at = from + 1; at < text.length; at++) {
    const letter = text[at] as string
    if (letter === "'" && text[at + 1] !== "'") return { value, end: at + 1 }
    if (letter === "'") at++
    else if (isEscaped && letter === '\\') {
      at++
      value += text[at] === 'n' ? '\n' : text[at]
      continue
    }
    value += letter
  }
  return undefined
}

/** Returns a value of a column as JSON: a text that PostgreSQL wrote for an array or a JSON document is parsed. */
export function columnValue(value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (value.startsWith('{') && value.endsWith('}')) return parsedJson(value) ?? arrayIn(value)
  if (value.startsWith('[')) return parsedJson(value) ?? value
  return value
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads an array of texts: `{a,"b c",NULL}`. */
function arrayIn(text: string): string[] {
  const items = text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)
  return [...items].map(([, quoted, plain = '']) => (quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1')))
}

/** Returns a column that is a list of texts. PostgreSQL writes an empty array as an empty object of JSON. */
export function textList(value: unknown): string[] {
  const read = columnValue(value)
  return Array.isArray(read) ? read.filter((one) => typeof one === 'string') : []
}

/** Returns a column that is a number. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && value !== '' && Number.isFinite(Number(value)) ? Number(value) : undefined
}

/** Returns a column that is a boolean. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 't' || value === 'true'
}

/** Returns a column that is a text. */
export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns a time in Unix milliseconds; one without a zone is UTC. */
export function timeIn(value: unknown): number | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const iso = value.replace(' ', 'T')
  const time = Date.parse(
    /(?:Z|[+-]\d\d(?::?\d\d)?)$/.test(iso.slice(10)) ? iso.replace(/([+-]\d\d)$/, '$1:00') : `${iso}Z`,
  )
  return Number.isNaN(time) ? undefined : time
}
