import { isObject } from '../../core/json.ts'

/** Steps to a member of a file: names and indexes. */
export type MemberPath = readonly (string | number)[]

/** A file of another gateway. It remembers which of its members were used, so that all others can be reported. */
export class ForeignFile {
  readonly value: unknown
  readonly #used = new Set<string>()

  constructor(value: unknown) {
    this.value = value
  }

  /** Returns a member without using it. */
  peek(path: MemberPath): unknown {
    return path.reduce<unknown>((value, step) => {
      if (Array.isArray(value)) return typeof step === 'number' ? value[step] : undefined
      return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
    }, this.value)
  }

  /** Returns a member; it counts as used, with all that is in it. */
  take(path: MemberPath): unknown {
    this.#used.add(keyOf(path))
    return this.peek(path)
  }

  /** Returns a member that is a text, and uses it. */
  text(path: MemberPath): string | undefined {
    const value = this.take(path)
    return typeof value === 'string' && value !== '' ? value : undefined
  }

  /** Returns a member that is a number, also one that is written as a text, and uses it. */
  number(path: MemberPath): number | undefined {
    const value = this.take(path)
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    return typeof number === 'number' && Number.isFinite(number) ? number : undefined
  }

  /** Returns the items of a member that is a list, each with its path; none for anything else. */
  items(path: MemberPath): MemberPath[] {
    const value = this.peek(path)
    return Array.isArray(value) ? value.map((_, index) => [...path, index]) : []
  }

  /** Returns the names of the members of an object, none for anything else. */
  names(path: MemberPath): string[] {
    const value = this.peek(path)
    return isObject(value) ? Object.keys(value) : []
  }

  /** Returns the paths of everything that was not used, as far up as possible. */
  unused(): MemberPath[] {
    return this.#unusedIn(this.value, [])
  }

  #unusedIn(value: unknown, path: MemberPath): MemberPath[] {
    if (isEmpty(value) || this.#used.has(keyOf(path))) return []
    const inside = `${keyOf(path)}${path.length === 0 ? '' : separator}`
    const isPartlyUsed = [...this.#used].some((used) => used.startsWith(inside))
    if (!isPartlyUsed || typeof value !== 'object' || value === null) return path.length === 0 ? [] : [path]
    const members = Array.isArray(value) ? value.map((one, index) => [index, one] as const) : Object.entries(value)
    return members.flatMap(([step, member]) => this.#unusedIn(member, [...path, step]))
  }
}

const separator = '\u0000'

function keyOf(path: MemberPath): string {
  return path.join(separator)
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.keys(value).length === 0
}

/** Writes a path as people read it: `model_list[0].litellm_params.rpm`. */
export function pathText(path: MemberPath): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      const isPlain = /^[\w-]+$/.test(step)
      return isPlain ? `${index === 0 ? '' : '.'}${step}` : `[${JSON.stringify(step)}]`
    })
    .join('')
}

/** Returns the texts of a list, or a single text. */
export function textsIn(value: unknown): string[] {
  return [value].flat().filter((one) => typeof one === 'string')
}
