import { EvaluationError } from './evaluation-error.ts'
import { boundedText, spend } from './limits.ts'
import { isRecord, type Sequence, setMember } from './sequence.ts'

/**
 * Converts a result to plain JSON, without sequence flags and non-finite numbers. Objects are only copied if
 * something in them has to be replaced, so parts of the input stay as they are. Shared parts count wherever they occur:
 * throws D1012 or D1014 for a result whose JSON text would be too large, D1016 for one with a function in it. A patch leaves most members of its input where they were:
 * these are plain JSON, and no larger than the input.
 */
export function output(value: unknown, input?: unknown): unknown {
  textLength = 0
  if (!isRecord(value) || !isRecord(input)) return outputOf(value)
  return value === input ? value : outputRecord(value, input)
}

/** Total length of the strings of the current result so far. */
let textLength = 0

function outputOf(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      count(value)
      return value
    case 'number':
      // JSON has neither infinity nor negative zero.
      return Number.isFinite(value) ? value + 0 : null
    case 'object':
      if (value === null) return null
      return Array.isArray(value) ? outputList(value) : outputRecord(value as Record<string, unknown>)
    case 'function':
      throw new EvaluationError('D1016')
    default:
      return value
  }
}

function outputList(list: Sequence): unknown[] {
  spend(1 + list.length)
  const marked = list.sequence || list.cons || list.keepSingleton
  let plain: unknown[] | undefined = marked ? list.slice() : undefined
  for (let index = 0; index < list.length; index++) {
    const item = list[index]
    const result = outputOf(item)
    if (!Object.is(result, item) || item === undefined) {
      plain ??= list.slice()
      plain[index] = result ?? null
    }
  }
  return plain ?? list
}

function outputRecord(record: Record<string, unknown>, input?: Record<string, unknown>): Record<string, unknown> {
  spend(1)
  let plain: Record<string, unknown> | undefined
  // Unlike Object.keys, this allocates nothing; Object.prototype has no enumerable members.
  for (const name in record) {
    const item = record[name]
    if (input && typeof item === 'object' && item === input[name]) continue
    const result = outputOf(item)
    if (Object.is(result, item) && item !== undefined) continue
    plain ??= { ...record }
    if (result === undefined) delete plain[name]
    else setMember(plain, name, result)
  }
  return plain ?? record
}

function count(text: string): void {
  textLength += text.length
  boundedText(textLength)
}
