import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import {
  isUsageGroup,
  type Resolution,
  type UsageQuestion,
  type UsageRow,
  UsageTooLarge,
} from '../store/usage-query.ts'
import { keyOf } from './keys.ts'
import { type Asked, json, type ManagementRooms, type ManageRoute } from './manage.ts'
import { invalid, momentOf, parametersOf } from './read.ts'

/** `…/usage`: what a key or the whole organization used, by period of UTC and by group. Times are counted in whole hours. */
export function usageRoutes({ store }: Pick<ManagementRooms, 'store'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/org/usage',
      answer: async ({ organization, query }) => usageAnswer(store, { organization, ...wishesIn(query) }),
    },
    {
      path: '/v1/manage/apikey/:id/usage',
      answer: async (asked) => {
        const { id: key, organization } = keyOf(asked, store)
        return usageAnswer(store, { organization, key, ...wishesIn(asked.query) })
      },
    },
  ]
}

async function usageAnswer({ usage }: ManagementRooms['store'], question: UsageQuestion) {
  try {
    return json({ usage: usageEntry(await usage.query(question), question.groupBy) })
  } catch (thrown) {
    throw thrown instanceof UsageTooLarge ? invalid(thrown.message, 'group_by') : thrown
  }
}

/** Rows as the API shows them: by the start of their period, and in `grouped_data` by group when groups were asked for. */
export function usageEntry(rows: readonly UsageRow[], groupBy: readonly string[]): JsonObject {
  const periods = Map.groupBy(rows, ({ start }) => start)
  const entries = [...periods].map(([start, ofPeriod]): [string, JsonObject] => {
    const grouped = ofPeriod.map((row) => ({ group_by_values: valuesOf(row, groupBy), ...figures([row]) }))
    return [periodName(start), { ...figures(ofPeriod), ...(groupBy.length > 0 && { grouped_data: grouped }) }]
  })
  return Object.fromEntries(entries)
}

const resolutions: readonly Resolution[] = ['hour', 'day', 'month']
const dayMs = 24 * 60 * 60 * 1_000
const mostDays = 100
/** Each further group multiplies the rows. */
const mostGroups = 5

type Wishes = Pick<UsageQuestion, 'from' | 'to' | 'resolution' | 'groupBy'>

function wishesIn({ group_by, ...others }: Asked['query'], now = Date.now()): Wishes {
  const { start, end, resolution = 'day' } = parametersOf(others, ['start', 'end', 'resolution', 'group_by'])
  if (!isResolution(resolution))
    throw invalid(`'resolution' must be ${resolutions.join(', ')}, not '${shortened(resolution)}'.`, 'resolution')
  const to = end === undefined ? now : timeIn(end, 'end')
  const from = start === undefined ? monthStart(to - 1) : timeIn(start, 'start')
  if (from >= to) throw invalid("'end' must be later than 'start'.", 'end')
  if (to - from > mostDays * dayMs)
    throw invalid(`From 'start' to 'end' are more than ${mostDays} days; ask for fewer at once.`, 'start')
  return { from, to, resolution, groupBy: groupsIn([group_by ?? []].flat()) }
}

function isResolution(text: string): text is Resolution {
  return resolutions.some((resolution) => resolution === text)
}

/** A moment, in Unix milliseconds: a time as it is; of a date its beginning, or as the end of a report its last moment. */
function timeIn(text: string, name: 'start' | 'end'): number {
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text)
  const moment = momentOf(isDate ? `${text}T00:00:00Z` : text)
  // What comes before 1970 has no hour in the books.
  if (moment >= 0) return isDate && name === 'end' ? moment + dayMs : moment
  throw invalid(
    `'${name}' must be a date such as 2026-11-30 or an RFC 3339 time such as 2026-11-30T12:00:00Z, not '${shortened(text)}'.`,
    name,
  )
}

function groupsIn(words: readonly string[]): string[] {
  const wrong = words.find((word) => !isUsageGroup(word))
  if (wrong !== undefined)
    throw invalid(
      `'group_by' must be model, provider, key, user, label, label.<name> or extra.<field>, not '${shortened(wrong)}'; give it once for each.`,
      'group_by',
    )
  const groups = [...new Set(words)]
  if (groups.length > mostGroups) throw invalid(`'group_by' may be given ${mostGroups} times.`, 'group_by')
  return groups
}

function shortened(text: string): string {
  return text.slice(0, 60)
}

function monthStart(at: number): number {
  const date = new Date(at)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

function periodName(start: number): string {
  return new Date(start).toISOString().replace('.000Z', 'Z')
}

function valuesOf({ values }: UsageRow, groupBy: readonly string[]): JsonObject {
  return Object.fromEntries(groupBy.map((word, index) => [word, values[index] ?? null]))
}

function figures(rows: readonly UsageRow[]): JsonObject {
  const sum = (of: (row: UsageRow) => number) => rows.reduce((total, row) => total + of(row), 0)
  const requests = (...operations: string[]) =>
    sum(({ byOperation }) => operations.reduce((total, name) => total + (byOperation[name] ?? 0), 0))
  const [input, output] = [sum(({ inputTokens }) => inputTokens), sum(({ outputTokens }) => outputTokens)]
  return {
    total_requests: sum(({ requests }) => requests),
    completions_requests: requests('chat'),
    embedding_requests: requests('embed'),
    image_requests: requests('image', 'image_edit'),
    speech_requests: requests('speech'),
    transcription_requests: requests('transcribe'),
    spend: usdOf(rows.reduce((total, { nano }) => total + nano, 0n)),
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
  }
}
