import type { Json, JsonObject } from '../../core/json.ts'
import type { Store } from '../../store/open.ts'
import type { CallsPage, CallsQuery } from '../../store/queries/calls-query.ts'
import { callEntry } from './call-entry.ts'
import { csvLine } from './csv.ts'

/** Takes a moment to write. */
const callsAtOnce = 250

type Exported = Omit<CallsQuery, 'limit' | 'after'>

/**
 * All calls of a query as lines of a table, a page at a time: the next one is read when the client has taken the last, and none when it
 * has left. `recheck` throws when they may not be read any more.
 */
export function callsCsv(
  asked: Exported,
  store: Pick<Store, 'calls'>,
  recheck: () => void,
): AsyncIterator<string, void> {
  let isGone = false
  const check = () => {
    recheck()
    return !isGone
  }
  const pieces = piecesOf(asked, store, check)
  return {
    next: () => pieces.next(),
    async return() {
      isGone = true
      return { done: true, value: undefined }
    },
  }
}

async function* piecesOf(
  asked: Exported,
  { calls }: Pick<Store, 'calls'>,
  check: () => boolean,
): AsyncGenerator<string, void> {
  let lines = csvLine(columns)
  let after: string | undefined
  do {
    const { calls: listed, next }: CallsPage = await calls.exported({
      ...asked,
      limit: callsAtOnce,
      ...(after !== undefined && { after }),
    })
    for (const call of listed) lines += csvLine(cellsOf(callEntry(call)))
    if (lines !== '') yield lines
    lines = ''
    after = next
  } while (after !== undefined && check())
}

const columns = [
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

function cellsOf({ key, group, ...entry }: JsonObject): (Json | undefined)[] {
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
