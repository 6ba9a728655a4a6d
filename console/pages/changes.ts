import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api } from '../api.ts'
import { html } from '../html.ts'
import { Failure, Page, Spinner } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Name, Time } from '../parts/text.ts'
import { to } from '../place.ts'

type Entry = {
  id: string
  at: string
  actor: string
  action: string
  subject: string
  before?: Record<string, unknown> | null
  after?: Record<string, unknown> | null
}
type EntriesPage = { entries: Entry[]; next_cursor?: string }

/** Shows who has changed what, the latest first. */
export default function Changes() {
  const entries = useSignal<readonly Entry[]>([])
  const next = useSignal<string | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const isLoading = useSignal(true)
  const load = async (cursor?: string) => {
    isLoading.value = true
    try {
      const page = await api<EntriesPage>('v1/manage/audit', { query: { limit: 100, cursor } })
      entries.value = cursor === undefined ? page.entries : [...entries.value, ...page.entries]
      next.value = page.next_cursor
    } catch (thrown) {
      error.value = thrown as Error
    }
    isLoading.value = false
  }
  const actors = [...new Set(entries.value.map(({ actor }) => actor))].filter(isKeyId)
  const names = useKeyNames(actors)
  useEffect(() => void load(), [])
  const more = next.value === undefined ? undefined : () => void (isLoading.value || load(next.value))
  return html`
    <${Page} title="Audit log">
      ${error.value && html`<${Failure} error=${error.value} />`}
      ${
        entries.value.length === 0 && isLoading.value
          ? html`<${Spinner} />`
          : html`<${Table} label="Changes" rows=${entries.value} keyOf=${({ id }: Entry) => id} onEnd=${more} columns=${[
              { head: 'Time', cell: ({ at }: Entry) => html`<${Time} at=${at} />` },
              { head: 'Change', cell: ({ action }: Entry) => html`<code>${action}</code>` },
              {
                head: 'Subject',
                cell: ({ subject, after, before }: Entry) =>
                  html`<${Name} text=${String(after?.name ?? before?.name ?? subject)} />`,
              },
              {
                head: 'By',
                isMinor: true,
                cell: ({ actor }: Entry) =>
                  isKeyId(actor)
                    ? html`<a href=${to(`keys/${actor}`)} title=${actor}><${Name} text=${names.get(actor) ?? `…${actor.slice(-12)}`} /></a>`
                    : html`<${Name} text=${actor} />`,
              },
              { head: 'What was changed', cell: (entry: Entry) => html`<${Difference} ...${entry} />` },
            ]} />`
      }
    <//>
  `
}

function isKeyId(actor: string): boolean {
  return /^[\da-f-]{36}$/.test(actor)
}

/** Returns the names of keys by their ids, as far as they are known; one that is deleted has none. */
function useKeyNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const names = useSignal<ReadonlyMap<string, string>>(new Map())
  const asked = useRef(new Set<string>())
  const load = async (id: string) => {
    asked.current.add(id)
    const { name } = await api<{ name: string }>(`v1/manage/apikey/${id}`)
    names.value = new Map(names.value).set(id, name)
  }
  useEffect(() => {
    for (const id of ids) if (!asked.current.has(id)) load(id).catch(() => {})
  }, [ids.join()])
  return names.value
}

/** The members that differ, before and after. */
function Difference({ before, after }: Pick<Entry, 'before' | 'after'>) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const changed = names.filter((name) => !toldElsewhere.includes(name) && text(before?.[name]) !== text(after?.[name]))
  if (changed.length === 0) return html`<span class="quiet">nothing</span>`
  return html`<ul>${changed.slice(0, 20).map((name) => {
    const [old, now] = [text(before?.[name]), text(after?.[name])]
    return html`<li key=${name}><span class="quiet">${name.replaceAll('_', ' ')}:</span> ${old !== '' && html`<del><${Name} text=${old} /></del> `}${now !== '' && html`${old !== '' && html`<span class="quiet" aria-hidden="true">→</span> `}<ins><${Name} text=${now} /></ins>`}</li>`
  })}</ul>`
}

/** Fields that are displayed in the other columns. */
const toldElsewhere = ['id', 'created_at', 'created_by']

/** Returns the text of a value; absent values are left out. */
function text(value: unknown): string {
  const isNothing = value === undefined || value === null || (typeof value === 'object' && isEmpty(value))
  if (isNothing) return ''
  if (Array.isArray(value)) return value.map(text).join(' · ')
  return typeof value === 'object' ? members(value) : String(value)
}

/** Lists members that have a value, as in `manage: read, operate: write`. */
function members(of: object): string {
  const said = Object.entries(of).filter(([, value]) => value !== null && value !== 'none')
  return said.map(([name, value]) => `${name}: ${text(value)}`).join(', ')
}

function isEmpty(value: object): boolean {
  return Object.values(value).every((one) => one === null || one === 'none')
}
