import { type Target, targetId } from '../manifest/target.ts'

/** The shares of targets in the calls; 1 where there is none. */
export type Weights = ReadonlyMap<Target, number>

export function weightOf(target: Target, weights: Weights | undefined): number {
  return weights?.get(target) ?? 1
}

/**
 * Puts targets in an order that is random by their weights: each stands first as often as its weight says. `unit` gives a number
 * between 0 and 1 for each.
 */
export function byWeight(
  targets: readonly Target[],
  weights: Weights | undefined,
  unit: (target: Target) => number,
): Target[] {
  const places = targets.map((target) => ({ target, place: -Math.log(unit(target)) / weightOf(target, weights) }))
  places.sort((one, other) => one.place - other.place || 0)
  return places.map(({ target }) => target)
}

/** Returns numbers that are random, but the same for the same key in all threads and processes. */
export function unitsOf(key: string): (target: Target) => number {
  const seed = hashed(firstHash, key)
  return (target) => (mixed(hashed(seed, targetId(target))) + 0.5) / 2 ** 32
}

/** Hashes a text by FNV-1a. */
function hashed(seed: number, text: string): number {
  let hash = seed
  for (let place = 0; place < text.length; place++) hash = Math.imul(hash ^ text.charCodeAt(place), prime)
  return hash
}

/** Applies the last steps of MurmurHash3: texts that differ in one character have numbers far apart. */
function mixed(hash: number): number {
  let bits = hash ^ (hash >>> 16)
  bits = Math.imul(bits, 0x85ebca6b)
  bits ^= bits >>> 13
  bits = Math.imul(bits, 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

const firstHash = 0x811c9dc5
const prime = 0x01000193
