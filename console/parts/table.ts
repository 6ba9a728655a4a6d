import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { Empty } from './page.ts'

/** A column: the contents of its cells, and their sort key, if they can be sorted. */
export type Column<Row> = {
  head: string
  cell(row: Row): ComponentChildren
  sortBy?(row: Row): string | number | undefined
  /** Numbers stand at the right. */
  isNumber?: boolean
  /** True for a column that is left out where there is little room. */
  isMinor?: boolean
  /** True for a column that says what a row is about. */
  isMain?: boolean
}

export type TableProps<Row> = {
  /** Description of the table, for those who do not see it. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf(row: Row): string
  empty?: ComponentChildren
  /** Called when the end comes into view. */
  onEnd?: (() => void) | undefined
  /** True where each row becomes a small block on narrow screens, whose first line is the column that `isMain`; `as-list`: each cell is a line. */
  isStacked?: boolean | 'as-list'
  /** The column that the rows are sorted by at first, and whether the largest comes first. */
  sorted?: readonly [head: string, isDown: boolean]
}

/** Rows under headings. */
export function Table<Row>({ label, columns, rows, keyOf, empty, onEnd, isStacked = false, sorted }: TableProps<Row>) {
  const order = useSignal<readonly [string, boolean] | undefined>(sorted)
  if (rows.length === 0 && !onEnd) return html`<${Empty}>${empty ?? 'There is nothing here yet.'}<//>`
  const by = columns.find(({ head }) => head === order.value?.[0])?.sortBy
  const shown = by ? rows.toSorted((one, other) => compare(by(one), by(other)) * (order.value?.[1] ? -1 : 1)) : rows
  const sort = (head: string) => {
    order.value = [head, order.value?.[0] === head ? !order.value[1] : false]
  }
  const classOf = ({ isNumber, isMinor, isMain }: Column<Row>) =>
    [isNumber && 'number', isMinor && 'minor', isMain && 'main'].filter(Boolean).join(' ')
  // Rows that are laid out in another way are no longer those of a table to a browser, unless they say so.
  const role = (name: string) => (isStacked ? name : undefined)
  return html`
    <div class=${['table', isStacked && 'stacked', isStacked].filter((one) => typeof one === 'string').join(' ')} tabindex="0" role="region" aria-label=${label}>
      <table role=${role('table')}>
        <thead role=${role('rowgroup')}>
          <tr role=${role('row')}>
            ${columns.map((column) => {
              const { head, sortBy } = column
              const isBy = order.value?.[0] === head
              const direction = isBy ? (order.value?.[1] ? 'descending' : 'ascending') : undefined
              return html`<th key=${head} scope="col" role=${role('columnheader')} class=${classOf(column)} aria-sort=${direction}>
                ${sortBy ? html`<button type="button" class="sort" onClick=${() => sort(head)}>${head}<span aria-hidden="true">${isBy ? (order.value?.[1] ? ' ↓' : ' ↑') : ''}</span></button>` : head === '' ? html`<span class="sr-only">Actions</span>` : head}
              </th>`
            })}
          </tr>
        </thead>
        <tbody role=${role('rowgroup')}>
          ${shown.map((row) => html`<tr key=${keyOf(row)} role=${role('row')}>${columns.map((column) => html`<td key=${column.head} role=${role('cell')} class=${classOf(column)} data-head=${column.head}>${column.cell(row)}</td>`)}</tr>`)}
        </tbody>
      </table>
      ${onEnd && html`<${End} onEnd=${onEnd} />`}
    </div>
  `
}

/** The end of what has been loaded: more is asked for when it comes near. */
function End({ onEnd }: { onEnd: () => void }) {
  const end = useRef<HTMLParagraphElement>(null)
  const latest = useRef(onEnd)
  latest.current = onEnd
  useEffect(() => {
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting) latest.current()
      },
      { rootMargin: '400px' },
    )
    if (end.current) observer.observe(end.current)
    return () => observer.disconnect()
    // Also after rows have come that do not fill the page: an observer reports changes only.
  })
  return html`<p class="end" ref=${end}><button type="button" class="link" onClick=${() => onEnd()}>Load more</button></p>`
}

function compare(one: string | number | undefined, other: string | number | undefined): number {
  if (one === other) return 0
  if (one === undefined) return 1
  if (other === undefined) return -1
  return typeof one === 'string' ? one.localeCompare(String(other)) : one - Number(other)
}
