import type { CallRecord } from '../../core/call.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { Store } from '../../store/open.ts'
import type { CallsPage, CallsQuery, ListedCall } from '../../store/queries/calls-query.ts'
import {
  json,
  type ManagementContext,
  type ManageRequest,
  type ManageRoute,
  mayOperate,
  missing,
  pathPart,
} from '../manage.ts'
import { limitFrom, requireCursor } from '../page.ts'
import { parametersOf } from '../read.ts'
import { callDetail, callEntry, ownIdIn } from './call-entry.ts'
import { type FilteredCalls, filled, filteredCalls } from './call-filters.ts'
import { csvLine, csvType, wantsCsv } from './csv.ts'

/** Serves `/v1/manage/calls`: the settled calls of the organization, newest first, and one of them with everything recorded about it. */
export function callRoutes({ store }: Pick<ManagementContext, 'store'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/calls',
      async handle({ organization, query, headers, recheck }) {
        if (wantsCsv(headers)) {
          const whole = await pageOf(organization, filteredCalls(query, ['id']), store)
          return { body: callsCsv(whole, store, recheck), mediaType: csvType }
        }
        const { limit, cursor, ...asked } = filteredCalls(query, ['id', 'limit', 'cursor'])
        await requireCursor(cursor, (end) => store.calls.isCursor(end, organization))
        const page = { ...(await pageOf(organization, asked, store)), limit: limitFrom(limit, usualLimit) }
        const { calls, next } = await store.calls.page(cursor === undefined ? page : { ...page, after: cursor })
        return json({ calls: calls.map(callEntry), ...(next !== undefined && { next_cursor: next }) })
      },
    },
    {
      path: '/v1/manage/calls/:id',
      async handle({ key, organization, params, query }) {
        parametersOf(query, [])
        const id = pathPart({ params }, 'id')
        const found = (await store.calls.find(ownIdIn(id) ?? id, organization)) ?? missing('call', id)
        return json(callDetail((await mayOperate(key, store)) ? found : forOrganization(found)))
      },
    },
  ]
}

const usualLimit = 100

/** Checks whether an error is about the credential of this router: what the provider wrote concerns the account of the operator alone. */
export function concernsOperator(code: CallRecord['error']): boolean {
  return code === 'provider_refused'
}

/** Leaves out what providers wrote for the operator alone. */
function forOrganization({ call, attempts, ...listed }: ListedCall): ListedCall {
  const shown = (record: CallRecord): CallRecord => {
    const { providerMessage: _, ...others } = record
    return concernsOperator(record.error) ? others : record
  }
  return { ...listed, call: shown(call), attempts: attempts.map(shown) }
}

type Page = Omit<CallsQuery, 'limit' | 'after'>

/** Returns the calls that are asked for, on pages of any size. */
async function pageOf(
  organization: string,
  { id, from = 0, to, filters }: FilteredCalls<'id'>,
  store: Store,
): Promise<Page> {
  const page = { organization, from, to, filters }
  return id === undefined ? page : await withId(page, filled(id, 'id'), store)
}

/** Returns the call with an id that the router gave, in whatever form; or those that their client gave it. */
async function withId(page: Page, id: string, { calls }: Pick<Store, 'calls'>): Promise<Page> {
  const own = ownIdIn(id)
  const found = own === undefined ? undefined : await calls.callOf(own, page.organization)
  if (!found) return { ...page, filters: { ...page.filters, requestId: id } }
  const { from, to } = page
  const filters = { ...page.filters, id: found.id }
  return { ...page, from: Math.max(from, found.at), to: Math.min(to, found.at + 1), filters }
}

/** Number of calls that are written at once, which takes a moment. */
const callsAtOnce = 250

/** Calls of one organization, or of all together. */
type Exported = Omit<CallsQuery, 'limit' | 'after' | 'organization'> & { organization?: string | undefined }

/**
 * Yields all calls of a query as lines of a table, a page at a time: the next one is read when the client has taken the last, and none when
 * it has left. `recheck` rejects when they may not be read any more.
 */
export function callsCsv(
  asked: Exported,
  store: Pick<Store, 'calls'>,
  recheck: ManageRequest['recheck'],
  columns: readonly string[] = usualColumns,
): AsyncIterator<string, void> {
  let isGone = false
  const check = async () => {
    await recheck()
    return !isGone
  }
  const pieces = piecesOf(asked, store, { check, columns })
  return {
    next: () => pieces.next(),
    async return() {
      isGone = true
      return { done: true, value: undefined }
    },
  }
}

async function* piecesOf(
  { organization, ...asked }: Exported,
  { calls }: Pick<Store, 'calls'>,
  { check, columns }: { check: () => Promise<boolean>; columns: readonly string[] },
): AsyncGenerator<string, void> {
  let lines = csvLine(columns)
  let after: string | undefined
  do {
    const page = { ...asked, limit: callsAtOnce, ...(after !== undefined && { after }) }
    const reading = organization === undefined ? calls.pageOfAll(page) : calls.exported({ ...page, organization })
    const { calls: listed, next }: CallsPage = await reading
    for (const one of listed)
      lines += csvLine(cellsOf({ organization: one.call.organization, ...callEntry(one) }, columns))
    if (lines !== '') yield lines
    lines = ''
    after = next
  } while (after !== undefined && (await check()))
}

const usualColumns = [
  'id',
  'request_id',
  'at',
  'key',
  'key_name',
  'group',
  'group_name',
  'operation',
  'api',
  'asked',
  'provider',
  'model',
  'served',
  'streamed',
  'outcome',
  'code',
  'class',
  'status',
  'duration_ms',
  'first_event_ms',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost',
  'estimated',
  'unpriced',
  'user',
  'labels',
  'extra',
  'attempts',
]

/** The columns of a table of the calls of all organizations. */
export const columnsOfAll: readonly string[] = ['organization', ...usualColumns]

function cellsOf({ key, group, ...entry }: JsonObject, columns: readonly string[]): (Json | undefined)[] {
  const { id, name } = key as JsonObject
  const { id: groupId, name: groupName } = (group ?? {}) as JsonObject
  const cells: JsonObject = {
    ...entry,
    ...definedOf({ key: id, key_name: name, group: groupId, group_name: groupName }),
  }
  return columns.map((column) => cells[column])
}

function definedOf(values: { [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, Json] => entry[1] !== undefined))
}
