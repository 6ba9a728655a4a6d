import { EvaluationError } from './evaluation-error.ts'
import { boundedSize, boundedText, budget, spend } from './limits.ts'
import { isRecord, sequence } from './sequence.ts'

/** `$boolean`; undefined for undefined. Throws D1001 for an infinite number. */
export function boolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (value === undefined) return undefined
  if (typeof value === 'string') return value.length > 0
  if (typeof value === 'number') return isNumeric(value) && value !== 0
  if (Array.isArray(value)) return value.length === 1 ? boolean(value[0]) : anyTrue(value)
  if (value === null || typeof value !== 'object') return false
  return Object.keys(value).length > 0
}

function anyTrue(list: unknown[]): boolean {
  spend(list.length)
  return list.filter((item) => boolean(item)).length > 0
}

/** `$not`; undefined for undefined. */
export function not(value: unknown): boolean | undefined {
  return value === undefined ? undefined : !boolean(value)
}

/** `$count`. */
export function count(value: unknown): number {
  if (value === undefined) return 0
  return Array.isArray(value) ? value.length : 1
}

/** The truth of a condition: undefined is false. */
export function truthy(value: unknown): boolean {
  return boolean(value) === true
}

/** Checks whether a value is a number. Throws D1001 for an infinite one. */
export function isNumeric(value: unknown): value is number {
  if (typeof value !== 'number' || Number.isNaN(value)) return false
  if (!Number.isFinite(value)) throw new EvaluationError('D1001', undefined, { value })
  return true
}

/** The truth of an operand of `and` and `or`. */
export function operand(value: unknown, token: string, position: number): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  if (typeof value === 'string') return value !== ''
  return withOperator(token, position, () => truthy(value))
}

/** `+ - * / %`; undefined if an operand is. Throws T2001, T2002, D1001. */
export function arithmetic(left: unknown, right: unknown, token: Operator, position: number): number | undefined {
  if (!isOperand(left)) throw operandError('T2001', token, position, left)
  if (!isOperand(right)) throw operandError('T2002', token, position, right)
  return left === undefined || right === undefined ? undefined : calculate(left, right, token)
}

type Operator = '+' | '-' | '*' | '/' | '%'

function isOperand(value: unknown): value is number | undefined {
  return value === undefined || Number.isFinite(value)
}

function operandError(code: string, token: string, position: number, value: unknown): EvaluationError {
  const isInfinite = typeof value === 'number' && !Number.isNaN(value)
  return new EvaluationError(isInfinite ? 'D1001' : code, position, { token, value })
}

function calculate(left: number, right: number, token: Operator): number {
  switch (token) {
    case '+':
      return left + right
    case '-':
      return left - right
    case '*':
      return left * right
    case '/':
      return left / right
    case '%':
      return left % right
  }
}

/** Unary minus. Throws D1002. */
export function negate(value: unknown, position: number): number | undefined {
  if (value === undefined) return undefined
  if (!isNumeric(value)) throw new EvaluationError('D1002', position, { token: '-', value })
  return -value
}

/** `< <= > >=`; undefined if an operand is. Throws T2009, T2010. */
export function compare(left: unknown, right: unknown, token: Comparison, position: number): boolean | undefined {
  if (typeof left === 'number' && typeof right === 'number') return holds(left, right, token)
  if (!comparable(left) || !comparable(right)) {
    const value = typeof left === 'string' || typeof left === 'number' ? right : left
    throw new EvaluationError('T2010', position, { token, value })
  }
  if (left === undefined || right === undefined) return undefined
  if (typeof left !== typeof right) throw new EvaluationError('T2009', position, { token, value: left, value2: right })
  return holds(left, right, token)
}

type Comparison = '<' | '<=' | '>' | '>='
type Comparable = string | number

function comparable(value: unknown): value is Comparable | undefined {
  return value === undefined || typeof value === 'string' || typeof value === 'number'
}

function holds(left: Comparable, right: Comparable, token: Comparison): boolean {
  switch (token) {
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    case '>=':
      return left >= right
  }
}

/** `=`: false if an operand is undefined. */
export function equal(left: unknown, right: unknown): boolean {
  return left !== undefined && right !== undefined && deepEqual(left, right)
}

/** `!=`: false if an operand is undefined. */
export function differs(left: unknown, right: unknown): boolean {
  return left !== undefined && right !== undefined && !deepEqual(left, right)
}

/** Deep equality. */
export function deepEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  spend(1)
  if (Array.isArray(left) && Array.isArray(right)) {
    spend(left.length >> 3)
    return left.length === right.length && left.every((item, index) => deepEqual(item, right[index]))
  }
  if (!isRecord(left) || !isRecord(right)) return false
  const names = Object.keys(left)
  if (names.length !== Object.keys(right).length) return false
  return names.every((name) => Object.hasOwn(right, name)) && names.every((name) => deepEqual(left[name], right[name]))
}

/** `in`: whether a list contains a value, compared strictly. */
export function includes(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return false
  if (!Array.isArray(right)) return right === left
  spend(right.length)
  return right.indexOf(left) !== -1
}

/** `&`: an undefined operand counts as an empty string. */
export function concat(left: unknown, right: unknown, position: number): string {
  const areTexts = typeof left === 'string' && typeof right === 'string'
  const text = areTexts ? left + right : withOperator('&', position, () => (string(left) ?? '') + (string(right) ?? ''))
  boundedText(text.length)
  return text
}

/** `$string`: JSON with numbers of at most 15 digits. Throws D3001, D1001. */
export function string(value: unknown, prettify = false): string | undefined {
  if (typeof value === 'string' || value === undefined) return value
  if (typeof value === 'function') return ''
  if (typeof value === 'number' && !Number.isFinite(value)) throw new EvaluationError('D3001', undefined, { value })
  const root = Array.isArray(value) && (value as { outerWrapper?: boolean }).outerWrapper ? value[0] : value
  return JSON.stringify(root, jsonMember, prettify ? 2 : 0)
}

function jsonMember(_: string, value: unknown): unknown {
  spend(typeof value === 'string' ? 1 + (value.length >> 8) : 1)
  if (typeof value === 'number' && isNumeric(value)) {
    return Number.isInteger(value) ? value : Number(value.toPrecision(15))
  }
  return typeof value === 'function' ? '' : value
}

/** `from..to`; undefined if empty. Throws T2003, T2004, D2014, D2015. */
export function range(from: unknown, to: unknown, position: number): unknown[] | undefined {
  if (from !== undefined && !Number.isInteger(from))
    throw new EvaluationError('T2003', position, { token: '..', value: from })
  if (to !== undefined && !Number.isInteger(to))
    throw new EvaluationError('T2004', position, { token: '..', value: to })
  if (from === undefined || to === undefined || (from as number) > (to as number)) return undefined
  const size = (to as number) - (from as number) + 1
  if (size > 1e7) throw new EvaluationError('D2014', position, { token: '..', value: size })
  if (size > budget.sequence) throw new EvaluationError('D2015', position, { token: '..', value: budget.sequence })
  spend(boundedSize(size) >> 3)
  return sequence(Array.from({ length: size }, (_, index) => (from as number) + index))
}

/** Runs an operation so that its errors carry the operator and its position. */
function withOperator<T>(token: string, position: number, operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    if (error instanceof EvaluationError) {
      error.position = position
      error.token = token
    }
    throw error
  }
}
