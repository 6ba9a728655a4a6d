import type { Cell } from './cells.ts'
import type { Seen } from './clients/client.ts'
import type { Expectation, Outcome, Range } from './scenarios.ts'
import { answerTokens, isDamaged, promptTokens, wholeText } from './simulator/answer.ts'
import type { Entry } from './simulator/journal.ts'
import type { World } from './world.ts'

/** What a caller got, and what the targets were asked for it. */
export type Observed = { seen: Seen; requests: readonly Entry[] }

/** What is wrong with a cell; nothing if it is as it must be. */
export function judge(cell: Cell, observed: Observed, { time, slackMs }: Pick<World, 'time' | 'slackMs'>): string[] {
  const { expected } = cell
  const { seen } = observed
  if (seen.status === 0) return seen.wrong
  const outcome = outcomeOf(cell, seen)
  const problems = [...seen.wrong, ...outcome.problems]
  if (outcome.of && !expected.answer.includes(outcome.of))
    problems.push(`${outcome.of}, not ${expected.answer.join(' or ')}: ${shortly(seen)}`)
  if (outcome.of === 'error') problems.push(...errorProblems(expected, seen))
  if (outcome.of === 'complete' && isCounted(cell)) problems.push(...usageProblems(seen))
  const { seconds = 30 } = expected
  if (seen.ms > seconds * 1_000 * time + slackMs) problems.push(`it took ${Math.round(seen.ms)} ms`)
  return [...problems, ...requestProblems(cell, observed.requests)]
}

/** What is wrong with an answer that must be whole. */
export function wholeProblems(cell: Cell, seen: Seen): string[] {
  if (seen.status === 0) return seen.wrong
  const { of, problems } = outcomeOf(cell, seen)
  return [...seen.wrong, ...problems, ...(of === 'complete' ? [] : [`not complete: ${shortly(seen)}`])]
}

/** Which of the outcomes it was; the problems say why it was none. */
export function outcomeOf({ mode }: Pick<Cell, 'mode'>, seen: Seen): { of?: Outcome; problems: string[] } {
  const { endings, status, text } = seen
  const ends = endings.join(' and ')
  if (endings.includes('error')) {
    if (endings.length > 1) return { problems: [`it ends more than once: ${ends}`] }
    return { of: 'error', problems: status === 200 && mode === 'whole' ? ['an error with status 200'] : [] }
  }
  if (endings.length === 0) return { problems: [`it has no end: ${shortly(seen)}`] }
  const problems = ends === 'finish and terminator' ? [] : [`it ends with ${ends}`]
  if (text === wholeText) return { of: 'complete', problems }
  if (isDamaged(text)) return { of: 'damaged', problems }
  return { problems: [...problems, `a truncated answer passes for a whole one: ${shortly(seen)}`] }
}

function errorProblems({ status, retryAfter }: Expectation, seen: Seen): string[] {
  if (seen.status === 200) return []
  return [
    ...(status && !status.includes(seen.status) ? [`status ${seen.status}, not ${status.join(', ')}`] : []),
    ...(retryAfter && !seen.headers.has('retry-after') ? ['no Retry-After'] : []),
    ...(seen.text === '' ? [] : ['an error status after text']),
  ]
}

/** Whether an answer is counted as one provider counts it. */
export function isCounted({ scenario, expected }: Cell): boolean {
  return scenario.estimated !== true && expected.parts !== true
}

function usageProblems({ usage }: Seen): string[] {
  const { input, output } = usage ?? {}
  if (input === promptTokens && output === answerTokens) return []
  return [`usage ${input} and ${output}, not ${promptTokens} and ${answerTokens}`]
}

function requestProblems({ scenario, targets, expected }: Cell, requests: readonly Entry[]): string[] {
  const { first, second = 'ok' } = scenario
  const count = (model: string) => requests.filter((entry) => entry.model === model).length
  const outside = (which: string, found: number, [least, most]: Range) =>
    found < least || found > most ? [`${found} requests for the ${which} target, not ${least} to ${most}`] : []
  return [
    ...outside('first', count(first), expected.first),
    ...(targets === 'two' && expected.second && second !== first
      ? outside('second', count(second), expected.second)
      : []),
  ]
}

/** What a caller got, for a report. */
function shortly({ status, text, endings, error }: Seen): string {
  const said = text === '' ? 'no text' : `${text.split(' ').length} words`
  return `status ${status}, ${said}, ${endings.join(' and ') || 'no end'}${error?.message ? ` (${error.message})` : ''}`
}
