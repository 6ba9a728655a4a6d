import { type FactName, type FactValue, kindOf } from './listed.ts'

/** The statement of one list about a fact of a model. */
export type Statement = { list: string; origin: string; asOf: string; value: FactValue; page?: string }

/**
 * The result of comparing a fact with what lists state. `agree`: ours is stated by as many origins as any other value. `majority`: more
 * origins state one other value, at least two, or one that names the provider's own page for a date. `single`: one origin states another
 * value and none ours. `contested`: origins differ, without a majority.
 */
export type Verdict = { kind: 'agree' | 'majority' | 'single' | 'contested'; value: FactValue; votes: Statement[] }

/** Lists this much older than the newest one vote only where fewer than two origins are newer. Days. */
const currentDays = 45

/** Checks whether a list is not much older than the newest one. */
export function isCurrent(asOf: string, newest: string): boolean {
  return daysBetween(asOf, newest) <= currentDays
}

/**
 * Decides what the lists say about a fact; undefined where none states it. `statements` are in the order of lists.yaml; `ours` is undefined
 * where the catalog does not state the fact.
 */
export function decide(
  name: FactName,
  ours: FactValue | undefined,
  statements: readonly Statement[],
  newest: string,
): Verdict | undefined {
  const votes = currentVotes(statements, newest)
  const groups = groupsOf(name, votes)
  const [first, second] = groups
  if (!first) return undefined
  const supporting = groups.find(([one]) => ours !== undefined && isSame(name, ours, one.value))
  if (supporting && supporting.length >= first.length) return { kind: 'agree', value: supporting[0].value, votes }
  const isDated = name === 'shutdown' && first.some(({ page }) => page !== undefined)
  const isMajority = first.length > (second?.length ?? 0) && (first.length >= 2 || (isDated && !supporting))
  const kind = isMajority ? 'majority' : votes.length === 1 ? 'single' : 'contested'
  return { kind, value: first[0].value, votes }
}

/** One vote for each origin: that of its first list here. Older lists are left out where two origins are current. */
function currentVotes(statements: readonly Statement[], newest: string): Statement[] {
  const votes = [...new Map(statements.toReversed().map((one) => [one.origin, one])).values()].toReversed()
  const current = votes.filter(({ asOf }) => isCurrent(asOf, newest))
  return current.length >= 2 ? current : votes
}

type Group = [Statement, ...Statement[]]

/** The votes by value, the largest group first. */
function groupsOf(name: FactName, votes: readonly Statement[]): Group[] {
  const groups: Group[] = []
  for (const vote of votes) {
    const group = groups.find(([one]) => isSame(name, one.value, vote.value))
    if (group) group.push(vote)
    else groups.push([vote])
  }
  return groups.toSorted((one, other) => other.length - one.length)
}

/** Prices are rounded by some lists, and limits counted in thousands or in 1,024s. */
const tolerances = { price: 0.006, limit: 0.05, ability: 0, retirement: 0 }

/** Checks whether two values of a fact mean the same. */
export function isSame(name: FactName, one: FactValue, other: FactValue): boolean {
  if (typeof one !== 'number' || typeof other !== 'number') return one === other
  return Math.abs(one - other) <= tolerances[kindOf(name)] * Math.max(Math.abs(one), Math.abs(other))
}

function daysBetween(earlier: string, later: string): number {
  return (Date.parse(later) - Date.parse(earlier)) / 86_400_000
}
