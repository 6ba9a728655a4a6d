import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, type Query } from './api.ts'
import type { CallEntry, RefusedEntry } from './entries.ts'
import { returns } from './reachable.ts'

/** A call in the list: settled, or refused before a provider was asked. */
export type ListedEntry = CallEntry | RefusedEntry

type CallsPage = { calls: CallEntry[]; next_cursor?: string }

/** The calls that are found so far, the latest first. `more` loads the next page; undefined where there is none. */
export type CallList = {
  calls: readonly ListedEntry[]
  error: Error | undefined
  isLoading: boolean
  more: (() => void) | undefined
}

const pageSize = 50
const refreshMs = 1_000
/** Maximum age of calls that are looked for again: a call is listed by its arrival, and seen when it has ended. */
const recentMs = 600_000
/** Maximum part of the time that looking again takes, also where a search has to look at many calls. */
const refreshShare = 0.05
/** Maximum number of rows, above which a page becomes slow: those at its end are asked for again when somebody goes there. */
const mostRows = 1_000

/**
 * Returns the calls page by page; those that are made meanwhile are put where they belong. They are looked for anew when `question`
 * changes: in the filters, a time may go with the clock.
 */
export function useCalls(filters: Query, question: string): CallList {
  const calls = useSignal<readonly CallEntry[]>([])
  const refused = useSignal<readonly RefusedEntry[]>([])
  const next = useSignal<string | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const isLoading = useSignal(true)
  const round = useRef(new AbortController())
  const start = (page: CallsPage) => {
    calls.value = page.calls
    next.value = page.next_cursor
  }
  const load = async (cursor: string | undefined, { signal }: AbortController) => {
    isLoading.value = true
    try {
      const [page, refusedNow] = await Promise.all([pageOf(filters, cursor, signal), refusals(filters, signal)])
      refused.value = refusedNow
      if (cursor === undefined) start(page)
      else start({ ...page, calls: [...calls.value, ...page.calls] })
      error.value = undefined
    } catch (thrown) {
      if (!signal.aborted) error.value = thrown as Error
    }
    if (!signal.aborted) isLoading.value = false
  }
  const refresh = async ({ signal }: AbortController) => {
    if (document.hidden || isLoading.value || error.value) return
    refused.value = await refusals(filters, signal)
    const page = await pageOf(recent(filters, calls.value), undefined, signal)
    if (isLoading.value) return
    const known = new Set(calls.value.map(({ id }) => id))
    const fresh = page.calls.filter(({ id }) => !known.has(id))
    const isGap = fresh.length === pageSize && known.size > 0
    const isLong = calls.value.length + fresh.length > mostRows && scrollY < innerHeight
    if (isGap || isLong) start(await pageOf(filters, undefined, signal))
    else if (fresh.length > 0) calls.value = inOrder([...fresh, ...calls.value])
  }
  const listed = useRef<string | undefined>(undefined)
  useEffect(() => {
    const aborted = new AbortController()
    round.current = aborted
    // When the router comes back, the calls stay until they have been loaded anew.
    if (listed.current !== question) {
      start({ calls: [] })
      refused.value = []
    }
    listed.current = question
    void load(undefined, aborted)
    keepRefreshing(() => refresh(aborted), aborted.signal)
    return () => aborted.abort()
  }, [question, returns.value])
  const more = next.value === undefined ? undefined : () => void (isLoading.value || load(next.value, round.current))
  const oldest = next.value === undefined ? '' : (calls.value.at(-1)?.at ?? '')
  const shown = inOrder([...refused.value.filter(({ at }) => at >= oldest), ...calls.value])
  return { calls: shown, error: error.value, isLoading: isLoading.value, more }
}

/** Returns a page that has some calls: a search that takes long ends its page before it has found one. */
async function pageOf(filters: Query, cursor: string | undefined, signal: AbortSignal): Promise<CallsPage> {
  if (filters.outcome === 'refused') return { calls: [] }
  let page: CallsPage = { calls: [], ...(cursor !== undefined && { next_cursor: cursor }) }
  do
    page = await api<CallsPage>('v1/manage/calls', {
      query: { ...filters, limit: pageSize, cursor: page.next_cursor },
      signal,
    })
  while (page.calls.length === 0 && page.next_cursor !== undefined)
  return page
}

/** Filters that also apply to calls which no provider has received. */
const refusable = ['key', 'group', 'code', 'asked', 'start', 'end', 'outcome', 'id']

async function refusals(filters: Query, signal: AbortSignal): Promise<RefusedEntry[]> {
  const { key, group, code, asked, start, end, outcome, id } = filters as { [name: string]: string | undefined }
  const isOther = (name: string) => !refusable.includes(name) && filters[name] !== undefined && filters[name] !== ''
  if (Object.keys(filters).some(isOther) || (outcome && outcome !== 'refused')) return []
  const query = { key, group, code, limit: 1_000 }
  const { refusals: found } = await api<{ refusals: RefusedEntry[] }>('v1/manage/refusals', { query, signal })
  return found.filter(
    (call) =>
      (!asked || call.asked === asked) &&
      (!start || call.at >= start) &&
      (!end || call.at < end) &&
      (!id || [call.id, call.request_id].includes(id)),
  )
}

/** Returns the filters, for the calls that may be new. */
function recent(filters: Query, calls: readonly CallEntry[]): Query {
  const oldest = calls[pageSize - 1]?.at ?? ''
  const start = [oldest, new Date(Date.now() - recentMs).toISOString(), String(filters.start ?? '')].toSorted().at(-1)
  return { ...filters, start }
}

function keepRefreshing(refresh: () => Promise<void>, signal: AbortSignal): void {
  const later = (ms: number) => {
    const timer = setTimeout(async () => {
      const begun = performance.now()
      await refresh().catch(() => {})
      if (!signal.aborted) later(Math.max(refreshMs, (performance.now() - begun) / refreshShare))
    }, ms)
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
  later(refreshMs)
}

function inOrder<Entry extends ListedEntry>(calls: readonly Entry[]): Entry[] {
  return calls.toSorted((one, other) => (one.at === other.at ? 0 : one.at < other.at ? 1 : -1))
}
