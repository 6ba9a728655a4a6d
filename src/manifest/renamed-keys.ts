import { isObject } from '../core/json.ts'
import type { Path } from './read/position.ts'

/** A key that has a new name: files are read under both names for one release. `in` is the path of its parent, `*` any step. */
export type RenamedKey = { in: readonly string[]; from: string; to: string }

/** An old name in a file; `isDouble` when its parent has the new name as well. */
export type FoundOldName = { in: Path; from: string; to: string; isDouble: boolean }

const ofEndpoints = [
  ['endpoints', '*'],
  ['variants', '*', 'endpoints', '*'],
]
const ofManifests = [[], ['variants', '*']]
const ofTargets = [
  ['examples', '*', 'target'],
  ['variants', '*', 'examples', '*', 'target'],
]

/** The old and new names of keys of config.yaml, manifests and dialects. To rename another key, add it here. */
export const renamedKeys: readonly RenamedKey[] = [
  { in: ['health'], from: 'in_a_row', to: 'consecutive_failures' },
  { in: ['health'], from: 'of', to: 'min_calls' },
  { in: ['health'], from: 'open', to: 'open_for' },
  { in: ['health'], from: 'open_most', to: 'max_open' },
  { in: ['health'], from: 'ramp', to: 'ramp_up' },
  ...ofEndpoints.map((parent) => ({ in: parent, from: 'losses', to: 'unsupported' })),
  ...ofManifests.map((parent) => ({ in: parent, from: 'governed', to: 'restricted' })),
  ...[...ofManifests, ...ofTargets].map((parent) => ({ in: parent, from: 'maker', to: 'signer' })),
]

/** Returns a file's value with the new names of its keys, and the old names that were found; paths have the new names. */
export function withNewNames(
  value: unknown,
  keys: readonly RenamedKey[] = renamedKeys,
): { value: unknown; found: FoundOldName[] } {
  const found: FoundOldName[] = []
  const renamed = keys.reduce((whole, key) => rename(whole, key.in, [], { key, found }), value)
  return { value: renamed, found }
}

/** Returns the message about an old name. */
export function oldNameMessage({ from, to, isDouble }: Omit<FoundOldName, 'in'>): string {
  return isDouble
    ? `\`${from}\` is the old name of \`${to}\`: remove one of the two`
    : `\`${from}\` has been renamed to \`${to}\`: the old name will stop working in the next release`
}

type Renaming = { key: RenamedKey; found: FoundOldName[] }

/** Returns a copy of the value wherever something changes in it. */
function rename(value: unknown, steps: readonly string[], path: Path, renaming: Renaming): unknown {
  const [step, ...rest] = steps
  if (step === undefined) return renameMember(value, path, renaming)
  if (Array.isArray(value)) {
    return step === '*' ? value.map((item, index) => rename(item, rest, [...path, index], renaming)) : value
  }
  if (!isObject(value) || (step !== '*' && !Object.hasOwn(value, step))) return value
  const members = Object.entries(value).map(([name, member]) => {
    return [name, step === '*' || step === name ? rename(member, rest, [...path, name], renaming) : member]
  })
  return Object.fromEntries(members)
}

function renameMember(value: unknown, path: Path, { key, found }: Renaming): unknown {
  const { from, to } = key
  if (!isObject(value) || !Object.hasOwn(value, from)) return value
  const isDouble = Object.hasOwn(value, to)
  found.push({ in: path, from, to, isDouble })
  const members = Object.entries(value).filter(([name]) => !isDouble || name !== from)
  return Object.fromEntries(members.map(([name, member]) => [name === from ? to : name, member]))
}
