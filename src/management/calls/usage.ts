import { setImmediate } from 'node:timers/promises'
import type { JsonObject } from '../../core/json.ts'
import { dayMs, formatTime, hourMs, monthStart } from '../../core/time.ts'
import type { JsonAnswer } from '../../http/types.ts'
import { usdOf } from '../../money/usd.ts'
import { addFigures, noFigures } from '../../store/ledger/sums.ts'
import { QueryTooLarge } from '../../store/queries/query.ts'
import {
  isUsageGroup,
  type Resolution,
  type UsageQuery,
  type UsageRow,
  usageGroups,
} from '../../store/queries/usage-query.ts'
import { keyOf } from '../keys.ts'
import type { ManagementContext, ManageRequest, ManageRoute } from '../manage.ts'
import { invalid, parametersOf, rangeTime } from '../read.ts'
import { csvLine, csvType, wantsCsv } from './csv.ts'

/** Serves `…/usage`: the usage of a key or of the organization, by period (UTC) and group. */
export function usageRoutes({ store }: Pick<ManagementContext, 'store'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/org/usage',
      handle: async ({ organization, query, headers }) =>
        usageResponse(store, { organization, ...usageParameters(query) }, headers),
    },
    {
      path: '/v1/manage/apikey/:id/usage',
      showsSelf: true,
      handle: async (request) => {
        const { id: key, organization } = await keyOf(request, store)
        return usageResponse(store, { organization, key, ...usageParameters(request.query) }, request.headers)
      },
    },
  ]
}

/** Returns a usage report, as JSON or as a table. Throws RouterError 400. */
export async function usageResponse(
  { usage }: Pick<ManagementContext['store'], 'usage'>,
  report: UsageQuery,
  headers: ManageRequest['headers'],
): Promise<JsonAnswer> {
  try {
    const rows = await usage.query(report)
    if (wantsCsv(headers)) return { body: usageCsv(rows, report.groupBy), mediaType: csvType }
    return { text: await usageText(rows, report.groupBy) }
  } catch (thrown) {
    throw thrown instanceof QueryTooLarge ? invalid(thrown.message, 'group_by') : thrown
  }
}

/**
 * Returns the JSON of a usage report: rows by the start of their period, and in `grouped_data` by group when the query names
 * groups. Yields to the event loop now and then, as a report may be large.
 */
export async function usageText(rows: readonly UsageRow[], groupBy: readonly string[]): Promise<string> {
  const periods: string[] = []
  let written = 0
  for (const [start, ofPeriod] of Map.groupBy(rows, (row) => row.start)) {
    const total: Total = { byOperation: {}, figures: noFigures() }
    const groups: string[] = []
    for (const row of ofPeriod) {
      addTo(total, row)
      if (groupBy.length === 0) continue
      groups.push(JSON.stringify({ group_by_values: valuesOf(row, groupBy), ...entryOf(row) }))
      written++
      if (written % groupsAtOnce === 0) await setImmediate()
    }
    const grouped = groupBy.length === 0 ? '' : `,"grouped_data":[${groups}]`
    periods.push(`"${formatTime(start)}":${JSON.stringify(entryOf(total)).slice(0, -1)}${grouped}}`)
  }
  return `{"usage":{${periods}}}`
}

/** Yields a usage report as lines of a table: one for each group of a period. */
async function* usageCsv(rows: readonly UsageRow[], groupBy: readonly string[]): AsyncGenerator<string, void> {
  yield csvLine(['start', ...groupBy, ...Object.keys(entryOf({ byOperation: {}, figures: noFigures() }))])
  for (let at = 0; at < rows.length; at += linesAtOnce) {
    const lines = rows
      .slice(at, at + linesAtOnce)
      .map((row) => csvLine([formatTime(row.start), ...row.values, ...Object.values(entryOf(row))]))
    yield lines.join('')
  }
}

const linesAtOnce = 500
/** Number of groups that are written at once, which takes about ten milliseconds. */
const groupsAtOnce = 1_000
const resolutions: readonly Resolution[] = ['hour', 'day', 'month']
const maxDays = 100
/** Maximum number of groups: each further one multiplies the rows. */
const maxGroups = 5

type Parameters = Pick<UsageQuery, 'from' | 'to' | 'resolution' | 'groupBy'>

/** Returns the range, the resolution and the groups that a query asks for. Throws RouterError 400. */
export function usageParameters({ group_by, ...others }: ManageRequest['query'], now = Date.now()): Parameters {
  const { start, end, resolution = 'day' } = parametersOf(others, ['start', 'end', 'resolution', 'group_by'])
  if (!isResolution(resolution))
    throw invalid(`'resolution' must be ${resolutions.join(', ')}, not '${shortened(resolution)}'.`, 'resolution')
  // Until the end of this hour, whose sum is then sufficient: no call is in the future.
  const to = end === undefined ? Math.ceil((now + 1) / hourMs) * hourMs : rangeTime(end, 'end')
  const from = start === undefined ? monthStart(to - 1) : rangeTime(start, 'start')
  if (from >= to) throw invalid("'end' must be later than 'start'.", 'end')
  if (to - from > maxDays * dayMs)
    throw invalid(`'start' and 'end' are more than ${maxDays} days apart; ask for fewer days at once.`, 'start')
  return { from, to, resolution, groupBy: groupsIn([group_by ?? []].flat()) }
}

function isResolution(text: string): text is Resolution {
  return resolutions.some((resolution) => resolution === text)
}

function groupsIn(names: readonly string[]): string[] {
  const wrong = names.find((name) => !isUsageGroup(name))
  if (wrong !== undefined)
    throw invalid(
      `'group_by' must be ${usageGroups.join(', ')}, label.<name> or extra.<field>, not '${shortened(wrong)}'; give it once for each.`,
      'group_by',
    )
  const groups = [...new Set(names)]
  if (groups.length > maxGroups) throw invalid(`'group_by' may be given at most ${maxGroups} times.`, 'group_by')
  return groups
}

function shortened(text: string): string {
  return text.slice(0, 60)
}

function valuesOf({ values }: UsageRow, groupBy: readonly string[]): JsonObject {
  return Object.fromEntries(groupBy.map((name, index) => [name, values[index] ?? null]))
}

type Total = Pick<UsageRow, 'byOperation' | 'figures'>

function addTo(total: Total, { byOperation, figures }: UsageRow): void {
  addFigures(total.figures, figures)
  for (const [name, requests] of Object.entries(byOperation))
    total.byOperation[name] = (total.byOperation[name] ?? 0) + requests
}

function entryOf({ byOperation, figures }: Total): JsonObject {
  const of = (operation: string) => byOperation[operation] ?? 0
  const [input, output] = [Number(figures.input_tokens), Number(figures.output_tokens)]
  return {
    total_requests: Number(figures.requests),
    completions_requests: of('chat') + of('compact') + of('complete'),
    embedding_requests: of('embed'),
    image_requests: of('image') + of('image_edit'),
    speech_requests: of('speech'),
    transcription_requests: of('transcribe'),
    decision_requests: of('decide'),
    rerank_requests: of('rerank'),
    moderation_requests: of('moderate'),
    failed_requests: Number(figures.failed),
    partial_requests: Number(figures.partial),
    estimated_requests: Number(figures.estimated),
    unpriced_requests: Number(figures.unpriced),
    spend: usdOf(figures.nano),
    input_tokens: input,
    cached_tokens: Number(figures.cached_tokens),
    output_tokens: output,
    reasoning_tokens: Number(figures.reasoning_tokens),
    total_tokens: input + output,
  }
}
