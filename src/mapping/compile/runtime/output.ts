import { boundedText, spend } from './limits.ts'
import { type Sequence, setMember } from './sequence.ts'

/**
 * Converts a result to plain JSON, without sequence flags, functions and non-finite numbers. Objects are only copied if
 * something in them has to be replaced, so parts of the input stay as they are. Shared parts count wherever they occur:
 * throws D1012 or D1014 for a result whose JSON text would be too large.
 */
export function output(value: unknown): unknown {
  return outputOf(value, { text: 0 })
}

/** Total length of the strings of a result so far. */
type Size = { text: number }

function outputOf(value: unknown, size: Size): unknown {
  if (typeof value === 'string') {
    count(value, size)
    return value
  }
  // JSON has neither infinity nor negative zero.
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
    const result = outputOf(item, size)
    if (!Object.is(result, item) || item === undefined) {
      plain ??= list.slice()
      plain[index] = result ?? null
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
    const result = outputOf(item, size)
    if (Object.is(result, item) && item !== undefined) continue
    plain ??= { ...record }
    if (result === undefined) delete plain[name]
    else setMember(plain, name, result)
  }
  return plain ?? record
}

function count(text: string, size: Size): void {
  size.text += text.length
  boundedText(size.text)
}
