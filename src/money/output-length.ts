import { type BoundedCall, costBound, lengthFor, longestOutput, outputBound, type PricedTarget } from './max-cost.ts'

/** What decides on the length of a reply whose request does not. */
export type Allowance = {
  /** What the caller can still pay, in nano-USD; undefined where nothing limits it. */
  leftNano: bigint | undefined
  /** The length that a call gets at least, in tokens. */
  defaultLength: number
}

/** The length that a call asks for at a target, in tokens. */
export type AskedLength = {
  /** The output limit to be sent; undefined where the request stays as it is. */
  length?: number
  /** The output of all choices that is held. */
  output: number
  /** The most output of all choices that can come. */
  most: number
  /** The output that rate limits count in advance. */
  expected: number
}

/**
 * The length of a reply: the client's own, at most the model's; else, for a caller with a limit, the longest that costs at
 * most an eighth of what is left. What cannot be sent shorter than the default is asked for at that length.
 */
export function askedLength(call: BoundedCall, target: PricedTarget, allowance: Allowance): AskedLength {
  const most = longestOutput(target)
  const stated = call.request.max_output_tokens
  if (stated !== undefined) {
    const length = Math.min(stated, most)
    const output = outputBound(call, target, length)
    return { ...(length < stated && { length }), output, most: output, expected: output }
  }
  const expected = outputBound(call, target, Math.min(allowance.defaultLength, most))
  const all = outputBound(call, target, most)
  if (allowance.leftNano === undefined) return { output: expected, most: all, expected }
  const affordable = affordableLength(call, target, allowance.leftNano)
  if (affordable === undefined) return { output: all, most: all, expected }
  const length = Math.min(Math.max(affordable, allowance.defaultLength), most)
  const isBelow = length < most || target.entry?.max_output_tokens === undefined
  const output = outputBound(call, target, length)
  return { ...(isBelow && { length }), output, most: output, expected }
}

/** A caller that leaves the length open must be able to make other calls. */
const share = 8n

function affordableLength(call: BoundedCall, target: PricedTarget, left: bigint): number | undefined {
  const rest = left - costBound(call, target, 0)
  const portion = left / share
  const least = rest < portion ? rest : portion
  return lengthFor(call, target, least > 0n ? least : 0n)
}
