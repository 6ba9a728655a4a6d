import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { type Query, queryText } from './api.ts'

/** A page: `path` is the part of the address behind `#/`, and what comes after it is `rest`. */
export type PageProps = { rest: string; query: URLSearchParams }
export type Route = {
  path: string
  title: string
  load(): Promise<{ default: FunctionComponent<PageProps> }>
}

/** The pages in the order of the navigation. */
export const routes: readonly Route[] = [
  { path: 'overview', title: 'Overview', load: () => import('./pages/overview.ts') },
  { path: 'calls', title: 'Calls', load: () => import('./pages/calls.ts') },
  { path: 'keys', title: 'Keys', load: () => import('./pages/keys.ts') },
  { path: 'groups', title: 'Groups', load: () => import('./pages/groups.ts') },
  { path: 'models', title: 'Models', load: () => import('./pages/models.ts') },
  { path: 'providers', title: 'Providers', load: () => import('./pages/providers.ts') },
  { path: 'names', title: 'Names', load: () => import('./pages/names.ts') },
  { path: 'organization', title: 'Organization', load: () => import('./pages/organization.ts') },
  { path: 'changes', title: 'Log of changes', load: () => import('./pages/changes.ts') },
  { path: 'playground', title: 'Playground', load: () => import('./pages/playground.ts') },
]

/** Where the reader is. */
export const place = signal(placeIn(location.hash))

export type Place = { path: string; rest: string; query: URLSearchParams }

export function placeIn(address: string): Place {
  const [path = '', query = ''] = address.replace(/^#?\/?/, '').split('?', 2)
  const [first = '', ...rest] = path.split('/')
  return { path: first || 'overview', rest: rest.map(decodeURIComponent).join('/'), query: new URLSearchParams(query) }
}

/** The address of a page: `to('calls/' + id, { key })`. */
export function to(path: string, query: Query = {}): string {
  return `#/${path}${queryText(query)}`
}

/** Changes the query of the page that is shown, without a step in the history. */
export function changeQuery(changes: Query): void {
  const { path, rest, query } = place.value
  const all = { ...Object.fromEntries(query), ...changes } as Query
  history.replaceState(null, '', to([path, rest].filter(Boolean).map((part) => part.split('/').map(encodeURIComponent).join('/')).join('/'), all))
  place.value = placeIn(location.hash)
}

addEventListener('hashchange', () => {
  place.value = placeIn(location.hash)
})
