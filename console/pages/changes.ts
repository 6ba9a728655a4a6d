import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api } from '../api.ts'
import { html } from '../html.ts'
import { namesById } from '../known-names.ts'
import { useLoad } from '../load.ts'
import { Failure, Page, Spinner } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Name, Time } from '../parts/text.ts'
import { to } from '../place.ts'
import { returns } from '../reachable.ts'

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
      error.value = undefined
    } catch (thrown) {
      error.value = thrown as Error
    }
    isLoading.value = false
  }
  const names = useLoad(namesById).data ?? new Map<string, string>()
  useEffect(() => void load(), [returns.value])
  const more = next.value === undefined ? undefined : () => void (isLoading.value || load(next.value))
  return html`
    <${Page} title="Audit log">
      ${error.value && html`<${Failure} error=${error.value} />`}
      ${
        entries.value.length === 0 && isLoading.value
          ? html`<${Spinner} />`
          : html`<${Table} label="Changes" isStacked="as-list" rows=${entries.value} keyOf=${({ id }: Entry) => id} onEnd=${more} columns=${[
              { head: 'Time', cell: ({ at }: Entry) => html`<${Time} at=${at} />` },
              { head: 'Change', isMain: true, cell: ({ action }: Entry) => html`<code>${action}</code>` },
              {
                head: 'Subject',
                cell: ({ action, subject, after, before }: Entry) =>
                  action === 'content.read'
                    ? html`<a href=${to(`calls/${encodeURIComponent(subject)}`)} title=${subject}>call …${subject.slice(-12)}</a>`
                    : html`<${Name} text=${String(after?.name ?? before?.name ?? names.get(subject) ?? subject)} />`,
              },
              {
                head: 'By',
                isMinor: true,
                cell: ({ actor }: Entry) =>
                  isRecordId(actor)
                    ? html`<a href=${to(`keys/${actor}`)} title=${actor}><${Name} text=${names.get(actor) ?? `…${actor.slice(-12)}`} /></a>`
                    : html`<${Name} text=${actor} />`,
              },
              { head: 'What was changed', cell: (entry: Entry) => html`<${Difference} ...${entry} names=${names} />` },
            ]} />`
      }
    <//>
  `
}

function isRecordId(actor: string): boolean {
  return /^[\da-f-]{36}$/.test(actor)
}

/** The members that differ, before and after. */
function Difference({
  before,
  after,
  names: known,
}: Pick<Entry, 'before' | 'after'> & { names: ReadonlyMap<string, string> }) {
  const text = (value: unknown) => valueText(value, known)
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const changed = names.filter((name) => !toldElsewhere.includes(name) && text(before?.[name]) !== text(after?.[name]))
  if (changed.length === 0) return html`<span class="quiet">nothing</span>`
  return html`<ul>${changed.slice(0, 20).map((name) => {
    const [old, now] = [text(before?.[name]), text(after?.[name])]
    return html`<li key=${name}><span class="quiet">${name.replaceAll('_', ' ')}:</span> ${old !== '' && html`<del><${Name} text=${old} lines=${3} /></del> `}${now !== '' && html`${old !== '' && html`<span class="quiet" aria-hidden="true">→</span> `}<ins><${Name} text=${now} lines=${3} /></ins>`}</li>`
  })}</ul>`
}

/** Fields that are displayed in the other columns. */
const toldElsewhere = ['id', 'created_at', 'created_by']

/** Returns the text of a value, a key or a group by its name; absent values are left out. */
function valueText(value: unknown, names: ReadonlyMap<string, string>): string {
  const text = (one: unknown) => valueText(one, names)
  const isNothing = value === undefined || value === null || (typeof value === 'object' && isEmpty(value))
  if (isNothing) return ''
  if (Array.isArray(value)) return value.map(text).join(' · ')
  return typeof value === 'object' ? members(value, text) : (names.get(String(value)) ?? String(value))
}

/** Lists members that have a value, as in `manage: read, operate: write`. */
function members(of: object, text: (value: unknown) => string): string {
  const said = Object.entries(of).filter(([, value]) => value !== null && value !== 'none')
  return said.map(([name, value]) => `${name}: ${text(value)}`).join(', ')
}

function isEmpty(value: object): boolean {
  return Object.values(value).every((one) => one === null || one === 'none')
}
