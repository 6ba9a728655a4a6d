import { signal } from '@preact/signals'
import { type Query, queryText } from './api.ts'
import { decoded } from './format.ts'

/** Address of a page: the part after its path, and the query. */
export type PageProps = { rest: string; query: URLSearchParams }

/** Place where the reader is. */
export const place = signal(placeIn(location.hash))

export type Place = { path: string; rest: string; query: URLSearchParams }

export function placeIn(address: string): Place {
  const [path = '', query = ''] = address.replace(/^#?\/?/, '').split('?', 2)
  const [first = '', ...rest] = path.split('/')
  return { path: first || 'overview', rest: rest.map(decoded).join('/'), query: new URLSearchParams(query) }
}

/** Returns the address of a page: `to('calls/' + id, { key })`. */
export function to(path: string, query: Query = {}): string {
  return `#/${path}${queryText(query)}`
}

/** Changes the query of the page that is shown, without a step in the history. */
export function changeQuery(changes: Query): void {
  const { path, rest, query } = place.value
  const all = { ...Object.fromEntries(query), ...changes } as Query
  history.replaceState(
    null,
    '',
    to(
      [path, rest]
        .filter(Boolean)
        .map((part) => part.split('/').map(encodeURIComponent).join('/'))
        .join('/'),
      all,
    ),
  )
  place.value = placeIn(location.hash)
}

addEventListener('hashchange', () => {
  place.value = placeIn(location.hash)
})
