import type { ComponentChildren } from 'preact'
import { ApiError, UnreachableError } from '../api.ts'
import { html } from '../html.ts'

/** The frame of a page: its heading, what can be done on it, and its contents. */
export function Page({
  title,
  actions,
  children,
}: {
  title: ComponentChildren
  actions?: ComponentChildren
  children?: ComponentChildren
}) {
  return html`
    <div class="page-head"><h1>${title}</h1><div class="actions">${actions}</div></div>
    ${children}
  `
}

/** A titled part of a page. */
export function Section({
  title,
  actions,
  children,
}: {
  title: ComponentChildren
  actions?: ComponentChildren
  children?: ComponentChildren
}) {
  return html`<section class="section"><div class="section-head"><h2>${title}</h2><div class="actions">${actions}</div></div>${children}</section>`
}

/** Shows data that is loaded: an error, a sign that it is loading, or the data. */
export function Loading<Data>({
  of: { data, error },
  children,
}: {
  of: { data: Data | undefined; error: Error | undefined }
  children: (data: Data) => ComponentChildren
}) {
  // Every page says so when the router does not answer: what it has loaded before can still be read.
  if (error && !(error instanceof UnreachableError && data !== undefined)) return html`<${Failure} error=${error} />`
  return data === undefined ? html`<${Spinner} />` : html`${children(data)}`
}

export function Spinner() {
  return html`<p class="spinner" role="status"><span class="sr-only">Loading</span></p>`
}

/** An error in the words of the router. */
export function Failure({ error }: { error: Error }) {
  const about = error instanceof ApiError ? ` (${[error.status, error.code].filter(Boolean).join(' ')})` : ''
  return html`<p class="failure" role="alert"><bdi dir="auto">${error.message}</bdi>${about}</p>`
}

/** Shows a text where there is no data yet. */
export function Empty({ children }: { children?: ComponentChildren }) {
  return html`<p class="empty">${children}</p>`
}

/** Facts by name. Values that are undefined, null or empty are left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const shown = facts.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}
