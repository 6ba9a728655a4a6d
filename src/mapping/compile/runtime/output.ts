import { boundedText, spend } from './limits.ts'
import { put, type Sequence } from './sequence.ts'

/**
 * The value as plain JSON: without bookkeeping on lists, functions or numbers that JSON lacks. Parts of the input are
 * handed back as they are; only what the mapping built is ever replaced. A part that stands in many places counts at
 * each of them. Throws D1012, D1014 for a result whose JSON text would be too large.
 */
export function output(value: unknown): unknown {
  return outputOf(value, { text: 0 })
}

/** The characters in the texts of a result so far. */
type Size = { text: number }

function outputOf(value: unknown, size: Size): unknown {
  if (typeof value === 'string') {
    count(value, size)
    return value
  }
  // JSON knows neither infinity nor a negative zero.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value === 'function') return undefined
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? outputList(value, size) : outputRecord(value as Record<string, unknown>, size)
}

function outputList(list: Sequence, size: Size): unknown[] {
  spend(1 + list.length)
  const marked = list.sequence || list.cons || list.keepSingleton
  let plain: unknown[] | undefined = marked ? list.slice() : undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    if (typeof item === 'string') {
      count(item, size)
      continue
    }
    const made = outputOf(item, size)
    if (!Object.is(made, item) || item === undefined) {
      plain ??= list.slice()
      plain[index] = made ?? null
    }
  }
  return plain ?? list
}

function outputRecord(record: Record<string, unknown>, size: Size): Record<string, unknown> {
  spend(1)
  let plain: Record<string, unknown> | undefined
  for (const name of Object.keys(record)) {
    const item = record[name]
    if (typeof item === 'string') {
      count(item, size)
      continue
    }
    const made = outputOf(item, size)
    if (Object.is(made, item) && item !== undefined) continue
    plain ??= { ...record }
    if (made === undefined) delete plain[name]
    else put(plain, name, made)
  }
  return plain ?? record
}

function count(text: string, size: Size): void {
  size.text += text.length
  boundedText(size.text)
}
