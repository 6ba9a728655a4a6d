import { spend } from './limits.ts'
import { put, type Sequence } from './sequence.ts'

/**
 * The value as plain JSON: without bookkeeping on lists, functions or numbers that JSON lacks. Parts of the input are
 * handed back as they are; only what the mapping built is ever replaced.
 */
export function output(value: unknown): unknown {
  // JSON knows neither infinity nor a negative zero.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value === 'function') return undefined
  if (typeof value !== 'object' || value === null) return value
  spend(1)
  return Array.isArray(value) ? outputList(value) : outputRecord(value as Record<string, unknown>)
}

function outputList(list: Sequence): unknown[] {
  const marked = list.sequence || list.cons || list.keepSingleton
  let plain: unknown[] | undefined = marked ? list.slice() : undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    if (typeof item === 'string') continue
    const made = output(item)
    if (!Object.is(made, item) || item === undefined) {
      plain ??= list.slice()
      plain[index] = made ?? null
    }
  }
  return plain ?? list
}

function outputRecord(record: Record<string, unknown>): Record<string, unknown> {
  let plain: Record<string, unknown> | undefined
  for (const name of Object.keys(record)) {
    const item = record[name]
    if (typeof item === 'string') continue
    const made = output(item)
    if (Object.is(made, item) && item !== undefined) continue
    plain ??= { ...record }
    if (made === undefined) delete plain[name]
    else put(plain, name, made)
  }
  return plain ?? record
}
